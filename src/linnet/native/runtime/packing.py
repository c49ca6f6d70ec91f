"""A model's weights: as arrays for code that reads them, laid out once for the kernels.

Each parameter is kept in the form that was asked for and in no other: once a weight is packed its
floats, or its GGUF's blocks, are let go of, and an array of it is made again from the packed form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from weakref import ref

import numpy as np

from linnet.backends.owner import Owner
from linnet.native.runtime.library import Library, address
from linnet.passes import Storage
from linnet.passes.storage import Group, Joined

Array = np.ndarray[Any, Any]
WeightsFormat = str | Mapping[str, str] | None
Wanted = str | tuple[str, ...]  # a parameter's path, or those of a joined matrix's parts

# The kernel library's number of each format, and the inputs that share a scale (0: all of a row);
# the most exact first.
FORMATS: dict[str, tuple[int, int]] = {
    "f32": (0, 0), "bf16": (1, 0), "int8_group": (3, 32), "int8": (2, 0), "int4": (4, 32),
    "int4_group64": (4, 64),
}  # fmt: skip
_EXACTNESS = {name: -k for k, name in enumerate(FORMATS)}
PANEL = 16  # rows that a packed matrix keeps together
_FOUR_BITS = ("int4", "int4_group64")
_AROUND = "int8_group"
# GGUF block formats that the library takes as they are, the format they come nearest to, and the
# library's number of the blocks.
BLOCKS: dict[str, tuple[int, tuple[str, ...], int]] = {
    "Q8_0": (3, ("int8", "int8_group"), 1), "Q4_0": (4, ("int4",), 2), "Q4_1": (5, ("int4",), 3),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A packed matrix that holds a weight, from `first_row` on."""

    handle: int
    first_row: int = 0
    whole: bool = True  # whether there is nothing else in it


@dataclass(slots=True, eq=False)
class Weight:
    """One tensor, whatever parameters it serves: an array, a GGUF's blocks, packed forms.

    A matrix `[rows, cols]` or experts' matrices `[experts, rows, cols]` can be packed.
    """

    shape: tuple[int, ...]
    dtype: Any
    array: Array | None = None
    blocks: Array | None = None
    stored: str = ""
    forms: dict[str, Form] = field(default_factory=dict)
    # Arrays made from a packed form ("": whichever there is), while somebody holds them.
    copies: dict[str, ref[Array]] = field(default_factory=dict)

    @property
    def own_format(self) -> str:
        return "f32" if self.dtype == np.float32 else "bf16"

    @property
    def is_matrix(self) -> bool:
        floats = self.dtype == np.float32 or str(self.dtype) == "bfloat16"
        return floats and len(self.shape) in (2, 3)

    def made(self, name: str, make: Callable[[], Array]) -> Array:
        """An array made from another form: whoever asked keeps it, not the model."""
        kept = self.copies.get(name)
        found = None if kept is None else kept()
        if found is None:
            found = make()
            found.setflags(write=False)  # the kernels would not see it
            self.copies[name] = ref(found)
        return found

    def fits(self, name: str) -> bool:
        """Whether the blocks are this format."""
        return self.blocks is not None and name in BLOCKS[self.stored][1]


class Weights(Owner):
    """The parameters of a model by path; absent ones are not there.

    `linear` gives the paths of the weights of linear layers, which `wanted` is about.
    """

    def __init__(
        self,
        items: Mapping[str, Weight],
        wanted: WeightsFormat = None,
        numerics: str = "fast",
        linear: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.items, self.wanted, self.numerics = dict(items), wanted, numerics
        self._linear = linear
        self._tied: dict[int, list[str]] = {}  # the paths of each tensor
        for path, item in self.items.items():
            self._tied.setdefault(id(item), []).append(path)
        self._agreed = {} if wanted is None else self._agree()
        self._made: dict[tuple[tuple[int, ...], str], int] = {}
        self._groups: tuple[Joined, ...] = ()
        self._arrays: dict[Group, Array] = {}

    def _agree(self) -> dict[str, str]:
        """The formats of tensors whose paths ask for different ones, by path: the most exact that
        is asked for by a linear layer, where one is."""
        agreed: dict[str, str] = {}
        for tied in self._tied.values():
            if len(tied) == 1 or not self.items[tied[0]].is_matrix:
                continue
            asked = {path: self._asked(path, self.items[path]) for path in tied}
            if len(set(asked.values())) > 1:
                linear = {name for path, name in asked.items() if path in self._linear()}
                name = max(linear or asked.values(), key=_EXACTNESS.__getitem__)
                agreed.update(dict.fromkeys(tied, name))
        return agreed

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.items)

    def array(self, path: str) -> Array | None:
        """The parameter as an array of the values that the model computes with: what its format
        holds, where the weight of a linear layer has one that holds less than its floats."""
        item = self.items.get(path)
        if item is None:
            return None
        if self._to_pack(path, item) is not None:
            self.packed(path)
            self._let_go(item)
        if item.array is not None:
            return item.array
        return item.made("", lambda: _restored(path, item))

    def shown(self, path: str) -> Array | None:
        """As `array`, for looking at: a weight that is still to be packed is left as it is, free
        to be packed together with others."""
        item = self.items.get(path)
        name = None if item is None else self._to_pack(path, item)
        if item is None or name is None:
            return self.array(path)
        return item.made(name, lambda: _through(path, item, *_layout([item], name)))

    def _to_pack(self, path: str, item: Weight) -> str | None:
        """The format that a weight of a linear layer is still to be packed in, and that holds less
        than its floats."""
        if not item.is_matrix or self.wanted is None or item.forms:
            return None
        name = self._format_of(path, item)
        if name == item.own_format:
            return None
        return None if self._linear().isdisjoint(self._tied[id(item)]) else name

    def packed(self, path: Wanted) -> int | None:
        """The packed form of a parameter, or of several one below the other; None where one is
        absent or no matrix of floats."""
        paths = (path,) if isinstance(path, str) else path
        items = [self.items.get(each) for each in paths]
        found = [item for item in items if item is not None and item.is_matrix]
        if len(found) != len(items) or (len(found) > 1 and any(len(i.shape) != 2 for i in found)):
            return None
        names = {self._format_of(p, item) for p, item in zip(paths, found, strict=True)}
        name = max(names, key=_EXACTNESS.__getitem__)
        key = (tuple(id(item) for item in found), name)
        if key not in self._made:
            self._made[key] = self._part(paths, found, name) or self._pack(paths, found, name)
        return self._made[key]

    def held(self, path: str) -> int | None:
        """A packed form that a parameter has, or is to have by the format asked for."""
        item = self.items.get(path)
        if item is None or not item.is_matrix:
            return None
        name = self._format_of(path, item)
        if self.wanted is not None and name != item.own_format:
            return self.packed(path)
        whole = {form: at.handle for form, at in item.forms.items() if at.whole}
        return whole[max(whole, key=_EXACTNESS.__getitem__)] if whole else None

    def _part(self, paths: tuple[str, ...], items: list[Weight], name: str) -> int | None:
        """A weight's rows of the joined matrix that it lies in; None where they are not whole
        panels of it."""
        form = items[0].forms.get(name)
        if len(items) > 1 or form is None or form.first_row % PANEL or items[0].shape[0] % PANEL:
            return None
        library = Library.get()
        stop = form.first_row + items[0].shape[0]
        return library.checked(library.c.linnet_k_part(form.handle, form.first_row, stop), paths[0])

    def joined_array(self, paths: Group) -> Array:
        """Parameters one after another along the first axis."""
        if paths not in self._arrays:
            parts = [array for path in paths if (array := self.array(path)) is not None]
            self._arrays[paths] = np.concatenate(parts)
        return self._arrays[paths]

    def storage(self) -> Storage:
        """Which parameters may lie together: those of one format that are not packed alone."""
        first: dict[int, str] = {}
        tied = {path: first.setdefault(id(item), path) for path, item in self.items.items()}
        kinds = {path: self._kind(path, item) for path, item in self.items.items()}
        return Storage(tied, kinds, self._groups)

    def claim(self, groups: Collection[Joined]) -> None:
        """Notes parameters that lie together from now on."""
        self._groups = tuple(dict.fromkeys((*self._groups, *groups)))

    def _kind(self, path: str, item: Weight) -> str:
        if not item.is_matrix:
            return str(item.dtype)
        name = self._format_of(path, item)
        if ((id(item),), name) in self._made:
            return path
        return f"{name} {item.stored if item.fits(name) else ''} {item.dtype}"

    def release(self) -> None:
        """Lets go of what packed forms hold."""
        for item in self.items.values():
            self._let_go(item)
        if self._made:
            Library.get().forget()

    def _let_go(self, item: Weight) -> None:
        if item.forms:
            item.array = item.blocks = None

    def _format_of(self, path: str, item: Weight) -> str:
        """The format of a tensor, which is one whatever paths it has."""
        return self._agreed.get(path) or self._asked(path, item)

    def _asked(self, path: str, item: Weight) -> str:
        """The format asked for the path; without one the parameter's own."""
        if self.wanted is None or isinstance(self.wanted, str):
            if self.wanted in _FOUR_BITS and not any(step.isdigit() for step in path.split(".")):
                return _AROUND  # a head or another weight that there is once
            return self.wanted or item.own_format
        for pattern, name in self.wanted.items():
            if fnmatchcase(path, pattern):
                return name
        return item.own_format

    def _pack(self, paths: tuple[str, ...], items: list[Weight], name: str) -> int:
        library = Library.get()
        label = ", ".join(paths)
        for path, item in zip(paths, items, strict=True):
            if item.array is None and item.blocks is None:
                item.array = _restored(path, item)  # until `release`
        made = library.checked(_laid_out(items, *_layout(items, name)), label)
        library.c.linnet_k_rounded(made, int(self.numerics == "fast"))
        first = 0
        for item in items:
            item.forms[name] = Form(made, first, len(items) == 1)
            first += item.shape[0]
        return made

    def __del__(self) -> None:
        made, self._made = getattr(self, "_made", {}), {}
        for handle in made.values():
            Library.get().c.linnet_k_free(handle)


def _restored(path: str, item: Weight) -> Array:
    """The array of a tensor that is held in another form, the most exact one."""
    if item.blocks is not None:
        return _through(path, item, BLOCKS[item.stored][0], 32)
    form = item.forms[max(item.forms, key=_EXACTNESS.__getitem__)]
    return Library.get().unpacked(form.handle, item.shape, item.dtype, form.first_row)


def _through(path: str, item: Weight, kind: int, group: int) -> Array:
    """The values of a tensor in a packed form that is not kept."""
    library = Library.get()
    made = library.checked(_laid_out([item], kind, group), path)
    try:
        return library.unpacked(made, item.shape, item.dtype)
    finally:
        library.c.linnet_k_free(made)


def _layout(items: list[Weight], name: str) -> tuple[int, int]:
    """What the library calls a format, or the blocks that are this format already, and how many
    inputs share a scale."""
    if len({item.stored for item in items}) == 1 and all(item.fits(name) for item in items):
        return BLOCKS[items[0].stored][0], 32
    return FORMATS[name]


def _laid_out(items: list[Weight], kind: int, group: int) -> int | None:
    """Weights as one packed matrix, rows one below the other, from their blocks or arrays."""
    library = Library.get()
    data = [item.array if item.blocks is None else item.blocks for item in items]
    places = np.array([0 if each is None else address(each) for each in data], np.uintp)
    half = np.array([item.dtype != np.float32 for item in items], np.int32)
    block = np.array(
        [0 if item.blocks is None else BLOCKS[item.stored][2] for item in items], np.int32
    )
    shape = items[0].shape
    if len(shape) == 3:
        return _int(library.c.linnet_k_pack_experts(
            kind, int(half[0]), int(block[0]), int(places[0]), *shape, group or 32
        ))  # fmt: skip
    rows = np.array([item.shape[0] for item in items], np.int64)
    return _int(library.c.linnet_k_pack_joined(
        kind, address(places), address(rows), address(half), address(block), len(items),
        shape[1], group or 32,
    ))  # fmt: skip


def _int(handle: Any) -> int | None:
    return None if handle is None else int(handle)
