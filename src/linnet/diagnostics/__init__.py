"""Problems as values: where they are, what they say, how they are shown."""

from linnet.diagnostics.catalogue import CATALOGUE, CodeInfo
from linnet.diagnostics.diagnostic import (
    CompileError,
    Diagnostic,
    InternalError,
    Label,
    Severity,
)
from linnet.diagnostics.render import render_json, render_text
from linnet.diagnostics.span import SourceFile, Span

__all__ = [
    "CATALOGUE",
    "CodeInfo",
    "CompileError",
    "Diagnostic",
    "InternalError",
    "Label",
    "Severity",
    "SourceFile",
    "Span",
    "render_json",
    "render_text",
]
