"""What was prepared reaches the code that needs it from outside.

A compiler that saw the tables would fold them into its program. What a prepared function without
parameters of a block gives becomes an extra parameter of the functions that ask for it, down from
the entry. What depends on a block's parameters alone becomes a further field of that block.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from linnet.ir import Function, Op, Param, Value
from linnet.ir.rewrite import Rewriter, rewrite
from linnet.ir.walk import callees_first, walk
from linnet.passes import Lowered
from linnet.passes.places import path_text, places


@dataclass(frozen=True, slots=True)
class Kept:
    """A prepared function of a block's parameters, and the paths of the blocks whose field holds
    what it gives."""

    function: str
    paths: tuple[str, ...]

    @property
    def field(self) -> str:
        return f"kept_{self.function}"


@dataclass(frozen=True, slots=True)
class Threaded:
    """The functions that an entry reaches; it takes the results of `ready` after its inputs."""

    functions: Mapping[str, Function]
    origins: Mapping[str, str]
    ready: tuple[str, ...]


def thread_ready(lowered: Lowered, entry: str) -> Threaded:
    """The functions of an entry with prepared results as parameters.

    Nobody hands results to a prepared function, or to an op with a gradient of its own: these, and
    what they call, work everything out. A function that is called both ways is there twice.
    """
    prepared = frozenset(lowered.prepared)
    by_themselves = [n for n, f in lowered.functions.items() if n in prepared or f.grad is not None]
    alone = frozenset(callees_first(lowered.functions, by_themselves))
    needs: dict[str, tuple[str, ...]] = {}
    functions: dict[str, Function] = {}
    twins: dict[str, str] = {}
    origins = dict(lowered.origins)
    for name, function in lowered.functions.items():
        plain = _renamed(function, twins) if name in alone else function
        needs[name] = () if name in by_themselves else _wanted(function, prepared, needs)
        if not needs[name]:
            functions[name] = plain
            continue
        functions[name] = _taking(function, needs, lowered)
        if name in alone:
            twin = twins[name] = unused(f"{name}_alone", lowered.functions)
            functions[twin] = replace(plain, name=twin)
            origins[twin] = origins.get(name, name)
    ready = needs[lowered.entries[entry]]
    return Threaded(reached(functions, lowered.entries[entry], ready), origins, ready)


def reached(
    functions: Mapping[str, Function], entry: str, also: Iterable[str]
) -> dict[str, Function]:
    """The functions reached from `entry`, and those in `also`, callees before callers."""
    return {name: functions[name] for name in callees_first(functions, (*sorted(also), entry))}


def kept_results(
    lowered: Lowered, functions: Mapping[str, Function], entry: str
) -> tuple[Kept, ...]:
    """The prepared functions of `entry` that read a block's parameters."""
    wanted: dict[str, dict[str, None]] = {}
    where = places(functions, [lowered.entries[entry]], lowered.binding.root)
    for name, function in functions.items():
        for op in walk(function.body):
            receiver = op.attrs.get("receiver")
            if op.kind == "call" and op.attrs.get("prepared") and receiver is not None:
                paths = map(path_text, where.of(name, receiver))
                wanted.setdefault(op.attrs["callee"], {}).update(dict.fromkeys(paths))
    return tuple(Kept(name, tuple(paths)) for name, paths in wanted.items())


def _wanted(
    function: Function, prepared: frozenset[str], needs: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The prepared functions whose results a function asks for, itself or in what it calls."""
    found: dict[str, None] = {}
    for op in walk(function.body):
        if op.kind == "call":
            callee = op.attrs["callee"]
            if callee in prepared and op.attrs.get("receiver") is None:
                found[callee] = None
            found.update(dict.fromkeys(needs[callee]))
    return tuple(found)


def _renamed(function: Function, twins: Mapping[str, str]) -> Function:
    """The function with calls of what its callees are called where they work everything out."""

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind != "call" or op.attrs["callee"] not in twins:
            return None
        callee = twins[op.attrs["callee"]]
        return rw.copy(op, attrs=MappingProxyType({**op.attrs, "callee": callee}))

    return rewrite(function, transform)


def _taking(function: Function, needs: Mapping[str, tuple[str, ...]], lowered: Lowered) -> Function:
    """The function with what it needs as parameters; its calls hand them on."""
    values: dict[str, Value] = {}
    extra = []
    for name in needs[function.name]:
        made = lowered.functions[name]
        short = name.removesuffix("_prepared")
        values[name] = Value(made.body.results[0].type, short, made.span)
        extra.append(Param(short, values[name]))

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op.kind != "call":
            return None
        callee = op.attrs["callee"]
        if callee in values and op.attrs.get("receiver") is None:
            return [values[callee]]
        if not needs[callee]:
            return None
        return rw.copy(op, operands=(*rw.operands(op), *(values[n] for n in needs[callee])))

    taken = rewrite(function, transform)
    return replace(taken, params=(*taken.params, *extra))


def unused(wanted: str, taken: Container[str]) -> str:
    """The name that was wanted, or one like it that is not taken."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
