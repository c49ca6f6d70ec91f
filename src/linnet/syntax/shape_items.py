"""The pieces of statements, items and whole files."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from linnet.syntax.layout import STEP, WIDTH, Bracket, Entry, Piece, Remark, Seq, Text, Writer
from linnet.syntax.shape_exprs import ExprShaper
from linnet.syntax.tokens import Comment
from linnet.syntax.tree import (
    Alias,
    Assign,
    BlockDecl,
    Body,
    Const,
    Enum,
    Expr,
    For,
    Function,
    Generic,
    Item,
    Let,
    LetIndexed,
    Member,
    Module,
    Name,
    Param,
    Return,
    Statement,
    StaticFor,
    Struct,
    StructField,
    Type,
    Use,
    UseName,
    Var,
    WhereClause,
    While,
    Yield,
)


class Lines:
    """Statements, members or items, each on lines of its own, with the comments between them."""

    def __init__(self, opened: list[Comment], entries: list[Entry], last: list[Comment]) -> None:
        self.opened, self.entries, self.last = opened, entries, last

    def write(self, out: Writer, indent: int, first: bool) -> None:
        """Write the lines; `first` says that nothing stands on the current line yet."""
        before: Entry | None = None
        for entry in self.entries:
            blank = before is not None and needs_blank(before, entry)
            for number, comment in enumerate(entry.lead):
                if comment.place != "trailing":
                    self.begin(out, indent, first, blank if number == 0 else comment.blank)
                out.comment(comment, indent)
                # A comment in the line has the next thing behind it.
                first = comment.place == "inline"
            if entry.lead and not first:
                blank = entry.blank
            self.begin(out, indent, first, blank)
            first = False
            out.piece(entry.piece, indent, 0)
            for comment in entry.trail:
                out.comment(comment, indent)
            before = entry
        for number, comment in enumerate(self.last):
            if comment.place != "trailing":
                self.begin(out, indent, first, comment.blank and bool(number or before))
            first = False
            out.comment(comment, indent)

    def begin(self, out: Writer, indent: int, first: bool, blank: bool) -> None:
        if first:
            return
        out.newline(indent)
        if blank:
            out.blank()


def needs_blank(before: Entry, entry: Entry) -> bool:
    """Whether an empty line stands between two entries: always around functions and the like and
    after `module` and the last `use`, elsewhere where the source has one."""
    if before.kind == "module" or "big" in (before.kind, entry.kind):
        return True
    if before.kind == "use" and entry.kind != "use":
        return True
    return entry.lead[0].blank if entry.lead else entry.blank


class Braces(Piece):
    """A body: `{}`, or its lines."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        empty = not (lines.opened or lines.entries or lines.last)
        self.flat = "{}" if empty else None
        self.breakable = not empty
        self.head = 2 if empty else 1

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        out.text("{")
        for comment in self.lines.opened:
            out.comment(comment, indent + STEP)
        self.lines.write(out, indent + STEP, False)
        out.newline(indent)
        out.text("}")


class Where:
    """A `where` clause: alone on its line before the brace, or one condition a line."""

    def __init__(self, lead: list[Comment], made: Bracket) -> None:
        self.lead, self.made = lead, made

    def write(self, out: Writer, indent: int, body: Piece) -> None:
        for comment in self.lead:
            out.comment(comment, indent)
        out.newline(indent)
        entries, made = self.made.entries, self.made
        if len(entries) == 1 and entries[0].flat() is not None and not (made.opened or made.last):
            out.text("where ")
            entries[0].write(out, indent, "")
            out.text(" ")
        else:
            out.text("where")
            for comment in made.opened:
                out.comment(comment, indent + STEP)
            for entry in entries:
                out.newline(indent + STEP)
                entry.write(out, indent + STEP, "," if entry is not entries[-1] else "")
            for comment in made.last:
                if comment.place != "trailing":
                    out.newline(indent + STEP)
                out.comment(comment, indent + STEP)
            out.newline(indent)
        out.piece(body, indent, 0)


class Declaration(Piece):
    """A function or a block: name, generics, parameters, result, `where` and body."""

    def __init__(
        self,
        name: Piece,
        generics: Piece | None,
        params: Piece | None,
        result: Piece | None,
        where: Where | None,
        body: Piece,
    ) -> None:
        self.name, self.generics, self.params, self.result = name, generics, params, result
        self.where, self.body = where, body
        self.flat = None
        self.breakable = True
        self.head = name.head

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        ending = 2 if self.where is None else 0
        out.piece(self.name, indent, 0)
        if self.generics is not None:
            following = ending if self.params is None else self.params.head
            out.piece(self.generics, indent, following)
        if self.params is not None:
            out.piece(self.params, indent, self.after_params(indent, ending))
        if self.result is not None:
            out.piece(self.result, indent, ending)
        if self.where is not None:
            self.where.write(out, indent, self.body)
        else:
            out.text(" ")
            out.piece(self.body, indent, 0)

    def after_params(self, indent: int, ending: int) -> int:
        """How many columns must be left after the parameters: the whole result's, as the
        parameters break before it does, unless it is too long for a line in any case."""
        if self.result is None:
            return ending
        flat = self.result.flat
        if flat is not None and indent + 1 + len(flat) + ending <= WIDTH:
            return len(flat) + ending
        return self.result.head


class ModuleShaper(ExprShaper):
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

    def entry(self, entries: list[Entry], kind: str) -> Entry:
        """A new entry for the statement, member or item at the current token, whose piece is
        still to come, with the comments around it."""
        if entries:
            entries[-1].trail += self.trailing()
        made = Entry(Text(""), self.lead(), kind=kind, blank=self.tokens[self.at].blank)
        entries.append(made)
        return made

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

    def annotation(self, node: Type | None) -> list[Piece]:
        if node is None:
            return []
        return [self.take(), Text(" "), self.type_(node)]

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
        lead = self.lead()
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

    # --- bodies and statements ---

    def body(self, node: Body) -> Piece:
        before, opened = self.open_body()
        entries: list[Entry] = []
        for statement in node.statements:
            entry = self.entry(entries, "small")
            entry.piece = self.statement(statement)
        return self.close_body(before, opened, entries)

    def open_body(self) -> tuple[list[Piece], list[Comment]]:
        """Skip a body's `{`: the comments in the line before it, and those to go after it."""
        ending = self.ending()
        before: list[Piece] = [Remark(comment, STEP) for comment in self.lead()]
        self.at += 1
        opened = [
            replace(comment, place="trailing") if comment.place == "inline" else comment
            for comment in ending
        ]
        return before, opened + self.trailing()

    def close_body(
        self, before: list[Piece], opened: list[Comment], entries: list[Entry]
    ) -> Piece:
        """The body whose `}` is the current token."""
        if entries:
            entries[-1].trail += self.trailing()
        last = self.lead()
        self.at += 1
        made = Braces(Lines(opened, entries, last))
        return Seq([*before, made]) if before else made

    def statement(self, node: Statement) -> Piece:
        match node:
            case Let():
                prefix = [*self.words("let"), self.pattern(node.pattern)]
                prefix += [*self.annotation(node.type), Text(" "), self.take()]
                if isinstance(node.value, For):
                    return Seq([*prefix, Text(" "), self.loop(node.value)])
                return self.assigned(prefix, node.value)
            case LetIndexed():
                prefix = [*self.words("let"), self.take()]
                prefix += [self.bracket(node.indices, self.index_name), Text(" "), self.take()]
                return self.assigned(prefix, node.value)
            case Var():
                prefix = [*self.words("var"), self.take(), *self.annotation(node.type)]
                return self.assigned([*prefix, Text(" "), self.take()], node.value)
            case Assign():
                return self.assigned([self.take(), Text(" "), self.take()], node.value)
            case Return():
                if node.value is None:
                    return self.take()
                return Seq([*self.words("return"), self.expr(node.value)])
            case Yield():
                return Seq([*self.words("yield"), self.expr(node.value)])
            case For():
                return self.loop(node)
            case StaticFor():
                head = [*self.words("static", "for"), self.pattern(node.pattern), Text(" ")]
                return self.ranged([*head, *self.words("in")], node.start, node.stop, node.body)
            case While():
                head = [*self.words("while"), self.expr(node.condition), Text(" ")]
                return Seq([*head, self.body(node.body)])
            case _:
                assert_never(node)

    def loop(self, node: For) -> Piece:
        head = [*self.words("for"), self.take(), Text(" "), *self.words("in")]
        return self.ranged(head, node.start, node.stop, node.body)

    def ranged(self, head: list[Piece], start: Expr, stop: Expr | None, body: Body) -> Piece:
        parts = [*head, self.expr(start)]
        if stop is not None:
            parts += [self.take(), self.expr(stop)]
        return Seq([*parts, Text(" "), self.body(body)])
