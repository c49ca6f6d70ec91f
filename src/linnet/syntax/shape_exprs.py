"""The pieces of expressions, types and patterns."""

from __future__ import annotations

from typing import assert_never

from linnet.syntax.layout import Assignment, Chain, Conditional, Piece, Seq, Text
from linnet.syntax.parse_exprs import LEVELS
from linnet.syntax.shape import Shaper
from linnet.syntax.tokens import Comment
from linnet.syntax.tree import (
    Argument,
    Arm,
    ArmPattern,
    ArrayTypeExpr,
    Binary,
    BoolLit,
    Call,
    CasePattern,
    ErrorExpr,
    ErrorType,
    Expr,
    Field,
    FloatLit,
    GenericArg,
    If,
    Index,
    IndexEllipsis,
    IndexItem,
    IndexName,
    IndexPack,
    IndexSlice,
    IntLit,
    Match,
    NamedType,
    NameExpr,
    NamePattern,
    NoneExpr,
    NonePattern,
    OptionalTypeExpr,
    PackExpr,
    Pattern,
    Reduction,
    ShapeLit,
    SomeExpr,
    SomePattern,
    StringLit,
    Subscript,
    TensorTypeExpr,
    Tuple,
    TuplePattern,
    TupleTypeExpr,
    Type,
    Unary,
    WildcardPattern,
)

_TYPES = (
    NamedType,
    TensorTypeExpr,
    TupleTypeExpr,
    ArrayTypeExpr,
    OptionalTypeExpr,
    ErrorType,
)


class ExprShaper(Shaper):
    """Shapes what stands inside statements and signatures."""

    def expr(self, node: Expr) -> Piece:
        # A parenthesis before a node's first token groups it: the tree doesn't hold it.
        if self.kind == "(" and self.start < node.span.start:
            return self.bracket([node], self.expr, comma=False)
        match node:
            case NameExpr() | IntLit() | FloatLit() | BoolLit() | StringLit() | NoneExpr():
                return self.take()
            case Field() | Call() | Subscript():
                return self.postfix(node)
            case Binary():
                return self.binary(node)
            case Unary():
                operator = self.take()
                operand = self.expr(node.operand)
                return Seq([operator, operand], operand.style)
            case Tuple() | ShapeLit():
                return self.bracket(node.items, self.expr)
            case PackExpr():
                return Seq([self.take(), self.take()])
            case Reduction():
                return self.reduction(node)
            case If():
                return self.conditional(node)
            case Match():
                return self.match(node)
            case SomeExpr():
                word = self.take()
                return Seq([word, self.bracket([node.value], self.expr, comma=False)], "hug")
            case ErrorExpr():
                return self.take()
            case _:
                assert_never(node)

    def postfix(self, node: Field | Call | Subscript) -> Piece:
        """A chain of postfixes, its parts side by side."""
        chain: list[Field | Call | Subscript] = []
        base: Expr = node
        while isinstance(base, (Field, Call, Subscript)):
            # Parentheses around a part of the chain end it.
            if chain and base.span.start > node.span.start:
                break
            chain.append(base)
            base = base.callee if isinstance(base, Call) else base.base
        parts = [self.expr(base)]
        for link in reversed(chain):
            match link:
                case Field():
                    parts += [self.take(), self.take()]
                case Call():
                    if link.generics is not None:
                        parts.append(self.bracket(link.generics, self.generic_arg))
                    parts.append(self.bracket(link.args, self.argument))
                case Subscript():
                    parts.append(self.bracket(link.items, self.index))
        listed = any(not isinstance(link, Field) for link in chain)
        return Seq(parts, "hug" if listed else "next")

    def argument(self, node: Argument) -> Piece:
        if node.name is None:
            return self.expr(node.value)
        prefix = [self.take(), Text(" "), self.take(), Text(" ")]
        value = self.expr(node.value)
        return Seq([*prefix, value], value.style)

    def generic_arg(self, node: GenericArg) -> Piece:
        if isinstance(node.value, _TYPES):
            return self.type_(node.value)
        return self.expr(node.value)

    def index(self, node: Index) -> Piece:
        match node:
            case IndexItem():
                return self.expr(node.value)
            case IndexEllipsis():
                return self.take()
            case IndexPack():
                return Seq([self.take(), self.take()])
            case IndexSlice():
                return self.slice_(node)
            case _:
                assert_never(node)

    def slice_(self, node: IndexSlice) -> Piece:
        parts: list[Piece] = []
        if node.start is not None:
            parts.append(self.expr(node.start))
        double = self.kind == "::"
        parts.append(self.take())
        if node.stop is not None:
            parts.append(self.expr(node.stop))
        if not double and self.kind == ":":
            parts.append(self.take())
        if node.step is not None:
            parts.append(self.expr(node.step))
        return Seq(parts)

    def binary(self, node: Binary) -> Piece:
        """Operands of one level side by side: the left spine of the tree, as far as no
        parenthesis stands on it."""
        level = LEVELS[node.op]
        spine = [node]
        left = node.left
        while isinstance(left, Binary) and LEVELS[left.op] == level:
            if left.span.start > node.span.start:
                break
            spine.append(left)
            left = left.left
        operands = [self.expr(left)]
        operators: list[Piece] = []
        remarks: list[list[Comment]] = []
        for link in reversed(spine):
            notes = self.ending()
            operators.append(self.take())
            remarks.append(notes + self.ending())
            operands.append(self.expr(link.right))
        return Chain(operands, operators, remarks)

    def reduction(self, node: Reduction) -> Piece:
        parts = [self.take()]
        if node.dtype is not None:
            parts.append(self.bracket([node.dtype], self.type_, comma=False))
        parts.append(self.bracket(node.indices, self.index_name))
        body = self.expr(node.body)
        return Seq([*parts, Text(" "), body], "fit" if body.style == "hug" else "next")

    def index_name(self, node: IndexName) -> Piece:
        if not node.pack:
            return self.take()
        return Seq([self.take(), self.take()])

    def conditional(self, node: If) -> Piece:
        parts: list[Piece] = []
        branch: Expr = node
        while isinstance(branch, If):
            word = self.take(0)
            parts += [Seq([word, Text(" ")]), self.expr(branch.condition), Text(" ")]
            parts.append(self.braces(branch.then))
            parts += [Text(" "), self.take(0), Text(" ")]
            branch = branch.otherwise
            # `else { if ... }` stays as it is written.
            if self.kind == "{":
                break
        parts.append(self.braces(branch))
        return Conditional(parts)

    def braces(self, node: Expr) -> Piece:
        return self.bracket([node], self.expr, comma=False, pad=" ")

    def match(self, node: Match) -> Piece:
        parts = [self.take(), Text(" "), self.expr(node.subject), Text(" ")]
        return Seq([*parts, self.bracket(node.arms, self.arm, force=True)], "hug")

    def arm(self, node: Arm) -> Piece:
        prefix = [self.arm_pattern(node.pattern), Text(" "), self.take()]
        return self.assigned(prefix, node.value)

    def assigned(self, prefix: list[Piece], value: Expr | Type) -> Piece:
        """`prefix value`, the prefix up to its `=`."""
        remarks = self.ending()
        right = self.type_(value) if isinstance(value, _TYPES) else self.expr(value)
        return Assignment(Seq(prefix), right, remarks)

    # --- patterns ---

    def arm_pattern(self, node: ArmPattern) -> Piece:
        match node:
            case SomePattern():
                word = self.take()
                return Seq([word, self.bracket([node.pattern], self.pattern, comma=False)])
            case NonePattern() | WildcardPattern():
                return self.take()
            case CasePattern():
                return self.path(node.path)
            case _:
                assert_never(node)

    def pattern(self, node: Pattern) -> Piece:
        match node:
            case NamePattern():
                return self.take()
            case TuplePattern():
                return self.bracket(node.items, self.pattern)
            case _:
                assert_never(node)

    # --- types ---

    def type_(self, node: Type) -> Piece:
        match node:
            case NamedType():
                path = self.path(node.path)
                if node.generics is None:
                    return path
                return Seq([path, self.bracket(node.generics, self.generic_arg)], "hug")
            case TensorTypeExpr():
                word = self.take()
                marks = "," * (len(node.dims) - 1) + ";"
                parts = (*node.dims, node.dtype)
                return Seq([word, self.mixed(parts, marks)], "hug")
            case TupleTypeExpr():
                return self.bracket(node.items, self.type_)
            case ArrayTypeExpr():
                return self.mixed((node.item, node.count), ";")
            case OptionalTypeExpr():
                inner = self.type_(node.inner)
                return Seq([inner, self.take()], inner.style)
            case ErrorType():
                return self.take()
            case _:
                assert_never(node)

    def annotation(self, node: Type | None) -> list[Piece]:
        """`: type`, when it is there."""
        if node is None:
            return []
        return [self.take(), Text(" "), self.type_(node)]

    def mixed(self, nodes: tuple[Expr | Type, ...], separators: str) -> Piece:
        """The brackets of a tensor or array type."""
        return self.bracket(nodes, self.type_or_expr, comma=False, separators=separators)

    def type_or_expr(self, node: Expr | Type) -> Piece:
        return self.type_(node) if isinstance(node, _TYPES) else self.expr(node)
