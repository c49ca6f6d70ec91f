"""The kernel library: C++17 sources shipped with the package, and how they are compiled.

No compiler flag chooses an instruction set: each file brings its own, and the library picks one at
run time. Compile the sources (in any order, together or one by one) with `FLAGS` and link with
`LINK_FLAGS`; generated code needs `INCLUDE` alone.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

INCLUDE: Path = _HERE / "include"
HEADER: Path = INCLUDE / "linnet" / "kernels.h"

# The slowest to compile first.
_NAMES = (
    "isa_bf16", "isa_avx2", "isa_avx512", "isa_vnni", "attention_many", "attention_few",
    "isa_portable", "isa_amx", "linear", "matmul", "panels", "pack", "pool", "rows", "experts",
    "recurrent", "attention", "sample", "activations", "convert", "isa", "memory",
)  # fmt: skip

SOURCES: tuple[Path, ...] = tuple(_HERE / "src" / f"{name}.cpp" for name in _NAMES)
# The kernels by C names: for tests and benchmarks.
C_NAMES: Path = _HERE / "src" / "capi.cpp"
# What the sources include beside `HEADER`: part of what a cached build depends on.
INTERNAL: tuple[Path, ...] = tuple(sorted((_HERE / "src").glob("*.h")))

# -ffp-contract=off: a product and a sum are rounded apart unless the code says fma.
FLAGS: tuple[str, ...] = (
    "-std=c++17", "-O3", "-fPIC", "-fvisibility-inlines-hidden", "-ffp-contract=off",
    "-fno-math-errno", "-fno-plt",
)  # fmt: skip
LINK_FLAGS: tuple[str, ...] = ("-shared", "-pthread")

__all__ = ["C_NAMES", "FLAGS", "HEADER", "INCLUDE", "INTERNAL", "LINK_FLAGS", "SOURCES"]
