"""The one type every stage reports problems with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from linnet.diagnostics.span import Span

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place that explains a diagnostic."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: a stable code, one sentence, the place, and what helps to mend it.

    `label` is printed under the underlined span, `related` are other places, `notes` facts such
    as the two types that differ, `help` the way out when one is known. `span` is None only for
    problems that lie in no text (a missing file).
    """

    code: str
    message: str
    span: Span | None
    label: str = ""
    related: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None

    @property
    def severity(self) -> Severity:
        return "warning" if self.code.startswith("W") else "error"


class CompileError(Exception):
    """Raised by the library's entry points; carries every diagnostic found.

    `str()` is the rendered text of all of them.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        from linnet.diagnostics.render import render_text

        super().__init__(render_text(diagnostics))


class InternalError(Exception):
    """A bug of ours: names the stage, the operation and the place in the source."""

    def __init__(self, stage: str, what: str, span: Span | None = None) -> None:
        self.stage, self.what, self.span = stage, what, span
        place = f" at {span}" if span is not None else ""
        super().__init__(f"internal error in {stage}: {what}{place}; please report this")
