"""Linnet: a checked language for tensor programs and models.

    import linnet
    program = linnet.load_program("my_package")

Importing this package imports no framework; `linnet.torch` and the others do when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from linnet.version import __version__

if TYPE_CHECKING:
    from linnet.api import load_program
    from linnet.diagnostics import CompileError, Diagnostic

_HOMES = {
    "CompileError": "linnet.diagnostics",
    "Diagnostic": "linnet.diagnostics",
    "load_program": "linnet.api",
}
_BACKENDS = ("jax", "nest", "onnx", "torch")

__all__ = ["CompileError", "Diagnostic", "__version__", "load_program"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _BACKENDS:
        try:
            return import_module(f"linnet.{name}")
        except ModuleNotFoundError as error:
            if error.name == f"linnet.{name}":
                raise AttributeError(f"module 'linnet' has no attribute {name!r}") from None
            raise
    raise AttributeError(f"module 'linnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
