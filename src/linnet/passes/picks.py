"""A choice of rows: a slice or a look-up that takes some positions of some axes of a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linnet.dims import Dim, Symbol
from linnet.ir import Op, Value
from linnet.ir.build import Builder, tensor_type
from linnet.ir.shape_rules.layout import slice_extent
from linnet.types import Subst, TensorType

Bound = tuple[Dim, Dim, Dim]


@dataclass(frozen=True, slots=True)
class Pick:
    """`cuts` gives for an axis of `of` its slice, or the number of the index that takes one
    position of it; `index_axes` the axes of `of` that an index's own axes run along."""

    op: Op
    of: Value
    cuts: Mapping[int, Bound | int]
    indices: tuple[Value, ...]
    index_axes: tuple[tuple[int, ...], ...]

    @property
    def symbols(self) -> frozenset[Symbol]:
        """What its bounds and the types of its indices mention."""
        found: set[Symbol] = set()
        for cut in self.cuts.values():
            if not isinstance(cut, int):
                found.update(*(dim.symbols for dim in cut))
        for value in self.indices:
            found.update(*(dim.symbols for dim in tensor_type(value).dims))
        return frozenset(found)

    def extents(self, axes: Iterable[int]) -> list[Dim]:
        """What is left of axes: an index leaves nothing of its own."""
        dims = tensor_type(self.of).dims
        kept: list[Dim] = []
        for axis in axes:
            cut = self.cuts.get(axis)
            if cut is None:
                kept.append(dims[axis])
            elif not isinstance(cut, int):
                kept.append(slice_extent(*cut))
        return kept

    def block(self, before: TensorType, rows: int) -> int | None:
        """How many axes the row axis of `before` is in the picked value, where the pick is of
        these alone."""
        after = tensor_type(self.of).dims
        count = len(after) - len(before.dims) + 1
        if count < 1 or after[:rows] != before.dims[:rows]:
            return None
        if after[rows + count :] != before.dims[rows + 1 :]:
            return None
        held = range(rows, rows + count)
        axes = {*self.cuts, *(axis for axes in self.index_axes for axis in axes)}
        return count if axes <= set(held) else None

    def apply(self, builder: Builder, value: Value, places: Mapping[int, int]) -> Value:
        """The pick of another value, where `places` gives the axes of the picked one in it."""
        cuts = {places[axis]: cut for axis, cut in self.cuts.items()}
        axes = tuple(tuple(places[a] for a in each) for each in self.index_axes)
        return _emit(builder, value, cuts, self.indices, axes)

    def of_broadcast(self, builder: Builder, broadcast: Op) -> Value | None:
        """The pick of a repeated value, repeated after it."""
        (inner,) = broadcast.operands
        axes: tuple[int, ...] = broadcast.attrs["axes"]
        whole, small = tensor_type(self.of), tensor_type(inner)
        held = {axis: k for k, axis in enumerate(axes)}
        mine = {axis for axis in self.cuts if axis in held}
        if any(small.dims[held[axis]] != whole.dims[axis] for axis in mine):
            return None
        wanted = [c for axis in mine if isinstance(c := self.cuts[axis], int)]
        if any(a not in held or small.dims[held[a]] != whole.dims[a]
               for k in wanted for a in self.index_axes[k]):  # fmt: skip
            return None
        picked = inner
        if mine:
            part = Pick(self.op, self.of, {a: self.cuts[a] for a in mine}, self.indices,
                        self.index_axes)  # fmt: skip
            picked = part.apply_some(builder, inner, held)
        new = _places(len(whole.shape), self.cuts)
        attrs = {"axes": tuple(new[axis] for axis in axes if axis in new)}
        return builder.emit("broadcast", [picked], attrs, type=self.op.result.type)

    def apply_some(self, builder: Builder, value: Value, places: Mapping[int, int]) -> Value:
        """`apply` with only those indices that its cuts name."""
        used = sorted({cut for cut in self.cuts.values() if isinstance(cut, int)})
        cuts = {places[a]: used.index(c) if isinstance(c, int) else c for a, c in self.cuts.items()}
        axes = tuple(tuple(places[a] for a in self.index_axes[k]) for k in used)
        return _emit(builder, value, cuts, [self.indices[k] for k in used], axes)

    def again(
        self, builder: Builder, value: Value, indices: Sequence[Value], subst: Subst
    ) -> Value:
        """The same pick of the same value in another function."""
        cuts: dict[int, Bound | int] = {}
        for axis, cut in self.cuts.items():
            if isinstance(cut, int):
                cuts[axis] = cut
            else:
                cuts[axis] = (subst.dim(cut[0]), subst.dim(cut[1]), subst.dim(cut[2]))
        return _emit(builder, value, cuts, indices, self.index_axes)


def read_pick(op: Op) -> Pick | None:
    """The pick that an operation is: a slice with a step of 1, or a look-up that drops axes and
    moves none."""
    if op.kind == "slice":
        cuts = {k: bound for k, bound in enumerate(op.attrs["bounds"]) if bound is not None}
        if not cuts or any(bound[2] != Dim.of(1) for bound in cuts.values()):
            return None
        return Pick(op, op.operands[0], cuts, (), ())
    if op.kind != "gather" or len(op.operands) < 2:
        return None
    source: tuple[tuple[str, int], ...] = op.attrs["source"]
    axes = {number: axis for axis, (how, number) in enumerate(source) if how == "axis"}
    if sorted(axes) != list(range(len(axes))) or list(axes) != sorted(axes):
        return None
    taken = {axis: number for axis, (how, number) in enumerate(source) if how == "index"}
    if len(axes) != len(tensor_type(op.result).shape):
        return None  # an index has an axis of its own
    index_axes: list[tuple[int, ...]] = [tuple(axes[r] for r in each)
                                         for each in op.attrs["index_axes"]]  # fmt: skip
    return Pick(op, op.operands[0], taken, tuple(op.operands[1:]), tuple(index_axes))


def _places(rank: int, cuts: Mapping[int, Bound | int]) -> dict[int, int]:
    """Where the axes that are left come to be."""
    left = [axis for axis in range(rank) if not isinstance(cuts.get(axis), int)]
    return {axis: k for k, axis in enumerate(left)}


def _emit(
    builder: Builder, value: Value, cuts: Mapping[int, Bound | int], indices: Sequence[Value],
    index_axes: Sequence[tuple[int, ...]],
) -> Value:  # fmt: skip
    rank = len(tensor_type(value).shape)
    if not any(isinstance(cut, int) for cut in cuts.values()):
        bounds = tuple(cuts.get(axis) for axis in range(rank))
        return builder.emit("slice", [value], {"bounds": bounds})
    new = _places(rank, cuts)
    source: list[tuple[str, Any]] = [
        ("axis", new[axis]) if axis in new else ("index", cuts[axis]) for axis in range(rank)
    ]
    axes = tuple(tuple(new[a] for a in each) for each in index_axes)
    attrs = {"source": tuple(source), "index_axes": axes}
    return builder.emit("gather", [value, *indices], attrs)
