"""Diagnostics as text for people and as JSON for tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.diagnostics.diagnostic import Diagnostic, Label
from linnet.diagnostics.escape import escape_text
from linnet.diagnostics.offsets import ByteOffsets
from linnet.diagnostics.snippet import Marked, marked_lines
from linnet.diagnostics.span import SourceFile, Span

JSON_VERSION = 1
MAX_SHOWN = 200
_MAX_MESSAGE = 1000
_MAX_LABEL = 300
_MAX_RELATED = 20

_RED, _YELLOW, _BLUE, _BOLD, _RESET = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"


def render_text(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """All diagnostics, file by file in the order of their places, and a line of counts.

    Text that comes from files is escaped, so no terminal control sequence passes. At most
    `MAX_SHOWN` are written out; the counts are of all. Empty when there are none.
    """
    ordered = _in_order(diagnostics)
    if not ordered:
        return ""
    paint = _Paint(color)
    parts = [_render_one(each, paint) for each in ordered[:MAX_SHOWN]]
    if len(ordered) > MAX_SHOWN:
        parts.append(f"... and {len(ordered) - MAX_SHOWN} more, not shown\n")
    return "\n".join([*parts, paint.bold(summary_line(ordered)) + "\n"])


def render_json(diagnostics: Iterable[Diagnostic]) -> dict[str, object]:
    """A JSON-ready dict: `version`, `diagnostics`, `summary`.

    A place has `file`, `start` and `end`, each with `line` and `column` (from 1, in code points)
    and the UTF-8 byte `offset`; `end` is the place just past the span. Those three are null for
    a problem that lies in no text.
    """
    ordered = _in_order(diagnostics)
    offsets = ByteOffsets()
    errors, warnings = _counts(ordered)
    return {
        "version": JSON_VERSION,
        "diagnostics": [_json_one(each, offsets) for each in ordered],
        "summary": {"errors": errors, "warnings": warnings},
    }


def summary_line(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`, or `no problems`."""
    counts = zip(_counts(diagnostics), ("error", "warning"), strict=True)
    parts = [f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count]
    return ", ".join(parts) or "no problems"


def _counts(diagnostics: Sequence[Diagnostic]) -> tuple[int, int]:
    errors = sum(each.severity == "error" for each in diagnostics)
    return errors, len(diagnostics) - errors


def _in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file in order of first appearance, then by place; those without a place come first."""
    listed = list(diagnostics)
    files: dict[SourceFile | None, int] = {None: -1}
    for each in listed:
        files.setdefault(each.span.file if each.span else None, len(files))

    def key(each: Diagnostic) -> tuple[int, int]:
        if each.span is None:
            return -1, 0
        return files[each.span.file], each.span.start

    return sorted(listed, key=key)


class _Paint:
    """Colours, or none."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def wrap(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self.on and text else text

    def bold(self, text: str) -> str:
        return self.wrap(text, _BOLD)

    def rule(self, text: str) -> str:
        return self.wrap(text, _BLUE)


def _render_one(each: Diagnostic, paint: _Paint) -> str:
    color = _RED if each.severity == "error" else _YELLOW
    head = paint.wrap(f"{each.severity}[{each.code}]", color)
    lines = [head + paint.bold(": " + escape_text(each.message, _MAX_MESSAGE))]
    related = each.related[:_MAX_RELATED]
    spans = [span for span in (each.span, *(label.span for label in related)) if span is not None]
    marks = [marked_lines(span) for span in spans]
    gutter = max((len(str(mark.number)) for group in marks for mark in group), default=1)
    if each.span is not None:
        lines += _snippet(each.span, marks.pop(0), each.label, "^", "-->", color, gutter, paint)
    for label, group in zip(related, marks, strict=True):
        lines += _snippet(label.span, group, label.message, "-", ":::", _BLUE, gutter, paint)
    tails = [("note", note) for note in each.notes]
    if each.help is not None:
        tails.append(("help", each.help))
    if tails and spans:
        lines.append(paint.rule(f"{'':{gutter}} |"))
    for kind, text in tails:
        lines += _tail(kind, text, gutter, paint)
    return "\n".join(lines) + "\n"


def _snippet(
    span: Span,
    marks: tuple[Marked, ...],
    label: str,
    mark: str,
    arrow: str,
    color: str,
    gutter: int,
    paint: _Paint,
) -> list[str]:
    """The place, the source line, and the underline with its label."""
    place = escape_text(str(span), _MAX_LABEL)
    lines = [f"{paint.rule(f'{chr(32) * gutter}{arrow}')} {place}"]
    lines.append(paint.rule(f"{'':{gutter}} |"))
    for at, each in enumerate(marks):
        if at and each.number > marks[at - 1].number + 1:
            lines.append(paint.rule("..."))
        lines.append(f"{paint.rule(f'{each.number:>{gutter}} |')} {each.text}".rstrip())
        under = mark * each.width
        if at == len(marks) - 1 and label:
            under += " " + escape_text(label, _MAX_LABEL)
        blank = " " * each.indent
        lines.append(f"{paint.rule(f'{chr(32) * gutter} |')} {blank}{paint.wrap(under, color)}")
    return lines


def _tail(kind: str, text: str, gutter: int, paint: _Paint) -> list[str]:
    """A note or help; further lines of its text stand under the first."""
    head = f"{'':{gutter}} = {kind}: "
    first, *rest = (escape_text(line, _MAX_MESSAGE) for line in text.split("\n"))
    return [f"{paint.rule(head)}{first}", *(" " * len(head) + line for line in rest)]


def _json_one(each: Diagnostic, offsets: ByteOffsets) -> dict[str, object]:
    return {
        "code": each.code,
        "severity": each.severity,
        "message": each.message,
        **_json_place(each.span, offsets),
        "label": each.label,
        "related": [_json_label(label, offsets) for label in each.related],
        "notes": list(each.notes),
        "help": each.help,
    }


def _json_label(label: Label, offsets: ByteOffsets) -> dict[str, object]:
    return {**_json_place(label.span, offsets), "message": label.message}


def _json_place(span: Span | None, offsets: ByteOffsets) -> dict[str, object]:
    if span is None:
        return {"file": None, "start": None, "end": None}
    return {
        "file": span.file.path,
        "start": _json_position(span.file, span.start, offsets),
        "end": _json_position(span.file, span.end, offsets),
    }


def _json_position(file: SourceFile, offset: int, offsets: ByteOffsets) -> dict[str, int]:
    line, column = file.position(offset)
    return {"line": line, "column": column, "offset": offsets.at(file, offset)}
