"""The evaluator: control flow, generics, members, state, the boundary."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.dims import Dim, Relation, floordiv
from linnet.ir import Grad, Member, Ref, Sub, SubVar, Value
from linnet.ir.build import Builder
from linnet.ir.control import CONTROL
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import EvaluationError
from linnet.types import (
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    fresh_dtype_var,
    fresh_pack,
    scalar,
)

from .helpers import BOOL, F32, I32, I64, SELF, block, call_attrs, function, symbols, tensor

# The rows with control flow, and the test that covers each.
COVERED = {
    "if": "test_if_runs_one_side",
    "match_optional": "test_match_optional",
    "match_enum": "test_match_enum",
    "match_sub": "test_optional_child_and_parameter",
    "while": "test_while",
    "for": "test_for_carries_and_stacks",
    "static_for": "test_static_for",
    "for_subs": "test_state_through_a_loop_over_children",
    "param": "test_optional_child_and_parameter",
    "state_read": "test_state_through_a_loop_over_children",
    "state_write": "test_state_through_a_loop_over_children",
    "call": "test_generic_calls_with_packs_and_dtypes",
    "native": "test_native_operations_are_the_callers",
}


def run(made: Any, *inputs: Any, **generics: Any) -> Any:
    return Evaluator({made.name: made}).run(made.name, inputs, generics)


def test_every_control_row_is_covered() -> None:
    assert set(COVERED) == set(CONTROL)
    assert set(COVERED.values()) <= set(globals())


def test_if_runs_one_side() -> None:
    def body(b: Builder, flag: Value, x: Value) -> Value:
        with b.region() as then:
            then.give(b.emit("neg", [x]))
        with b.region() as other:  # divides by zero when it runs
            other.give(b.emit("div", [x, b.const(0, I32)]))
        return b.emit("if", [flag], regions=[then.region, other.region])

    f = function("m::f", {"flag": scalar(BOOL), "x": scalar(I32)}, body)
    assert run(f, True, 5) == -5
    with pytest.raises(EvaluationError, match="divided by zero"):
        run(f, False, 5)


def test_match_optional() -> None:
    def body(b: Builder, x: Value) -> Value:
        held = Value(scalar(I32), "held")
        with b.region([held]) as there:
            there.give(b.emit("add", [held, held]))
        with b.region() as missing:
            missing.give(b.const(-1, I32))
        return b.emit("match_optional", [x], regions=[there.region, missing.region])

    f = function("m::f", {"x": OptionalType(scalar(I32))}, body, defaults={"x": "none"})
    assert run(f, 4) == 8
    assert run(f, None) == -1
    assert run(f) == -1


def test_match_enum() -> None:
    mode = EnumType("m::Mode", "Mode", ("A", "B", "C"))

    def body(b: Builder, x: Value) -> Value:
        regions = []
        for number in (10, 20):
            with b.region() as r:
                r.give(b.const(number, I64))
            regions.append(r.region)
        return b.emit("match_enum", [x], {"cases": ((1,), (0, 2))}, regions=regions)

    f = function("m::f", {"x": mode}, body)
    assert [int(run(f, case)) for case in ("A", "B", "C")] == [20, 10, 20]
    with pytest.raises(EvaluationError, match="no case of Mode"):
        run(f, "D")


def counting(stop_below: int) -> Any:
    """Doubles `x` while it is below a bound."""

    def body(b: Builder, x: Value) -> Value:
        first, second = Value(scalar(I32)), Value(scalar(I32))
        with b.region([first]) as condition:
            condition.give(b.emit("lt", [first, b.const(stop_below, I32)]))
        with b.region([second]) as step:
            step.give(b.emit("add", [second, second]))
        return b.emit("while", [x], regions=[condition.region, step.region])

    return function("m::f", {"x": scalar(I32)}, body)


def test_while() -> None:
    assert run(counting(100), 3) == 192
    assert run(counting(2), 3) == 3
    endless = counting(100)
    with pytest.raises(EvaluationError, match="ran 50 times"):
        Evaluator({"m::f": endless}, loop_limit=50).run("m::f", [0])


def fibonacci(dtype: DType) -> Any:
    (n,) = symbols("N")

    def body(b: Builder) -> Value:
        i, x, y = (Value(scalar(dtype)) for _ in range(3))
        with b.region([i, x, y]) as step:
            step.give(y, b.emit("add", [x, y]), x, b.emit("mul", [i, i]))
        first, stop = b.const(0, dtype), b.dim(Dim.of(n), dtype)
        zero, one = b.const(0, dtype), b.const(1, dtype)
        kinds = [scalar(dtype)] * 2 + [tensor(dtype, n)] * 2
        results = b.emit_many(
            "for", [first, stop, zero, one], {"yields": 2}, types=kinds, regions=[step.region]
        )
        return b.emit("tuple", results)

    return function("m::f", {}, body, generics=[n])


def test_for_carries_and_stacks() -> None:
    a, b, firsts, squares = run(fibonacci(I64), N=6)
    assert (a, b) == (8, 13)
    assert firsts.tolist() == [0, 1, 1, 2, 3, 5]
    assert squares.tolist() == [0, 1, 4, 9, 16, 25]
    *_, nothing, _ = run(fibonacci(I32), N=0)
    assert nothing.shape == (0,)
    assert nothing.dtype == np.int32


def test_static_for() -> None:
    (n,) = symbols("N")

    def body(b: Builder, x: Value) -> Value:
        i, carried = Value(scalar(I64)), Value(scalar(I64))
        with b.region([i, carried]) as step:
            step.give(b.emit("add", [carried, i]))
        bounds = {"start": Dim.of(1), "stop": Dim.of(n) + 1}
        return b.emit("static_for", [x], bounds, regions=[step.region])

    f = function("m::f", {"x": scalar(I64)}, body, generics=[n])
    assert run(f, 100, N=4) == 110
    with pytest.raises(EvaluationError, match="would run 1000001 times"):
        run(f, 0, N=10**6 + 1)


def linear() -> Any:
    """`y[*s, o] = sum[i] x[*s, i] * w[o, i]`, generic over everything."""
    n, o = symbols("In", "Out")
    s, t = fresh_pack("S"), fresh_dtype_var("T", "Float")

    def body(b: Builder, x: Value, w: Value) -> Value:
        return b.emit("contract", [x, w], {"inputs": ((0, 1), (2, 1)), "output": (0, 2)})

    params = {"x": tensor(t, s, n), "w": tensor(t, o, n)}
    return function("m::linear", params, body, kind="op", generics=[s, n, o, t])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 2)])
def test_generic_calls_with_packs_and_dtypes(shape: tuple[int, ...]) -> None:
    inner = linear()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(*shape, 5)).astype(np.float32)
    w = rng.normal(size=(7, 5)).astype(np.float32)
    np.testing.assert_allclose(run(inner, x, w), x @ w.T, rtol=1e-5, atol=1e-6)
    r, h = symbols("R", "H")

    def body(b: Builder, x: Value, w: Value) -> Value:
        args = [(Dim.of(r), Dim.of(2)), Dim.of(h), Dim.of(3), F32]
        type_ = tensor(F32, r, 2, 3)
        return b.emit("call", [x, w], call_attrs("m::linear", args), type=type_)

    outer = function(
        "m::f", {"x": tensor(F32, r, 2, h), "w": tensor(F32, 3, h)}, body, generics=[r, h]
    )
    ev = Evaluator({f.name: f for f in (inner, outer)})
    x = rng.normal(size=(4, 2, 5)).astype(np.float32)
    np.testing.assert_allclose(ev.run("m::f", [x, w[:3]]), x @ w[:3].T, rtol=1e-5, atol=1e-6)


def test_pack_axes_are_counted_in_items() -> None:
    """Every row that holds axis numbers, with a pack of two dimensions in front."""
    s = fresh_pack("S")
    (n,) = symbols("N")

    def body(b: Builder, x: Value, at: Value) -> Value:
        swapped = b.emit("permute", [x], {"order": (1, 0)})  # [n, *s]
        wide = b.emit("broadcast", [swapped], {"axes": (1, 2)}, type=tensor(F32, 2, n, s))
        summed = b.emit("reduce", [wide], {"op": "sum", "axes": (0, 2)})  # [n]
        running = b.emit("cumsum", [x], {"axis": 1})
        both = b.emit("concat", [x, running], {"axis": 1})  # [*s, 2n]
        bounds = {"bounds": (None, (Dim.of(0), 2 * Dim.of(n), Dim.of(2)))}
        half = b.emit("slice", [both], bounds)  # [*s, n]
        source = {"source": (("axis", 0), ("index", 0)), "index_axes": ((0,),)}
        picked = b.emit("gather", [half, at], source)  # [*s]
        flat = b.emit("reshape", [picked], type=tensor(F32, s.count))
        return b.emit("tuple", [summed, picked, flat])

    f = function("m::f", {"x": tensor(F32, s, n), "at": tensor(I32, s)}, body, generics=[s, n])
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    at = np.array([[0, 1, 2], [3, 2, 1]], np.int32)
    summed, picked, flat = run(f, x, at)
    np.testing.assert_array_equal(summed, 2 * x.sum((0, 1)))
    half = np.concatenate([x, np.cumsum(x, 2)], 2)[..., ::2]
    np.testing.assert_array_equal(picked, np.take_along_axis(half, at[..., None], 2)[..., 0])
    np.testing.assert_array_equal(flat, picked.reshape(-1))


def test_generics_are_inferred_through_arithmetic() -> None:
    a, b_, c = symbols("A", "B", "C")
    params = {"x": tensor(F32, Dim.of(a) + b_), "y": tensor(F32, 2 * Dim.of(a)), "z": scalar(F32)}

    def body(b: Builder, x: Value, y: Value, z: Value) -> Value:
        return b.emit("tuple", [b.dim(Dim.of(symbol), I64) for symbol in (a, b_, c)])

    f = function(
        "m::f", params, body, generics=[a, b_, c], where=[Relation(Dim.of(c), ">", Dim.of(0))]
    )
    given = (np.zeros(5, np.float32), np.zeros(4, np.float32), 0.0)
    assert tuple(map(int, run(f, *given, C=9))) == (2, 3, 9)
    with pytest.raises(EvaluationError, match="does not get its `C`"):
        run(f, *given)
    with pytest.raises(EvaluationError, match="`C > 0` does not hold"):
        run(f, *given, C=0)
    with pytest.raises(EvaluationError, match="does not get its `A`"):
        run(f, given[0], np.zeros(3, np.float32), 0.0, C=1)


def test_inputs_are_checked() -> None:
    (n,) = symbols("N")
    f = function(
        "m::f",
        {"x": tensor(F32, n), "y": tensor(F32, n)},
        lambda b, x, y: b.emit("add", [x, y]),
        generics=[n],
    )
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(run(f, x, [1.0, 2.0, 3.0]), [2, 3, 4])
    for bad in (np.ones(4, np.float32), np.ones((3, 1), np.float32), np.ones(3)):
        with pytest.raises(EvaluationError):
            run(f, x, bad)
    with pytest.raises(EvaluationError, match="no parameter `z`"):
        Evaluator({"m::f": f}).run("m::f", {"x": x, "z": x})
    with pytest.raises(EvaluationError, match="takes 2 inputs"):
        run(f, x, x, x)


def test_aggregates_cross_the_boundary() -> None:
    pair = TupleType((scalar(I32), OptionalType(scalar(BOOL))))
    point = StructType("m::P", "P", (), (("p", pair), ("k", EnumType("m::K", "K", ("A", "B")))))
    f = function("m::f", {"x": point}, lambda b, x: x)
    given = {"p": (np.int32(3), None), "k": "B"}
    assert run(f, given) == given
    assert run(f, {"p": (3, True), "k": "A"}) == {"p": (3, True), "k": "A"}


def test_results_do_not_share_memory_with_inputs() -> None:
    f = function("m::f", {"x": tensor(F32, 2)}, lambda b, x: x)
    x = np.ones(2, np.float32)
    result = run(f, x)
    x[0] = 7
    assert result.tolist() == [1, 1]


# --- blocks -------------------------------------------------------------------------------------


def counter_model() -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Three counters `[D]`, each adding its scale (optional) to its state and giving the sum on."""
    d, layers, model_d = symbols("D", "Layers", "W")
    counter = block(
        "m::Counter",
        generics=[d],
        members=[
            Member("param", "scale", tensor(F32, d), True),
            Member("state", "count", tensor(F32, d), False),
        ],
    )
    twice = 2 * Dim.of(model_d)
    model = block(
        "m::Model",
        generics=[layers, model_d],
        subs=[
            Sub("items", "m::Counter", (twice,), Dim.of(layers), False),
            Sub("extra", "m::Counter", (twice,), None, True),
        ],
    )

    def tick(b: Builder, x: Value) -> Value:
        here = Ref(None, ("count",))
        scale = b.emit(
            "param", attrs={"ref": Ref(None, ("scale",))}, type=OptionalType(tensor(F32, d))
        )
        old = b.emit("state_read", attrs={"ref": here}, type=tensor(F32, d))
        held = Value(tensor(F32, d))
        with b.region([held]) as there:
            there.give(b.emit("add", [old, held]))
        with b.region() as missing:
            one = b.emit("broadcast", [b.const(1.0, F32)], {"axes": ()}, type=tensor(F32, d))
            missing.give(b.emit("add", [old, one]))
        new = b.emit("match_optional", [scale], regions=[there.region, missing.region])
        b.emit_many("state_write", [new], {"ref": here})
        again = b.emit("state_read", attrs={"ref": here}, type=tensor(F32, d))
        return b.emit("add", [x, again])

    def forward(b: Builder, x: Value) -> Value:
        var, carried = SubVar("item"), Value(tensor(F32, twice))
        with b.region([carried]) as each:
            attrs = call_attrs("m::Counter.tick", [twice], Ref(var, ()))
            each.give(b.emit("call", [carried], attrs, type=tensor(F32, twice)))
        attrs = {"array": SELF.child("items"), "var": var}
        y = b.emit("for_subs", [x], attrs, regions=[each.region])
        with b.region() as there:
            attrs = call_attrs("m::Counter.tick", [twice], SELF.child("extra"))
            there.give(b.emit("call", [y], attrs, type=tensor(F32, twice)))
        with b.region() as missing:
            missing.give(y)
        regions = [there.region, missing.region]
        return b.emit("match_sub", attrs={"ref": SELF.child("extra")}, regions=regions)

    functions = [
        function("m::Counter.tick", {"x": tensor(F32, d)}, tick, block="m::Counter", generics=[d]),
        function(
            "m::Model.forward",
            {"x": tensor(F32, twice)},
            forward,
            kind="entry",
            block="m::Model",
            generics=[layers, model_d],
        ),
    ]
    blocks = {item.name: item for item in (counter, model)}
    return {f.name: f for f in functions}, blocks, {"Layers": 3, "W": 1}


def test_state_through_a_loop_over_children() -> None:
    functions, blocks, generics = counter_model()
    params = {"items.1.scale": np.array([10, 20], np.float32)}
    ev = Evaluator(functions, blocks, root="m::Model", generics=generics, params=params)
    x = np.zeros(2, np.float32)
    assert ev.run("m::Model.forward", [x]).tolist() == [12, 22]
    assert ev.run("m::Model.forward", {"x": x}).tolist() == [24, 44]
    assert {path: value.tolist() for path, value in ev.state.items()} == {
        "items.0.count": [2, 2],
        "items.1.count": [20, 40],
        "items.2.count": [2, 2],
    }


def test_optional_child_and_parameter() -> None:
    functions, blocks, generics = counter_model()
    params = {"extra.scale": np.array([5, 6], np.float32)}
    ev = Evaluator(functions, blocks, root="m::Model", generics=generics, params=params)
    assert ev.run("m::Model.forward", [np.zeros(2, np.float32)]).tolist() == [8, 9]
    wrong = Evaluator(
        functions, blocks, root="m::Model", generics=generics, params={"items.0.scale": np.ones(2)}
    )
    with pytest.raises(
        EvaluationError, match=r"items.0.scale` is float64\[2\], not Tensor\[2; f32\]"
    ):
        wrong.run("m::Model.forward", [np.zeros(2, np.float32)])


def test_a_run_that_fails_leaves_the_state() -> None:
    functions, blocks, generics = counter_model()
    state: dict[str, Any] = {}
    ev = Evaluator(functions, blocks, root="m::Model", generics=generics, state=state)
    ev.run("m::Model.forward", [np.zeros(2, np.float32)])
    before = {path: value.tolist() for path, value in state.items()}
    ev.params["items.2.scale"] = np.ones(3, np.float32)
    with pytest.raises(EvaluationError):
        ev.run("m::Model.forward", [np.zeros(2, np.float32)])
    assert {path: value.tolist() for path, value in state.items()} == before


def test_a_root_needs_its_generics() -> None:
    functions, blocks, _ = counter_model()
    with pytest.raises(EvaluationError, match="`Model` does not get its `W`"):
        Evaluator(functions, blocks, root="m::Model", generics={"Layers": 1})


# --- the rest -----------------------------------------------------------------------------------


def test_native_operations_are_the_callers() -> None:
    attrs = {"kernel": "twice", "origin": "m::op"}
    f = function(
        "m::f",
        {"x": tensor(F32, 2)},
        lambda b, x: b.emit("native", [x], attrs, type=tensor(F32, 2)),
    )
    natives = {"twice": lambda call: call.operands[0] * np.float32(2)}
    x = np.ones(2, np.float32)
    assert Evaluator({"m::f": f}, natives=natives).run("m::f", [x]).tolist() == [2, 2]
    with pytest.raises(EvaluationError, match="`twice` has no meaning here"):
        run(f, x)


def test_gradients_run() -> None:
    (n,) = symbols("N")
    f = function(
        "m::f", {"x": tensor(F32, n)}, lambda b, x: b.emit("mul", [x, x]), kind="op", generics=[n]
    )
    x, y, dy = (Value(tensor(F32, n)) for _ in range(3))
    b = Builder()
    result = b.emit("mul", [b.emit("add", [x, x]), dy])
    f = type(f)(
        **{
            **{name: getattr(f, name) for name in f.__dataclass_fields__},
            "grad": Grad((x, y, dy), b.finish([result])),
        }
    )
    given = np.array([1, 2, 3], np.float32)
    ev = Evaluator({"m::f": f})
    (dx,) = ev.gradient("m::f", [given], given**2, np.ones(3, np.float32))
    assert dx.tolist() == [2, 4, 6]


def test_rounding_happens_at_every_operation() -> None:
    bf16 = DType.BF16

    def body(b: Builder, x: Value) -> Value:
        one = b.const(1.0, bf16)
        return b.emit("sub", [b.emit("add", [one, x]), one])

    f = function("m::f", {"x": scalar(bf16)}, body)
    assert float(run(f, ml_dtypes.bfloat16(2**-9))) == 0.0
    assert float(run(f, ml_dtypes.bfloat16(2**-7))) == 2**-7


def test_division_in_dimensions() -> None:
    (n,) = symbols("N")

    def body(b: Builder, x: Value) -> Value:
        half = floordiv(Dim.of(n), Dim.of(2))
        bounds = {"bounds": ((Dim.of(0), half, Dim.of(1)),)}
        return b.emit("slice", [x], bounds)

    f = function("m::f", {"x": tensor(F32, n)}, body, generics=[n])
    assert run(f, np.arange(5, dtype=np.float32)).tolist() == [0, 1]
    assert isinstance(f.body.results[0].type, TensorType)


def test_what_cannot_be_held_is_an_error() -> None:
    (n,) = symbols("N")

    def body(b: Builder) -> Value:
        return b.emit("iota", type=tensor(I64, n))

    f = function("m::f", {}, body, generics=[n])
    for size in (10**15, 2**62, 2**70):
        with pytest.raises(EvaluationError, match="`iota` failed"):
            run(f, N=size)


def test_call_chains_too_deep_for_python_are_an_error() -> None:
    def body(callee: str) -> Any:
        return lambda b, x: b.emit("call", [x], call_attrs(callee), type=scalar(I32))

    names = [f"m::f{k}" for k in range(3000)]
    chain = [function(name, {"x": scalar(I32)}, body(below)) for name, below in pairwise(names)]
    chain.append(function(names[-1], {"x": scalar(I32)}, lambda b, x: x))
    with pytest.raises(EvaluationError, match="calls too deep"):
        Evaluator({f.name: f for f in chain}).run(names[0], [1])
    assert Evaluator({f.name: f for f in chain}).run(names[-100], [1]) == 1
