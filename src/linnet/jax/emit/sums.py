"""Products that a sum could swallow.

XLA lets LLVM contract a product and a sum to one operation with one rounding wherever both stand
in one loop, whatever lies between them that only moves elements. At optimisation level 0 most
sums escape this on a CPU, but not in `f16`, nor beside a conversion to `f16` or an `exp`.
"""

from __future__ import annotations

from linnet.ir import Region
from linnet.ir.walk import walk, walk_regions
from linnet.types import DType

# What CPUs multiply and add in one operation; `bf16` is widened, and rounded by integer code.
CONTRACTED = frozenset({DType.F16, DType.F32, DType.F64})

# Operations on the value of a product that add nothing to it, and that no sum is moved across, as
# it is across a cast. `exp` and its like are polynomials in XLA's code, which begin with sums.
_APART = frozenset(
    {"mul", "div", "min", "max", "abs", "sqrt", "floor", "eq", "ne", "lt", "le", "gt", "ge"}
)


def may_meet_sums(body: Region) -> frozenset[int]:
    """The values (by id) that something else than such an operation takes: a sum, what may hand
    them on to one, or the caller."""
    found = {value.id for region in walk_regions(body) for value in region.results}
    for op in walk(body):
        if op.kind not in _APART:
            found.update(value.id for value in op.operands)
    return frozenset(found)
