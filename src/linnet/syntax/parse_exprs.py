"""Operators and postfixes."""

from __future__ import annotations

from typing import cast

from linnet.syntax.cursor import Failed
from linnet.syntax.parse_primaries import PrimaryParser
from linnet.syntax.tokens import KEYWORDS, MAX_DEPTH
from linnet.syntax.tree import (
    Argument,
    Binary,
    BinaryOp,
    Call,
    Expr,
    Field,
    Index,
    IndexEllipsis,
    IndexItem,
    IndexPack,
    IndexSlice,
    Name,
    Subscript,
    Unary,
    UnaryOp,
)

LEVELS = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
}

_level = LEVELS.get
_PREFIX = frozenset(("!", "-", "+"))
_SLICE_ENDS = frozenset((":", "::", ",", "]"))


class ExpressionParser(PrimaryParser):
    """Reads expressions. Chains of operators and postfixes are read in loops, so that only real
    nesting recurses: at most seven Python frames a level."""

    def expr(self) -> Expr:
        self.enter()
        kind = self.kinds[self.pos]
        node: Expr
        if kind == "if":
            node = self.if_()
        elif kind == "match":
            node = self.match_()
        else:
            node = self.operators(0)
        self.depth -= 1
        return node

    def operators(self, floor: int, left: Expr | None = None, first: int = -1) -> Expr:
        kinds = self.kinds
        if left is None:
            first = self.pos
            left = self.operand()
        else:
            left = self.postfix(left, first)
        if _level(kinds[self.pos], -1) < max(floor, 1):
            return left
        nodes, firsts, heights = [left], [first], [self.height]
        pending: list[tuple[int, int]] = []
        while True:
            level = _level(kinds[self.pos], -1)
            if level < floor:
                level = -1
            while pending and pending[-1][0] >= level:
                self.fold(nodes, firsts, heights, pending.pop()[1])
            if level < 0:
                self.height = heights[0]
                return nodes[0]
            pending.append((level, self.pos))
            self.pos += 1
            firsts.append(self.pos)
            nodes.append(self.operand())
            heights.append(self.height)

    def fold(self, nodes: list[Expr], firsts: list[int], heights: list[int], op: int) -> None:
        """Join the last two operands by the operator at token `op`."""
        right, right_height = nodes.pop(), heights.pop()
        firsts.pop()
        self.grow(max(heights[-1], right_height), op)
        heights[-1] = self.height
        nodes[-1] = Binary(
            cast(BinaryOp, self.kinds[op]),
            nodes[-1],
            right,
            self.span_at(op),
            self.since(firsts[-1]),
        )

    def operand(self) -> Expr:
        """Prefix operators, a primary, and what follows it."""
        first = self.pos
        kinds = self.kinds
        if kinds[first] not in _PREFIX:
            return self.postfix(self.primary(), first)
        while kinds[self.pos] in _PREFIX:
            self.pos += 1
        last = self.pos
        if last - first >= MAX_DEPTH:
            raise self.too_deep(first)
        if kinds[last - 1] == "-":
            self.negated = last
        node = self.postfix(self.primary(), last)
        for at in range(last - 1, first - 1, -1):
            self.grow(self.height, first)
            node = Unary(cast(UnaryOp, kinds[at]), node, self.since(at))
        return node

    # --- postfixes ---

    def postfix(self, node: Expr, first: int) -> Expr:
        kinds = self.kinds
        while True:
            kind = kinds[self.pos]
            if kind == "(":
                node = self.call(node, first)
            elif kind == "[":
                node = self.subscript(node, first)
            elif kind == ".":
                self.pos += 1
                name = self.name("a name after `.`")
                self.grow(self.height, first)
                node = Field(node, name, self.since(first))
            elif kind == "<" and kinds[self.pos - 1] == "name" and self.opens_generics(self.pos):
                node = self.call(node, first)
            else:
                return node

    def call(self, callee: Expr, first: int) -> Expr:
        height = self.height
        generics = None
        if self.kinds[self.pos] == "<":
            generics = self.generic_args()
            height = max(height, self.height)
        args: list[Argument] = []
        self.expect("(")
        # `listed` would do, but for two more frames a level.
        while self.kinds[self.pos] != ")":
            depth = self.depth
            try:
                start = self.pos
                name = self.assigned_name()
                value = self.expr()
                args.append(Argument(name, value, self.since(start)))
                height = max(height, self.height)
                self.separator(")", "an argument")
            except Failed:
                self.resume(")", depth)
        self.pos += 1
        self.grow(height, first)
        return Call(callee, generics, tuple(args), self.since(first))

    def assigned_name(self) -> Name | None:
        """`name =` before an argument or an assigned value, when it is there."""
        at = self.pos
        kind = self.kinds[at]
        if self.kinds[at + 1] != "=":
            return None
        if kind != "name" and kind != "reserved" and kind not in KEYWORDS:
            return None
        name = self.name()
        self.pos += 1
        return name

    def subscript(self, base: Expr, first: int) -> Expr:
        height = self.height
        opening = self.expect("[")
        items: list[Index] = []
        while self.kinds[self.pos] != "]":
            depth = self.depth
            try:
                self.height = 0
                items.append(self.index())
                height = max(height, self.height)
                self.separator("]", "an index")
            except Failed:
                self.resume("]", depth)
        self.pos += 1
        self.grow(height, first)
        if not items and self.pos - opening == 2:
            self.report("an index is missing between `[` and `]`", self.pos - 1)
        return Subscript(base, tuple(items), self.since(first))

    def index(self) -> Index:
        first = self.pos
        kind = self.kinds[first]
        if kind == "...":
            self.pos += 1
            return IndexEllipsis(self.since(first))
        if kind == "*":
            self.pos += 1
            return IndexPack(self.name("the name of a pack after `*`"), self.since(first))
        start = None
        if kind != ":" and kind != "::":
            start = self.expr()
            if self.kinds[self.pos] != ":" and self.kinds[self.pos] != "::":
                return IndexItem(start, start.span)
        return self.slice_(start, first)

    def slice_(self, start: Expr | None, first: int) -> Index:
        height = self.height if start is not None else 0
        stop = step = None
        double = self.kinds[self.pos] == "::"
        self.pos += 1
        if not double:
            if self.kinds[self.pos] not in _SLICE_ENDS:
                stop = self.expr()
                height = max(height, self.height)
            double = self.accept(":")
        if double and self.kinds[self.pos] not in _SLICE_ENDS:
            step = self.expr()
            height = max(height, self.height)
        self.grow(height, first)
        return IndexSlice(start, stop, step, self.since(first))
