"""The parser's place among the tokens: reading names, reporting, and finding the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from linnet.diagnostics.diagnostic import Diagnostic, Label
from linnet.diagnostics.span import SourceFile, Span
from linnet.syntax.tokens import (
    EOFS,
    KEYWORDS,
    MAX_BODIES,
    MAX_DEPTH,
    MAX_DIAGNOSTICS,
    MAX_NESTING,
    Lexed,
)
from linnet.syntax.tree import Name, Path

STATEMENT_STARTS = frozenset(("let", "var", "return", "static", "for", "while", "yield"))
MEMBER_STARTS = frozenset(("param", "buffer", "state", "sub"))
ITEM_STARTS = frozenset(("pub", "const", "type", "struct", "enum", "fn", "op", "entry", "block"))
# No expression, type or list holds one of these, so that skipping ends here.
_STOPS = STATEMENT_STARTS | MEMBER_STARTS | ITEM_STARTS | {"use", "module", "eof"}
_OPENERS = frozenset("([{")
_CLOSERS = frozenset(")]}")
# What may stand after a name where it is introduced: tells `let type = 1` from a missing name.
_AFTER_NAME = frozenset(": = , ) ] ( < [ { . > } -> in as ..".split())

Element = TypeVar("Element")


class Failed(Exception):
    """Something could not be read; it is reported already."""


class Cursor:
    """The tokens, the place among them, and the diagnostics so far.

    `depth` counts how many expressions, types and patterns are being read inside one another, and
    `height` is that of the tree read last.
    """

    def __init__(self, file: SourceFile, lexed: Lexed, diagnostics: list[Diagnostic]) -> None:
        self.file = file
        self.lexed = lexed
        self.kinds = lexed.kinds
        self.texts = lexed.texts
        self.starts = lexed.starts
        self.ends = lexed.ends
        self.pos = 0
        self.depth = 0
        self.height = 0
        self.bodies = 0
        self.diagnostics = diagnostics
        self.last_report = -1
        # Set by a limit: no list goes on, the whole statement or item is given up.
        self.abandoned = False

    # --- places ---

    def here(self) -> Span:
        """The span of the current token."""
        return Span(self.file, self.starts[self.pos], self.ends[self.pos])

    def span_at(self, index: int) -> Span:
        return Span(self.file, self.starts[index], self.ends[index])

    def since(self, first: int) -> Span:
        """The span from token `first` to the one before the current."""
        start = self.starts[first]
        return Span(self.file, start, max(start, self.ends[self.pos - 1] if self.pos else 0))

    # --- reports ---

    def report(
        self,
        message: str,
        at: int,
        *,
        code: str = "E1101",
        label: str = "",
        related: tuple[Label, ...] = (),
        help: str | None = None,
        span: Span | None = None,
    ) -> None:
        """Add a problem at token `at`, unless one is reported there already."""
        kind = self.kinds[at]
        if kind == "bad" or at == self.last_report or (kind == "eof" and self.lexed.cut):
            return
        self.last_report = at
        if len(self.diagnostics) <= MAX_DIAGNOSTICS:
            place = span or self.span_at(at)
            self.diagnostics.append(Diagnostic(code, message, place, label, related, (), help))

    def found(self) -> str:
        """The current token in words."""
        kind = self.kinds[self.pos]
        if kind == "eof":
            return "the end of the file"
        text = self.texts[self.pos]
        shown = text if len(text) <= 40 else text[:37] + "..."
        return f"the keyword `{shown}`" if kind in KEYWORDS else f"`{shown}`"

    def unexpected(self, expected: str, help: str | None = None) -> Failed:
        """Report that something else was expected here; the caller raises what it returns."""
        if self.kinds[self.pos] == "reserved":
            self.reserved_syntax()
        else:
            message = f"expected {expected}, found {self.found()}"
            self.report(message, self.pos, help=help or self.hint())
        return Failed()

    def reserved_syntax(self) -> None:
        message = f"`{self.texts[self.pos]}` is reserved for a later version of the language"
        self.report(message, self.pos, code="E1103")

    def hint(self) -> str | None:
        """What usually mends an unexpected token of this kind."""
        kind, before = self.kinds[self.pos], self.kinds[self.pos - 1] if self.pos else ""
        if kind == ";":
            return "statements end without a semicolon"
        if kind == "as":
            return "a conversion is written `cast<f32>(x)`"
        if kind in "<>" and kind == before:
            return "shifts are the functions `shl(x, n)` and `shr(x, n)`"
        if kind == "=" and before in ("+", "-", "*", "/", "%", "&", "|", "^"):
            return f"write it out: `x = x {before} ...`"
        if kind == "if" or kind == "match":
            return f"put the `{kind}` in parentheses"
        if kind == "::":
            return "`::` stands only in `use`; elsewhere names are joined by `.`"
        return None

    def too_deep(self, first: int, limit: int = MAX_DEPTH) -> Failed:
        message = f"this is nested or chained more than {limit} deep"
        self.report(message, first, help="split it with `let`")
        self.abandoned = True
        return Failed()

    def grow(self, height: int, at: int) -> None:
        """Set the height of a node whose highest child is `height`, within the limit."""
        if height >= MAX_DEPTH:
            raise self.too_deep(at)
        self.height = height + 1

    def enter(self) -> None:
        """Go one level down among expressions, types and patterns; the caller goes back up."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.too_deep(self.pos, MAX_NESTING)

    # --- reading ---

    def expect(self, kind: str, context: str = "") -> int:
        """Take a token of this kind; its index."""
        at = self.pos
        if self.kinds[at] != kind:
            raise self.unexpected(f"`{kind}`{context}")
        self.pos = at + 1
        return at

    def accept(self, kind: str) -> bool:
        if self.kinds[self.pos] == kind:
            self.pos += 1
            return True
        return False

    def name(self, what: str = "a name") -> Name:
        at = self.pos
        kind = self.kinds[at]
        if kind != "name":
            # `x.block` means a member, whatever stands after it.
            joined = self.kinds[at - 1] == "." and self.starts[at] == self.ends[at - 1]
            usable = kind in KEYWORDS and (joined or self.kinds[at + 1] in _AFTER_NAME)
            if kind != "reserved" and not usable:
                raise self.unexpected(what)
            self.reserved_name()
        self.pos = at + 1
        return Name(self.texts[at], Span(self.file, self.starts[at], self.ends[at]))

    def reserved_name(self) -> None:
        text = self.texts[self.pos]
        word = "reserved word" if self.kinds[self.pos] == "reserved" else "keyword"
        self.report(f"the {word} `{text}` cannot be a name", self.pos, code="E1004")

    def path(self, what: str = "a name") -> Path:
        first = self.pos
        if self.kinds[first] == "crate":
            self.pos += 1
            parts = [Name("crate", self.since(first))]
        else:
            parts = [self.name(what)]
        while self.kinds[self.pos] == ".":
            self.pos += 1
            parts.append(self.name("a name after `.`"))
        return Path(tuple(parts), self.since(first))

    def close_angle(self) -> None:
        """Take a `>`, the first half of a `>=` included."""
        at = self.pos
        if self.kinds[at] == ">=":
            self.kinds[at] = self.texts[at] = "="
            self.starts[at] += 1
        else:
            self.expect(">")

    def at_angle_end(self) -> bool:
        return self.kinds[self.pos] in (">", ">=")

    # --- lists, and the way back ---

    def listed(self, close: str, element: Callable[[], Element], what: str) -> list[Element]:
        """Elements between commas up to `close`, which is taken. One that cannot be read is left
        out. `height` becomes the greatest of the elements'."""
        result: list[Element] = []
        kinds = self.kinds
        height = 0
        while kinds[self.pos] != close:
            depth = self.depth
            try:
                self.height = 0
                result.append(element())
                if self.height > height:
                    height = self.height
                self.separator(close, what)
            except Failed:
                self.resume(close, depth)
        self.pos += 1
        self.height = height
        return result

    def separator(self, close: str, what: str) -> None:
        """Take the comma after an element, unless the list ends."""
        if self.kinds[self.pos] == ",":
            self.pos += 1
        elif self.kinds[self.pos] != close:
            raise self.unexpected(f"`,` or `{close}` after {what}")

    def resume(self, close: str, depth: int) -> None:
        """Go on after an element that could not be read, where the list does go on."""
        if self.abandoned or self.is_enough():
            raise Failed
        self.depth = depth
        self.skip_in_list(close)
        self.accept(",")

    def skip_in_list(self, close: str) -> None:
        """Skip to the `,` or `close` that ends an element; fail where no list can go on."""
        nested = 0
        angled = close == ">"
        kinds = self.kinds
        pos = self.pos
        while True:
            kind = kinds[pos]
            if nested == 0 and (kind == "," or kind == close or (angled and kind == ">=")):
                self.pos = pos
                return
            if kind in _OPENERS or (angled and kind == "<"):
                nested += 1
            elif angled and (kind == ">" or kind == ">="):
                nested -= 1
            elif kind in _CLOSERS:
                if nested == 0:
                    self.pos = pos
                    raise Failed
                nested -= 1
            elif kind in _STOPS:
                self.settle(pos)
                raise Failed
            pos += 1

    def skip_to(self, wanted: str) -> bool:
        """Skip to a token of this kind within the statement or header; whether there is one."""
        kinds = self.kinds
        pos = self.pos
        while kinds[pos] != wanted and kinds[pos] not in _STOPS and kinds[pos] != "}":
            pos += 1
        self.pos = pos
        return kinds[pos] == wanted

    def skip_statement(self, first: int) -> None:
        """Skip to where the next statement, or the end of the body, seems to be. At least one
        token after `first` is taken."""
        kinds = self.kinds
        pos = max(self.pos, first + 1)
        self.abandoned = False
        braces, others = self.open_braces(first), 0
        while True:
            kind = kinds[pos]
            if kind == "{":
                braces += 1
            elif kind == "}":
                if braces == 0:
                    break
                braces -= 1
            elif kind == "(" or kind == "[":
                others += 1
            elif kind == ")" or kind == "]":
                others = max(0, others - 1)
            elif kind in _STOPS:
                if braces == 0 or kind not in STATEMENT_STARTS:
                    break
            elif braces == others == 0 and kind == "name" and self.begins_assignment(pos):
                break
            pos += 1
        self.settle(pos)

    def skip_item(self, first: int) -> None:
        """Skip to where the next item or member, or the end of a block, seems to be."""
        kinds = self.kinds
        pos = max(self.pos, first + 1)
        self.abandoned = False
        braces = self.open_braces(first)
        while kinds[pos] != "eof":
            kind = kinds[pos]
            if kind == "{":
                braces += 1
            elif kind == "}":
                if braces == 0 and self.bodies:
                    break
                braces = max(0, braces - 1)
            elif braces == 0 and kind in _STOPS and kind not in STATEMENT_STARTS:
                break
            pos += 1
        self.settle(pos)

    def open_braces(self, first: int) -> int:
        """How many braces are open at the current token since token `first`."""
        count = 0
        for kind in self.kinds[first : self.pos]:
            if kind == "{":
                count += 1
            elif kind == "}":
                count = max(0, count - 1)
        return count

    def settle(self, pos: int) -> None:
        """Go on at `pos` after a mistake; one that swallowed the rest of the file makes what is
        missing there no mistake of its own. After too many of them, that is the end."""
        if self.is_enough():
            pos = len(self.kinds) - EOFS
        self.pos = pos
        if self.kinds[pos] == "eof":
            self.last_report = pos

    def is_enough(self) -> bool:
        """Whether more problems are found than are ever shown."""
        return len(self.diagnostics) > MAX_DIAGNOSTICS

    def skip_to_end(self, opening: int, ends: dict[int, int]) -> None:
        """Report that bodies are nested too deep, and leap over the one opened at `opening`."""
        self.report(f"blocks and bodies are nested more than {MAX_BODIES} deep", opening)
        self.settle(min(ends.get(opening, len(self.kinds)) + 1, len(self.kinds) - EOFS))

    def begins_assignment(self, at: int) -> bool:
        """Whether a name is the first thing on its line, with `=` after it: for recovery only."""
        if self.kinds[at + 1] != "=" or at == 0:
            return False
        return "\n" in self.file.text[self.ends[at - 1] : self.starts[at]]
