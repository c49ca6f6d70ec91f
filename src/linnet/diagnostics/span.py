"""Source text and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file's text, and the arithmetic from offsets to lines.

    `path` is what a person is shown. Offsets count code points, lines and columns start at 1.
    """

    path: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        starts = [0]
        at = self.text.find("\n")
        while at != -1:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return tuple(starts)

    def position(self, offset: int) -> tuple[int, int]:
        """`(line, column)` of a code-point offset, both from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a line counted from 1, without its line break."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def byte_offset(self, offset: int) -> int:
        """The UTF-8 byte offset of a code-point offset."""
        return len(self.text[:offset].encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range `[start, end)` of code points in one file."""

    file: SourceFile
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.file.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.file.position(self.start)[0]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.file, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        line, column = self.file.position(self.start)
        return f"{self.file.path}:{line}:{column}"
