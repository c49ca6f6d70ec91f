"""One specialised function as one Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linnet.backends.expr import Expr
from linnet.backends.names import comment
from linnet.diagnostics import InternalError
from linnet.dims import Symbol
from linnet.ir import Function, Op, Region, Value
from linnet.torch.emit import aggregates, control, elementwise, gathers, layout, members, reductions
from linnet.torch.emit.control import host_expr
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


def write_function(
    module: ModuleWriter, callee: Callee, wanted: frozenset[int] = frozenset()
) -> list[str]:
    """The lines of the function, and what `callee` leaves open filled in. `wanted` numbers sizes
    that it takes although it may not need them."""
    function = callee.function
    names = [p.name for p in function.params]
    hosts = list(callee.host_params)
    values = [p.value for p in function.params]
    w, texts = _body(module, callee, function.body, values, names, hosts)
    callee.size_args = _size_args(w, function, wanted)
    first = ["block"] if callee.takes_block else []
    extra = _size_names(w, function, callee.size_args)
    header = f"def {callee.name}({', '.join([*first, *texts, *extra])}):"
    return [_origin(callee), header, *_size_lines(w, function, texts), *w.lines]


def write_gradient(
    module: ModuleWriter, callee: Callee, name: str
) -> tuple[list[str], frozenset[int]]:
    """The lines of an op's gradient, a function of the op's arguments, its result and the result's
    gradient; and the numbers of the sizes it needs."""
    function, grad = callee.function, callee.function.grad
    if grad is None:
        raise InternalError("torch.emit", f"{function.name} has no gradient", function.span)
    count = len(function.params)
    names = [p.name for p in function.params]
    names += [value.name or fallback for value, fallback in zip(
        grad.params[count:], ("result", "gradient"), strict=True)]  # fmt: skip
    hosts = [*callee.host_params, False, False]
    w, texts = _body(module, callee, grad.body, list(grad.params), names, hosts, tensors=True)
    sizes = _size_args(w, function, frozenset())
    extra = _size_names(w, function, sizes)
    arguments = [*texts[:count], *extra, *texts[count:]]
    header = f"def {name}({', '.join(arguments)}):"
    return [header, *_size_lines(w, function, texts), *w.lines], frozenset(sizes)


def _body(
    module: ModuleWriter, callee: Callee, body: Region, values: list[Value], wanted: list[str],
    hosts: list[bool], tensors: bool = False,
) -> tuple[Writer, list[str]]:  # fmt: skip
    w = Writer(module, callee.name, callee.function, body)
    names = []
    for value, name, host in zip(values, wanted, hosts, strict=True):
        names.append(w.names.fresh(name))
        _bind(w, value, names[-1], host)
    for generic in callee.function.generics:
        if isinstance(generic.var, Symbol):
            w.size_names[generic.var] = w.names.fresh(generic.name)
    write_region(w, body)
    _return(w, callee, body, tensors)
    return w, names


def _size_args(w: Writer, function: Function, wanted: frozenset[int]) -> tuple[int, ...]:
    """The numbers of the generics that come as integers."""
    shown = shown_sizes(function)
    return tuple(
        k for k, g in enumerate(function.generics)
        if g.var not in shown and (k in wanted or g.var in w.used_sizes)
    )  # fmt: skip


def _size_names(w: Writer, function: Function, numbers: tuple[int, ...]) -> list[str]:
    variables = [function.generics[k].var for k in numbers]
    return [w.size_names[var] for var in variables if isinstance(var, Symbol)]


def _bind(w: Writer, value: Value, name: str, host: bool) -> None:
    if host:
        w.hold(value, host_expr(w, value, name))
    else:
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        names = frozenset((name,))
        w.hold(value, Expr(name, rank=rank, names=names, alias=frozenset("?")))
    w.owner[name] = (value.id, 0)


def _return(w: Writer, callee: Callee, body: Region, tensors: bool) -> None:
    results = body.results
    if not results:
        w.flush()
        if not w.lines:
            w.line("pass")
        return
    if len(results) > 1:
        parts = [w.component(value) for value in results]
        w.line(f"return {', '.join(part.text for part in parts)}")
        return
    value = results[0]
    expr = w.peek(value)
    w.left[value.id] -= 1
    w.pending.pop(value.id, None)
    w.flush(expr.names)
    if tensors or not callee.host_results[0]:
        w.left[value.id] += 1
        expr = w.component(value)
    if not tensors:
        callee.alias = frozenset("?") if expr.alias else frozenset()
    w.line(f"return {expr.text}")


def _size_lines(w: Writer, function: Function, names: list[str]) -> list[str]:
    """`B, S = tokens.shape[:2]` for the sizes that are used."""
    shown = shown_sizes(function)
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
