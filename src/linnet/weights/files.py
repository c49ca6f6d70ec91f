"""An open file read at places, and the refusal of pickles."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from linnet.weights.errors import fail, quoted

PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_MOST_AT_ONCE = 1 << 30  # one read call takes less than 2 GiB on Linux


class FileAt:
    """A file opened once, read at offsets from any thread.

    Holding the one handle means that what was checked is what is read, even when the name is given
    to another file meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():  # a pipe or device would block or never end
            fail("E5002", f"the weight file {quoted(str(path))} does not exist or is no file")
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            fail("E5002", f"cannot open {quoted(str(path))}: {error.strerror}")
        self._lock = Lock()
        self.size = os.fstat(self._file.fileno()).st_size

    def fill(self, offset: int, out: np.ndarray[Any, Any]) -> None:
        """Fill a flat uint8 array from `offset`."""
        view = memoryview(out.data)
        done = 0
        with self._lock:
            self._file.seek(offset)
            while done < len(view):
                got = self._file.readinto(view[done : done + _MOST_AT_ONCE])
                if not got:
                    fail("E5003", f"{quoted(self.path.name)} became shorter while it was read")
                done += got

    def bytes_at(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset`."""
        out = np.empty(count, np.uint8)
        self.fill(offset, out)
        return out.tobytes()

    def close(self) -> None:
        self._file.close()


def refuse_pickle(path: Path) -> None:
    """Refuse a pickle file by its name or by how it starts; anything else passes."""
    head = b""
    if path.is_file():
        try:
            with open(path, "rb") as file:
                head = file.read(4)
        except OSError as error:
            fail("E5002", f"cannot open {quoted(str(path))}: {error.strerror}")
    zipped = head.startswith(b"PK\x03\x04")
    pickled = len(head) >= 2 and head[0] == 0x80 and head[1] <= 5
    by_name = path.suffix.lower() in PICKLE_SUFFIXES
    # The length of a safetensors header may by chance begin like a pickle, so its name decides.
    by_content = (zipped or pickled) and path.suffix.lower() != ".safetensors"
    if by_name or by_content or (zipped and path.suffix.lower() == ".safetensors"):
        fail(
            "E5012",
            f"{quoted(path.name)} is a pickle file, which can run code when it is read",
            help="convert it to .safetensors, or take the repository's .safetensors files",
        )
