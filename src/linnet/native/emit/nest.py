"""One nest of loops: element expressions placed at the outermost loop where they can stand.

    nest = Nest(writer, [(dim, "s"), (dim, "h")])
    nest.inner(f"out[...] = {nest.element(x, nest.index).text};")
    nest.write()

Level 0 is before the loops, level k inside the first k. Work that does not depend on an inner loop
is done outside it; what may fail goes no further out than a loop that may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linnet.dims import Dim
from linnet.native.emit.dtypes import held, loaded
from linnet.native.emit.values import Buffer, Lazy, Scalar, Tensor, Term, is_unit

if TYPE_CHECKING:
    from linnet.native.emit.writer import Writer

ZERO = Term("0")
_LETTERS = "ijklmnpqrtuvw"
_INLINE = 72
_SHARE = 16384  # elements that are worth a thread's while


class Nest:
    """Loops over `axes`, those of extent 1 left out; `index` has a term for each axis."""

    def __init__(self, w: Writer, axes: Sequence[Dim]) -> None:
        self.w = w
        self.names = w.names.inner()
        self.loops: list[tuple[str, str, int | None]] = []
        self.index: list[Term] = []
        self.axis_level: list[int] = []
        for dim in axes:
            self.axis_level.append(len(self.loops))
            self.index.append(ZERO if is_unit(dim) else self._loop(dim))
        self.depth = len(self.loops)
        self.before: list[list[str]] = [[] for _ in range(self.depth + 1)]
        self.after: list[list[str]] = [[] for _ in range(self.depth + 1)]
        self.memo: dict[tuple[object, ...], Term] = {}
        self.kept: list[Lazy] = []
        self.safe_level = 0  # the innermost loop that may be empty
        for k, (_, _, extent) in enumerate(self.loops):
            if extent is None or extent < 1:
                self.safe_level = k + 1
        self.pragmas: dict[int, str] = {}
        self.fails_at: set[int] = set()

    def _loop(self, dim: Dim) -> Term:
        size = self.w.size(dim)
        (symbol,) = dim.symbols if len(dim.symbols) == 1 else (None,)
        plain = symbol is not None and dim.terms == {(symbol,): 1}
        hint = symbol.name.lower() if plain and symbol is not None else self._letter()
        name = self.names.fresh(hint if len(hint) <= 12 else self._letter())
        self.loops.append((name, size.text, size.constant))
        return Term(name, len(self.loops))

    def _letter(self) -> str:
        return _LETTERS[min(len(self.loops), len(_LETTERS) - 1)]

    # --- statements -----------------------------------------------------------------------------

    def inner(self, line: str) -> None:
        """A statement inside all loops."""
        self.before[self.depth].append(line)

    def local(self, kind: str, text: str, level: int, hint: str) -> Term:
        """A constant, worked out once for each turn of the first `level` loops."""
        name = self.fresh(hint, level)
        self.before[level].append(f"const {kind} {name} = {text};")
        return Term(name, level)

    def fresh(self, hint: str, level: int) -> str:
        """A variable inside the first `level` loops; before them it is the function's."""
        return self.names.fresh(hint) if level else self.w.names.fresh(hint, self.names)

    def failing(self, kind: str, text: str, level: int, hint: str) -> Term:
        """A constant whose expression may fail."""
        placed = max(level, self.safe_level)
        self.fails_at.add(placed)
        return self.local(kind, text, placed, hint)

    # --- elements -------------------------------------------------------------------------------

    def element(self, entry: Tensor, index: Sequence[Term], last: bool = False) -> Term:
        """The element of a tensor at `index`, in register form. The `last` one asked for needs no
        variable."""
        if isinstance(entry, Scalar):
            return entry.term
        if isinstance(entry, Buffer):
            return self._read(entry, index)
        key = (id(entry), *(term.text for term in index))
        found = self.memo.get(key)
        if found is None:
            found = entry.make(self, tuple(index))
            if not last or found.level < self.depth or len(found.text) > 2 * _INLINE:
                found = self._settled(entry, found)
            self.memo[key] = found
            self.kept.append(entry)  # its id stays its own
        return found

    def _settled(self, entry: Lazy, term: Term) -> Term:
        """A variable where the expression has a name, is long, or can be moved outwards."""
        if entry.cost == 0 and len(term.text) <= 2 * _INLINE:
            return term
        if term.text.replace("_", "").isalnum():
            return term
        moves = term.level < self.depth
        if not moves and not entry.name and len(term.text) <= _INLINE:
            return term
        return self.local(held(entry.dtype), term.text, term.level, entry.name or "value")

    def _read(self, buffer: Buffer, index: Sequence[Term]) -> Term:
        place = self.offset(buffer, index)
        return Term(loaded(buffer.dtype, f"{buffer.text}[{place.text}]"), place.level)

    def offset(self, buffer: Buffer, index: Sequence[Term]) -> Term:
        """Where the element at `index` lies in a dense tensor."""
        return self.flat(buffer.dims, index)

    def flat(self, dims: Sequence[Dim], index: Sequence[Term]) -> Term:
        """The row-major number of the element at `index`."""
        total: Term | None = None
        for dim, at in zip(dims, index, strict=True):
            if is_unit(dim):
                continue
            if total is None or total.text == "0":
                level = at.level if total is None else max(at.level, total.level)
                total = Term(at.text, level, at.atomic)
                continue
            size = self.w.size(dim)
            text = f"{total.operand} * {size.factor}"
            if at.text != "0":
                text += f" + {at.operand}"
            total = Term(text, max(total.level, at.level), False)
        return ZERO if total is None else total

    # --- the text -------------------------------------------------------------------------------

    def write(self, parallel: bool = False) -> None:
        """Writes the nest; `parallel` where turns of the outermost loop may run side by side."""
        w = self.w
        shared = parallel and not self.fails_at and self._is_long()
        for level in range(self.depth + 1):
            for line in self.before[level]:
                w.line(line)
            if level == self.depth:
                break
            name, extent, _ = self.loops[level]
            first, last = "0", extent
            if shared and level == 0:
                w.module.uses_kernels = True
                first, last = self.names.fresh("begin"), self.names.fresh("end")
                w.line(f"linnet::pool().ranges({extent}, {self._grain()}, "
                       f"[&](int64_t {first}, int64_t {last}) {{")  # fmt: skip
                w.indent += 1
            if level in self.pragmas and not any(k > level for k in self.fails_at):
                w.pragma(self.pragmas[level])
            w.line(f"for (int64_t {name} = {first}; {name} < {last}; ++{name}) {{")
            w.indent += 1
        for level in range(self.depth, -1, -1):
            for line in self.after[level]:
                w.line(line)
            if level > 0:
                w.indent -= 1
                w.line("}")
        if shared:
            w.indent -= 1
            w.line("});")

    def _is_long(self) -> bool:
        """Whether there may be enough work for several threads."""
        total = 1
        for _, _, extent in self.loops:
            if extent is None:
                return True
            total *= extent
        return total >= 4 * _SHARE

    def _grain(self) -> str:
        """How many turns of the outermost loop are worth handing to a thread."""
        inner, open_ = 1, []
        for _, text, extent in self.loops[1:]:
            if extent is None:
                open_.append(text)
            else:
                inner *= max(extent, 1)
        turns = str(-(-_SHARE // inner))
        if not open_:
            return turns
        return f"most(1, {turns} / most(1, product({', '.join(open_)})))"
