"""What the library's tests share: where it lies, and how one of its functions is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import linnet

STDLIB = Path(linnet.__file__).parent / "stdlib"
DOCS = Path(__file__).parent.parent.parent / "docs"

Array = Any  # NumPy arrays, of ml_dtypes' dtypes too
Run = Callable[..., Any]
