"""Primaries: names, literals, groups, reductions, `if`, `match`, and patterns."""

from __future__ import annotations

from typing import Literal, cast

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile
from linnet.syntax.cursor import Failed
from linnet.syntax.literals import I64_LIMIT
from linnet.syntax.parse_types import TypeParser
from linnet.syntax.tokens import KEYWORDS, MAX_DEPTH, REDUCTIONS, Lexed
from linnet.syntax.tree import (
    Arm,
    ArmPattern,
    BoolLit,
    CasePattern,
    ErrorExpr,
    Expr,
    FloatLit,
    If,
    IndexName,
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
    Tuple,
    TuplePattern,
    Type,
    WildcardPattern,
)

ReductionOp = Literal["sum", "prod", "max", "min", "any", "all"]


class PrimaryParser(TypeParser):
    """Reads what operators and postfixes are applied to, and patterns."""

    def __init__(self, file: SourceFile, lexed: Lexed, diagnostics: list[Diagnostic]) -> None:
        super().__init__(file, lexed, diagnostics)
        self.angles = {}
        self.brackets = None
        self.plain_less = False
        self.negated = -1

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
        opening, depth = self.expect("{"), self.depth
        value: Expr
        try:
            value = self.expr()
            if self.kinds[self.pos] != "}":
                raise self.unexpected("`}` after the value")
        except Failed:
            value = ErrorExpr(self.since(opening + 1))
            while self.kinds[self.pos] != "}":
                self.resume("}", depth)
        self.pos += 1
        return value

    def match_(self) -> Expr:
        first = self.expect("match")
        subject = self.expr()
        height = self.height
        self.expect("{")
        arms: list[Arm] = []
        while self.kinds[self.pos] != "}":
            depth = self.depth
            try:
                arms.append(self.arm())
                height = max(height, self.height)
                self.accept(",")
            except Failed:
                self.resume("}", depth)
        self.pos += 1
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
