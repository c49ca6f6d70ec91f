"""Collecting diagnostics, bounded and without repeats."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from linnet.diagnostics import Diagnostic, Label, Span

# A report longer than this helps nobody.
MAX_DIAGNOSTICS = 500


class Reporter:
    """Gathers diagnostics; the same code at the same place is reported once."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0
        self._seen: set[tuple[str, Span]] = set()
        self._muted = 0

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        label: str = "",
        related: Iterable[tuple[Span | None, str]] = (),
        notes: Iterable[str] = (),
        help: str | None = None,
    ) -> None:
        """Adds a diagnostic; related places without a span are left out."""
        if not code.startswith("W"):
            self.errors += 1
        if self._muted or (code, span) in self._seen:
            return
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            return
        self._seen.add((code, span))
        labels = tuple(Label(place, text) for place, text in related if place is not None)
        self.diagnostics.append(Diagnostic(code, message, span, label, labels, tuple(notes), help))

    def __enter__(self) -> Reporter:
        """Inside `with reporter:` errors are counted but not shown."""
        self._muted += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._muted -= 1


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a slip of."""
    if len(name) > 64:
        return None
    found = difflib.get_close_matches(name, set(known), n=1, cutoff=0.7)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else None
