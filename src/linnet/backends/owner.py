"""Objects that own what Python's ways to copy do not know of."""

from __future__ import annotations

from typing import NoReturn


class Owner:
    """Holds memory or states that only it may free or hand on, so that there cannot be a second one
    for the same: `copy`, `deepcopy` and `pickle` raise `TypeError`."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        own = [kind for kind in type(self).__mro__ if kind.__module__.startswith("linnet.")]
        kind, area = own[0], own[0].__module__.split(".")[1]
        backend = {"jax": "JAX", "onnx": "ONNX Runtime"}.get(area, area)
        raise TypeError(
            f"a {kind.__name__} of the {backend} backend holds compiled code and memory of its "
            "own, which cannot be copied or pickled: load the model again"
        )
