"""The places of a page pool that attention over pages reads.

Position `s` of row `r` lies at `table[r, s / size] * size + s % size`; a token at position `p` of
its row reads positions `0..=p` as far as the table goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def page_range(table: Any, positions: Any, rows: Any | None, size: int) -> Any:
    """`[smallest, largest]` place read; `[0, 0]` when nothing is. Without `rows` token `b` is row
    `b`'s. Tokens of rows outside the table are passed over."""
    count, pages = table.shape
    rows = np.arange(count) if rows is None else np.asarray(rows)
    inside = (rows >= 0) & (rows < count)
    last = np.full(count, -1, np.int64)
    np.maximum.at(last, rows[inside], positions[inside].astype(np.int64))
    last = np.minimum(last, pages * size - 1)
    number = np.arange(pages)
    # On a row's pages before the last one every place is read, on the last up to its position.
    ends = np.where(number[None, :] < (last // size)[:, None], size - 1, (last % size)[:, None])
    read = number[None, :] * size <= last[:, None]
    if not read.any():
        return np.zeros(2, np.int64)
    first = table.astype(np.int64) * size
    return np.array([first[read].min(), (first + ends)[read].max()], np.int64)
