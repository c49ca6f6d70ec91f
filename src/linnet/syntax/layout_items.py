"""How bodies, declarations and whole files are laid out."""

from __future__ import annotations

from linnet.syntax.layout import STEP, WIDTH, Bracket, Entry, Piece, Writer
from linnet.syntax.tokens import Comment


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
