"""UTF-8 byte offsets of many places, without encoding a long file once for each."""

from __future__ import annotations

from linnet.diagnostics.span import SourceFile

_STRIDE = 4096


class ByteOffsets:
    """Byte offsets with one table of checkpoints a file. Agrees with `SourceFile.byte_offset`."""

    def __init__(self) -> None:
        self._tables: dict[SourceFile, list[int] | None] = {}

    def at(self, file: SourceFile, offset: int) -> int:
        """The byte offset of a code-point offset."""
        if file not in self._tables:
            self._tables[file] = None if file.text.isascii() else _table(file.text)
        table = self._tables[file]
        offset = min(max(offset, 0), len(file.text))
        if table is None:
            return offset
        stride = offset // _STRIDE
        return table[stride] + _encoded(file.text[stride * _STRIDE : offset])


def _table(text: str) -> list[int]:
    """The byte offset of every `_STRIDE`-th code point."""
    sums = [0]
    for start in range(0, len(text), _STRIDE):
        sums.append(sums[-1] + _encoded(text[start : start + _STRIDE]))
    return sums


def _encoded(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
