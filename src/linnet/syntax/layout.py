"""Pieces of formatted text, and how they are laid out on lines of at most 100 columns.

A piece is written flat when it fits before what must follow it on the line, and broken otherwise.
What it holds depends on tokens and comments alone, never on the white space they came with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from linnet.syntax.tokens import Comment

WIDTH = 100
STEP = 4

# Where the value after `=` goes when the line is too long: broken open on the same line, on the
# next line, or on the next line only if it fits there whole.
Style = Literal["hug", "next", "fit"]


class Writer:
    """Collects lines. After a comment that ends its line, the next text begins a new one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line = ""
        self.break_at = -1
        self.ended = False

    def text(self, text: str) -> None:
        if not text:
            return
        if self.break_at >= 0:
            self.newline(self.break_at)
        if not self.line.strip():
            text = text.lstrip(" ")
        *done, last = text.split("\n")
        for part in done:
            self.lines.append((self.line + part).rstrip(" \t"))
            self.line = ""
        self.line += last

    def newline(self, indent: int) -> None:
        self.break_at = -1
        self.lines.append(self.line.rstrip(" "))
        self.line = " " * indent

    def blank(self) -> None:
        """An empty line before the one that is about to begin."""
        self.lines.append("")

    def comment(self, comment: Comment, indent: int) -> None:
        """A comment where it stands; text after it goes on at `indent`."""
        text = clean(comment.text)
        if comment.place == "inline":
            self.text(text + " ")
            return
        # Nothing can follow a line comment, not even a comment.
        ended = self.ended and self.break_at >= 0
        if ended or (comment.place == "own" and (self.line.strip() or self.break_at >= 0)):
            self.newline(indent)
        self.break_at = -1
        if self.line.strip():
            self.line = self.line.rstrip() + " "
        self.text(text)
        self.break_at = indent
        self.ended = text.startswith("//")

    def fits(self, piece: Piece, tail: int) -> bool:
        flat = piece.flat
        if flat is None:
            return False
        column = self.break_at if self.break_at >= 0 else len(self.line)
        return column + len(flat) + tail <= WIDTH

    def piece(self, piece: Piece, indent: int, tail: int) -> None:
        """Write a piece; `tail` columns follow it on its last line."""
        if piece.flat is not None and self.fits(piece, tail):
            self.text(piece.flat)
        else:
            piece.broken(self, indent, tail)

    def finish(self) -> str:
        self.newline(0)
        return "\n".join(self.lines).strip("\n") + "\n"


def clean(comment: str) -> str:
    """A comment without `\\r` and, for a line comment, without white space at its end."""
    text = comment.replace("\r\n", "\n")
    return text.rstrip(" \t\r\f\v") if text.startswith("//") else text


def forces_break(comment: Comment) -> bool:
    return comment.place != "inline" or "\n" in comment.text


class Piece:
    """`flat` is the text on one line, None where it cannot be on one line or is longer than any.
    `head` columns come before the first place where the piece can break, if `breakable`."""

    flat: str | None
    head: int
    breakable: bool
    style: Style = "next"

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        raise NotImplementedError


class Text(Piece):
    """Words that never break."""

    def __init__(self, text: str) -> None:
        self.flat = self.words = text
        self.head = len(text)
        self.breakable = False

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        out.text(self.words)


class Remark(Piece):
    """A comment at a place of no special kind, before the token that follows it."""

    def __init__(self, comment: Comment, extra: int) -> None:
        self.comment = comment
        self.extra = extra
        self.breakable = forces_break(comment)
        self.flat = None if self.breakable else clean(comment.text) + " "
        self.head = 0 if self.flat is None else len(self.flat)

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        out.comment(self.comment, indent + self.extra)


def join_flat(parts: Sequence[Piece]) -> str | None:
    texts: list[str] = []
    length = 0
    for part in parts:
        if part.flat is None:
            return None
        texts.append(part.flat)
        length += len(part.flat)
    return "".join(texts) if length <= WIDTH else None


class Seq(Piece):
    """Pieces one after the other, each breaking for itself, the last ones first."""

    def __init__(self, parts: Sequence[Piece], style: Style = "next") -> None:
        self.parts = parts
        self.flat = join_flat(parts)
        self.breakable = any(part.breakable for part in parts)
        self.head = 0
        self.style = style
        for part in parts:
            self.head += part.head
            if part.breakable:
                break

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        tails = [tail]
        for part in reversed(self.parts[1:]):
            tails.append(part.head if part.breakable else part.head + tails[-1])
        for part in self.parts:
            out.piece(part, indent, tails.pop())


@dataclass(slots=True)
class Entry:
    """An element of a list or body with its comments: `lead` before it, `inner` behind it before
    the comma, `trail` after the comma. `separator` follows it where others do."""

    piece: Piece
    lead: list[Comment] = field(default_factory=list)
    inner: list[Comment] = field(default_factory=list)
    trail: list[Comment] = field(default_factory=list)
    separator: str = ","
    blank: bool = False
    kind: str = ""

    def flat(self) -> str | None:
        if self.piece.flat is None or self.trail:
            return None
        if any(forces_break(comment) for comment in (*self.lead, *self.inner)):
            return None
        before = "".join(clean(comment.text) + " " for comment in self.lead)
        after = "".join(" " + clean(comment.text) for comment in self.inner)
        return before + self.piece.flat + after

    def write(self, out: Writer, indent: int, separator: str) -> None:
        for comment in self.lead:
            out.comment(comment, indent)
        behind = sum(len(clean(comment.text)) + 1 for comment in self.inner)
        out.piece(self.piece, indent, behind + len(separator))
        for comment in self.inner:
            out.text(" " + clean(comment.text))
        out.text(separator)
        for comment in self.trail:
            out.comment(comment, indent)


class Bracket(Piece):
    """A bracketed list: on one line, or one element a line with a comma after each.

    `opened` are comments after the opening on its line, `last` those alone before the closing.
    """

    style: Style = "hug"

    def __init__(
        self,
        opening: str,
        entries: list[Entry],
        closing: str,
        *,
        opened: list[Comment],
        last: list[Comment],
        comma: bool = True,
        force: bool = False,
        pad: str = "",
    ) -> None:
        self.opening, self.entries, self.closing = opening, entries, closing
        self.opened, self.last, self.comma = opened, last, comma
        self.flat = None if force and entries else self.joined(pad)
        self.breakable = bool(entries) or self.flat is None
        self.head = len(opening) if self.breakable else len(self.flat or "")

    def joined(self, pad: str) -> str | None:
        if any(forces_break(comment) for comment in (*self.opened, *self.last)):
            return None
        if not self.entries:
            notes = " ".join(clean(comment.text) for comment in (*self.opened, *self.last))
            return self.opening + notes + self.closing
        texts: list[str] = []
        for entry in self.entries:
            flat = entry.flat()
            if flat is None:
                return None
            texts.append(flat + entry.separator + " ")
        texts[-1] = texts[-1].removesuffix(self.entries[-1].separator + " ")
        text = self.opening + pad + "".join(texts) + pad + self.closing
        return text if len(text) <= WIDTH else None

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        out.text(self.opening)
        inner = indent + STEP
        for comment in self.opened:
            out.comment(comment, inner)
        for entry in self.entries:
            out.newline(inner)
            ending = entry.separator
            if entry is self.entries[-1] and not self.comma:
                ending = ""
            entry.write(out, inner, ending)
        for comment in self.last:
            if comment.place != "trailing":
                out.newline(inner)
            out.comment(comment, inner)
        out.newline(indent)
        out.text(self.closing)


class Chain(Piece):
    """Operands joined by operators of one level, broken after each operator.

    `remarks[i]` are the comments between operator `i` and its right operand that end a line.
    """

    def __init__(
        self, operands: list[Piece], operators: list[Piece], remarks: list[list[Comment]]
    ) -> None:
        self.operands, self.operators, self.remarks = operands, operators, remarks
        parts = [operands[0]]
        for operator, operand in zip(operators, operands[1:], strict=True):
            parts += [Text(" "), operator, Text(" "), operand]
        self.flat = None if any(remarks) else join_flat(parts)
        self.breakable = True
        first = operands[0]
        self.head = first.head if first.breakable else first.head + 1 + operators[0].head

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        tails = [operator.head + 1 for operator in self.operators] + [tail]
        out.piece(self.operands[0], indent, tails[0])
        for at, operator in enumerate(self.operators):
            out.text(" ")
            out.piece(operator, indent, 0)
            for comment in self.remarks[at]:
                out.comment(comment, indent + STEP)
            out.newline(indent + STEP)
            out.piece(self.operands[at + 1], indent + STEP, tails[at + 1])


class Conditional(Piece):
    """`if` with its braces, all on one line or all broken."""

    style: Style = "fit"

    def __init__(self, parts: list[Piece]) -> None:
        self.parts = parts
        self.flat = join_flat(parts)
        self.breakable = True
        self.head = parts[0].head + parts[1].head

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        for at, part in enumerate(self.parts):
            if isinstance(part, Bracket):
                part.broken(out, indent, tail)
            else:
                following = self.parts[at + 1].head if at + 1 < len(self.parts) else tail
                out.piece(part, indent, following + 1)


class Assignment(Piece):
    """`prefix value`, where the prefix ends in `=` or `=>`."""

    def __init__(self, prefix: Piece, value: Piece, remarks: list[Comment]) -> None:
        self.prefix, self.value, self.remarks = prefix, value, remarks
        self.flat = None if remarks else join_flat([prefix, Text(" "), value])
        self.breakable = True
        self.head = prefix.head

    def broken(self, out: Writer, indent: int, tail: int) -> None:
        value = self.value
        out.piece(self.prefix, indent, 0)
        if not self.remarks:
            if out.fits(value, tail + 1):
                out.text(" ")
                out.piece(value, indent, tail)
                return
            room = WIDTH - indent - STEP - tail
            whole = value.flat is not None and len(value.flat) <= room
            if value.style == "hug" or (value.style == "fit" and not whole):
                out.text(" ")
                out.piece(value, indent, tail)
                return
        for comment in self.remarks:
            out.comment(comment, indent + STEP)
        out.newline(indent + STEP)
        out.piece(value, indent + STEP, tail)
