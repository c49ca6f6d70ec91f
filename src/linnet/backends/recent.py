"""A dict that does not grow without end."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MOST = 256  # a server meets a few kinds of calls again and again


class Recent(dict[K, V]):
    """What is worth remembering of calls and can be worked out again: emptied when it is full, so
    that looking something up costs no more than in a dict."""

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= _MOST and key not in self:
            self.clear()
        super().__setitem__(key, value)
