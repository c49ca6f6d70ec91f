"""Loops.

Loops over sub arrays and short loops between constants are Python's, unrolled while tracing. All
others are the device's: their bodies are local functions, which take what they carry (the state
last, where they write it) and read the rest from around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from linnet.backends.emit import loops
from linnet.backends.emit.dtypes import dtype_of, tensor
from linnet.backends.emit.loops import Carried, can_take, run_text, variable_expr
from linnet.backends.expr import Expr
from linnet.backends.inputs import NAMES
from linnet.backends.limits import limit_of, refusal
from linnet.backends.names import comment
from linnet.ir import Op, Region, Value
from linnet.jax.emit.branches import give
from linnet.jax.emit.names import STATE, field
from linnet.jax.emit.state import Element, state_path, touches_element, writes_state
from linnet.jax.emit.writer import Writer
from linnet.jax.limits import LIMITS
from linnet.types import DType

RegionWriter = Callable[[Writer, Region], None]


def together(names: Sequence[str]) -> str:
    """Several variables as one pattern or value, one as itself."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


@dataclass(slots=True)
class Carry:
    """What a loop of the device carries: variables and first values, the state among them."""

    w: Writer
    names: list[str]
    first: list[Expr]
    state: bool

    @staticmethod
    def of(
        w: Writer, operands: Sequence[Value], params: Sequence[Value], state: bool,
        locked: frozenset[str],
    ) -> Carry:  # fmt: skip
        exprs = [w.component(o) for o in operands]
        names = []
        for operand, param, expr in zip(operands, params, exprs, strict=True):
            if can_take(w, expr, exprs, locked):
                names.append(expr.text)
            else:
                names.append(w.names.fresh(param.name or operand.name or "carried"))
        return Carry(w, names, exprs, state)

    @property
    def variables(self) -> list[str]:
        return [*self.names, *([STATE] if self.state else [])]

    @property
    def initial(self) -> str:
        return together([*(e.text for e in self.first), *([STATE] if self.state else [])])

    def enter(self, params: Sequence[Value], parameter: str) -> None:
        """The first lines of a local function whose `parameter` is what is carried."""
        if parameter != together(self.variables):
            self.w.line(f"{', '.join(self.variables)} = {parameter}")
        self._hold(params)

    def parameter(self) -> str:
        names = self.variables
        return names[0] if len(names) == 1 else self.w.names.fresh("carry")

    def leave(self, results: Sequence[Value]) -> None:
        """Binds the results to the variables, after the loop."""
        self._hold(results)

    def _hold(self, values: Sequence[Value]) -> None:
        for value, name in zip(values, self.names, strict=True):
            self.w.hold(value, variable_expr(self.w, value, name))
            self.w.owner[name] = (value.id, self.w.region)


def emit_while(w: Writer, op: Op, write: RegionWriter) -> None:
    test, body = op.regions
    if writes_state(w, test):
        raise refusal("JAX", limit_of(LIMITS, "while"), op)
    state = writes_state(w, body)
    w.flush()
    carry = Carry.of(w, op.operands, body.params, state, frozenset())
    more, turn = w.names.fresh("more"), w.names.fresh("turn")
    parameter = carry.parameter()
    with w.block(f"def {more}({parameter}):"):
        carry.enter(test.params, parameter)
        write(w, test)
        condition = w.component(test.results[0])
        w.flush(condition.names)
        w.line(f"return {condition.text}")
    parameter = carry.parameter()
    with w.block(f"def {turn}({parameter}):"):
        carry.enter(body.params, parameter)
        write(w, body)
        give(w, body.results, state)
    if state:
        w.keep_old_state(frozenset().union(*(e.names for e in carry.first)))
    call = f"lax.while_loop({more}, {turn}, {carry.initial})"
    w.line(f"{', '.join(carry.variables)} = {call}{_forward_only(w, op)}")
    carry.leave(op.results)


def emit_for(w: Writer, op: Op, write: RegionWriter) -> None:
    first, stop = w.get(op.operands[0]), w.get(op.operands[1])
    w.flush(first.names | stop.names)
    yields = op.attrs.get("yields", 0)
    if yields:
        _scan(w, op, write, first, yields)
        return
    dtype = dtype_of(op.operands[0].type)
    bounds = [first, stop]
    if not (first.host and stop.host):
        bounds = [w.scalar(e, dtype) if e.host else e for e in bounds]
    _counted(w, op, write, bounds, op.operands[2:])


def _counted(
    w: Writer, op: Op, write: RegionWriter, bounds: Sequence[Expr], operands: Sequence[Value]
) -> None:
    body = op.regions[0]
    state = writes_state(w, body)
    locked = bounds[0].names | bounds[1].names
    carry = Carry.of(w, operands, body.params[1:], state, locked)
    if not carry.variables:
        return
    turn, index = w.names.fresh("turn"), w.names.fresh(body.params[0].name or "i")
    parameter = carry.parameter()
    with w.block(f"def {turn}({index}, {parameter}):"):
        _hold_index(w, body.params[0], index, all(e.host for e in bounds))
        carry.enter(body.params[1:], parameter)
        write(w, body)
        give(w, body.results, state)
    if state:
        w.keep_old_state(locked.union(*(e.names for e in carry.first)))
    call = f"lax.fori_loop({bounds[0].text}, {bounds[1].text}, {turn}, {carry.initial})"
    note = "" if all(e.host for e in bounds) else _forward_only(w, op)
    w.line(f"{', '.join(carry.variables)} = {call}{note}")
    carry.leave(op.results)


def _forward_only(w: Writer, op: Op) -> str:
    """A comment on a loop of unknown length: JAX's error for a reverse derivative quotes the line,
    and says nothing of the program."""
    if not w.module.options.trainable or op.span is None:
        return ""
    place = f"`{op.kind}` at {op.span.file.path}:{op.span.line}"
    return f"  # no reverse gradient: {comment(place)}"


def _hold_index(w: Writer, value: Value, name: str, counted: bool) -> None:
    """A loop's number as the body sees it; between Python's numbers it comes as an `i64`."""
    expr = Expr(name, names=frozenset((name,)))
    dtype = dtype_of(value.type)
    if counted and dtype is not DType.I64:
        expr = replace(expr, text=f"{name}.astype(jnp.{NAMES[dtype]})")
    w.hold(value, expr)


def _scan(w: Writer, op: Op, write: RegionWriter, first: Expr, yields: int) -> None:
    body = op.regions[0]
    count = len(op.results) - yields
    state = writes_state(w, body)
    carry = Carry.of(w, op.operands[2:], body.params[1:], state, first.names)
    turn, index = w.names.fresh("turn"), w.names.fresh(body.params[0].name or "i")
    parameter = carry.parameter() if carry.variables else w.names.fresh("_none")
    with w.block(f"def {turn}({parameter}, {index}):"):
        _hold_index(w, body.params[0], index, False)
        if carry.variables:
            carry.enter(body.params[1:], parameter)
        write(w, body)
        exprs = [w.component(v) for v in body.results]
        w.flush(frozenset().union(*(e.names for e in exprs)))
        kept = [e.text for e in exprs[:count]] + ([STATE] if state else [])
        made = together([e.text for e in exprs[count:]])
        w.line(f"return {together(kept) if kept else 'None'}, {made}")
    length = w.size(tensor(op.results[-1].type).dims[0])
    dtype = f"jnp.{NAMES[dtype_of(body.params[0].type)]}"
    run = f"jnp.arange({length.text}, dtype={dtype})"
    if not (first.host and first.const == 0):
        run = f"{first.at(13)} + {run}"
    if state:
        w.keep_old_state(first.names.union(*(e.names for e in carry.first)))
    stacked = [w.place_for(v, "stacked") for v in op.results[count:]]
    pattern = together(carry.variables) if carry.variables else "_"
    start = carry.initial if carry.variables else "None"
    w.line(f"{pattern}, {together(stacked)} = lax.scan({turn}, {start}, {run})")
    carry.leave(op.results[:count])


# --- loops between constants and over blocks ------------------------------------------------------


def emit_static_for(w: Writer, op: Op, write: RegionWriter) -> None:
    if op not in w.module.hosts.rolled:
        loops.emit_static_for(w, op, write)
        return
    start, stop = w.size(op.attrs["start"]), w.size(op.attrs["stop"])
    w.flush()
    bounds = [Expr(s.text, s.prec, host=True, names=s.names) for s in (start, stop)]
    _counted(w, op, write, bounds, op.operands)


def emit_for_subs(w: Writer, op: Op, write: RegionWriter) -> None:
    body, array, var = op.regions[0], op.attrs["array"], op.attrs["var"]
    kinds = {v: e.kind for v, e in w.subs.items()}
    kind = w.module.array(w.function, array, kinds)[2]
    if op in w.module.hosts.rolled:
        _scan_blocks(w, op, write, kind)
        return
    w.before_turns(body)
    carried = Carried(w, op.operands, op.results, body.params)
    name = w.names.fresh(var.name or field(str(array.steps[-1])))
    blocks, first = f"{w.ref(array)}{run_text(op)}", op.attrs.get("start")
    if not touches_element(w, body, var):
        header = f"for {name} in {blocks}:"
        w.subs[var] = Element(name, kind, (), "")
    else:
        counter = w.names.fresh("i")
        extra = f", {first}" if first else ""
        header = f"for {counter}, {name} in enumerate({blocks}{extra}):"
        w.subs[var] = Element(name, kind, (*state_path(w, array), f"[{counter}]"), counter)
    with w.block(header):
        carried.enter(body.params)
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def _scan_blocks(w: Writer, op: Op, write: RegionWriter, kind: str) -> None:
    """A loop over stacked blocks: their parameters are scanned, their states carried."""
    body, array, var = op.regions[0], op.attrs["array"], op.attrs["var"]
    state = writes_state(w, body)
    w.flush()
    carry = Carry.of(w, op.operands, body.params, state, frozenset())
    if not carry.variables:
        return
    turn, element = w.names.fresh("turn"), w.names.fresh("element_")
    name = w.names.fresh(var.name or field(str(array.steps[-1])))
    counter = w.names.fresh("i")
    path = state_path(w, array)
    w.subs[var] = Element(name, kind, (*path, f"<{counter}>"), counter)
    parameter = carry.parameter()
    with w.block(f"def {turn}({parameter}, {element}):"):
        w.line(f"{counter}, {name} = {element}")
        carry.enter(body.params, parameter)
        write(w, body)
        exprs = [w.component(v) for v in body.results]
        w.flush(frozenset().union(*(e.names for e in exprs)))
        kept = [e.text for e in exprs] + ([STATE] if state else [])
        w.line(f"return {together(kept)}, None")
    if state:
        w.keep_old_state(frozenset().union(*(e.names for e in carry.first)))
    first, last = op.attrs.get("start"), op.attrs.get("stop")
    run = "" if first is None and last is None else f", {first or 0}, {last}"
    blocks = f"{w.module.helper('numbered')}({w.ref(array)}{run})"
    w.line(f"{together(carry.variables)}, _ = lax.scan({turn}, {carry.initial}, {blocks})")
    carry.leave(op.results)
