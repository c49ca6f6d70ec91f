"""One specialised function as one Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from linnet.backends.expr import Expr
from linnet.backends.names import comment
from linnet.diagnostics import InternalError
from linnet.dims import Symbol
from linnet.ir import Function, Op, Param, Region, Value
from linnet.jax.emit import aggregates, control, elementwise, gathers, layout, members, reductions
from linnet.jax.emit.control import host_expr
from linnet.jax.emit.writer import BLOCK, STATE, Writer
from linnet.types import TensorType

if TYPE_CHECKING:
    from linnet.jax.emit.module import Callee, ModuleWriter

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
        raise InternalError("jax.emit", f"no code for `{op.kind}`", op.span)
    branching(w, op, write_region)


def shown_sizes(params: tuple[Param, ...]) -> dict[Symbol, tuple[int, int]]:
    """Each size that a tensor parameter shows: `(parameter, axis)`."""
    found: dict[Symbol, tuple[int, int]] = {}
    for k, param in enumerate(params):
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
    w.count(function.body)
    names = bind_params(w, function, callee.host_params)
    write_region(w, function.body)
    _return(w, callee)
    shown = shown_sizes(function.params)
    callee.size_args = tuple(
        k for k, g in enumerate(function.generics)
        if isinstance(g.var, Symbol) and g.var in w.used_sizes and g.var not in shown
    )  # fmt: skip
    extra = [size_name(w, function, k) for k in callee.size_args]
    callee.size_names = tuple(extra)
    context = [BLOCK] * callee.takes_block + [STATE] * callee.takes_state
    header = f"def {callee.name}({', '.join([*context, *names, *extra])}):"
    sizes = size_lines(w, function.params, names, shown)
    decorators = module.decorators(callee)
    return [_origin(callee), *decorators, header, *sizes, *w.lines]


def size_name(w: Writer, function: Function, k: int) -> str:
    var = function.generics[k].var
    assert isinstance(var, Symbol)
    return w.size_names[var]


def bind_params(w: Writer, function: Function, hosts: Sequence[bool]) -> list[str]:
    names = []
    for param, host in zip(function.params, hosts, strict=True):
        name = w.names.fresh(param.name)
        names.append(name)
        bind_param(w, param.value, name, host)
    for generic in function.generics:
        if isinstance(generic.var, Symbol):
            w.size_names[generic.var] = w.names.fresh(generic.name)
    return names


def bind_param(w: Writer, value: Value, name: str, host: bool) -> None:
    if host:
        w.hold(value, host_expr(value, name))
    else:
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        w.hold(value, Expr(name, rank=rank, names=frozenset((name,))))
    w.owner[name] = (value.id, 0)


def _return(w: Writer, callee: Callee) -> None:
    results = callee.function.body.results
    if not results:
        w.flush()
        w.line(f"return {STATE}" if callee.writes else "return None")
        return
    value = results[0]
    expr = w.get(value) if callee.host_results[0] else w.component(value)
    w.flush(expr.names)
    w.line(f"return {expr.text}, {STATE}" if callee.writes else f"return {expr.text}")


def size_lines(
    w: Writer, params: tuple[Param, ...], names: list[str],
    shown: Mapping[Symbol, tuple[int, int]],
) -> list[str]:  # fmt: skip
    """`B, S = tokens.shape[:2]` for the sizes that are used."""
    wanted: dict[int, dict[int, str]] = {}
    for symbol, (k, axis) in shown.items():
        if symbol in w.used_sizes:
            wanted.setdefault(k, {})[axis] = w.size_names[symbol]
    lines = []
    for k, axes in sorted(wanted.items()):
        type_ = params[k].type
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
