"""All cases of kernels."""

from __future__ import annotations

from .attention_cases import CAUSAL, HEADS, PAGED, SINKS, attention_cases
from .basic_cases import BASICS, CACHE_CASES, CACHES, ROPE
from .cases import Case, fixed
from .sequence_cases import EXPERTS, LOSSES, RECURRENT

MASKED = list(attention_cases())
FIXED = [
    *(fixed(case, CACHES[0]) for case in CACHE_CASES),
    *(fixed(case, HEADS[0]) for case in MASKED if case.sizes[0] is HEADS[0]),
]
CASES: list[Case] = [
    *BASICS, *ROPE, *MASKED, *FIXED, *CACHE_CASES, *LOSSES, *RECURRENT, *EXPERTS, *PAGED,
    *SINKS, *CAUSAL,
]  # fmt: skip
