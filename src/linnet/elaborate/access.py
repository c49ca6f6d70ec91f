"""Accesses in index notation: `x[i, j]` is a view of `x` whose axes carry labels."""

from __future__ import annotations

from dataclasses import dataclass, field

from linnet.diagnostics import Span
from linnet.dims import Dim, Relation
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.elementwise import label_shape, tensor_of
from linnet.elaborate.entities import BrokenEntity, IndexEntity
from linnet.elaborate.operands import (
    ErrorOperand,
    IntOperand,
    Label,
    LabelledOperand,
    Operand,
    SubOperand,
)
from linnet.elaborate.reporter import did_you_mean
from linnet.elaborate.slicing import in_range, subscript
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import I64, PackVar, Shape, ShapeItem, TensorType, Type


def access(ctx: Context, node: tree.Subscript) -> Operand:
    """`x[i, j]` inside index notation."""
    with ctx.mode(notation=False):
        base = ctx.expr(node.base)
        if isinstance(base, SubOperand):
            return subscript(ctx, node)
    value = ctx.coerce(base, None, node.base.span)
    if value is None:
        return BROKEN
    if not isinstance(value.type, TensorType):
        ctx.report("E2104", f"`{value.type}` has no axes to index", node.base.span)
        return BROKEN
    places = _places(ctx, node, value.type)
    return BROKEN if places is None else _view(ctx, value, places, node.span)


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands at some items of the accessed tensor: a label, or an index value."""

    label: Label | None
    index: Operand | None
    items: Shape
    span: Span


def _places(ctx: Context, node: tree.Subscript, type_: TensorType) -> list[_Place] | None:
    """Pairs each index with the shape items it stands at, learning label extents."""
    found: list[tuple[Label | None, Operand | None, Span]] = []
    for item in node.items:
        place = _index(ctx, item)
        if place is None:
            return None
        found.append((*place, item.span))
    widths = _widths(ctx, found, type_, node)
    if widths is None:
        return None
    places: list[_Place] = []
    at = 0
    for (label, index, span), width in zip(found, widths, strict=True):
        items = type_.shape[at : at + width]
        at += width
        if not (label is not None and label.pack) and isinstance(items[0], PackVar):
            ctx.report(
                "E3106",
                f"a plain index cannot stand at the pack `{items[0]}`",
                span,
                help="write a pack index with a star, as in `*s`",
            )
            return None
        if label is not None and not _learn(ctx, label, items, span):
            return None
        if isinstance(index, IntOperand) and not _constant_in_range(ctx, index, items, span):
            return None
        places.append(_Place(label, index, items, span))
    return places


def _constant_in_range(ctx: Context, index: IntOperand, items: Shape, span: Span) -> bool:
    (extent,) = items
    assert isinstance(extent, Dim)
    return in_range(ctx, index.dim, extent, tree.IndexItem(tree.ErrorExpr(span), span))


def _index(ctx: Context, item: tree.Index) -> tuple[Label | None, Operand | None] | None:
    match item:
        case tree.IndexPack(name):
            return _pack_index(ctx, name, item.span)
        case tree.IndexItem(tree.NameExpr(name)):
            entity = ctx.scope.lookup(name.text)
            if isinstance(entity, IndexEntity):
                if entity.label.pack:
                    ctx.report(
                        "E3106", f"`{name.text}` is a pack of indices: write `*{name.text}`",
                        item.span,
                    )  # fmt: skip
                    return None
                return entity.label, None
            if entity is None:
                _unbound(ctx, name)
            if entity is None or isinstance(entity, BrokenEntity):
                return None
            return _gather_index(ctx, item)
        case tree.IndexItem():
            return _gather_index(ctx, item)
        case tree.IndexSlice() | tree.IndexEllipsis():
            ctx.report(
                "E3104",
                "slices are not allowed in index notation",
                item.span,
                help="slice first: `let part = x[..., a:b]`",
            )
            return None


def _unbound(ctx: Context, name: tree.Name) -> None:
    known = [n for n in ctx.scope.all_names() if isinstance(ctx.scope.lookup(n), IndexEntity)]
    ctx.report(
        "E3101",
        f"the index `{name.text}` is bound neither on the left of `=` nor by a reduction",
        name.span,
        help=did_you_mean(name.text, known) or f"reduce over it: `sum[{name.text}] ...`",
    )
    # One report for a name however often it stands in the formula.
    ctx.scope.names[name.text] = BrokenEntity()


def _pack_index(ctx: Context, name: tree.Name, span: Span) -> tuple[Label, None] | None:
    entity = ctx.scope.lookup(name.text)
    if isinstance(entity, IndexEntity):
        if entity.label.pack:
            return entity.label, None
        ctx.report("E3106", f"`{name.text}` is a plain index, not a pack", span)
    elif not isinstance(entity, BrokenEntity):
        _unbound(ctx, name)
    return None


def _gather_index(ctx: Context, item: tree.IndexItem) -> tuple[None, Operand] | None:
    operand = ctx.expr(item.value)
    if isinstance(operand, IntOperand):
        return None, operand
    if isinstance(operand, ErrorOperand):
        return None
    value = tensor_of(ctx, operand, item.span)
    if value is None:
        return None
    assert isinstance(value.type, TensorType)
    scalar = isinstance(operand, LabelledOperand) or value.type.is_scalar
    if not value.type.dtype.is_integer or not scalar:
        ctx.report(
            "E2204", f"an index must be an integer scalar, not `{value.type}`", item.span,
            help="give the tensor its own indices" if not scalar else None,
        )  # fmt: skip
        return None
    return None, operand


def _widths(
    ctx: Context,
    found: list[tuple[Label | None, Operand | None, Span]],
    type_: TensorType,
    node: tree.Subscript,
) -> list[int] | None:
    """How many shape items each index stands at; a pack of unknown extent takes what is left."""
    widths: list[int | None] = []
    for label, _, _ in found:
        if label is None or not label.pack:
            widths.append(1)
        else:
            widths.append(None if label.extent is None else len(label.extent))
    rest = len(type_.shape) - sum(width or 0 for width in widths)
    open_ = widths.count(None)
    if open_ > 1:
        ctx.report("E3106", "only one pack of unknown extent can stand in an access", node.span)
        return None
    if rest < 0 or (rest > 0 and not open_):
        ctx.report(
            "E2204",
            f"{len(found)} indices for a tensor of rank {len(type_.shape)}",
            node.span,
            notes=[f"its type is `{type_}`"],
            help="in index notation every axis needs an index",
        )
        return None
    return [rest if width is None else width for width in widths]


def _learn(ctx: Context, label: Label, items: Shape, span: Span) -> bool:
    """The label runs over `items` here; reports E2201 when it runs over others elsewhere."""
    if label.extent is None:
        label.extent, label.seen = items, span
        return True
    if ctx.same_shape(label.extent, items):
        return True
    here, there = (", ".join(map(str, shape)) for shape in (items, label.extent))
    ctx.report(
        "E2201",
        f"the index `{label.name.text}` has extent `{here}` here and `{there}` elsewhere",
        span,
        label=f"extent `{here}`",
        related=[(label.seen, f"extent `{there}`")],
        notes=describe_facts(ctx.facts),
        help=_equal_help(ctx, label.extent, items),
    )
    return False


def _equal_help(ctx: Context, a: Shape, b: Shape) -> str | None:
    """The clause that would make two extents equal, when they are single dimensions."""
    if len(a) != 1 or len(b) != 1 or not isinstance(a[0], Dim) or not isinstance(b[0], Dim):
        return None
    return where_help(ctx.facts, Relation(a[0], "==", b[0]))


def _view(ctx: Context, value: Value, places: list[_Place], span: Span) -> Operand:
    """The labelled view; a gather when a label repeats or a value indexes."""
    labels = [place.label for place in places if place.label is not None]
    if len(labels) == len(places) and len(set(labels)) == len(labels):
        assert isinstance(value.type, TensorType)
        # The label's own extent, which is provably the same, keeps later shapes alike.
        shape = label_shape(labels)
        if shape != value.type.shape:
            value = ctx.emit("reshape", (value,), value.type.with_shape(shape), span)
        return LabelledOperand(value, tuple(labels))
    return _gather(ctx, value, places, span)


@dataclass(slots=True)
class _Gather:
    """The result's labels in order, and where each starts."""

    labels: list[Label] = field(default_factory=list)
    starts: dict[Label, int] = field(default_factory=dict)
    size: int = 0

    def axes(self, label: Label) -> range:
        if label not in self.starts:
            self.starts[label] = self.size
            self.labels.append(label)
            self.size += len(label.extent or ())
        return range(self.starts[label], self.starts[label] + len(label.extent or ()))


def _gather(ctx: Context, value: Value, places: list[_Place], span: Span) -> Operand:
    result = _Gather()
    source: list[tuple[str, int]] = []
    operands: list[Value] = []
    index_axes: list[tuple[int, ...]] = []
    for place in places:
        if place.label is not None:
            source.extend(("axis", axis) for axis in result.axes(place.label))
            continue
        assert place.index is not None
        source.append(("index", len(operands)))
        if isinstance(place.index, LabelledOperand):
            axes = [axis for label in place.index.labels for axis in result.axes(label)]
            operands.append(place.index.value)
            index_axes.append(tuple(axes))
        else:
            index = ctx.coerce(place.index, _index_type(place.index), place.span)
            if index is None:
                return BROKEN
            operands.append(index)
            index_axes.append(())
    assert isinstance(value.type, TensorType)
    shape: list[ShapeItem] = list(label_shape(result.labels))
    attrs = {"source": tuple(source), "index_axes": tuple(index_axes)}
    type_ = value.type.with_shape(tuple(shape))
    gathered = ctx.emit("gather", (value, *operands), type_, span, attrs)
    return LabelledOperand(gathered, tuple(result.labels))


def _index_type(operand: Operand) -> Type | None:
    return I64 if isinstance(operand, IntOperand) else None
