"""One specialised function as one Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.backends.emit.function import Handlers
from linnet.backends.emit.loops import emit_static_for
from linnet.diagnostics import InternalError
from linnet.ir import Region, Value
from linnet.torch.emit import aggregates, control, elementwise, members, reductions
from linnet.torch.emit.writer import Writer

if TYPE_CHECKING:
    from linnet.torch.emit.module import Callee, ModuleWriter

HANDLERS: Handlers[Writer] = Handlers(
    {
        "const": elementwise.emit_const, "contract": reductions.emit_contract,
        "concat": members.emit_concat,
        "some": aggregates.emit_some, "none": aggregates.emit_none, "enum": aggregates.emit_enum,
        "param": members.emit_param, "state_read": members.emit_state_read,
        "state_write": members.emit_state_write, "call": members.emit_call,
        "native": members.emit_native,
    },
    {
        "if": control.emit_if, "match_optional": control.emit_match_optional,
        "match_enum": control.emit_match_enum, "match_sub": control.emit_match_sub,
        "while": control.emit_while, "for": control.emit_for, "static_for": emit_static_for,
        "for_subs": control.emit_for_subs,
    },
)  # fmt: skip


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
    callee.size_args = w.size_args(wanted)
    first = ["block"] if callee.takes_block else []
    extra = w.size_variables(callee.size_args)
    header = f"def {callee.name}({', '.join([*first, *texts, *extra])}):"
    return [callee.comment, header, *w.body_lines(function.params, texts)]


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
    sizes = w.size_args()
    extra = w.size_variables(sizes)
    arguments = [*texts[:count], *extra, *texts[count:]]
    header = f"def {name}({', '.join(arguments)}):"
    return [header, *w.body_lines(function.params, texts)], frozenset(sizes)


def _body(
    module: ModuleWriter, callee: Callee, body: Region, values: list[Value], wanted: list[str],
    hosts: list[bool], tensors: bool = False,
) -> tuple[Writer, list[str]]:  # fmt: skip
    w = Writer(module, callee.function, body)
    names = [w.bind(*each) for each in zip(values, wanted, hosts, strict=True)]
    w.name_sizes()
    HANDLERS.write(w, body)
    _return(w, callee, body, tensors)
    return w, names


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
