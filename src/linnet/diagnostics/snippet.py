"""Source lines as they are shown under a diagnostic: cells of known width, with an underline."""

from __future__ import annotations

from dataclasses import dataclass

from linnet.diagnostics.escape import escape_char, text_width
from linnet.diagnostics.span import Span

TAB = 4
MAX_COLUMNS = 160
_BEFORE = 60


@dataclass(frozen=True, slots=True)
class Marked:
    """One line's number and text ready to print, and where and how far to underline it."""

    number: int
    text: str
    indent: int
    width: int


def marked_lines(span: Span) -> tuple[Marked, ...]:
    """The line a span lies in; for a longer span its first and its last line."""
    file = span.file
    start = min(max(span.start, 0), len(file.text))
    end = min(max(span.end, start), len(file.text))
    first, column = file.position(start)
    last, last_column = file.position(end)
    if last > first and last_column == 1:  # up to a line break: the line before is the last
        last -= 1
        last_column = len(file.line_text(last)) + 1
    if last == first:
        return (_mark(first, file.line_text(first), column - 1, last_column - 1),)
    head, tail = file.line_text(first), file.line_text(last)
    indent = len(tail) - len(tail.lstrip())
    return (
        _mark(first, head, column - 1, len(head)),
        _mark(last, tail, min(indent, last_column - 1), last_column - 1),
    )


def _mark(number: int, line: str, start: int, end: int) -> Marked:
    """Cut a long line to a window around `start`, then expand tabs and escapes cell by cell."""
    left = 0 if len(line) <= MAX_COLUMNS else max(0, min(start, len(line)) - _BEFORE)
    right = min(len(line), left + MAX_COLUMNS)
    cells: list[str] = ["… "] if left else []
    width = text_width(cells[0]) if cells else 0
    indent = under = None
    for at in range(left, right):
        if at == start:
            indent = width
        if at == end:
            under = width
        cell = " " * (TAB - width % TAB) if line[at] == "\t" else escape_char(line[at])
        cells.append(cell)
        width += text_width(cell)
    if indent is None:
        indent = width
    if under is None:
        under = width
    if right < len(line):
        cells.append(" …")
    return Marked(number, "".join(cells), indent, max(1, under - indent))
