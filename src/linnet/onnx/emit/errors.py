"""What an export raises."""

from __future__ import annotations

from linnet.diagnostics import Span


class ExportError(ValueError):
    """A program that cannot be written as ONNX: the message names the operation and its line."""

    def __init__(self, problem: str, span: Span | None = None) -> None:
        self.problem, self.span = problem, span
        super().__init__(problem if span is None else f"{problem} (at {span})")
