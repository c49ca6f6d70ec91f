"""In-place writes against the functional meaning, on random programs with aliasing storage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim
from linnet.ir import Block, Function, Member, Op, Param, Ref, Sub, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator, Frame
from linnet.ir.instances import resolve
from linnet.ir.semantics import Call
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes.module import Module
from linnet.passes.state import state
from linnet.types import DType, TensorType, scalar

F64 = DType.F64
SQUARE = TensorType((Dim.of(2), Dim.of(2)), F64)
ROW = TensorType((Dim.of(2),), F64)
SELF = Ref(None, ())


def _set_row(call: Call) -> Any:
    new = np.array(call.operands[0])
    new[0] = call.operands[1]
    return new


class Aliasing(Evaluator):
    """State lies in storage that reads are views of; marks are honoured as a backend does."""

    def step(self, frame: Frame, op: Op) -> tuple[Any, ...]:
        if op.kind == "state_read":
            (found,) = super().step(frame, op)
            return (np.array(found) if op.attrs.get("copy") else found,)
        if op.kind == "state_write":
            self._write(frame, op)
            return ()
        if op.kind == "native" and op.attrs.get("in_place"):
            target, row = (frame.values[v] for v in op.operands)
            for k in range(2):
                target[0, k] = row[k]
            return (target,)
        return super().step(frame, op)

    def _write(self, frame: Frame, op: Op) -> None:
        ref = op.attrs["ref"]
        place = resolve(Ref(ref.root, ref.steps[:-1]), frame.receiver, frame.subs)
        path, value = place.member(str(ref.steps[-1])), frame.values[op.operands[0]]
        storage = self.state.setdefault(path, np.zeros((2, 2)))
        if op.attrs.get("done"):
            assert np.shares_memory(storage, value), "done, but the value is elsewhere"
            return
        for at in np.ndindex(2, 2):  # as kernels do: no help when both overlap
            storage[at] = value[at]


@dataclass
class Writer:
    """Writes one random function of a block with states `a` and `b`."""

    rng: random.Random
    methods: Sequence[str]  # of its own block, callable
    leaves: Sequence[str]  # methods of the elements of `leaves`, callable
    b: Builder = field(default_factory=Builder)
    squares: list[Value] = field(default_factory=list)
    rows: list[Value] = field(default_factory=list)

    def function(self, name: str, kind: Any, block: str, params: tuple[Param, ...]) -> Function:
        self.squares = [p.value for p in params]
        self.statements(self.rng.randint(3, 10), 2)
        picks = [self.square() for _ in range(self.rng.randint(1, 2))]
        result = picks[0] if len(picks) == 1 else self.b.emit("tuple", picks)
        return Function(name, kind, block, (), params, (), self.b.finish([result]))

    def square(self) -> Value:
        # Late values more often: chains of views and updates.
        return self.squares[-1 - min(int(self.rng.expovariate(0.7)), len(self.squares) - 1)]

    def statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            choice = self.rng.randrange(16)
            if choice < 9:
                self.simple(choice)
            elif choice < 11:
                self.call()
            elif depth:
                self.control(choice, depth - 1)

    def simple(self, choice: int) -> None:
        rng, b = self.rng, self.b
        ref = SELF.child(rng.choice("ab"))
        if choice < 2:
            self.squares.append(b.emit("state_read", [], {"ref": ref}, type=SQUARE))
        elif choice < 4:
            b.emit_many("state_write", [self.square()], {"ref": ref}, types=())
        elif choice == 4:
            new = self.update()
            if rng.random() < 0.8:
                b.emit_many("state_write", [new], {"ref": ref}, types=())
        elif choice == 5:
            self.squares.append(b.emit("permute", [self.square()], {"order": (1, 0)}))
        elif choice == 6:
            pair = b.emit("tuple", [self.square(), self.square()])
            self.squares.append(b.emit("tuple_get", [pair], {"index": rng.randrange(2)}))
        elif choice == 7:
            self.squares.append(b.emit("add", [self.square(), self.square()]))
        else:
            old = b.emit("state_read", [], {"ref": ref}, type=SQUARE)
            self.squares.append(old)
            new = self.update(old)
            if rng.random() < 0.3:  # the state as it was, looked at before the result is written
                self.squares.append(b.emit("state_read", [], {"ref": ref}, type=SQUARE))
            b.emit_many("state_write", [new], {"ref": ref}, types=())

    def update(self, target: Value | None = None) -> Value:
        bounds = ((Dim.of(1), Dim.of(2), Dim.of(1)), None)
        part = self.b.emit("slice", [self.square()], {"bounds": bounds})
        row = self.b.emit("reshape", [part], type=ROW)
        attrs = {"kernel": "set_row", "origin": "m::set_row", "update": 0}
        new = self.b.emit("native", [target or self.square(), row], attrs, type=SQUARE)
        self.squares.append(new)
        return new

    def call(self) -> None:
        rng = self.rng
        own = [(name, SELF) for name in self.methods]
        below = [(name, Ref(None, ("leaves", k))) for name in self.leaves for k in (0, 1)]
        if own + below:
            name, receiver = rng.choice(own + below)
            self.squares.append(self.result_of(name, receiver, [self.square(), self.square()]))

    def result_of(self, name: str, receiver: Ref, operands: Sequence[Value]) -> Value:
        attrs = {"callee": name, "generics": (), "receiver": receiver}
        return self.b.emit("call", operands, attrs, type=SQUARE)

    def inside(self, params: Sequence[Value], count: int, depth: int) -> Any:
        kept = list(self.squares)
        with self.b.region(params) as region:
            self.squares += [p for p in params if p.type == SQUARE]
            if self.rng.random() < 0.5:  # something from outside, early: a loop comes back to it
                outside = self.rng.choice(kept)
                self.squares.append(self.b.emit("add", [outside, self.square()]))
            self.statements(count, depth)
            if self.rng.random() < 0.5:
                ref = SELF.child(self.rng.choice("ab"))
                self.b.emit_many("state_write", [self.square()], {"ref": ref}, types=())
            carried = sum(p.type == SQUARE for p in params)
            region.give(*(self.square() for _ in range(carried or 1)))
        self.squares = kept
        return region.region

    def control(self, choice: int, depth: int) -> None:
        rng, b = self.rng, self.b
        if choice == 11:
            sum_ = b.emit("reduce", [self.square()], {"op": "sum", "axes": (0, 1)})
            test = b.emit("gt", [sum_, b.const(0.0, F64)])
            both = [self.inside([], rng.randint(1, 3), depth) for _ in range(2)]
            self.squares.append(b.emit("if", [test], type=SQUARE, regions=both))
        elif choice in (12, 14, 15):
            number = Value(scalar(DType.I64))
            carried = [self.square() for _ in range(rng.randint(1, 2))]
            params = [Value(SQUARE) for _ in carried]
            body = self.inside([number, *params], rng.randint(1, 4), depth)
            ends = [b.const(0, DType.I64), b.const(rng.randint(0, 3), DType.I64)]
            types = [v.type for v in carried]
            self.squares += b.emit_many(
                "for", [*ends, *carried], {"yields": 0}, types=types, regions=[body]
            )
        elif self.leaves:
            var, param = SubVar("leaf"), Value(SQUARE)
            with b.region([param]) as region:
                name = rng.choice(self.leaves)
                region.give(self.result_of(name, Ref(var, ()), [param, self.square()]))
            attrs = {"array": SELF.child("leaves"), "var": var}
            self.squares.append(
                b.emit("for_subs", [self.square()], attrs, type=SQUARE, regions=[region.region])
            )


def _params() -> tuple[Param, ...]:
    return tuple(Param(name, Value(SQUARE, name)) for name in "xy")


def _members() -> dict[str, Member]:
    return {name: Member("state", name, SQUARE, False) for name in "ab"}


BLOCKS = {
    "m::Leaf": Block("m::Leaf", (), (), _members(), {}, {}),
    "m::Top": Block(
        "m::Top", (), (), _members(), {"leaves": Sub("leaves", "m::Leaf", (), Dim.of(2), False)}, {}
    ),
}


def _single_result(function: Function) -> bool:
    return function.result_types == (SQUARE,)


def random_program(seed: int) -> dict[str, Function]:
    rng = random.Random(seed)
    functions: dict[str, Function] = {}
    leaves: list[str] = []
    own: list[str] = []
    for block, names, inner in (("m::Leaf", leaves, ()), ("m::Top", own, leaves)):
        for k in range(2):
            name = f"{block}.f{k}"
            made = Writer(rng, list(names), inner).function(name, "fn", block, _params())
            functions[name] = made
            if _single_result(made):
                names.append(name)
    for k in range(2):
        entry = f"m::Top.e{k}"
        functions[entry] = Writer(rng, own, leaves).function(entry, "entry", "m::Top", _params())
    return functions


def run(functions: dict[str, Function], kind: type[Evaluator], seed: int) -> list[Any]:
    """Several calls of both entries on one state: every result, looked at when all is over."""
    rng = np.random.default_rng(seed)
    ev = kind(functions, BLOCKS, root="m::Top", natives={"set_row": _set_row})
    kept: list[Any] = []
    for k in (0, 1, 0, 1, 1):
        # Whole numbers: a sum that branches look at must not depend on how a view lies.
        inputs = [rng.integers(-9, 10, size=(2, 2)).astype(np.float64) for _ in range(2)]
        kept.append(ev.call(ev.plan(f"m::Top.e{k}", ()), inputs, ev.root))
    kept.append({path: np.array(value) for path, value in sorted(ev.state.items())})
    return kept


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        zeros = np.zeros((2, 2))
        return all(same(a.get(k, zeros), b.get(k, zeros)) for k in a.keys() | b.keys())
    if isinstance(a, tuple | list):
        return all(map(same, a, b))
    return bool(np.array_equal(a, b))


def marked(functions: dict[str, Function]) -> dict[str, Function]:
    entries = {f"e{k}": f"m::Top.e{k}" for k in range(2)}
    origins = {name: name for name in functions}
    return dict(state(Module(functions, entries, origins)).functions)


@pytest.mark.parametrize("block", range(3))
def test_marks_keep_the_meaning(block: int) -> None:
    _check(range(block * 30, block * 30 + 30))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_marks_keep_the_meaning_of_many(block: int) -> None:
    _check(range(1000 + block * 100, 1100 + block * 100))


def _check(seeds: range) -> None:
    for seed in seeds:
        functions = random_program(seed)
        for function in functions.values():
            verify(function, functions)
        after = marked(functions)
        wanted = run(functions, Evaluator, seed)
        assert same(wanted, run(after, Aliasing, seed)), f"random_program({seed})"


def test_programs_use_every_mark() -> None:
    counts = {"in_place": 0, "copy": 0, "done": 0}
    plain = 0
    for seed in range(40):
        for function in marked(random_program(seed)).values():
            for op in walk(function):
                for mark in counts:
                    counts[mark] += bool(op.attrs.get(mark))
                plain += op.kind == "state_read" and not op.attrs.get("copy")
    assert min(counts.values()) > 10 and plain > 30, (counts, plain)


def test_unmarked_programs_differ_on_storage() -> None:
    """The harness can fail: without copies, aliasing storage gives other values."""
    seeds = range(40)
    assert any(
        not same(run(p, Evaluator, s), run(p, Aliasing, s))
        for s in seeds
        for p in [random_program(s)]
    )


def _one(*build: Any) -> dict[str, Op]:
    """The marked operations of an entry that `build` writes, by kind."""
    b, params = Builder(), _params()
    result = build[0](b, *(p.value for p in params))
    entry = Function("m::Top.e0", "entry", "m::Top", (), params, (), b.finish([result]))
    module = state(Module({"m::Top.e0": entry}, {"e0": "m::Top.e0"}, {}))
    return {op.kind: op for op in walk(module.functions["m::Top.e0"])}


def _cache_step(b: Builder, x: Value, late: bool) -> tuple[Value, Value]:
    ref = {"ref": SELF.child("a")}
    old = b.emit("state_read", [], ref, type=SQUARE)
    row = b.emit("reduce", [x], {"op": "sum", "axes": (0,)})
    attrs = {"kernel": "set_row", "origin": "m::set_row", "update": 0}
    new = b.emit("native", [old, row], attrs, type=SQUARE)
    if late:
        b.emit_many("state_write", [old], {"ref": SELF.child("b")}, types=())
    b.emit_many("state_write", [new], ref, types=())
    return old, new


def test_a_cache_is_written_in_place() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        _, new = _cache_step(b, x, False)
        return b.emit("add", [new, y])

    ops = _one(body)
    assert ops["native"].attrs["in_place"] and ops["state_write"].attrs["done"]
    assert "copy" not in ops["state_read"].attrs


def test_a_cache_whose_old_value_is_used_is_not() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        old, new = _cache_step(b, x, False)
        return b.emit("add", [new, b.emit("permute", [old], {"order": (1, 0)})])

    ops = _one(body)
    assert "in_place" not in ops["native"].attrs and "done" not in ops["state_write"].attrs
    assert ops["state_read"].attrs["copy"]


def test_a_returned_state_is_copied() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        return b.emit("state_read", [], {"ref": SELF.child("a")}, type=SQUARE)

    assert _one(body)["state_read"].attrs["copy"]
