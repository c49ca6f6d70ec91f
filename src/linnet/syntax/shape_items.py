"""The pieces of items and whole files."""

from __future__ import annotations

from typing import assert_never

from linnet.syntax.layout import Bracket, Entry, Piece, Seq, Text
from linnet.syntax.layout_items import Declaration, Lines, Where
from linnet.syntax.shape import at_line_end
from linnet.syntax.shape_statements import StatementShaper
from linnet.syntax.tokens import Comment
from linnet.syntax.tree import (
    Alias,
    BlockDecl,
    Const,
    Enum,
    Function,
    Generic,
    Item,
    Member,
    Module,
    Name,
    Param,
    Struct,
    StructField,
    Use,
    UseName,
    WhereClause,
)


class ModuleShaper(StatementShaper):
    """Shapes a file."""

    def lines(self, module: Module) -> Lines:
        entries: list[Entry] = []
        if module.name is not None:
            entry = self.entry(entries, "module")
            entry.piece = Seq([*self.words("module"), self.path(module.name)])
        parts: list[Use | Item] = [*module.uses, *module.items]
        for part in parts:
            if isinstance(part, Use):
                entry = self.entry(entries, "use")
                entry.piece = self.use(part)
            else:
                self.item_entry(entries, part)
        if entries:
            entries[-1].trail += self.trailing()
        return Lines([], entries, self.lead())

    def item_entry(self, entries: list[Entry], item: Item) -> None:
        kind = "small" if isinstance(item, (Const, Alias)) else "big"
        entry = self.entry(entries, kind)
        entry.piece = self.item(item)

    def use(self, node: Use) -> Piece:
        parts = [*self.words("use"), self.path(node.path)]
        if node.whole:
            return Seq(parts)
        parts.append(self.take())
        if self.kind != "{":
            return Seq([*parts, self.take()])
        return Seq([*parts, self.bracket(node.names, self.use_name)])

    def use_name(self, node: UseName) -> Piece:
        if node.alias is None:
            return self.take()
        return Seq([self.take(), Text(" "), self.take(), Text(" "), self.take()])

    # --- items ---

    def item(self, node: Item) -> Piece:
        head = self.words("pub") if node.public else []
        match node:
            case Const():
                head += [*self.words("const"), self.take(), *self.annotation(node.type)]
                return self.assigned([*head, Text(" "), self.take()], node.value)
            case Alias():
                head += [*self.words("type"), self.take(), *self.generics(node.generics)]
                return self.assigned([*head, Text(" "), self.take()], node.type)
            case Struct():
                head += [*self.words("struct"), self.take(), *self.generics(node.generics)]
                fields = self.bracket(node.fields, self.struct_field, force=True)
                return Seq([*head, Text(" "), fields])
            case Enum():
                head += [*self.words("enum"), self.take(), Text(" ")]
                return Seq([*head, self.bracket(node.cases, self.name, pad=" ")])
            case Function():
                return self.function(head, node)
            case BlockDecl():
                return self.block(head, node)
            case _:
                assert_never(node)

    def name(self, node: Name) -> Piece:
        return self.take()

    def struct_field(self, node: StructField) -> Piece:
        return Seq([self.take(), *self.annotation(node.type)])

    def generics(self, nodes: tuple[Generic, ...]) -> list[Piece]:
        return [self.bracket(nodes, self.generic)] if nodes else []

    def generic(self, node: Generic) -> Piece:
        parts = [self.take(), self.take()] if node.pack else [self.take()]
        parts += [self.take(), Text(" "), self.take()]
        if node.default is not None:
            parts += [Text(" "), self.take(), Text(" "), self.generic_arg(node.default)]
        return Seq(parts)

    def param(self, node: Param) -> Piece:
        parts = [self.take(), *self.annotation(node.type)]
        if node.default is not None:
            parts += [Text(" "), self.take(), Text(" "), self.expr(node.default)]
        return Seq(parts)

    def function(self, head: list[Piece], node: Function) -> Piece:
        name = Seq([*head, *self.words(node.kind), self.take()])
        generics = self.generics(node.generics)
        params = self.bracket(node.params, self.param)
        result = None
        if node.result is not None:
            result = Seq([Text(" "), self.take(), Text(" "), self.type_(node.result)])
        where = self.where(node.where)
        body = self.body(node.body)
        if node.grad is not None:
            names = [self.take(0), self.bracket((1, 2), lambda _: self.take(), comma=False)]
            body = Seq([body, Text(" "), *names, Text(" "), self.body(node.grad.body)])
        return Declaration(name, generics[0] if generics else None, params, result, where, body)

    def where(self, nodes: tuple[WhereClause, ...]) -> Where | None:
        if not nodes:
            return None
        lead = [at_line_end(comment) for comment in self.lead()]
        self.at += 1
        opened = self.trailing()
        entries: list[Entry] = []
        carried: list[Comment] = []
        for number, node in enumerate(nodes):
            entry = Entry(Text(""), carried + self.lead())
            entry.piece = self.where_clause(node)
            carried = []
            if self.kind == ",":
                carried = self.behind(entry)
                self.at += 1
            carried += self.behind(entry, last=number + 1 == len(nodes))
            entries.append(entry)
        return Where(lead, Bracket("", entries, "", opened=opened, last=carried))

    def where_clause(self, node: WhereClause) -> Piece:
        left = self.expr(node.left)
        operator = self.take()
        return Seq([left, Text(" "), operator, Text(" "), self.expr(node.right)])

    def block(self, head: list[Piece], node: BlockDecl) -> Piece:
        name = Seq([*head, *self.words("block"), self.take()])
        generics = self.generics(node.generics)
        where = self.where(node.where)
        before, opened = self.open_body()
        entries: list[Entry] = []
        contents: list[Member | Item] = [*node.members, *node.items]
        for part in sorted(contents, key=lambda part: part.span.start):
            if isinstance(part, Member):
                entry = self.entry(entries, "small")
                entry.piece = self.member(part)
            else:
                self.item_entry(entries, part)
        body = self.close_body(before, opened, entries)
        return Declaration(name, generics[0] if generics else None, None, None, where, body)

    def member(self, node: Member) -> Piece:
        parts = [*self.words(node.kind), self.take(), *self.annotation(node.type)]
        if node.optional:
            parts += [Text(" "), self.take(), Text(" "), self.take()]
        return Seq(parts)
