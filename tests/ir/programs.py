"""Random small IR functions with inputs, for comparing two ways to run one program.

`sample(seed)` is deterministic. `reproducer(sample)` is what a failing test prints: the seed, the
text of the function and the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.dims import Dim
from linnet.ir import Function, Region, Value
from linnet.ir.build import Builder
from linnet.ir.printer import print_function
from linnet.ir.semantics import NUMPY
from linnet.types import BOOL, DType, OptionalType, TensorType, TupleType, scalar

from .helpers import function, symbols, tensor

N, M = symbols("N", "M")
INTS = (DType.I8, DType.I32, DType.I64, DType.U8)
FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
MAX_RANK = 3


@dataclass(frozen=True)
class Sample:
    seed: int
    function: Function
    inputs: dict[str, Any]
    sizes: dict[str, int]


def sample(seed: int, ops: int = 14) -> Sample:
    """A function of `N` and `M` with about `ops` operations, and inputs for it."""
    rng = random.Random(seed)
    params = {
        "pos": scalar(DType.I32),
        "ids": tensor(DType.I32, N),
        "table": tensor(DType.I64, M, N),
        "x": tensor(rng.choice(FLOATS), N, M),
        "y": tensor(rng.choice(FLOATS), M),
        "flag": BOOL,
    }
    made = function(
        f"random::f{seed}",
        params,
        lambda b, *values: _Maker(rng, b, values).result(ops),
        generics=[N, M],
    )
    sizes = {"N": rng.choice([1, 2, 3, 4]), "M": rng.choice([0, 1, 2, 3, 5])}
    return Sample(seed, made, inputs_for(rng, made, sizes), sizes)


def inputs_for(rng: random.Random, made: Function, sizes: dict[str, int]) -> dict[str, Any]:
    numbers = {N: sizes["N"], M: sizes["M"]}
    arrays = np.random.default_rng(rng.randrange(2**32))
    inputs: dict[str, Any] = {}
    for param in made.params:
        type_ = param.type
        assert isinstance(type_, TensorType)
        assert isinstance(type_.dtype, DType)
        shape = [dim.evaluate(numbers) for dim in type_.dims]
        if type_.dtype.is_float:
            value: Any = np.round(arrays.normal(size=shape) * 2, 1)
        elif type_.dtype is DType.BOOL:
            value = arrays.integers(0, 2, shape)
        else:
            value = arrays.integers(-1 if rng.random() < 0.3 else 0, max(numbers.values()), shape)
        inputs[param.name] = np.asarray(value).astype(NUMPY[type_.dtype])
    return inputs


def reproducer(made: Sample) -> str:
    given = "\n".join(f"{name} = {value.tolist()}" for name, value in made.inputs.items())
    return f"sample({made.seed}) with {made.sizes}\n{print_function(made.function)}{given}"


class _Maker:
    """Grows a pool of values; every operation takes its operands from there."""

    def __init__(self, rng: random.Random, b: Builder, values: Sequence[Value]) -> None:
        self.rng, self.b, self.pool, self.depth = rng, b, list(values), 0

    def result(self, ops: int) -> Value:
        self.grow(ops)
        kept = [v for v in self.pool[6:] if isinstance(v.type, TensorType)][-6:]
        return self.b.emit("tuple", kept or self.pool[:1])

    def grow(self, ops: int) -> None:
        steps: list[Callable[[], Value | None]] = [
            self.unary, self.binary, self.binary, self.compare, self.select, self.cast,
            self.constant, self.broadcast, self.reshape, self.permute, self.concat, self.slice,
            self.view, self.look_up, self.look_up, self.reduce, self.contract, self.cumsum,
            self.aggregate, self.branch, self.loop, self.while_loop,
        ]  # fmt: skip
        for _ in range(ops):
            value = self.rng.choice(steps)()
            if value is not None:
                self.pool.append(value)

    def pick(self, accept: Callable[[TensorType], bool] = lambda t: True) -> Value | None:
        found = [v for v in self.pool if isinstance(v.type, TensorType) and accept(v.type)]
        return self.rng.choice(found) if found else None

    def unary(self) -> Value | None:
        kind = self.rng.choice(["neg", "abs", "not", "exp", "tanh", "floor", "sqrt", "sin", "erf"])
        wanted = {"neg": _numeric, "abs": _numeric, "not": _bool}.get(kind, _float)
        x = self.pick(wanted)
        return None if x is None else self.b.emit(kind, [x])

    def like(self, x: Value) -> Value:
        """A value of the type of `x`: another one, or itself."""
        return self.pick(lambda t: t == x.type) or x

    def binary(self) -> Value | None:
        kinds = ["add", "sub", "mul", "div", "rem", "min", "max"]
        kind = self.rng.choice([*kinds, "and", "or", "xor", "shl", "shr"])
        wanted = _numeric if kind in kinds else _integer
        x = self.pick(wanted)
        return None if x is None else self.b.emit(kind, [x, self.like(x)])

    def compare(self) -> Value | None:
        x = self.pick(_numeric)
        kind = self.rng.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        return None if x is None else self.b.emit(kind, [x, self.like(x)])

    def select(self) -> Value | None:
        condition = self.pick(_bool)
        if condition is None:
            return None
        shape = _type(condition).shape
        x = self.pick(lambda t: t.shape == shape)
        return None if x is None else self.b.emit("select", [condition, x, self.like(x)])

    def cast(self) -> Value | None:
        x = self.pick()
        return None if x is None else self.b.cast(x, self.rng.choice([*INTS, *FLOATS, DType.BOOL]))

    def constant(self) -> Value:
        dtype = self.rng.choice(INTS)
        size = self.rng.choice([Dim.of(N), Dim.of(M), Dim.of(N) + 1])
        match self.rng.randrange(3):
            case 0:
                return self.b.const(self.rng.randrange(4), dtype)
            case 1:
                return self.b.dim(size, dtype)
            case _:
                return self.b.emit("iota", type=tensor(dtype, size))

    def broadcast(self) -> Value | None:
        x = self.pick(lambda t: len(t.shape) < MAX_RANK)
        if x is None:
            return None
        at, size = self.rng.randrange(len(_type(x).shape) + 1), self.rng.choice([N, M])
        shape = _type(x).shape
        axes = [k if k < at else k + 1 for k in range(len(shape))]
        to = _type(x).with_shape((*shape[:at], Dim.of(size), *shape[at:]))
        return self.b.emit("broadcast", [x], {"axes": tuple(axes)}, type=to)

    def reshape(self) -> Value | None:
        x = self.pick(lambda t: len(t.shape) > 1)
        if x is None:
            return None
        type_ = _type(x)
        return self.b.emit("reshape", [x], type=type_.with_shape((type_.element_count,)))

    def permute(self) -> Value | None:
        x = self.pick(lambda t: len(t.shape) > 1)
        if x is None:
            return None
        order = list(range(len(_type(x).shape)))
        self.rng.shuffle(order)
        return self.b.emit("permute", [x], {"order": tuple(order)})

    def concat(self) -> Value | None:
        x = self.pick(lambda t: bool(t.shape))
        if x is None:
            return None
        axis = self.rng.randrange(len(_type(x).shape))
        return self.b.emit("concat", [x, self.like(x)], {"axis": axis})

    def slice(self) -> Value | None:
        x = self.pick(lambda t: bool(t.shape))
        if x is None:
            return None
        bounds: list[Any] = [None] * len(_type(x).shape)
        axis = self.rng.randrange(len(bounds))
        extent, step = _type(x).dims[axis], self.rng.choice([1, 2])
        start = self.rng.choice([Dim.of(0), extent - extent])
        bounds[axis] = (start, extent, Dim.of(step))
        return self.b.emit("slice", [x], {"bounds": tuple(bounds)})

    def view(self) -> Value | None:
        """A gather without indices: a diagonal where an extent occurs twice."""
        x = self.pick(lambda t: len(t.shape) > 1)
        if x is None:
            return None
        shape = _type(x).shape
        first = {extent: shape.index(extent) for extent in shape}
        numbers = sorted(set(first.values()))
        source = tuple(("axis", numbers.index(first[extent])) for extent in shape)
        return self.b.emit("gather", [x], {"source": source, "index_axes": ()})

    def look_up(self) -> Value | None:
        x = self.pick(lambda t: bool(t.shape))
        index = self.pick(lambda t: _integer(t) and t.dtype is not DType.BOOL)
        if x is None or index is None:
            return None
        rank, width = len(_type(x).shape), len(_type(index).shape)
        axis = self.rng.randrange(rank)
        if rank - 1 + width > MAX_RANK:
            return None
        others = iter(range(width, width + rank - 1))
        source = tuple(("index", 0) if k == axis else ("axis", next(others)) for k in range(rank))
        attrs = {"source": source, "index_axes": (tuple(range(width)),)}
        return self.b.emit("gather", [x, index], attrs)

    def reduce(self) -> Value | None:
        op = self.rng.choice(["sum", "prod", "max", "min", "any", "all"])
        x = self.pick(_bool if op in ("any", "all") else _numeric)
        if x is None:
            return None
        axes = [k for k in range(len(_type(x).shape)) if self.rng.random() < 0.6]
        return self.b.emit("reduce", [x], {"op": op, "axes": tuple(axes)})

    def contract(self) -> Value | None:
        x = self.pick(lambda t: _numeric(t) and 0 < len(t.shape) < MAX_RANK)
        if x is None:
            return None
        y = self.like(x)
        labels = tuple(range(len(_type(x).shape)))
        output = tuple(label for label in labels if self.rng.random() < 0.5)
        return self.b.emit("contract", [x, y], {"inputs": (labels, labels), "output": output})

    def cumsum(self) -> Value | None:
        x = self.pick(lambda t: _numeric(t) and bool(t.shape))
        if x is None:
            return None
        return self.b.emit("cumsum", [x], {"axis": self.rng.randrange(len(_type(x).shape))})

    def aggregate(self) -> Value | None:
        x, y = self.pick(), self.pick()
        if x is None or y is None:
            return None
        if self.rng.random() < 0.5:
            pair = self.b.emit("tuple", [x, y], type=TupleType((x.type, y.type)))
            return self.b.emit("tuple_get", [pair], {"index": self.rng.randrange(2)})
        kind = OptionalType(x.type)
        held = (
            self.b.emit("some", [x]) if self.rng.random() < 0.7 else self.b.emit("none", type=kind)
        )
        inner = Value(x.type)
        there = self.region([inner], x.type)
        missing = self.region([], x.type, x)
        return self.b.emit("match_optional", [held], regions=[there, missing])

    def region(self, params: list[Value], type_: Any, fallback: Value | None = None) -> Region:
        """A region with some operations of its own that gives one value of `type_`."""
        outer, self.depth = self.pool, self.depth + 1
        self.pool = [*outer, *params]
        with self.b.region(params) as inner:
            if self.depth < 3:
                self.grow(3)
            found = [v for v in self.pool if v.type == type_]
            inner.give(self.rng.choice(found) if found else (fallback or params[-1]))
        self.pool, self.depth = outer, self.depth - 1
        return inner.region

    def branch(self) -> Value | None:
        condition = self.pick(lambda t: t == BOOL)
        x = self.pick()
        if condition is None or x is None:
            return None
        regions = [self.region([], x.type, x) for _ in range(2)]
        return self.b.emit("if", [condition], regions=regions)

    def loop(self) -> Value | None:
        x = self.pick()
        if x is None:
            return None
        i, carried = Value(scalar(DType.I64)), Value(x.type)
        step = self.region([i, carried], x.type)
        stop = Dim.of(self.rng.choice([0, 1, 3])) if self.rng.random() < 0.5 else Dim.of(N)
        if self.rng.random() < 0.5:
            bounds = {"start": Dim.of(0), "stop": stop}
            return self.b.emit("static_for", [x], bounds, regions=[step])
        ends = [self.b.const(0, DType.I64), self.b.dim(stop, DType.I64)]
        return self.b.emit("for", [*ends, x], {"yields": 0}, regions=[step])

    def while_loop(self) -> Value | None:
        """Counts an i8 up to 3, so that it ends."""
        x = self.pick()
        if x is None:
            return None
        counter = self.b.const(0, DType.I8)
        first = [Value(scalar(DType.I8)), Value(x.type)]
        second = [Value(scalar(DType.I8)), Value(x.type)]
        with self.b.region(first) as condition:
            condition.give(self.b.emit("lt", [first[0], self.b.const(3, DType.I8)]))
        with self.b.region(second) as step:
            one = self.b.const(1, DType.I8)
            step.give(self.b.emit("add", [second[0], one]), second[1])
        return self.b.emit_many("while", [counter, x], regions=[condition.region, step.region])[1]


def _type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _numeric(type_: TensorType) -> bool:
    return type_.dtype is not DType.BOOL


def _integer(type_: TensorType) -> bool:
    return isinstance(type_.dtype, DType) and type_.dtype.is_integer


def _float(type_: TensorType) -> bool:
    return isinstance(type_.dtype, DType) and type_.dtype.is_float


def _bool(type_: TensorType) -> bool:
    return type_.dtype is DType.BOOL
