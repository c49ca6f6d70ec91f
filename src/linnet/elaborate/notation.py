"""Index notation: accesses, reductions, and `let y[i, j] = ...`.

An access is a view whose axes carry labels, arithmetic lines labels up (elementwise.py), and a sum
over a product of two accesses is one contraction. Nothing here builds a grid of indices.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.diagnostics import Span
from linnet.dims import Dim, Verdict
from linnet.elaborate.context import BROKEN, Context
from linnet.elaborate.elementwise import (
    allows,
    binary,
    label_shape,
    sort_axes,
    tensor_of,
)
from linnet.elaborate.entities import IndexEntity
from linnet.elaborate.naming import check_not_prelude
from linnet.elaborate.operands import (
    ErrorOperand,
    Label,
    LabelledOperand,
    Operand,
    ValueOperand,
)
from linnet.ir import Value
from linnet.syntax import tree
from linnet.types import DType, Shape, TensorType


def new_labels(ctx: Context, indices: Sequence[tree.IndexName]) -> list[Label] | None:
    """Labels for a list of indices, put into the present scope; None after reporting E3105."""
    labels: list[Label] = []
    for index in indices:
        name = index.name
        check_not_prelude(ctx.world.reporter, name)
        earlier = ctx.scope.names.get(name.text)
        if isinstance(earlier, IndexEntity) and earlier.label in labels:
            ctx.report(
                "E3105",
                f"the index `{name.text}` is listed twice",
                name.span,
                related=[(earlier.label.name.span, "first listed here")],
            )
            return None
        ctx.labels += 1
        label = Label(name, index.pack, ctx.labels)
        ctx.scope.names[name.text] = IndexEntity(label)
        labels.append(label)
    return labels


# --- reductions --------------------------------------------------------------------------------


def reduction(ctx: Context, node: tree.Reduction) -> Operand:
    """`sum[i] body` and its kin."""
    with ctx.inner_scope(), ctx.mode(notation=True):
        labels = new_labels(ctx, node.indices)
        if labels is None:
            return BROKEN
        dtype = None
        if node.dtype is not None:
            resolver = ctx.resolver()
            dtype = resolver.dtype(node.dtype)
            if dtype is None:
                return BROKEN
        contracted = _contraction(ctx, node, labels, dtype)
        body = contracted if contracted is not None else ctx.expr(node.body)
    if contracted is not None:
        return _outside(ctx, contracted)
    if isinstance(body, ErrorOperand):
        return BROKEN
    value = tensor_of(ctx, body, node.body.span)
    if value is None:
        return BROKEN
    if not isinstance(body, LabelledOperand):
        body = LabelledOperand(value, ())
    if not _all_seen(ctx, labels, node.op):
        return BROKEN
    converted = _converted(ctx, node, body, dtype)
    if converted is None:
        return BROKEN
    return _outside(ctx, _reduce(ctx, node, converted, labels))


def _outside(ctx: Context, operand: Operand) -> Operand:
    """A reduction that leaves no label is an ordinary scalar."""
    if isinstance(operand, LabelledOperand) and not operand.labels and not ctx.notation:
        return ValueOperand(operand.value)
    return operand


def _all_seen(ctx: Context, labels: Sequence[Label], what: str) -> bool:
    for label in labels:
        if label.extent is None:
            ctx.report(
                "E3102",
                f"the index `{label.name.text}` of `{what}` stands at no axis",
                label.name.span,
                help="use it in the body or leave it out",
            )
    return all(label.extent is not None for label in labels)


def _converted(
    ctx: Context, node: tree.Reduction, body: LabelledOperand, dtype: object
) -> LabelledOperand | None:
    """The body in the dtype the reduction works in; reports what it cannot reduce."""
    type_ = body.value.type
    assert isinstance(type_, TensorType)
    logical = node.op in ("any", "all")
    if dtype is not None:
        if node.op not in ("sum", "prod"):
            ctx.report("E2111", f"`{node.op}` takes no dtype", node.span)
            return None
        if dtype != type_.dtype:
            target = type_.with_dtype(dtype)  # type: ignore[arg-type]
            body = LabelledOperand(ctx.emit("cast", (body.value,), target, node.span), body.labels)
            type_ = target
    good = type_.dtype is DType.BOOL if logical else type_.dtype.is_numeric
    if not good:
        ctx.report(
            "E2104",
            f"`{node.op}` takes {'bool' if logical else 'numeric'} values, not `{type_.dtype}`",
            node.body.span,
            help="count with `sum[i] cast<i32>(...)`" if not logical else None,
        )
        return None
    return body


def _reduce(
    ctx: Context, node: tree.Reduction, body: LabelledOperand, labels: Sequence[Label]
) -> Operand:
    axes: list[int] = []
    kept: list[Label] = []
    at = 0
    for label in body.labels:
        width = len(label.extent or ())
        if label in labels:
            axes.extend(range(at, at + width))
        else:
            kept.append(label)
        at += width
    if node.op in ("max", "min") and _provably_empty(ctx, label_shape(labels)):
        ctx.report("E2202", f"`{node.op}` over an empty axis has no value", node.span)
        return BROKEN
    if not axes:
        return LabelledOperand(body.value, tuple(kept))
    assert isinstance(body.value.type, TensorType)
    type_ = body.value.type.with_shape(label_shape(kept))
    attrs = {"op": node.op, "axes": tuple(axes)}
    return LabelledOperand(ctx.emit("reduce", (body.value,), type_, node.span, attrs), tuple(kept))


def _provably_empty(ctx: Context, shape: Shape) -> bool:
    return any(
        isinstance(item, Dim) and ctx.facts.equal(item, Dim.of(0)) is Verdict.PROVED
        for item in shape
    )


def _contraction(
    ctx: Context, node: tree.Reduction, labels: Sequence[Label], dtype: object
) -> Operand | None:
    """`sum[...] a * b` as one contraction; None when the body is something else."""
    body = node.body
    if node.op != "sum" or not isinstance(body, tree.Binary) or body.op != "*":
        return None
    left, right = ctx.expr(body.left), ctx.expr(body.right)
    if isinstance(left, ErrorOperand) or isinstance(right, ErrorOperand):
        return BROKEN
    if isinstance(left, LabelledOperand) and isinstance(right, LabelledOperand):
        a, b = left.value.type, right.value.type
        assert isinstance(a, TensorType) and isinstance(b, TensorType)
        fits = a.dtype == b.dtype and dtype in (None, a.dtype) and allows("contract", a.dtype)
        if fits and left.labels and right.labels:
            if not _all_seen(ctx, labels, "sum"):
                return BROKEN
            return _contract(ctx, left, right, labels, node.span)
    # Not a product of two accesses: multiply, then reduce.
    spans = (body.left.span, body.right.span, body.span)
    product = binary(ctx, "*", left, right, spans, None)
    if isinstance(product, ErrorOperand) or not _all_seen(ctx, labels, "sum"):
        return BROKEN
    value = tensor_of(ctx, product, body.span)
    if value is None:
        return BROKEN
    if not isinstance(product, LabelledOperand):
        product = LabelledOperand(value, ())
    converted = _converted(ctx, node, product, dtype)
    return BROKEN if converted is None else _reduce(ctx, node, converted, labels)


def _contract(
    ctx: Context,
    left: LabelledOperand,
    right: LabelledOperand,
    labels: Sequence[Label],
    span: Span,
) -> Operand:
    numbers: dict[Label, range] = {}
    count = 0
    union = sorted({*left.labels, *right.labels}, key=lambda label: label.order)
    for label in union:
        width = len(label.extent or ())
        numbers[label] = range(count, count + width)
        count += width
    kept = [label for label in union if label not in labels]

    def axes(of: Sequence[Label]) -> tuple[int, ...]:
        return tuple(axis for label in of for axis in numbers[label])

    assert isinstance(left.value.type, TensorType)
    type_ = left.value.type.with_shape(label_shape(kept))
    attrs = {"inputs": (axes(left.labels), axes(right.labels)), "output": axes(kept)}
    value = ctx.emit("contract", (left.value, right.value), type_, span, attrs)
    return LabelledOperand(value, tuple(kept))


# --- definitions -------------------------------------------------------------------------------


def definition(ctx: Context, node: tree.LetIndexed) -> Value | None:
    """The tensor that `let y[i, j] = body` names; None after reporting."""
    with ctx.inner_scope(), ctx.mode(notation=True):
        labels = new_labels(ctx, node.indices)
        if labels is None:
            return None
        body = ctx.expr(node.value)
    if isinstance(body, ErrorOperand):
        return None
    value = tensor_of(ctx, body, node.value.span)
    if value is None:
        return None
    operand = body if isinstance(body, LabelledOperand) else LabelledOperand(value, ())
    broken = False
    for label in labels:
        if label.extent is None:
            broken = True
            ctx.report(
                "E3103",
                f"the index `{label.name.text}` stands at no axis, so it has no extent",
                label.name.span,
                help=f"use `iota(N)[{label.name.text}]` for positions",
            )
    if broken:
        return None
    return _ordered(ctx, operand, labels, node)


def _ordered(
    ctx: Context, operand: LabelledOperand, labels: list[Label], node: tree.LetIndexed
) -> Value | None:
    stray = [label for label in operand.labels if label not in labels]
    if stray:
        # An index of an enclosing reduction cannot reach into a definition: there is none.
        ctx.report("E3101", f"the index `{stray[0].name.text}` is not bound here", node.span)
        return None
    value = sort_axes(ctx, operand, labels, node.span)
    missing = [label for label in labels if label not in operand.labels]
    if missing:
        names = ", ".join(f"`{label.name.text}`" for label in missing)
        ctx.report(
            "E3103", f"the value does not depend on {names}", missing[0].name.span,
        )  # fmt: skip
        return None
    return value
