"""How an entry runs: as a step that Python walks through, or as one compiled whole.

A step is an entry whose loops over blocks all stand where Python can run them. Each layer is then
one call of a compiled function, the same for all of them, and what lies between the loops is
compiled as functions of its own (`Model_decode_start`, `Model_decode_end`). Everything else (loops
of the device around layers, branches) is compiled as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from linnet.dims import Dim, Symbol
from linnet.ir import Function, Op, Param, Ref, Region, SubVar, Value
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import free_of_op, walk
from linnet.jax.ready import Kept, Threaded, kept_results, reached, thread_ready, unused
from linnet.passes import Lowered
from linnet.types import TupleType

# Operations that take and give parts: never worth a compiled function.
_STRUCTURAL = frozenset(
    {"const", "dim", "enum", "none", "tuple", "tuple_get", "struct_get", "some"}
)
_REMADE = frozenset({"const", "dim", "enum", "none"})


@dataclass(frozen=True, slots=True)
class Plan:
    """The functions to print; `jitted` are compiled by themselves. `ready` names the prepared
    functions whose results the entry takes after its inputs, `kept` those whose results blocks
    hold. `stepped`: Python runs the entry."""

    functions: Mapping[str, Function]
    origins: Mapping[str, str]
    jitted: frozenset[str]
    ready: tuple[str, ...]
    stepped: bool
    kept: tuple[Kept, ...] = ()

    @property
    def prepared(self) -> frozenset[str]:
        return frozenset((*self.ready, *(k.function for k in self.kept)))


def plan(lowered: Lowered, entry: str, *, whole: bool, alone: bool = False) -> Plan:
    """Decides how `entry` runs; with `whole` it is always one program, and `alone` takes nothing
    that was worked out before."""
    threaded = Threaded(lowered.functions, lowered.origins, ())
    kept: tuple[Kept, ...] = ()
    if not alone:
        threaded = thread_ready(lowered, entry)
        kept = kept_results(lowered, threaded.functions, entry)
    functions, origins, ready = threaded.functions, dict(threaded.origins), threaded.ready
    key = lowered.entries[entry]
    loops = _with_loops(functions)
    prepared = frozenset((*ready, *(k.function for k in kept)))
    if whole or key not in loops or not _steps(functions, loops, key):
        jitted = _called_in_loops(functions) | prepared
        return Plan(functions, origins, frozenset(jitted), ready, False, kept)
    stepper = _Stepper(functions, origins, loops)
    stepper.run(key)
    made = reached({**functions, **stepper.made}, key, prepared)
    return Plan(made, origins, frozenset(stepper.jitted | prepared), ready, True, kept)


# --- steps ----------------------------------------------------------------------------------------


def _with_loops(functions: Mapping[str, Function]) -> set[str]:
    """Functions that loop over blocks, or call one that does."""
    found: set[str] = set()
    for name, function in functions.items():
        for op in walk(function.body):
            if op.kind == "for_subs" or (op.kind == "call" and op.attrs["callee"] in found):
                found.add(name)
    return found


def _steps(functions: Mapping[str, Function], loops: set[str], name: str) -> bool:
    """Whether every loop over blocks is one that Python can run."""
    for op in functions[name].body.ops:
        if op.kind == "for_subs":
            continue
        if op.kind == "call":
            if op.attrs["callee"] in loops and not _steps(functions, loops, op.attrs["callee"]):
                return False
            continue
        for inner in walk(op):
            if inner.kind == "for_subs":
                return False
            if inner.kind == "call" and inner.attrs["callee"] in loops:
                return False
    return True


def _called_in_loops(functions: Mapping[str, Function]) -> set[str]:
    """What loops over blocks call: traced once, whatever the number of blocks."""
    found = set()
    for function in functions.values():
        for op in walk(function.body):
            if op.kind == "for_subs":
                found |= {o.attrs["callee"] for o in walk(op.regions[0]) if o.kind == "call"}
    return found


@dataclass(slots=True)
class _Stepper:
    """Rewrites the functions that Python runs."""

    functions: Mapping[str, Function]
    origins: dict[str, str]
    loops: set[str]
    made: dict[str, Function] = field(default_factory=dict)
    jitted: set[str] = field(default_factory=set)
    stepped: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)  # called by what is compiled

    def run(self, entry: str) -> None:
        self._collect(entry)
        for name, function in self.functions.items():
            if name not in self.stepped:
                self.inside |= {o.attrs["callee"] for o in walk(function.body) if o.kind == "call"}
        for name in self.stepped:
            self.made[name] = self._function(self.functions[name])

    def _collect(self, name: str) -> None:
        self.stepped.add(name)
        for op in self.functions[name].body.ops:
            if op.kind == "call" and op.attrs["callee"] in self.loops:
                self._collect(op.attrs["callee"])

    def _function(self, function: Function) -> Function:
        ops: list[Op] = []
        segment: list[Op] = []
        body = function.body
        makers = {v: op for op in body.ops for v in op.results}
        for place, op in enumerate(body.ops):
            boundary = op.kind == "for_subs" or (
                op.kind == "call" and op.attrs["callee"] in self.stepped
            )
            if not boundary:
                segment.append(op)
                continue
            ops += self._segment(
                function, segment, body, place, makers, "start" if not ops else "next"
            )
            segment = []
            ops.append(self._loop(function, op) if op.kind == "for_subs" else op)
        ops += self._segment(function, segment, body, len(body.ops), makers, "end")
        return replace(function, body=Region(body.params, tuple(ops), body.results))

    def _segment(
        self, function: Function, segment: list[Op], body: Region, stop: int,
        makers: Mapping[Value, Op], part: str,
    ) -> list[Op]:  # fmt: skip
        """What stands between loops as one compiled call, where it is more than one already."""
        real = [op for op in segment if op.kind not in _STRUCTURAL]
        if not real:
            return segment
        if len(real) == 1 and self._own_call(real[0]):
            self.jitted.add(real[0].attrs["callee"])
            return segment
        later = {v for op in body.ops[stop:] for v in free_of_op(op)} | set(body.results)
        name = unused(f"{function.name}_{part}", {**self.functions, **self.made})
        constants = [op for op in segment if op.kind in _REMADE]
        rest = [op for op in segment if op.kind not in _REMADE]
        outputs = [v for op in rest for v in op.results if v in later]
        made, inputs = _outlined(function, name, rest, outputs, makers, {})
        self._add(name, made, function)
        receiver = Ref(None, ()) if _touches_block(rest) else None
        return [*constants, *_call(made, inputs, outputs, receiver, function)]

    def _loop(self, function: Function, op: Op) -> Op:
        body, var = op.regions[0], op.attrs["var"]
        real = [o for o in body.ops if o.kind not in _STRUCTURAL]
        if len(real) == 1 and self._own_call(real[0]):
            self.jitted.add(real[0].attrs["callee"])
            return op
        if any(_roots(o, var) for o in body.ops):
            return op  # reaches outside its element: run operation by operation
        constants = [o for o in body.ops if o.kind in _REMADE]
        rest = [o for o in body.ops if o.kind not in _REMADE]
        own = {v for o in rest for v in o.results}
        outputs = list(dict.fromkeys(v for v in body.results if v in own))
        makers = {v: o for o in constants for v in o.results}
        name = unused(f"{function.name}_{var.name}", {**self.functions, **self.made})
        made, inputs = _outlined(function, name, rest, outputs, makers, {var: Ref(None, ())})
        self._add(name, made, function)
        call = _call(made, inputs, outputs, Ref(var, ()), function)
        return replace(op, regions=(Region(body.params, (*constants, *call), body.results),))

    def _own_call(self, op: Op) -> bool:
        """Whether the operation is a call of a function that nothing compiled calls too."""
        return op.kind == "call" and op.attrs["callee"] not in self.inside

    def _add(self, name: str, made: Function, function: Function) -> None:
        self.made[name] = made
        self.origins[name] = self.origins.get(function.name, function.name)
        self.jitted.add(name)


def _outlined(
    function: Function, name: str, ops: list[Op], outputs: list[Value],
    makers: Mapping[Value, Op], roots: Mapping[SubVar, Ref],
) -> tuple[Function, list[Value]]:  # fmt: skip
    """A function of these operations, and the values it takes."""
    own = {v for op in ops for v in op.results}
    free = dict.fromkeys(v for op in ops for v in free_of_op(op) if v not in own)
    inputs = [v for v in free if v not in makers or makers[v].kind not in _REMADE]
    params = [Value(v.type, v.name, v.span) for v in inputs]
    rw = Rewriter(values=dict(zip(inputs, params, strict=True)), fresh=True)
    rw.sub_vars.update(roots)
    with rw.builder.region(()) as body:
        for v in free:
            if v in makers and makers[v].kind in _REMADE:
                rw.op(makers[v])
        for op in ops:
            rw.op(op)
        results = tuple(map(rw.value, outputs))
        if len(results) > 1:
            types = TupleType(tuple(v.type for v in results))
            results = (rw.builder.emit("tuple", results, type=types),)
        body.give(*results)
    made = Function(
        name, "fn", function.block, function.generics,
        tuple(Param(v.name or "value", v) for v in params), (), body.region, span=function.span,
    )  # fmt: skip
    return made, inputs


def _call(
    made: Function, inputs: list[Value], outputs: list[Value], receiver: Ref | None,
    function: Function,
) -> list[Op]:  # fmt: skip
    generics = tuple(Dim.of(g.var) for g in function.generics if isinstance(g.var, Symbol))
    attrs = MappingProxyType({"callee": made.name, "generics": generics, "receiver": receiver})
    if len(outputs) < 2:
        return [Op("call", tuple(inputs), tuple(outputs), attrs, span=function.span)]
    whole = Value(made.body.results[0].type)
    parts = [
        Op("tuple_get", (whole,), (v,), MappingProxyType({"index": k}))
        for k, v in enumerate(outputs)
    ]
    return [Op("call", tuple(inputs), (whole,), attrs, span=function.span), *parts]


def _touches_block(ops: Sequence[Op]) -> bool:
    for op in ops:
        for inner in walk(op):
            if inner.kind in ("param", "state_read", "state_write", "for_subs", "match_sub"):
                return True
            if inner.kind == "call" and inner.attrs.get("receiver") is not None:
                return True
    return False


def _roots(op: Op, var: SubVar) -> bool:
    """Whether the operation reaches a block that is not below the loop's element."""
    own = {var}
    for inner in walk(op):
        for attr in ("ref", "array", "receiver"):
            ref = inner.attrs.get(attr)
            if isinstance(ref, Ref) and ref.root not in own:
                return True
        if inner.kind == "for_subs":
            own.add(inner.attrs["var"])
    return False
