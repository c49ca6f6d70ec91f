"""Random programs through every pass after specialising: the same values, and no new failures."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim, fresh_symbol
from linnet.ir import Block, Function, Generic, Member, Param, Ref, Sub, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes.drop import drop
from linnet.passes.hoist import hoist
from linnet.passes.inline import inline, unwrap
from linnet.passes.module import Module
from linnet.passes.prepare import prepare
from linnet.passes.rename import rename
from linnet.passes.rows import rows
from linnet.passes.share import share
from linnet.passes.simplify import simplify
from linnet.passes.state import state
from linnet.passes.trim import trim
from linnet.passes.unbind import unbind
from linnet.types import DType, TensorType, TupleType, Type, scalar

N = fresh_symbol("N")
GENERICS = (Generic("N", "Dim", N),)
ROW = TensorType((Dim.of(N),), DType.F64)
FIXED = TensorType((Dim.of(3),), DType.F64)
INDEX, FLAG = scalar(DType.I64), scalar(DType.BOOL)
SELF = Ref(None, ())

PASSES: dict[str, Callable[[Module], Module]] = {
    "simplify": simplify,
    "unbind": unbind,
    "inline": inline,
    "share": share,
    "rows": rows,
    "drop": drop,
    "prepare": prepare,
    "hoist": hoist,
    "unwrap": unwrap,
    "share again": share,
    "drop again": drop,
    "trim": trim,
    "drop at last": drop,
    "state": state,
    "rename": rename,
}


@dataclass
class Writer:
    """Writes one random function over rows `[N]`, `[3]` and integer scalars."""

    rng: random.Random
    fns: Sequence[str]
    methods: Sequence[tuple[str, Ref]]
    has_block: bool
    b: Builder = field(default_factory=Builder)
    pools: dict[Type, list[Value]] = field(default_factory=dict)

    def function(self, name: str, kind: Any, block: str | None, length: int) -> Function:
        types = {"x": ROW, "y": ROW, "i": INDEX, "z": FIXED}
        params = tuple(Param(n, Value(t, n)) for n, t in types.items())
        self.pools = {ROW: [], INDEX: [self.b.const(1, DType.I64)], FIXED: [], FLAG: []}
        for param in params:
            self.pools[param.type].append(param.value)
        self.statements(length, 2)
        result = self.blend()
        if kind == "entry":
            result = self.b.emit("tuple", [result, self.pick(FIXED), self.pick(INDEX)])
        return Function(name, kind, block, GENERICS, params, (), self.b.finish([result]))

    def pick(self, type_: Type) -> Value:
        pool = self.pools[type_]
        return pool[-1 - min(int(self.rng.expovariate(0.4)), len(pool) - 1)]

    def blend(self) -> Value:
        """Several rows together, so that little of what was written is dead."""
        total = self.pick(ROW)
        for _ in range(3):
            total = self.b.emit("add", [total, self.pick(ROW)])
        return total

    def keep(self, value: Value) -> Value:
        self.pools[value.type].append(value)
        return value

    def statements(self, count: int, depth: int) -> None:
        simple = (
            self.arithmetic, self.arithmetic, self.integers, self.fixed, self.gather, self.views,
            self.narrow, self.member, self.pair, self.call, self.call, self.call, self.fixed,
        )  # fmt: skip
        for _ in range(count):
            if depth and self.rng.random() < 0.3:
                self.rng.choice((self.loop, self.loop, self.while_, self.branch))(depth - 1)
            else:
                self.rng.choice(simple)()

    # --- straight-line ---------------------------------------------------------------------------

    def arithmetic(self) -> None:
        kind = self.rng.choice(("add", "mul", "sub", "max", "tanh", "neg", "floor"))
        count = 1 if kind in ("tanh", "neg", "floor") else 2
        self.keep(self.b.emit(kind, [self.pick(ROW) for _ in range(count)]))

    def integers(self) -> None:
        kind = self.rng.choice(("add", "sub", "min", "const", "dim", "div"))
        if kind == "const":
            self.keep(self.b.const(self.rng.randint(-2, 3), DType.I64))
        elif kind == "dim":
            self.keep(self.b.dim(Dim.of(N), DType.I64))
        elif kind == "div":  # by something that is never 0
            two = self.b.const(2, DType.I64)
            self.keep(self.b.emit("div", [self.pick(INDEX), two]))
        else:
            self.keep(self.b.emit(kind, [self.pick(INDEX), self.pick(INDEX)]))

    def fixed(self) -> None:
        rng, b = self.rng, self.b
        if rng.random() < 0.4:
            steps = b.cast(b.emit("iota", type=TensorType(FIXED.shape, DType.I64)), DType.F64)
            self.keep(b.emit(rng.choice(("sin", "exp")), [steps]))
        else:
            self.keep(b.emit("add", [self.pick(FIXED), self.pick(FIXED)]))

    def gather(self) -> None:
        """An element: of `[3]` at whatever the integer is, which may fail."""
        source = {"source": (("index", 0),), "index_axes": ((),)}
        element = self.b.emit("gather", [self.pick(FIXED), self.pick(INDEX)], source)
        self.keep(self.b.emit("add", [self.pick(ROW), self.b.broadcast(element, [], ROW)]))

    def views(self) -> None:
        rng, b = self.rng, self.b
        shape = TensorType((Dim.of(1), Dim.of(N)), DType.F64)
        up = b.emit("reshape", [self.pick(ROW)], type=shape)
        over = b.emit("permute", [up], {"order": (1, 0)})
        if rng.random() < 0.5:
            over = b.emit("permute", [b.emit("permute", [over], {"order": (1, 0)})],
                          {"order": (1, 0)})  # fmt: skip
        self.keep(b.emit("reshape", [over], type=ROW))

    def narrow(self) -> None:
        """Elementwise work on repeated values, then one row of it."""
        wide = TensorType((Dim.of(3), Dim.of(N)), DType.F64)
        b = self.b
        up = [b.broadcast(self.pick(ROW), [1], wide) for _ in range(2)]
        if self.rng.random() < 0.5:
            up[1] = b.broadcast(self.pick(FIXED), [0], wide)
        made = b.emit("mul", up)
        self.keep(b.emit("reduce", [made], {"op": "sum", "axes": (0,)}))

    def member(self) -> None:
        if not self.has_block:
            return
        rng, b = self.rng, self.b
        choice = rng.randrange(3)
        if choice == 0:
            weight = b.emit("param", [], {"ref": SELF.child("w")}, type=FIXED)
            self.keep(b.emit("tanh", [weight]) if rng.random() < 0.7 else weight)
        elif choice == 1:
            self.keep(b.emit("state_read", [], {"ref": SELF.child("s")}, type=FIXED))
        else:
            b.emit_many("state_write", [self.pick(FIXED)], {"ref": SELF.child("s")}, types=())

    def pair(self) -> None:
        values = [self.pick(ROW), self.pick(INDEX)]
        both = self.b.emit("tuple", values, type=TupleType((ROW, INDEX)))
        for index in range(2):
            self.keep(self.b.emit("tuple_get", [both], {"index": index}))

    def call(self) -> None:
        targets = [(name, None) for name in self.fns] + list(self.methods)
        if targets:
            name, receiver = self.rng.choice(targets)
            self.keep(self.result_of(name, receiver))

    def result_of(self, name: str, receiver: Ref | None) -> Value:
        operands = [self.pick(t) for t in (ROW, ROW, INDEX, FIXED)]
        attrs = {"callee": name, "generics": (Dim.of(N),), "receiver": receiver}
        return self.b.emit("call", operands, attrs, type=ROW)

    # --- control ---------------------------------------------------------------------------------

    def inside(self, params: Sequence[Value], depth: int, results: int = 1) -> Any:
        kept = {type_: list(pool) for type_, pool in self.pools.items()}
        with self.b.region(params) as region:
            for param in params:
                self.keep(param)
            self.statements(self.rng.randint(1, 5), depth)
            region.give(*(self.blend() for _ in range(results)))
        self.pools = kept
        return region.region

    def loop(self, depth: int) -> None:
        rng, b = self.rng, self.b
        carried, params = self.pick(ROW), [Value(INDEX, "k"), Value(ROW, "acc")]
        choice = rng.randrange(3)
        if choice == 0 and self.methods:
            var, acc = SubVar("part"), Value(ROW, "acc")
            below = [m for m, ref in self.methods if ref.steps[:1] == ("parts",)]
            saved = self.methods
            self.methods = [(m, Ref(var, ())) for m in below] + list(saved)
            body = self.inside([acc], depth)
            self.methods = saved
            attrs: dict[str, Any] = {"array": SELF.child("parts"), "var": var}
            if self.has_parts:
                self.keep(b.emit("for_subs", [carried], attrs, type=ROW, regions=[body]))
            return
        body = self.inside(params, depth)
        if choice == 1:
            attrs = {"start": Dim.of(rng.randint(0, 1)), "stop": rng.choice((Dim.of(2), Dim.of(N)))}
            self.keep(b.emit("static_for", [carried], attrs, type=ROW, regions=[body]))
        else:
            ends = [b.const(0, DType.I64), b.emit("min", [self.pick(INDEX),
                                                          b.const(3, DType.I64)])]  # fmt: skip
            self.keep(b.emit("for", [*ends, carried], {"yields": 0}, type=ROW, regions=[body]))

    @property
    def has_parts(self) -> bool:
        return any(ref.steps[:1] == ("parts",) for _, ref in self.methods)

    def while_(self, depth: int) -> None:
        b = self.b
        params = [Value(INDEX, "left"), Value(ROW, "acc")]
        tests = [Value(INDEX, "left"), Value(ROW, "acc")]
        with b.region(tests) as condition:
            condition.give(b.emit("gt", [tests[0], b.const(0, DType.I64)]))
        with b.region(params) as body:
            kept = {type_: list(pool) for type_, pool in self.pools.items()}
            self.pools[ROW].append(params[1])
            self.statements(self.rng.randint(1, 4), depth)
            result = self.blend()
            self.pools = kept
            body.give(b.emit("sub", [params[0], b.const(1, DType.I64)]), result)
        count = b.emit("min", [self.pick(INDEX), b.const(2, DType.I64)])
        results = b.emit_many(
            "while", [count, self.pick(ROW)], types=[INDEX, ROW],
            regions=[condition.region, body.region],
        )  # fmt: skip
        self.keep(results[1])

    def branch(self, depth: int) -> None:
        b = self.b
        test = b.emit("gt", [self.pick(INDEX), b.const(1, DType.I64)])
        regions = [self.inside([], depth) for _ in range(2)]
        self.keep(b.emit("if", [test], type=ROW, regions=regions))


def _members() -> dict[str, Member]:
    return {
        "w": Member("param", "w", FIXED, False),
        "s": Member("state", "s", FIXED, False),
    }


BLOCKS = {
    "m::Part": Block("m::Part", (), (), _members(), {}, {}),
    "m::Top": Block(
        "m::Top", (), (), _members(), {"parts": Sub("parts", "m::Part", (), Dim.of(2), False)}, {}
    ),
}


def random_program(seed: int) -> dict[str, Function]:
    rng = random.Random(seed)
    functions: dict[str, Function] = {}
    fns: list[str] = []
    for k in range(3):
        name = f"m::f{k}"
        functions[name] = Writer(rng, list(fns), (), False).function(name, "fn", None, 2 + 3 * k)
        fns.append(name)
    methods: list[tuple[str, Ref]] = []
    part = "m::Part.g"
    functions[part] = Writer(rng, fns, (), True).function(part, "fn", "m::Part", 6)
    methods += [(part, Ref(None, ("parts", k))) for k in range(2)]
    own = "m::Top.h"
    functions[own] = Writer(rng, fns, methods, True).function(own, "fn", "m::Top", 7)
    methods.append((own, SELF))
    entry = "m::Top.e"
    functions[entry] = Writer(rng, fns, methods, True).function(entry, "entry", "m::Top", 9)
    return functions


def outcome(functions: dict[str, Function], entry: str, seed: int) -> Any:
    """Results and states of two calls; None when the program fails."""
    rng = np.random.default_rng(seed)
    weights = {path: rng.normal(size=3) for path in ("w", "parts.0.w", "parts.1.w")}
    ev = Evaluator(functions, BLOCKS, root="m::Top", params=weights, loop_limit=50)
    found: list[Any] = []
    try:
        for size in (2, 1):
            inputs = [rng.normal(size=size), rng.normal(size=size), 1, rng.normal(size=3)]
            found.append(ev.run(entry, inputs))
    except EvaluationError:
        return None
    return found, {path: np.array(v) for path, v in ev.state.items()}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        zeros = np.zeros(3)
        return all(same(a.get(k, zeros), b.get(k, zeros)) for k in a.keys() | b.keys())
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.array_equal(a, b, equal_nan=True))


def through(functions: dict[str, Function]) -> Module:
    order = list(functions)
    module = Module(
        {name: functions[name] for name in order},
        {"e": "m::Top.e"},
        {name: name for name in order},
        bases={name: name.partition("::")[2].replace(".", "_") for name in order},
    )
    for name, run in PASSES.items():
        module = run(module)
        for function in module.functions.values():
            try:
                verify(function, module.functions)
            except Exception as error:
                raise AssertionError(f"after {name}: {error}") from error
    return module


@pytest.mark.parametrize("block", range(4))
def test_random_programs_keep_their_meaning(block: int) -> None:
    _check(range(block * 6, block * 6 + 6))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_programs_keep_their_meaning(block: int) -> None:
    _check(range(1000 + block * 50, 1050 + block * 50))


def _check(seeds: range) -> None:
    for seed in seeds:
        functions = random_program(seed)
        for function in functions.values():
            verify(function, functions)
        wanted = outcome(functions, "m::Top.e", seed)
        module = through(functions)
        if wanted is not None:
            have = outcome(dict(module.functions), module.entries["e"], seed)
            assert have is not None, f"random_program({seed}) fails after the passes"
            assert same(wanted, have), f"random_program({seed})"


def test_programs_are_worth_testing() -> None:
    """Most run, and motion, preparing and inlining all happen."""
    runs = once = prepared = 0
    for seed in range(10):
        functions = random_program(seed)
        runs += outcome(functions, "m::Top.e", seed) is not None
        module = through(functions)
        once += any(name.endswith("_once") for name in module.functions)
        prepared += bool(module.prepared)
    assert runs > 4 and once > 2 and prepared > 2, (runs, once, prepared)


def test_passes_are_stable() -> None:
    """Simplify, share and drop find nothing new in what they gave."""
    for seed in range(4):
        module = through(random_program(seed))
        again = drop(share(simplify(module)))
        before = [op.kind for f in module.functions.values() for op in walk(f)]
        after = [op.kind for f in again.functions.values() for op in walk(f)]
        assert len(after) <= len(before)
