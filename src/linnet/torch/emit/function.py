"""One specialised function as one Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linnet.diagnostics import InternalError
from linnet.dims import Symbol
from linnet.ir import Function, Op, Region, Value
from linnet.torch.emit import aggregates, control, elementwise, gathers, layout, members, reductions
from linnet.torch.emit.control import host_expr
from linnet.torch.emit.expr import Expr
from linnet.torch.emit.names import comment
from linnet.torch.emit.writer import Writer
from linnet.types import TensorType

if TYPE_CHECKING:
    from linnet.torch.emit.module import Callee, ModuleWriter

Handler = Callable[[Writer, Op], None]

HANDLERS: dict[str, Handler] = {
    "const": elementwise.emit_const, "dim": elementwise.emit_dim, "iota": elementwise.emit_iota,
    "cast": elementwise.emit_cast, "select": elementwise.emit_select,
    "broadcast": layout.emit_broadcast, "reshape": layout.emit_reshape,
    "permute": layout.emit_permute, "concat": layout.emit_concat, "slice": layout.emit_slice,
    "gather": gathers.emit_gather, "reduce": reductions.emit_reduce,
    "contract": reductions.emit_contract, "cumsum": reductions.emit_cumsum,
    "tuple": aggregates.emit_tuple, "tuple_get": aggregates.emit_tuple_get,
    "struct": aggregates.emit_struct, "struct_get": aggregates.emit_struct_get,
    "some": aggregates.emit_some, "none": aggregates.emit_none, "enum": aggregates.emit_enum,
    "param": members.emit_param, "state_read": members.emit_state_read,
    "state_write": members.emit_state_write, "call": members.emit_call,
    "native": members.emit_native,
    **dict.fromkeys(elementwise.UNARY_KINDS, elementwise.emit_unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.emit_binary),
}  # fmt: skip

_CONTROL = {
    "if": control.emit_if, "match_optional": control.emit_match_optional,
    "match_enum": control.emit_match_enum, "match_sub": control.emit_match_sub,
    "while": control.emit_while, "for": control.emit_for,
    "static_for": control.emit_static_for, "for_subs": control.emit_for_subs,
}  # fmt: skip

HANDLED = frozenset((*HANDLERS, *_CONTROL))


def write_region(w: Writer, region: Region) -> None:
    for op in region.ops:
        write_op(w, op)


def write_op(w: Writer, op: Op) -> None:
    handler = HANDLERS.get(op.kind)
    if handler is not None:
        handler(w, op)
        return
    branching = _CONTROL.get(op.kind)
    if branching is None:
        raise InternalError("torch.emit", f"no code for `{op.kind}`", op.span)
    branching(w, op, write_region)


def shown_sizes(function: Function) -> dict[Symbol, tuple[int, int]]:
    """Each size that a tensor parameter shows: `(parameter, axis)`."""
    found: dict[Symbol, tuple[int, int]] = {}
    for k, param in enumerate(function.params):
        if not isinstance(param.type, TensorType):
            continue
        for axis, dim in enumerate(param.type.dims):
            (symbol,) = dim.symbols if len(dim.symbols) == 1 else (None,)
            if symbol is not None and dim.terms == {(symbol,): 1}:
                found.setdefault(symbol, (k, axis))
    return found


def write_function(module: ModuleWriter, callee: Callee) -> list[str]:
    """The lines of the function, and what `callee` leaves open filled in."""
    function = callee.function
    w = Writer(module, callee.name, function)
    names = []
    for param, host in zip(function.params, callee.host_params, strict=True):
        name = w.names.fresh(param.name)
        names.append(name)
        _bind(w, param.value, name, host)
    for generic in function.generics:
        if isinstance(generic.var, Symbol):
            w.size_names[generic.var] = w.names.fresh(generic.name)
    write_region(w, function.body)
    _return(w, callee)
    shown = shown_sizes(function)
    callee.size_args = tuple(
        k for k, g in enumerate(function.generics) if g.var in w.used_sizes and g.var not in shown
    )
    extra = [w.size_names[g.var] for k, g in enumerate(function.generics)
             if k in callee.size_args and isinstance(g.var, Symbol)]  # fmt: skip
    first = ["block"] if callee.takes_block else []
    header = f"def {callee.name}({', '.join([*first, *names, *extra])}):"
    return [_origin(callee), header, *_size_lines(w, function, names, shown), *w.lines]


def _bind(w: Writer, value: Value, name: str, host: bool) -> None:
    if host:
        w.hold(value, host_expr(w, value, name))
    else:
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        names = frozenset((name,))
        w.hold(value, Expr(name, rank=rank, names=names, alias=frozenset("?")))
    w.owner[name] = (value.id, 0)


def _return(w: Writer, callee: Callee) -> None:
    results = callee.function.body.results
    if not results:
        w.flush()
        if not w.lines:
            w.line("pass")
        return
    value = results[0]
    expr = w.peek(value)
    w.left[value.id] -= 1
    w.pending.pop(value.id, None)
    w.flush(expr.names)
    if not callee.host_results[0]:
        w.left[value.id] += 1
        expr = w.component(value)
    callee.alias = frozenset("?") if expr.alias else frozenset()
    w.line(f"return {expr.text}")


def _size_lines(
    w: Writer, function: Function, names: list[str], shown: dict[Symbol, tuple[int, int]]
) -> list[str]:
    """`B, S = tokens.shape[:2]` for the sizes that are used."""
    wanted: dict[int, dict[int, str]] = {}
    for symbol, (k, axis) in shown.items():
        if symbol in w.used_sizes:
            wanted.setdefault(k, {})[axis] = w.size_names[symbol]
    lines = []
    for k, axes in sorted(wanted.items()):
        type_ = function.params[k].type
        rank = len(type_.shape) if isinstance(type_, TensorType) else 0
        if len(axes) == 1:
            ((axis, name),) = axes.items()
            lines.append(f"    {name} = {names[k]}.shape[{axis}]")
            continue
        last = max(axes)
        targets = ", ".join(axes.get(axis, "_") for axis in range(last + 1))
        part = "" if last + 1 == rank else f"[:{last + 1}]"
        lines.append(f"    {targets} = {names[k]}.shape{part}")
    return lines


def _origin(callee: Callee) -> str:
    span = callee.function.span
    place = "" if span is None else f"  {span.file.path}:{span.line}"
    return f"# {comment(callee.origin + place)}"
