"""Where the standard library and the model cards lie, in a wheel and in a checkout alike."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def stdlib_root() -> Path:
    """The folder whose `nn/linear.linnet` is `std.nn.linear`."""
    return _PACKAGE / "stdlib"


def models_root() -> Path:
    """The folder with one sub-folder for each model card.

    A wheel carries the cards inside the package; a checkout keeps them beside `src/`.
    """
    installed = _PACKAGE / "nest" / "models"
    if installed.is_dir():
        return installed
    return _PACKAGE.parent.parent / "models"
