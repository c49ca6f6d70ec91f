"""Token kinds, tokens and comments, and the limits on what is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from linnet.diagnostics.span import Span

KEYWORDS = frozenset(
    "module use pub crate as const type struct enum fn op block entry param buffer state sub let "
    "var return if else match static for in while where yield true false none some".split()
)
RESERVED = frozenset(
    "self super extern async await effect unsafe macro trait impl derive rng mut ref kernel "
    "device".split()
)
REDUCTIONS = frozenset(("sum", "prod", "max", "min", "any", "all"))

# Longest first, as the lexer's alternation tries them in this order.
PUNCTUATION = (
    "... .. :: -> => == != <= >= && || ( ) { } [ ] < > = ! + - * / % & | ^ . , : ; ?"
).split()

MAX_CHARACTERS = 4 * 1024 * 1024
MAX_TOKENS = 500_000
MAX_DIAGNOSTICS = 100
EOFS = 5
# The parser and later stages recurse with a few Python frames a level, under the default limit of
# 1,000 frames: expressions, types and patterns nest MAX_NESTING deep, none is a higher tree than
# MAX_DEPTH (chains of operators and postfixes count), bodies and blocks nest MAX_BODIES deep.
MAX_NESTING = 100
MAX_DEPTH = 150
MAX_BODIES = 32


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its marks. `place` is where it stands on its line.

    `own`: alone on its line or lines; `trailing`: after a token, to the line's end; `inline`: a
    block comment with a token after it on the line. `blank` says that a blank line stands before.
    """

    text: str
    place: Literal["own", "trailing", "inline"]
    blank: bool
    span: Span

    @property
    def doc(self) -> bool:
        """Whether it is a `///` or `/** */` comment."""
        return is_doc(self.text)


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    `kind` is the text itself for keywords and punctuation, else `name`, `int`, `float`, `string`,
    `reserved` or `eof`, or `bad` or `number` for what is reported already. `comments` are those
    between the token before and this one; `blank` says that a blank line stands right before it.
    """

    kind: str
    text: str
    span: Span
    comments: tuple[Comment, ...] = field(default=())
    blank: bool = False


@dataclass(slots=True)
class Lexed:
    """The tokens of a file as parallel lists, which the parser reads faster than objects.

    `EOFS` tokens of kind `eof` end the lists, so that looking a few ahead needs no check.
    `comments` maps a token's index to the ranges of the comments before it. `literals` holds the
    values of numbers and strings. `cut` says that the end of the file was swallowed by a reported
    error.
    """

    kinds: list[str]
    texts: list[str]
    starts: list[int]
    ends: list[int]
    comments: dict[int, list[tuple[int, int]]]
    literals: dict[int, int | float | str]
    cut: bool = False


def is_doc(comment: str) -> bool:
    """Whether a comment's text is a documentation comment: `///` or `/**`, not `////` or `/***`."""
    if comment.startswith("///"):
        return not comment.startswith("////")
    return comment.startswith("/**") and not comment.startswith("/***") and len(comment) > 4


def doc_text(comments: Sequence[str]) -> str | None:
    """The documentation in the comments before an item, without marks, or None."""
    lines: list[str] = []
    for comment in comments:
        if not is_doc(comment):
            continue
        if comment.startswith("///"):
            lines.append(comment[3:].removeprefix(" ").rstrip())
            continue
        inner = comment[3:].removesuffix("*/").strip().replace("\r\n", "\n").split("\n")
        lines.append(inner[0].strip())
        lines.extend(line.strip().removeprefix("*").removeprefix(" ") for line in inner[1:])
    return "\n".join(lines) if lines else None
