"""Indexing and slicing outside index notation."""

from __future__ import annotations

from linnet.dims import Dim, Relation, floordiv
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.operands import IntOperand, Operand, SubOperand, ValueOperand
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import I64, PackVar, ShapeItem, TensorType

Bound = tuple[Dim, Dim, Dim] | None


def subscript(ctx: Context, node: tree.Subscript) -> Operand:
    """`base[...]`: an element of a sub array, or a part of a tensor."""
    base = ctx.expr(node.base)
    if isinstance(base, SubOperand):
        return _sub_element(ctx, base, node)
    value = ctx.coerce(base, None, node.base.span)
    if value is None:
        return BROKEN
    if not isinstance(value.type, TensorType) or value.type.is_scalar:
        ctx.report("E2104", f"`{value.type}` has no axes to index", node.span)
        return BROKEN
    items = _spread(ctx, value.type, node)
    return BROKEN if items is None else _slice(ctx, value, items, node)


def _sub_element(ctx: Context, base: SubOperand, node: tree.Subscript) -> Operand:
    if base.count is None:
        ctx.report("E2104", "this child block is not an array", node.span)
        return BROKEN
    item = node.items[0]
    if len(node.items) != 1 or not isinstance(item, tree.IndexItem):
        ctx.report("E2204", "an array of blocks takes one index", node.span)
        return BROKEN
    resolver = ctx.resolver()
    dim = resolver.dim(item.value)
    ctx.discharge(resolver.obligations)
    if dim is None:
        return BROKEN
    if dim.constant is None:
        ctx.report("E2209", "the index of a child block must be a known number", item.span)
        return BROKEN
    if not in_range(ctx, dim, base.count, item):
        return BROKEN
    return SubOperand(base.ref.child(dim.constant), base.block, base.args)


def in_range(ctx: Context, index: Dim, extent: Dim, node: tree.IndexItem) -> bool:
    """Whether a compile-time index is provably within an axis; reports E2209."""
    if index.constant is not None and index.constant < 0:
        ctx.report(
            "E2209", "indices count from 0; negative ones do not exist", node.span,
            help=f"write `{extent + index}`",
        )  # fmt: skip
        return False
    message = f"the index `{index}` is not known to lie within the axis of extent `{extent}`"
    return ctx.prove(Relation(index, ">=", Dim.of(0)), "E2209", message, node.span) and ctx.prove(
        Relation(index, "<", extent), "E2209", message, node.span
    )


def _spread(
    ctx: Context, type_: TensorType, node: tree.Subscript
) -> list[tree.IndexItem | tree.IndexSlice | None] | None:
    """One index for each shape item, None where all of it is taken; reports E2204, E3106."""
    before: list[tree.IndexItem | tree.IndexSlice | None] = []
    after: list[tree.IndexItem | tree.IndexSlice | None] = []
    ellipsis = False
    for item in node.items:
        if isinstance(item, tree.IndexPack):
            ctx.report("E3106", "`*` stands only in index notation", item.span)
            return None
        if isinstance(item, tree.IndexEllipsis):
            if ellipsis:
                ctx.report("E2204", "there can be only one `...`", item.span)
                return None
            ellipsis = True
            continue
        (after if ellipsis else before).append(item)
    rest = len(type_.shape) - len(before) - len(after)
    if rest < 0:
        ctx.report(
            "E2204",
            f"{len(before) + len(after)} indices for a tensor of rank {len(type_.shape)}",
            node.span,
            notes=[f"its type is `{type_}`"],
        )
        return None
    items = [*before, *([None] * rest), *after]
    for index, extent in zip(items, type_.shape, strict=True):
        if index is not None and isinstance(extent, PackVar):
            ctx.report(
                "E3106", f"an index cannot stand at the pack `{extent}`", index.span,
                help="reach axes to the right of it with `...`",
            )  # fmt: skip
            return None
    return items


def _slice(
    ctx: Context,
    value: Value,
    items: list[tree.IndexItem | tree.IndexSlice | None],
    node: tree.Subscript,
) -> Operand:
    assert isinstance(value.type, TensorType)
    bounds: list[Bound] = []
    sliced: list[ShapeItem] = []
    scalars: dict[int, Value] = {}
    for axis, (index, extent) in enumerate(zip(items, value.type.shape, strict=True)):
        bound: Bound = None
        if isinstance(index, tree.IndexSlice):
            assert isinstance(extent, Dim)
            found = _bounds(ctx, index, extent)
            if found is None:
                return BROKEN
            if found != (Dim.of(0), extent, Dim.of(1)):
                bound = found
                extent = _length(*found)
        elif index is not None:
            assert isinstance(extent, Dim)
            scalar = _scalar_index(ctx, index, extent)
            if scalar is None:
                return BROKEN
            scalars[axis] = scalar
        bounds.append(bound)
        sliced.append(extent)
    if any(bound is not None for bound in bounds):
        type_ = value.type.with_shape(tuple(sliced))
        value = ctx.emit("slice", (value,), type_, node.span, {"bounds": tuple(bounds)})
    if scalars:
        value = _pick(ctx, value, scalars, node)
    return ValueOperand(value)


def _pick(ctx: Context, value: Value, scalars: dict[int, Value], node: tree.Subscript) -> Value:
    """Drops the axes that have a scalar index."""
    assert isinstance(value.type, TensorType)
    source: list[tuple[str, int]] = []
    kept: list[ShapeItem] = []
    for axis, item in enumerate(value.type.shape):
        if axis in scalars:
            source.append(("index", list(scalars).index(axis)))
        else:
            source.append(("axis", len(kept)))
            kept.append(item)
    attrs = {"source": tuple(source), "index_axes": ((),) * len(scalars)}
    type_ = value.type.with_shape(tuple(kept))
    return ctx.emit("gather", (value, *scalars.values()), type_, node.span, attrs)


def _scalar_index(ctx: Context, node: tree.IndexItem, extent: Dim) -> Value | None:
    operand = ctx.expr(node.value)
    if isinstance(operand, IntOperand):
        if not in_range(ctx, operand.dim, extent, node):
            return None
        return ctx.coerce(operand, I64, node.span)
    value = ctx.coerce(operand, None, node.span)
    if value is None:
        return None
    if not (
        isinstance(value.type, TensorType) and value.type.is_scalar and value.type.dtype.is_integer
    ):
        ctx.report(
            "E2204", f"an index must be an integer scalar, not `{value.type}`", node.span,
            help="gather with index notation: `let y[i] = x[at[i]]`",
        )  # fmt: skip
        return None
    return value


def _bounds(ctx: Context, node: tree.IndexSlice, extent: Dim) -> tuple[Dim, Dim, Dim] | None:
    """Start, stop and step, proved to lie within the axis."""
    resolver = ctx.resolver()
    start = resolver.dim(node.start) if node.start is not None else Dim.of(0)
    stop = resolver.dim(node.stop) if node.stop is not None else extent
    step = resolver.dim(node.step) if node.step is not None else Dim.of(1)
    ctx.discharge(resolver.obligations)
    if start is None or stop is None or step is None:
        return None
    for bound, part in ((start, node.start), (stop, node.stop)):
        if bound.constant is not None and bound.constant < 0:
            assert part is not None
            ctx.report(
                "E2209", "slice bounds count from 0; negative ones do not exist", part.span,
                help=f"write `{extent + bound}`",
            )  # fmt: skip
            return None
    if not ctx.prove(
        Relation(step, ">", Dim.of(0)), "E2209", f"the step `{step}` is not known to be positive",
        node.span,
    ):  # fmt: skip
        return None
    shown = f"`{start}:{stop}`"
    for relation, message in (
        (Relation(start, ">=", Dim.of(0)), f"{shown} is not known to start at 0 or later"),
        # Past the end by less than a step there is nothing left, which is a fine slice.
        (Relation(start, "<=", stop + step - 1), f"{shown} is not known to start before its end"),
        (
            Relation(stop, "<=", extent),
            f"{shown} is not known to end within the axis of extent `{extent}`",
        ),
    ):
        if not ctx.prove(relation, "E2209", message, node.span):
            return None
    return start, stop, step


def _length(start: Dim, stop: Dim, step: Dim) -> Dim:
    if step.constant == 1:
        return stop - start
    return floordiv(stop - start + step - 1, step)
