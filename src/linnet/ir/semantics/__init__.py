"""What every operation means, in NumPy: one file a group of rows of the table."""

from linnet.ir.semantics import aggregate, elementwise, layout, reduction
from linnet.ir.semantics.model import NUMPY, SEMANTICS, Call, EvaluationError, Some, Tensor

__all__ = [
    "NUMPY",
    "SEMANTICS",
    "Call",
    "EvaluationError",
    "Some",
    "Tensor",
    "aggregate",
    "elementwise",
    "layout",
    "reduction",
]
