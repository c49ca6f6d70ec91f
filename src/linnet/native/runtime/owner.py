"""Objects that own memory which Python does not know of."""

from __future__ import annotations

from typing import NoReturn


class Owner:
    """Frees memory of its own when it goes, so that there cannot be a second one for the same:
    `copy`, `deepcopy` and `pickle` raise `TypeError`."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"a native {type(self).__name__} holds compiled code and packed weights, which cannot "
            "be copied or pickled: load the model again"
        )
