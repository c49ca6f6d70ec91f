"""One specialised function as one Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.backends.emit.function import Handlers
from linnet.jax.emit import aggregates, branches, loops, members, reductions
from linnet.jax.emit.names import BLOCK, STATE
from linnet.jax.emit.writer import Writer

if TYPE_CHECKING:
    from linnet.jax.emit.module import Callee, ModuleWriter

HANDLERS: Handlers[Writer] = Handlers(
    {
        "contract": reductions.emit_contract, "some": aggregates.emit_some,
        "none": aggregates.emit_none, "enum": aggregates.emit_enum, "param": members.emit_param,
        "state_read": members.emit_state_read, "state_write": members.emit_state_write,
        "call": members.emit_call, "native": members.emit_native,
    },
    {
        "if": branches.emit_if, "match_optional": branches.emit_match_optional,
        "match_enum": branches.emit_match_enum, "match_sub": branches.emit_match_sub,
        "while": loops.emit_while, "for": loops.emit_for, "static_for": loops.emit_static_for,
        "for_subs": loops.emit_for_subs,
    },
)  # fmt: skip
HANDLED = HANDLERS.kinds


def write_function(module: ModuleWriter, callee: Callee) -> list[str]:
    """The lines of the function, and what `callee` leaves open filled in."""
    function = callee.function
    w = Writer(module, function, function.body)
    names = [
        w.bind(param.value, param.name, host)
        for param, host in zip(function.params, callee.host_params, strict=True)
    ]
    w.name_sizes()
    HANDLERS.write(w, function.body)
    _return(w, callee)
    callee.size_args = w.size_args()
    callee.size_names = tuple(w.size_variables(callee.size_args))
    context = [BLOCK] * callee.takes_block + [STATE] * callee.takes_state
    header = f"def {callee.name}({', '.join([*context, *names, *callee.size_names])}):"
    return [
        callee.comment,
        *module.decorators(callee),
        header,
        *w.body_lines(function.params, names),
    ]


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
