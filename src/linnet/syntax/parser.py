"""Whole files."""

from __future__ import annotations

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile, Span
from linnet.syntax.cursor import MEMBER_STARTS, Failed
from linnet.syntax.lexer import lex
from linnet.syntax.parse_items import ITEMS, ItemParser
from linnet.syntax.tokens import MAX_DIAGNOSTICS, Lexed
from linnet.syntax.tree import (
    Item,
    Module,
    Path,
    Use,
    UseName,
)


class ModuleParser(ItemParser):
    """Reads a whole file."""

    name_of_module: Path | None

    def module(self) -> Module:
        self.name_of_module = self.module_line()
        uses: list[Use] = []
        items: list[Item] = []
        while self.kinds[self.pos] != "eof":
            start, depth = self.pos, self.depth
            try:
                self.top(uses, items)
            except Failed:
                self.depth, self.bodies = depth, 0
                self.skip_item(start)
        span = Span(self.file, 0, len(self.file.text))
        return Module(self.name_of_module, tuple(uses), tuple(items), span)

    def module_line(self) -> Path | None:
        if self.kinds[self.pos] != "module":
            help = "the first line of a file is `module` and its full name"
            self.report("the file does not begin with `module`", self.pos, code="E1102", help=help)
            return None
        first, depth = self.pos, self.depth
        try:
            self.pos += 1
            return self.path("the module's name")
        except Failed:
            self.depth = depth
            self.skip_item(first)
            return None

    def top(self, uses: list[Use], items: list[Item]) -> None:
        """One `use`, item, or thing out of place at the top of a file."""
        first = self.pos
        kind = self.kinds[first]
        if kind == "use":
            if items:
                self.report("`use` lines come before the items", first)
            uses.append(self.use())
        elif kind == "module":
            if self.kinds[0] == "module":
                self.report("`module` stands once, first in the file", first)
            self.pos += 1
            name = self.path("the module's name")
            self.name_of_module = self.name_of_module or name
        elif kind in MEMBER_STARTS:
            self.report(f"`{kind}` belongs in a block", first)
            self.member()
        elif kind == "}":
            self.report("this `}` closes nothing", first)
            raise Failed
        else:
            items.append(self.item(f"`use`, {ITEMS}"))

    def use(self) -> Use:
        first = self.expect("use")
        path = self.path("the path of a module")
        names: list[UseName] = []
        whole = not self.accept("::")
        if not whole:
            if self.accept("{"):
                names = self.listed("}", self.use_name, "a name")
            else:
                name = self.name()
                names = [UseName(name, None, name.span)]
        return Use(path, tuple(names), whole, self.since(first))

    def use_name(self) -> UseName:
        first = self.pos
        name = self.name()
        alias = self.name("a name after `as`") if self.accept("as") else None
        return UseName(name, alias, self.since(first))


def parse_module(file: SourceFile) -> tuple[Module, tuple[Diagnostic, ...]]:
    """The tree of a file and everything wrong with its text, for any text at all.

    Codes E1001 to E1005, E1101 to E1103 and E4102. After a mistake reading goes on at the next
    statement or item; everything that could be read is in the tree.
    """
    lexed, diagnostics = lex(file)
    return parse_tokens(file, lexed, diagnostics)


def parse_tokens(
    file: SourceFile, lexed: Lexed, diagnostics: list[Diagnostic]
) -> tuple[Module, tuple[Diagnostic, ...]]:
    """`parse_module` for tokens that are read already."""
    parser = ModuleParser(file, lexed, diagnostics)
    module = parser.module()
    ordered = sorted(diagnostics, key=_start)
    if len(ordered) > MAX_DIAGNOSTICS:
        ordered = ordered[:MAX_DIAGNOSTICS]
        last = ordered[-1]
        note = f"more problems follow; only the first {MAX_DIAGNOSTICS} are shown"
        ordered[-1] = Diagnostic(
            last.code, last.message, last.span, last.label, last.related, (note,), last.help
        )
    return module, tuple(ordered)


def _start(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span is not None else 0
