"""One entry as an ONNX model: inputs, the traced body, outputs, metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Symbol
from linnet.ir import Function
from linnet.ir.evaluate import Evaluator
from linnet.onnx.emit.assumptions import Assumptions
from linnet.onnx.emit.core import Core
from linnet.onnx.emit.dtypes import ONNX, dtype_of
from linnet.onnx.emit.errors import ExportError
from linnet.onnx.emit.finish import add_into_norms, drop_unused
from linnet.onnx.emit.graph import MICROSOFT, GraphBuilder
from linnet.onnx.emit.held import Case, Held, Maybe, Present
from linnet.onnx.emit.members import Members
from linnet.onnx.emit.sizes import shape_of, shown
from linnet.onnx.emit.trace import Kernel, Tracer
from linnet.passes import Lowered
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    Subst,
    TensorType,
    TupleType,
    Type,
)
from linnet.version import __version__

MIN_OPSET = 20
# The ir_version that goes with an opset, so that older runtimes open older opsets.
_IR_VERSIONS = {20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}


@dataclass(slots=True)
class Written:
    """A written entry: `inputs` and `outputs` name the entry's own, `params` by path, `states` by
    path as (input or None, output or None)."""

    model: ir.Model
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    states: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    types: list[tuple[DType, tuple[Dim, ...]]] = field(default_factory=list)  # of `outputs`
    symbols: dict[Symbol, str] = field(default_factory=dict)  # the sizes in them, by generic
    limits: dict[str, list[Dim]] = field(default_factory=dict)  # assumed: 0 <= input <= each
    appended: frozenset[str] = frozenset()  # states that only a session in place computes rightly
    result: Any = None  # how results are put together: see `runtime.results`


@dataclass(frozen=True, slots=True)
class Job:
    """What to write: a lowered program's entry. `absent` names optional inputs that are `none`;
    `trusting` says that the caller checks `Written.limits`, `appends` that it binds the states of
    `Written.appended` to one memory before and after."""

    lowered: Lowered
    entry: str
    present: frozenset[str]
    opset: int
    exact: bool
    kernels: Mapping[str, Kernel]
    tensors: Mapping[str, Any] | None = None
    tied: Mapping[str, str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    microsoft: bool = False
    trusting: bool = False
    appends: bool = False
    cases: Mapping[str, int] = field(default_factory=dict)


def write_entry(job: Job) -> Written:
    """The model of one entry."""
    builder = GraphBuilder(job.opset)
    assumed = Assumptions(job.trusting)
    core = Core(builder, job.exact, job.microsoft, assumed)
    function = job.lowered.functions[job.lowered.entries[job.entry]]
    members = Members(builder, job.lowered.binding, job.present, job.tensors, job.tied)
    tracer = Tracer(core, job.lowered, members, job.kernels, _evaluator(job.lowered), job.appends)
    inputs: list[ir.Value] = []
    args = [_input(core, p.name, p.type, inputs, job) for p in function.params]
    assumed.inputs.update((id(value), value.name or "") for value in inputs)
    _sizes(core, function, args, job.entry)
    result = tracer.call(function, args, Subst.of({}), ())
    outputs: list[ir.Value] = []
    written = Written(model=None)
    if function.body.results:
        type_ = function.body.results[0].type
        leaves: list[Held] = []
        written.result = _output(tracer, type_, result, "result", outputs, leaves)
        written.types = [(held.dtype, held.dims) for held in leaves]
    written.symbols = {g.var: g.name for g in function.generics if isinstance(g.var, Symbol)}
    written.inputs = [v.name or "" for v in inputs]
    written.outputs = [v.name or "" for v in outputs]
    written.params = {path: value.name or "" for path, value in members.params.items()}
    states = _states(tracer, members, outputs)
    written.states = states
    written.limits = assumed.limits
    written.appended = frozenset(members.appended)
    if job.tensors is None:
        inputs += members.params.values()
    inputs += members.inputs.values()
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=builder.scopes[0].nodes,
        initializers=builder.initializers.values(),
        name=f"{job.lowered.binding.block or job.lowered.binding.program.root}.{job.entry}",
        opset_imports={"": job.opset, **dict.fromkeys(_domains(job, builder), 1)},
    )
    drop_unused(graph)
    if job.microsoft and not job.exact:
        add_into_norms(graph)
    version = _IR_VERSIONS.get(job.opset, 13)
    written.model = ir.Model(
        graph, ir_version=version, producer_name="linnet", producer_version=__version__
    )
    written.model.metadata_props.update(_metadata(job, written))
    return written


def _domains(job: Job, builder: GraphBuilder) -> list[str]:
    return sorted(builder.domains | ({MICROSOFT} if job.microsoft else set()))


def _evaluator(lowered: Lowered) -> Callable[[Function], Any]:
    """Works out prepared functions as the program says, rounding by rounding."""
    evaluator = Evaluator(lowered.functions, lowered.binding.program.blocks)
    return lambda function: evaluator.run(function.name, [])


# --- inputs ---------------------------------------------------------------------------------------


def _input(core: Core, name: str, type_: Type, inputs: list[ir.Value], job: Job) -> Any:
    match type_:
        case TensorType():
            dtype = dtype_of(type_)
            value = ir.Value(
                name=core.b.fresh(name),
                type=ir.TensorType(ONNX[dtype]),
                shape=shape_of(type_.dims),
            )
            inputs.append(value)
            return Held.whole(value, dtype, type_.dims)
        case TupleType(items):
            return tuple(_input(core, f"{name}.{k}", t, inputs, job) for k, t in enumerate(items))
        case StructType(fields=fields):
            return tuple(_input(core, f"{name}.{k}", t, inputs, job) for k, t in fields)
        case OptionalType(inner):
            if name in job.absent:
                return None
            return Present(_input(core, name, inner, inputs, job))
        case EnumType():
            if name in job.cases:
                return job.cases[name]
            number = _input(core, name, TensorType((), DType.I64), inputs, job)
            return Case(number)
        case _:
            raise InternalError("onnx.emit", f"no input has the type {type_}")


def _sizes(core: Core, function: Function, args: Sequence[Any], entry: str) -> None:
    """Reads the entry's sizes off its inputs' shapes."""
    places: list[tuple[ir.Value, Sequence[Dim]]] = []
    for param, arg in zip(function.params, args, strict=True):
        held = _tensors(param.type, arg)
        places.extend((h.value, h.dims) for h in held if h.value is not None)
    wanted = [g.var for g in function.generics if isinstance(g.var, Symbol)]
    left = shown(places, wanted, core.sizes)
    if left:
        names = ", ".join(f"`{symbol.name}`" for symbol in left)
        raise ExportError(
            f"the entry `{entry}` has {names}, which no input's shape gives: give it a value "
            "(`sizes`, or `--bind` on the command line)",
            function.span,
        )


def _tensors(type_: Type, value: Any) -> list[Held]:
    match type_:
        case TensorType():
            return [value]
        case TupleType(items):
            return [h for t, v in zip(items, value, strict=True) for h in _tensors(t, v)]
        case StructType(fields=fields):
            return [h for (_, t), v in zip(fields, value, strict=True) for h in _tensors(t, v)]
        case OptionalType(inner):
            return [] if value is None else _tensors(inner, value.value)
        case _:
            return []


# --- outputs --------------------------------------------------------------------------------------


def _output(
    t: Tracer, type_: Type, value: Any, name: str, outputs: list[ir.Value], leaves: list[Held]
) -> Any:
    """Adds the value's tensors to `outputs`; gives how to put it together again from them."""

    def add(held: Held, name: str) -> int:
        outputs.append(_leave(t, held, name, outputs))
        leaves.append(held)
        return len(outputs) - 1

    def inner(pairs: Iterable[tuple[str, Type, Any]]) -> list[Any]:
        return [_output(t, i, v, f"{name}.{k}", outputs, leaves) for k, i, v in pairs]

    match type_:
        case TensorType():
            return ("tensor", add(value, name))
        case TupleType(items):
            numbers = map(str, range(len(items)))
            return ("tuple", inner(zip(numbers, items, value, strict=True)))
        case StructType(name=struct, fields=fields):
            names = [k for k, _ in fields]
            types = [i for _, i in fields]
            return ("struct", struct, names, inner(zip(names, types, value, strict=True)))
        case OptionalType(held):
            if value is None:
                return ("none",)
            if isinstance(value, Maybe):
                flag = add(value.flag, f"{name}.present")
                return ("maybe", flag, _output(t, held, value.value, name, outputs, leaves))
            return _output(t, held, value.value, name, outputs, leaves)
        case EnumType(cases=cases):
            if isinstance(value, Case):
                return ("case", add(value.number, name), list(cases))
            return ("known", list(cases)[value])
        case _:
            raise InternalError("onnx.emit", f"no result has the type {type_}")


def _leave(t: Tracer, held: Held, name: str, outputs: Sequence[ir.Value]) -> ir.Value:
    """The tensor as an output of the graph, made in it under its own name."""
    value = t.c.whole(held)
    if value.producer() is None or any(value is other for other in outputs):
        value = t.c.b.node("Identity", [value], held.dtype, name)
    t.c.b.taken.discard(value.name or "")
    value.name = t.c.b.fresh(name)
    value.shape = shape_of(held.dims)
    return value


def _states(
    t: Tracer, members: Members, outputs: list[ir.Value]
) -> dict[str, tuple[str | None, str | None]]:
    pairs: dict[str, tuple[str | None, str | None]] = {}
    for info in members.binding.states:
        path = info.path
        given = members.inputs.get(path)
        after = None
        if path in members.written:
            outputs.append(_leave(t, members.states[path], f"{path}.next", outputs))
            after = outputs[-1].name
        if given is not None or after is not None:
            pairs[path] = (None if given is None else given.name, after)
    return pairs


# --- metadata -------------------------------------------------------------------------------------


def _metadata(job: Job, written: Written) -> dict[str, str]:
    binding = job.lowered.binding
    generics = {name: _plain(value) for name, value in binding.generics.items()}
    return {
        "linnet.version": __version__,
        "linnet.source": binding.block or binding.program.root,
        "linnet.entry": job.entry,
        "linnet.generics": json.dumps(generics),
        "linnet.numerics": "exact" if job.exact else "fast",
        "linnet.inputs": json.dumps(written.inputs),
        "linnet.outputs": json.dumps(written.outputs),
        "linnet.parameters": json.dumps(written.params),
        "linnet.states": json.dumps(
            {path: {"input": a, "output": b} for path, (a, b) in written.states.items()}
        ),
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, DType) else value
