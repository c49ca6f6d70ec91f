"""Expressions."""

from __future__ import annotations

from typing import Literal, cast

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile
from linnet.syntax.cursor import Failed
from linnet.syntax.literals import I64_LIMIT
from linnet.syntax.parse_types import TypeParser
from linnet.syntax.tokens import KEYWORDS, MAX_DEPTH, REDUCTIONS, Lexed
from linnet.syntax.tree import (
    Argument,
    Arm,
    ArmPattern,
    Binary,
    BinaryOp,
    BoolLit,
    Call,
    CasePattern,
    ErrorExpr,
    Expr,
    Field,
    FloatLit,
    If,
    Index,
    IndexEllipsis,
    IndexItem,
    IndexName,
    IndexPack,
    IndexSlice,
    IntLit,
    Match,
    Name,
    NamedType,
    NameExpr,
    NamePattern,
    NoneExpr,
    NonePattern,
    Pattern,
    Reduction,
    ShapeLit,
    SomeExpr,
    SomePattern,
    StringLit,
    Subscript,
    Tuple,
    TuplePattern,
    Type,
    Unary,
    UnaryOp,
    WildcardPattern,
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
ReductionOp = Literal["sum", "prod", "max", "min", "any", "all"]
_level = LEVELS.get
_PREFIX = frozenset(("!", "-", "+"))
_SLICE_ENDS = frozenset((":", "::", ",", "]"))


class ExpressionParser(TypeParser):
    """Reads expressions and patterns. Chains of operators and postfixes are read in loops, so
    that only real nesting recurses: at most five Python frames a level."""

    def __init__(self, file: SourceFile, lexed: Lexed, diagnostics: list[Diagnostic]) -> None:
        super().__init__(file, lexed, diagnostics)
        self.angles = {}
        self.brackets = None
        self.plain_less = False
        self.negated = -1

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

    # --- primaries ---

    def primary(self) -> Expr:
        first = self.pos
        kind = self.kinds[first]
        if kind == "name":
            if self.texts[first] in REDUCTIONS and self.is_reduction(first):
                return self.reduction()
            self.pos = first + 1
            self.height = 1
            name = Name(self.texts[first], self.span_at(first))
            return NameExpr(name, name.span)
        if kind == "(":
            return self.group()
        if kind == "[":
            self.pos = first + 1
            items = tuple(self.listed("]", self.item_or_pack, "an item"))
            self.grow(self.height, first)
            return ShapeLit(items, self.since(first))
        if kind == "some":
            return self.some()
        return self.word()

    def word(self) -> Expr:
        """A literal, `none`, `crate`, or a reserved word used as a name."""
        first = self.pos
        kind = self.kinds[first]
        self.height = 1
        self.pos = first + 1
        span = self.span_at(first)
        match kind:
            case "int":
                return self.integer(cast(int, self.lexed.literals[first]), first)
            case "float":
                return FloatLit(cast(float, self.lexed.literals[first]), span)
            case "string":
                return StringLit(cast(str, self.lexed.literals[first]), span)
            case "true" | "false":
                return BoolLit(kind == "true", span)
            case "none":
                return NoneExpr(span)
            case "number":
                return ErrorExpr(span)
            case "crate":
                return NameExpr(Name("crate", span), span)
        self.pos = first
        if kind == "reserved" or self.is_misused_keyword(kind):
            self.reserved_name()
            self.pos = first + 1
            return NameExpr(Name(self.texts[first], span), span)
        raise self.unexpected("an expression")

    def is_misused_keyword(self, kind: str) -> bool:
        """Whether a keyword stands where a name would, rather than beginning what follows."""
        if kind not in ("op", "block", "entry", "type", "state", "param", "buffer", "sub", "in"):
            return False
        return self.kinds[self.pos + 1] not in ("name", "reserved") and (
            self.kinds[self.pos + 1] not in KEYWORDS
        )

    def integer(self, value: int, first: int) -> Expr:
        span = self.span_at(first)
        if value == I64_LIMIT and (self.negated != first or self.kinds[self.pos] in "([."):
            self.report(f"`{self.texts[first]}` is larger than any `i64`", first, code="E1005")
            return ErrorExpr(span)
        return IntLit(value, span)

    def some(self) -> Expr:
        first = self.expect("some")
        self.expect("(", " after `some`")
        value = self.expr()
        self.expect(")")
        self.grow(self.height, first)
        return SomeExpr(value, self.since(first))

    def group(self) -> Expr:
        """`(a)`, which leaves no trace in the tree, or a tuple."""
        first = self.expect("(")
        if self.kinds[self.pos] == ")":
            raise self.unexpected("an expression")
        value = self.expr()
        if self.accept(")"):
            return value
        if self.kinds[self.pos] != ",":
            raise self.unexpected("`,` or `)`")
        height = self.height
        self.pos += 1
        rest = self.listed(")", self.expr, "an expression")
        self.grow(max(height, self.height), first)
        if not rest:
            self.report("a tuple has at least two items", first, span=self.since(first))
        return Tuple((value, *rest), self.since(first))

    # --- reductions ---

    def is_reduction(self, at: int) -> bool:
        kinds = self.kinds
        if kinds[at + 1] == "[":
            return True
        return (
            kinds[at + 1] == "<"
            and kinds[at + 2] in ("name", "reserved")
            and kinds[at + 3] == ">"
            and kinds[at + 4] == "["
        )

    def reduction(self) -> Expr:
        first = self.pos
        self.pos += 1
        dtype: Type | None = None
        if self.accept("<"):
            at = self.pos
            path = self.path("a dtype")
            dtype = NamedType(path, None, self.since(at))
            self.close_angle()
        indices = self.index_names()
        body = self.expr()
        self.grow(self.height, first)
        op = cast(ReductionOp, self.texts[first])
        return Reduction(op, dtype, indices, body, self.since(first))

    def index_names(self) -> tuple[IndexName, ...]:
        opening = self.expect("[")
        names = tuple(self.listed("]", self.index_name, "an index"))
        if not names and self.pos - opening == 2:
            self.report("an index is missing between `[` and `]`", self.pos - 1)
        return names

    def index_name(self) -> IndexName:
        first = self.pos
        pack = self.accept("*")
        name = self.name("the name of an index")
        return IndexName(name, pack, self.since(first))

    # --- if and match ---

    def if_(self) -> Expr:
        """`if`, its chain of `else if` read in a loop."""
        branches: list[tuple[int, Expr, Expr]] = []
        heights: list[int] = []
        otherwise: Expr | None = None
        while otherwise is None:
            first = self.expect("if")
            condition = self.expr()
            height = self.height
            then = self.braced()
            branches.append((first, condition, then))
            heights.append(max(height, self.height))
            if len(branches) > MAX_DEPTH:
                raise self.too_deep(first)
            if self.kinds[self.pos] != "else":
                raise self.unexpected("`else`", help="`if` is an expression: it needs both values")
            self.pos += 1
            if self.kinds[self.pos] != "if":
                otherwise = self.braced()
        height = self.height
        for first, condition, then in reversed(branches):
            self.grow(max(height, heights.pop()), first)
            height = self.height
            otherwise = If(condition, then, otherwise, self.since(first))
        return otherwise

    def braced(self) -> Expr:
        self.expect("{")
        value = self.expr()
        self.expect("}", " after the value")
        return value

    def match_(self) -> Expr:
        first = self.expect("match")
        subject = self.expr()
        height = self.height
        self.expect("{")
        arms: list[Arm] = []
        while not self.accept("}"):
            arms.append(self.arm())
            height = max(height, self.height)
            self.accept(",")
        self.grow(height, first)
        return Match(subject, tuple(arms), self.since(first))

    def arm(self) -> Arm:
        first = self.pos
        pattern = self.arm_pattern()
        height = self.height
        self.expect("=>", " after the pattern")
        value = self.expr()
        self.height = max(height, self.height)
        return Arm(pattern, value, self.since(first))

    def arm_pattern(self) -> ArmPattern:
        first = self.pos
        self.height = 1
        if self.accept("none"):
            return NonePattern(self.since(first))
        if self.accept("some"):
            self.expect("(", " after `some`")
            pattern = self.pattern()
            self.expect(")")
            self.grow(self.height, first)
            return SomePattern(pattern, self.since(first))
        path = self.path("a pattern")
        if str(path) == "_":
            return WildcardPattern(path.span)
        return CasePattern(path, path.span)

    # --- patterns ---

    def pattern(self) -> Pattern:
        self.enter()
        first = self.pos
        result: Pattern
        if self.kinds[first] == "(":
            self.pos += 1
            items = tuple(self.listed(")", self.pattern, "a pattern"))
            self.grow(self.height, first)
            if not items and self.pos - first == 2:
                self.report("a pattern is missing between `(` and `)`", self.pos - 1)
            result = TuplePattern(items, self.since(first))
        else:
            name = self.name()
            self.height = 1
            result = NamePattern(name, name.span)
        self.depth -= 1
        return result
