"""Items and members."""

from __future__ import annotations

from typing import Literal, cast

from linnet.diagnostics.span import Span
from linnet.syntax.cursor import MEMBER_STARTS, Failed
from linnet.syntax.parse_statements import StatementParser
from linnet.syntax.parse_types import ADDITIVE
from linnet.syntax.tokens import MAX_BODIES, doc_text
from linnet.syntax.tree import (
    Alias,
    BlockDecl,
    Body,
    Const,
    Enum,
    ErrorExpr,
    ErrorType,
    Expr,
    Function,
    Generic,
    GenericArg,
    GradClause,
    Item,
    Member,
    Name,
    Param,
    RelationOp,
    Struct,
    StructField,
    Type,
    WhereClause,
)

_RELATIONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
ITEMS = "`const`, `type`, `struct`, `enum`, `fn`, `op`, `entry` or `block`"


class ItemParser(StatementParser):
    """Reads items, blocks and their members."""

    def item(self, expected: str) -> Item:
        first = self.pos
        doc = self.doc(first)
        public = self.accept("pub")
        match self.kinds[self.pos]:
            case "const":
                return self.const(first, public, doc)
            case "type":
                return self.alias(first, public, doc)
            case "struct":
                return self.struct(first, public, doc)
            case "enum":
                return self.enum(first, public, doc)
            case "fn" | "op" | "entry":
                return self.function(first, public, doc)
            case "block":
                return self.block(first, public, doc)
        if public and self.kinds[self.pos] == "use":
            raise self.unexpected(ITEMS, help="names brought in by `use` cannot be passed on")
        raise self.unexpected(ITEMS if public else expected)

    def doc(self, at: int) -> str | None:
        ranges = self.lexed.comments.get(at)
        if ranges is None:
            return None
        return doc_text([self.file.text[start:end] for start, end in ranges])

    def const(self, first: int, public: bool, doc: str | None) -> Const:
        self.pos += 1
        name = self.name()
        declared = self.declared_type()
        self.expect("=")
        value = self.item_value(first)
        return Const(public, name, declared, value, doc, self.since(first))

    def item_value(self, first: int) -> Expr:
        start, depth = self.pos, self.depth
        try:
            return self.expr()
        except Failed:
            self.depth = depth
            broken = ErrorExpr(self.since(start))
            self.skip_item(first)
            return broken

    def alias(self, first: int, public: bool, doc: str | None) -> Alias:
        self.pos += 1
        name = self.name()
        generics = self.generics()
        self.expect("=")
        target = self.item_type(first)
        return Alias(public, name, generics, target, doc, self.since(first))

    def item_type(self, first: int) -> Type:
        """The type that ends an item or member begun at `first`."""
        start, depth = self.pos, self.depth
        try:
            return self.type_()
        except Failed:
            self.depth = depth
            broken = ErrorType(self.since(start))
            self.skip_item(first)
            return broken

    def struct(self, first: int, public: bool, doc: str | None) -> Struct:
        self.pos += 1
        name = self.name()
        generics = self.generics()
        self.expect("{")
        fields: list[StructField] = []
        while not self.accept("}"):
            start = self.pos
            field = self.name("a field")
            self.expect(":", " and the field's type")
            declared = self.type_()
            fields.append(StructField(field, declared, self.since(start)))
            self.accept(",")
        return Struct(public, name, generics, tuple(fields), doc, self.since(first))

    def enum(self, first: int, public: bool, doc: str | None) -> Enum:
        self.pos += 1
        name = self.name()
        self.expect("{")
        cases = tuple(self.listed("}", self.case, "a case"))
        return Enum(public, name, cases, doc, self.since(first))

    def case(self) -> Name:
        return self.name("the name of a case")

    # --- functions ---

    def function(self, first: int, public: bool, doc: str | None) -> Function:
        kind = cast(Literal["fn", "op", "entry"], self.kinds[self.pos])
        self.pos += 1
        name = self.name()
        generics: tuple[Generic, ...] = ()
        params: tuple[Param, ...] = ()
        result: Type | None = None
        where: tuple[WhereClause, ...] = ()
        depth = self.depth
        try:
            generics = self.generics()
            self.expect("(")
            params = tuple(self.listed(")", self.param, "a parameter"))
            result = self.result_type(kind)
            where = self.where()
        except Failed:
            self.depth, self.plain_less = depth, False
            if not self.skip_to("{"):
                body = Body((), self.since(self.pos))
                span = self.since(first)
                return Function(
                    kind, public, name, generics, params, result, where, body, None, doc, span
                )
        body = self.body()
        grad = self.grad(kind)
        span = self.since(first)
        return Function(kind, public, name, generics, params, result, where, body, grad, doc, span)

    def result_type(self, kind: str) -> Type | None:
        if self.accept("->"):
            return self.type_()
        if kind == "op":
            self.report("an `op` needs a result type: `-> type`", self.pos)
        elif self.kinds[self.pos] == ":":
            raise self.unexpected("`->` and the result's type")
        return None

    def param(self) -> Param:
        first = self.pos
        name = self.name("a parameter")
        self.expect(":", " and the parameter's type")
        start, depth = self.pos, self.depth
        try:
            declared = self.type_()
        except Failed:
            self.depth = depth
            declared = ErrorType(self.since(start))
            self.skip_in_list(")")
        default = self.expr() if self.accept("=") else None
        return Param(name, declared, default, self.since(first))

    def grad(self, kind: str) -> GradClause | None:
        first = self.pos
        if self.texts[first] != "grad" or self.kinds[first + 1] != "(":
            return None
        if kind != "op":
            self.report(f"only an `op` has a `grad` clause, not an `{kind}`", first)
        self.pos += 2
        result = self.name("the name of the result")
        self.expect(",")
        gradient = self.name("the name of the gradient")
        self.accept(",")
        self.expect(")")
        body = self.body()
        clause = GradClause(result, gradient, body, self.since(first))
        return clause if kind == "op" else None

    def generics(self) -> tuple[Generic, ...]:
        """`<...>` after an item's name, when it is there."""
        if self.kinds[self.pos] != "<":
            return ()
        opening = self.pos
        self.pos += 1
        result: list[Generic] = []
        while not self.at_angle_end():
            depth = self.depth
            try:
                result.append(self.generic())
                if not self.accept(",") and not self.at_angle_end():
                    raise self.unexpected("`,` or `>` after a generic")
            except Failed:
                self.depth = depth
                self.skip_in_list(">")
                self.accept(",")
        self.close_angle()
        if not result and self.pos - opening == 2:
            self.report("the list of generics is empty", opening)
        return tuple(result)

    def generic(self) -> Generic:
        first = self.pos
        pack = self.accept("*")
        name = self.name("a generic")
        self.expect(":", " and the generic's kind")
        kind = self.name("a kind such as `Dim` or `Float`")
        default: GenericArg | None = self.generic_arg() if self.accept("=") else None
        return Generic(name, pack, kind, default, self.since(first))

    def where(self) -> tuple[WhereClause, ...]:
        """`where` and its clauses, when it is there. No `<` in them opens generic arguments."""
        if not self.accept("where"):
            return ()
        clauses: list[WhereClause] = []
        self.plain_less = True
        while True:
            clauses.append(self.where_clause())
            if not self.accept(",") or self.kinds[self.pos] == "{":
                break
        self.plain_less = False
        return tuple(clauses)

    def where_clause(self) -> WhereClause:
        first = self.pos
        left = self.operators(ADDITIVE)
        op = self.kinds[self.pos]
        if op not in _RELATIONS:
            help = "write `==`" if op == "=" else None
            raise self.unexpected("one of `== != < <= > >=`", help=help)
        self.pos += 1
        right = self.operators(ADDITIVE)
        return WhereClause(left, cast(RelationOp, op), right, self.since(first))

    # --- blocks ---

    def block(self, first: int, public: bool, doc: str | None) -> BlockDecl:
        self.pos += 1
        name = self.name()
        generics: tuple[Generic, ...] = ()
        where: tuple[WhereClause, ...] = ()
        depth = self.depth
        try:
            generics = self.generics()
            where = self.where()
        except Failed:
            self.depth, self.plain_less = depth, False
            self.skip_to("{")
        opening = self.expect("{")
        members: list[Member] = []
        items: list[Item] = []
        if self.bodies == MAX_BODIES:
            self.skip_to_end(opening, self.bracket_ends())
        else:
            self.bodies += 1
            self.block_items(opening, members, items)
            self.bodies -= 1
        span = self.since(first)
        return BlockDecl(public, name, generics, where, tuple(members), tuple(items), doc, span)

    def block_items(self, opening: int, members: list[Member], items: list[Item]) -> None:
        while not self.accept("}"):
            if self.kinds[self.pos] in ("eof", "module"):
                self.unclosed(opening, "a member, an item or `}`")
                return
            start, depth, bodies = self.pos, self.depth, self.bodies
            try:
                if self.begins_member():
                    members.append(self.member())
                else:
                    items.append(self.item("a member, an item or `}`"))
            except Failed:
                self.depth, self.bodies = depth, bodies
                self.skip_item(start)

    def begins_member(self) -> bool:
        kind = self.kinds[self.pos]
        return kind in MEMBER_STARTS or (
            kind == "pub" and self.kinds[self.pos + 1] in MEMBER_STARTS
        )

    def member(self) -> Member:
        first = self.pos
        doc = self.doc(first)
        if self.accept("pub"):
            self.report("a member is never `pub`", first, help="give it a `pub fn` that returns it")
        kind = cast(Literal["param", "buffer", "state", "sub"], self.kinds[self.pos])
        self.pos += 1
        name = self.name("the member's name")
        self.expect(":", " and the member's type")
        declared = self.item_type(first)
        optional, default = False, None
        if self.kinds[self.pos] == "=":
            optional, default = self.member_default(kind, first)
        span = self.since(first)
        return Member(kind, name, declared, optional, default, doc, span)

    def member_default(self, kind: str, first: int) -> tuple[bool, Span | None]:
        equals = self.expect("=")
        allowed = kind in ("param", "sub")
        if self.accept("none"):
            if not allowed:
                self.report(f"a `{kind}` cannot be optional", equals)
                return False, self.since(equals)
            return True, None
        start = self.pos
        self.item_value(first)
        span = self.since(start)
        if kind == "param":
            message = "a `param` takes its value from the weights, so none can be given here"
            help = "only `= none`, which makes it optional, can stand here"
            self.report(message, start, code="E4102", span=span, help=help)
        else:
            what = "starts at zero" if kind == "state" else "takes no value"
            message = f"a `{kind}` {what}, so nothing can be given here"
            self.report(message, start, span=span)
        return False, span
