"""What moves out of loops, and what must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim
from linnet.ir import Block, Function, Grad, Member, Param, Ref, Sub, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes.hoist import hoist
from linnet.passes.module import Module
from linnet.types import DType, TensorType, scalar

ROW = TensorType((Dim.of(3),), DType.F64)
INDEX = scalar(DType.I64)
SELF = Ref(None, ())
MEMBERS = {
    "w": Member("param", "w", ROW, False),
    "s": Member("state", "s", ROW, False),
}
PARTS = {"parts": Sub("parts", "m::Part", (), Dim.of(2), False)}
BLOCKS = {
    "m::Part": Block("m::Part", (), (), MEMBERS, {}, {}),
    "m::Top": Block("m::Top", (), (), MEMBERS, PARTS, {}),
}


def function(name: str, kind: Any, block: str | None, build: Any) -> Function:
    b = Builder()
    params = tuple(Param(n, Value(t, n)) for n, t in (("x", ROW), ("y", ROW), ("i", INDEX)))
    result = build(b, *(p.value for p in params))
    return Function(name, kind, block, (), params, (), b.finish([result]))


def hoisted(*functions: Function) -> dict[str, Function]:
    module = Module({f.name: f for f in functions}, {"e": functions[-1].name}, {}, bases={})
    after = hoist(module)
    for each in after.functions.values():
        verify(each, after.functions)
    return {**after.functions, "entry": after.functions[after.entries["e"]]}


def check_same(*functions: Function, index: int = 1) -> dict[str, Function]:
    """Runs before and after, twice on one state; gives the functions after."""
    after = hoisted(*functions)
    rng = np.random.default_rng(0)
    weights = {path: rng.normal(size=3) for path in ("w", "parts.0.w", "parts.1.w")}
    inputs = [rng.normal(size=3), rng.normal(size=3), index]
    found = []
    for all_, name in (({f.name: f for f in functions}, functions[-1].name), (after, "entry")):
        ev = Evaluator(all_, BLOCKS, root="m::Top", params=weights)
        found.append([ev.run(name, inputs) for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    return after


def repeat(b: Builder, x: Value, count: Value, body: Any) -> Value:
    number, acc = Value(INDEX, "k"), Value(ROW, "acc")
    with b.region([number, acc]) as region:
        region.give(body(acc))
    ends = [b.const(0, DType.I64), count]
    return b.emit("for", [*ends, x], {"yields": 0}, type=ROW, regions=[region.region])


def over_parts(b: Builder, x: Value, body: Any) -> Value:
    var, acc = SubVar("part"), Value(ROW, "acc")
    with b.region([acc]) as region:
        region.give(body(acc, Ref(var, ())))
    attrs = {"array": SELF.child("parts"), "var": var}
    return b.emit("for_subs", [x], attrs, type=ROW, regions=[region.region])


def call(b: Builder, name: str, operands: Any, receiver: Ref | None = None) -> Value:
    attrs = {"callee": name, "generics": (), "receiver": receiver}
    return b.emit("call", operands, attrs, type=ROW)


def element(b: Builder, x: Value, at: Value) -> Value:
    picked = b.emit("gather", [x, at], {"source": (("index", 0),), "index_axes": ((),)})
    return b.broadcast(picked, [], ROW)


def inside_loops(function: Function) -> list[str]:
    loops = [op for op in walk(function) if op.regions]
    return [op.kind for loop in loops for region in loop.regions for op in walk(region)]


def test_invariant_work_goes_before_a_loop() -> None:
    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        return repeat(b, x, i, lambda acc: b.emit("add", [acc, b.emit("exp", [y])]))

    after = check_same(function("m::Top.e", "entry", "m::Top", build), index=2)
    assert inside_loops(after["entry"]) == ["add"]


@pytest.mark.parametrize("through_call", [False, True])
def test_what_can_fail_stays_in_a_loop_that_may_not_run(through_call: bool) -> None:
    """Index 7 is out of range; the loop runs 0 times."""
    inner = function("m::f", "fn", None, lambda b, x, y, i: b.emit("add", [x, element(b, y, i)]))

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        def body(acc: Value) -> Value:
            if through_call:
                return call(b, "m::f", [acc, y, i])
            return b.emit("add", [acc, element(b, y, i)])

        return repeat(b, x, b.emit("sub", [i, i]), body)

    check_same(inner, function("m::Top.e", "entry", "m::Top", build), index=7)


def test_what_can_fail_leaves_a_loop_that_runs() -> None:
    inner = function("m::f", "fn", None, lambda b, x, y, i: b.emit("add", [x, element(b, y, i)]))

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        return over_parts(b, x, lambda acc, part: call(b, "m::f", [acc, y, i]))

    after = check_same(inner, function("m::Top.e", "entry", "m::Top", build))
    once = [op for op in after["entry"].body.ops if op.kind == "call"]
    assert len(once) == 1 and "_once" in once[0].attrs["callee"]


def test_a_loop_that_runs_inside_one_that_may_not() -> None:
    """Out of the inner loop, not out of the outer one."""
    inner = function("m::f", "fn", None, lambda b, x, y, i: b.emit("add", [x, element(b, y, i)]))

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        def body(acc: Value) -> Value:
            return over_parts(b, acc, lambda a, part: call(b, "m::f", [a, y, i]))

        return repeat(b, x, b.emit("sub", [i, i]), body)

    entry = function("m::Top.e", "entry", "m::Top", build)
    after = check_same(inner, entry, index=7)
    assert not any(op.kind == "call" for op in after["entry"].body.ops)


def test_nothing_leaves_a_branch() -> None:
    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        def body(acc: Value) -> Value:
            with b.region() as yes:
                yes.give(b.emit("add", [acc, element(b, y, i)]))
            with b.region() as no:
                no.give(acc)
            test = b.emit("lt", [i, b.const(3, DType.I64)])
            return b.emit("if", [test], type=ROW, regions=[yes.region, no.region])

        return over_parts(b, x, lambda acc, part: body(acc))

    check_same(function("m::Top.e", "entry", "m::Top", build), index=7)


def test_the_elements_parameters_stay_with_the_element() -> None:
    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        def body(acc: Value, part: Ref) -> Value:
            weight = b.emit("param", [], {"ref": part.child("w")}, type=ROW)
            own = b.emit("param", [], {"ref": SELF.child("w")}, type=ROW)
            both = b.emit("mul", [b.emit("tanh", [weight]), b.emit("exp", [own])])
            return b.emit("add", [acc, both])

        return over_parts(b, x, body)

    after = check_same(function("m::Top.e", "entry", "m::Top", build))
    kinds = inside_loops(after["entry"])
    assert "tanh" in kinds and "exp" not in kinds


def _counting(b: Builder, x: Value, y: Value, i: Value) -> Value:
    """Adds 1 to the state and returns it: no two calls give the same."""
    ref = {"ref": SELF.child("s")}
    old = b.emit("state_read", [], ref, type=ROW)
    new = b.emit("add", [old, b.broadcast(b.const(1.0, DType.F64), [], ROW)])
    b.emit_many("state_write", [new], ref, types=())
    return b.emit("add", [new, b.emit("exp", [y])])


def test_state_is_read_and_written_where_it_was() -> None:
    method = function("m::Top.h", "fn", "m::Top", _counting)

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        def body(acc: Value) -> Value:
            seen = b.emit("state_read", [], {"ref": SELF.child("s")}, type=ROW)
            return b.emit("add", [b.emit("mul", [acc, seen]), call(b, "m::Top.h", [y, y, i], SELF)])

        return repeat(b, x, i, body)

    after = check_same(method, function("m::Top.e", "entry", "m::Top", build), index=3)
    kinds = inside_loops(after["entry"])
    assert "state_read" in kinds and "call" in kinds
    (once,) = [f for name, f in after.items() if "_once" in name]
    assert [op.kind for op in once.body.ops] == ["exp"]


def test_calls_nested_three_deep_are_split_once_each() -> None:
    leaf = function("m::a", "fn", None, lambda b, x, y, i: b.emit("mul", [x, b.emit("exp", [y])]))
    middle = function(
        "m::b", "fn", None,
        lambda b, x, y, i: b.emit("add", [call(b, "m::a", [x, y, i]),
                                          call(b, "m::a", [x, y, i])]),
    )  # fmt: skip
    method = function("m::Part.g", "fn", "m::Part", lambda b, x, y, i: call(b, "m::b", [x, y, i]))

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        return over_parts(b, x, lambda acc, part: call(b, "m::Part.g", [acc, y, i], part))

    after = check_same(leaf, middle, method, function("m::Top.e", "entry", "m::Top", build))
    counted = [op for f in set(after.values()) for op in walk(f) if op.kind == "exp"]
    assert len(counted) == 1
    rest = [f for name, f in after.items() if name.startswith("m::Part.g~")]
    assert rest and all(op.kind != "exp" for op in walk(rest[0]))


def test_views_and_scalars_are_made_again_not_passed() -> None:
    def inner(b: Builder, x: Value, y: Value, i: Value) -> Value:
        turned = b.emit("reshape", [y], type=TensorType((Dim.of(1), Dim.of(3)), DType.F64))
        flat = b.emit("reshape", [turned], type=ROW)
        scale = b.cast(b.emit("add", [i, b.const(1, DType.I64)]), DType.F64)
        return b.emit("mul", [b.emit("add", [x, flat]), b.broadcast(scale, [], ROW)])

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        return over_parts(b, x, lambda acc, part: call(b, "m::f", [acc, y, i]))

    made = function("m::f", "fn", None, inner)
    after = check_same(made, function("m::Top.e", "entry", "m::Top", build))
    assert not any("_once" in name for name in after)


def test_ops_know_their_gradient_by_their_parameters() -> None:
    """A function with a gradient clause keeps its parameters."""

    made = function("m::f", "op", None, lambda b, x, y, i: b.emit("mul", [x, b.emit("exp", [y])]))
    b = Builder()
    values = tuple(Value(t) for t in (ROW, ROW, INDEX, ROW, ROW))
    graded = replace(made, grad=Grad(values, b.finish([b.emit("tuple", [values[4], values[4]])])))

    def build(b: Builder, x: Value, y: Value, i: Value) -> Value:
        return over_parts(b, x, lambda acc, part: call(b, "m::f", [acc, y, i]))

    after = check_same(graded, function("m::Top.e", "entry", "m::Top", build))
    (op,) = [f for f in set(after.values()) if f.kind == "op"]
    assert len(op.params) == 3 and op.grad is not None
