"""Branches and loops.

Loops over sub arrays and short loops between constants are Python's, unrolled while tracing. All
others are the device's: their bodies are local functions, which take what they carry (the state
last, where they write it) and read the rest from around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from linnet.backends.expr import Expr
from linnet.diagnostics import CompileError, Diagnostic, InternalError
from linnet.ir import Op, Region, Value
from linnet.ir.walk import walk
from linnet.jax.emit.aggregates import whole_rank
from linnet.jax.emit.dtypes import NAMES, dtype_of, tensor
from linnet.jax.emit.names import field
from linnet.jax.emit.writer import SIZE_LIMIT, STATE, Element, Writer
from linnet.types import DType, EnumType, TensorType

RegionWriter = Callable[[Writer, Region], None]


def host_expr(value: Value, name: str) -> Expr:
    """A host value whose content is known only when the code runs, in variable `name`."""
    bounds = None
    if isinstance(value.type, TensorType):
        dtype = dtype_of(value.type)
        bounds = dtype.integer_range if dtype.is_integer else None
    return Expr(name, host=True, bounds=bounds, names=frozenset((name,)))


def variable_expr(w: Writer, value: Value, name: str) -> Expr:
    """The value as variable `name` holds it after a branch or in a loop."""
    if w.module.hosts.is_host(value):
        return host_expr(value, name)
    return Expr(name, rank=whole_rank(value.type), names=frozenset((name,)))


def given(w: Writer, result: Value, target: Value) -> Expr:
    """One use of a region's result in the form that `target`'s variable has."""
    if w.module.hosts.is_host(target):
        return w.get(result)
    return w.component(result)


def writes_state(w: Writer, region: Region) -> bool:
    """Whether running the region may change the function's state."""
    for op in walk(region):
        if op.kind == "state_write":
            return True
        if op.kind == "call" and w.module.callee(op.attrs["callee"]).writes:
            return True
    return False


def together(names: Sequence[str]) -> str:
    """Several variables as one pattern or value, one as itself."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def targets(names: Sequence[str]) -> str:
    return ", ".join(names)


# --- branches -------------------------------------------------------------------------------------


class Arms:
    """The arms of one branching op as local functions, all giving the same results."""

    def __init__(self, w: Writer, op: Op, write: RegionWriter) -> None:
        self.w, self.op, self.write = w, op, write
        self.kept = [k for k, v in enumerate(op.results) if w.left[v.id] > 0]
        self.writes = any(writes_state(w, region) for region in op.regions)

    @property
    def needed(self) -> bool:
        return bool(self.kept) or self.writes

    def arm(self, wanted: str, region: Region, *, ignored: bool = False) -> str:
        """Writes one arm; its parameters are the region's."""
        w = self.w
        name = w.names.fresh(wanted)
        params = [w.names.fresh(v.name or "held") for v in region.params]
        listed = [*params, *([STATE] if self.writes else [])]
        if ignored:
            listed.insert(0, w.names.fresh("_absent"))
        with w.block(f"def {name}({', '.join(listed)}):"):
            for value, param in zip(region.params, params, strict=True):
                w.hold(value, variable_expr(w, value, param))
            self.write(w, region)
            give(w, [region.results[k] for k in self.kept], self.writes)
        return name

    def finish(self, text: str) -> None:
        """`text` is the call that runs one of the arms, without its closing parenthesis."""
        w = self.w
        ending = f", {STATE})" if self.writes else ")"
        receive(w, [self.op.results[k] for k in self.kept], f"{text}{ending}", self.writes)


def give(w: Writer, values: Sequence[Value], state: bool) -> None:
    """The `return` of a local function: values as arrays, and the state."""
    exprs = [w.component(v) for v in values]
    w.flush(frozenset().union(*(e.names for e in exprs)))
    parts = [e.text for e in exprs] + ([STATE] if state else [])
    w.line(f"return {', '.join(parts) if parts else '()'}")


def receive(w: Writer, values: Sequence[Value], text: str, state: bool) -> None:
    """`a, b, state = text`."""
    if state:
        w.keep_old_state()
    names = [w.place_for(v, "chosen") for v in values] + ([STATE] if state else [])
    w.line(f"{targets(names)} = {text}" if names else text)


def emit_if(w: Writer, op: Op, write: RegionWriter) -> None:
    condition = w.get(op.operands[0])
    plain = not op.regions[0].ops and not op.regions[1].ops
    if plain and len(op.results) == 1 and isinstance(op.results[0].type, TensorType):
        a, b = (w.component(region.results[0]) for region in op.regions)
        text = f"jnp.where({condition.text}, {a.text}, {b.text})"
        names = a.names | b.names | condition.names
        w.define(op.results[0], Expr(text, rank=a.rank, names=names), hint="chosen")
        return
    w.flush(condition.names)
    arms = Arms(w, op, write)
    if not arms.needed:
        return
    yes = arms.arm("then", op.regions[0])
    no = arms.arm("otherwise", op.regions[1])
    arms.finish(f"lax.cond({condition.text}, {yes}, {no}")


def emit_match_optional(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    optional = w.get(op.operands[0])
    arms = Arms(w, op, write)
    if not arms.needed:
        return
    some = arms.arm("present", op.regions[0])
    none = arms.arm("absent", op.regions[1])
    arms.finish(f"{w.module.helper('match_optional')}({optional.text}, {some}, {none}")


def emit_match_enum(w: Writer, op: Op, write: RegionWriter) -> None:
    w.flush()
    subject = w.get(op.operands[0])
    type_ = op.operands[0].type
    if not isinstance(type_, EnumType):
        raise InternalError("jax.emit", f"{type_} is no enum", op.span)
    arms = Arms(w, op, write)
    if not arms.needed:
        return
    names = [arms.arm("case", region) for region in op.regions]
    chosen = {case: k for k, cases in enumerate(op.attrs["cases"]) for case in cases}
    table = [chosen[case] for case in range(len(type_.cases))]
    at = subject.text
    if table != list(range(len(names))):
        at = f"jnp.array({table}, jnp.int32)[{subject.text}]"
    arms.finish(f"lax.switch({at}, ({', '.join(names)},)")


def emit_match_sub(w: Writer, op: Op, write: RegionWriter) -> None:
    raise InternalError("jax.emit", "a `match` on a child block was not decided", op.span)


# --- loops of the device --------------------------------------------------------------------------


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
            if _can_take(w, expr, exprs, locked):
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
            self.w.line(f"{targets(self.variables)} = {parameter}")
        for value, name in zip(params, self.names, strict=True):
            self.w.hold(value, variable_expr(self.w, value, name))
            self.w.owner[name] = (value.id, self.w.region)

    def parameter(self) -> str:
        names = self.variables
        return names[0] if len(names) == 1 else self.w.names.fresh("carry")

    def leave(self, results: Sequence[Value]) -> None:
        for value, name in zip(results, self.names, strict=True):
            self.w.hold(value, variable_expr(self.w, value, name))
            self.w.owner[name] = (value.id, self.w.region)


def _can_take(w: Writer, expr: Expr, exprs: Sequence[Expr], locked: frozenset[str]) -> bool:
    """Whether the operand's own variable can be carried: nobody reads it after the loop starts."""
    if not expr.text.isidentifier() or expr.text in w.size_names.values() or expr.text in locked:
        return False
    if expr.text not in w.owner or w.owner[expr.text][1] != w.region:
        return False
    if sum(1 for each in exprs if expr.text in each.names) > 1:
        return False
    return all(w.left[reader] <= 0 for reader in w.holders[expr.text])


def emit_while(w: Writer, op: Op, write: RegionWriter) -> None:
    test, body = op.regions
    if writes_state(w, test):
        raise refused(op, "a `while` whose condition changes state", "change it in the loop's body")
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
    w.line(f"{targets(carry.variables)} = lax.while_loop({more}, {turn}, {carry.initial})")
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
    w.line(f"{targets(carry.variables)} = {call}")
    carry.leave(op.results)


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


def refused(op: Op, what: str, help_: str) -> CompileError:
    """The error for what JAX has no way to do."""
    return CompileError((Diagnostic("E5301", f"the JAX backend cannot run {what}", op.span,
                                    help=help_),))  # fmt: skip


# --- loops of Python ------------------------------------------------------------------------------


class Carried:
    """The variables a Python loop carries: set before it, again at the end of every turn."""

    def __init__(self, w: Writer, operands: Sequence[Value], results: Sequence[Value],
                 params: Sequence[Value]) -> None:  # fmt: skip
        self.w, self.results = w, results
        w.flush()
        wanted = [p.name or r.name or o.name or "carried"
                  for p, r, o in zip(params, results, operands, strict=True)]  # fmt: skip
        exprs = [given(w, o, r) for o, r in zip(operands, results, strict=True)]
        self.names: list[str] = []
        before = w.locked
        for k, (name, expr) in enumerate(zip(wanted, exprs, strict=True)):
            if _can_take(w, expr, exprs, frozenset()):
                self.names.append(expr.text)
                continue
            others = [each.names for i, each in enumerate(exprs) if i != k]
            w.locked = before.union(self.names, *others)
            chosen = w.variable(None, name, expr)
            w.line(f"{chosen} = {expr.text}")
            w.owner.pop(chosen, None)
            self.names.append(chosen)
        w.locked = before

    def enter(self, params: Sequence[Value]) -> None:
        """Binds a region's parameters to the variables."""
        w = self.w
        for value, result, name in zip(params, self.results, self.names, strict=True):
            w.hold(value, variable_expr(w, result, name))
            w.owner[name] = (value.id, w.region)

    def leave(self, values: Sequence[Value]) -> None:
        """Sets the variables for the next turn."""
        w = self.w
        exprs = [given(w, v, r) for v, r in zip(values, self.results, strict=True)]
        assign_together(w, self.names, exprs)

    def finish(self) -> None:
        w = self.w
        for value, name in zip(self.results, self.names, strict=True):
            w.hold(value, variable_expr(w, value, name))
            w.owner[name] = (value.id, w.region)


def assign_together(w: Writer, names: Sequence[str], exprs: Sequence[Expr]) -> None:
    """`a, b = x, y` in one step, leaving out what is already there."""
    pairs = [(n, e) for n, e in zip(names, exprs, strict=True) if n != e.text]
    if not pairs:
        return
    clash = any(n in e.names for i, (n, _) in enumerate(pairs) for _, e in pairs[i + 1 :])
    if len(pairs) > 1 and clash:
        w.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(e.text for _, e in pairs)}")
        return
    for name, expr in pairs:
        w.line(f"{name} = {expr.text}")


def emit_static_for(w: Writer, op: Op, write: RegionWriter) -> None:
    body = op.regions[0]
    start, stop = w.size(op.attrs["start"]), w.size(op.attrs["stop"])
    if op in w.module.hosts.rolled:
        w.flush()
        bounds = [Expr(s.text, s.prec, host=True, names=s.names) for s in (start, stop)]
        _counted(w, op, write, bounds, op.operands)
        return
    carried = Carried(w, op.operands, op.results, body.params[1:])
    index = body.params[0]
    name = w.names.fresh(index.name or "i")
    span = stop.text if start.constant == 0 else f"{start.text}, {stop.text}"
    if writes_state(w, body):
        w.keep_old_state()
    with w.block(f"for {name} in range({span}):"):
        low = start.constant if start.constant is not None else -SIZE_LIMIT
        w.hold(index, replace(host_expr(index, name), bounds=(low, SIZE_LIMIT)))
        carried.enter(body.params[1:])
        write(w, body)
        carried.leave(body.results)
    carried.finish()


def emit_for_subs(w: Writer, op: Op, write: RegionWriter) -> None:
    body, array, var = op.regions[0], op.attrs["array"], op.attrs["var"]
    kinds = {v: e.kind for v, e in w.subs.items()}
    kind = w.module.array(w.function, array, kinds)[2]
    if op in w.module.hosts.rolled:
        _scan_blocks(w, op, write, kind)
        return
    if writes_state(w, body):
        w.keep_old_state()
    carried = Carried(w, op.operands, op.results, body.params)
    name = w.names.fresh(var.name or field(str(array.steps[-1])))
    first, last = op.attrs.get("start"), op.attrs.get("stop")
    run = "" if first is None and last is None else f"[{first or 0}:{'' if last is None else last}]"
    blocks = f"{w.ref(array)}{run}"
    if not _touches_element_state(w, body, var):
        header = f"for {name} in {blocks}:"
        w.subs[var] = Element(name, kind, (), "")
    else:
        counter = w.names.fresh("i")
        extra = f", {first}" if first else ""
        header = f"for {counter}, {name} in enumerate({blocks}{extra}):"
        w.subs[var] = Element(name, kind, (*w.state_path(array), f"[{counter}]"), counter)
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
    path = w.state_path(array)
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


def _touches_element_state(w: Writer, body: Region, var: object) -> bool:
    """Whether the loop reads or writes state of its element."""
    for op in walk(body):
        if op.kind in ("state_read", "state_write") and op.attrs["ref"].root == var:
            return True
        if op.kind == "for_subs" and op.attrs["array"].root == var:
            return True
        receiver = op.attrs.get("receiver")
        own = receiver is not None and receiver.root == var
        if own and w.module.callee(op.attrs["callee"]).takes_state:
            return True
    return False
