from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim, fresh_symbol
from linnet.ir import Function, Generic, Op, Param, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.passes.alike import fingerprint
from linnet.passes.drop import drop
from linnet.passes.module import Module
from linnet.passes.share import share
from linnet.passes.simplify import simplify
from linnet.types import DType, EnumType, OptionalType, StructType, TensorType, Type, scalar

N = fresh_symbol("N")
ROW = TensorType((Dim.of(N),), DType.F32)
PLANE = TensorType((Dim.of(2), Dim.of(N)), DType.F32)
Build = Callable[..., Value]


def function_of(build: Build, *params: Type) -> Function:
    made = tuple(Param(f"p{k}", Value(t, f"p{k}")) for k, t in enumerate(params))
    b = Builder()
    result = build(b, *(p.value for p in made))
    generics = (Generic("N", "Dim", N),)
    return Function("m::f", "fn", None, generics, made, (), b.finish([result]))


def simplified(build: Build, *params: Type) -> list[Op]:
    """What is left of a body, checked to give the same."""
    before = function_of(build, *params)
    module = Module({"m::f": before}, {"f": "m::f"}, {})
    after = drop(simplify(simplify(module))).functions["m::f"]
    verify(after, {"m::f": after})
    rng = np.random.default_rng(0)
    inputs = [_draw(rng, t) for t in params]
    results = [Evaluator({"m::f": f}).run("m::f", inputs, {"N": 3}) for f in (before, after)]
    np.testing.assert_array_equal(*results)
    return list(after.body.ops)


def _draw(rng: np.random.Generator, type_: Type) -> Any:
    assert isinstance(type_, TensorType) and isinstance(type_.dtype, DType)
    shape = [d.evaluate({N: 3}) for d in type_.dims]
    values = rng.integers(0, 2, shape) if type_.dtype is DType.BOOL else rng.normal(size=shape) * 3
    return np.array(values).astype(type_.dtype.value.replace("f", "float").replace("i", "int"))


def kinds(ops: list[Op]) -> list[str]:
    return [op.kind for op in ops]


def test_constants_are_rounded_as_their_dtype_rounds() -> None:
    def build(b: Builder) -> Value:
        width = b.cast(b.dim(128, DType.I64), DType.F32)
        return b.emit("rsqrt", [width])

    def bf16(b: Builder) -> Value:
        third = b.emit("div", [b.const(1.0, DType.BF16), b.const(3.0, DType.BF16)])
        return b.cast(third, DType.F32)

    # A `dim` is folded by `specialise`; here it is a constant already.
    (const,) = simplified(lambda b: b.emit("rsqrt", [b.const(128.0, DType.F32)]))
    assert const.attrs["value"] == float(np.float32(1) / np.sqrt(np.float32(128)))
    (const,) = simplified(bf16)
    assert const.attrs["value"] == 0.333984375
    assert kinds(simplified(build))[-1] == "rsqrt"


@pytest.mark.parametrize(
    ("kind", "a", "b", "value"),
    [
        ("add", 100, 100, -56),
        ("div", -7, 2, -3),
        ("rem", -7, 2, -1),
        ("shl", 1, 7, -128),
        ("shr", -128, 9, -1),
        ("mul", -128, -1, -128),
        ("min", 3, -4, -4),
    ],
)
def test_integer_constants_wrap_and_truncate(kind: str, a: int, b: int, value: int) -> None:
    (const,) = simplified(
        lambda build: build.emit(kind, [build.const(a, DType.I8), build.const(b, DType.I8)])
    )
    assert const.attrs["value"] == value


def test_division_by_zero_stays() -> None:
    function = function_of(lambda b: b.emit("div", [b.const(1, DType.I32), b.const(0, DType.I32)]))
    module = simplify(Module({"m::f": function}, {"f": "m::f"}, {}))
    assert [op.kind for op in module.functions["m::f"].body.ops] == ["const", "const", "div"]


def test_inexact_functions_stay() -> None:
    assert kinds(simplified(lambda b: b.emit("exp", [b.const(1.5, DType.F32)]))) == ["const", "exp"]


def test_views_that_change_nothing_go() -> None:
    def build(b: Builder, x: Value) -> Value:
        flat = b.emit("reshape", [x], type=TensorType((Dim.of(N) * 2,), DType.F32))
        back = b.emit("reshape", [flat], type=PLANE)
        turned = b.emit(
            "permute", [b.emit("permute", [back], {"order": (1, 0)})], {"order": (1, 0)}
        )
        whole = (Dim.of(0), Dim.of(N), Dim.of(1))
        cut = b.emit("slice", [turned], {"bounds": (None, whole)})
        same = b.emit("broadcast", [cut], {"axes": (0, 1)}, type=PLANE)
        return b.emit("concat", [same], {"axis": 1})

    assert simplified(build, PLANE) == []


def test_broadcasts_are_joined() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.broadcast(b.broadcast(x, [], ROW), [1], PLANE)

    (op,) = simplified(build, scalar(DType.F32))
    assert op.kind == "broadcast" and op.attrs["axes"] == ()


def test_gathers_without_indices_are_permutations() -> None:
    source = {"source": (("axis", 1), ("axis", 0)), "index_axes": ()}
    (op,) = simplified(lambda b, x: b.emit("gather", [x], source), PLANE)
    assert op.kind == "permute" and op.attrs["order"] == (1, 0)


def test_tuples_and_structs_just_made_are_resolved() -> None:
    struct = StructType("m::P", "P", (), (("a", ROW), ("b", ROW)))

    def build(b: Builder, x: Value, y: Value) -> Value:
        pair = b.emit("tuple", [x, y])
        record = b.emit("struct", [b.emit("tuple_get", [pair], {"index": 1}), x], type=struct)
        return b.emit("struct_get", [record], {"field": "a"}, type=ROW)

    assert simplified(build, ROW, ROW) == []


def test_decided_branches_are_taken() -> None:
    def build(b: Builder, x: Value) -> Value:
        with b.region() as yes:
            yes.give(b.emit("neg", [x]))
        with b.region() as no:
            no.give(b.emit("abs", [x]))
        test = b.emit("lt", [b.const(2, DType.I64), b.const(1, DType.I64)])
        y = b.emit("if", [test], type=ROW, regions=[yes.region, no.region])
        held = Value(ROW)
        with b.region([held]) as some:
            some.give(b.emit("sqrt", [held]))
        with b.region() as none:
            none.give(y)
        optional = b.emit("some", [y], type=OptionalType(ROW))
        return b.emit("match_optional", [optional], type=ROW, regions=[some.region, none.region])

    assert kinds(simplified(build, ROW)) == ["abs", "sqrt"]


def test_a_known_case_is_taken() -> None:
    enum = EnumType("m::E", "E", ("A", "B"))

    def build(b: Builder, x: Value) -> Value:
        regions = []
        for kind in ("neg", "abs"):
            with b.region() as region:
                region.give(b.emit(kind, [x]))
            regions.append(region.region)
        case = b.emit("enum", [], {"case": 1}, type=enum)
        return b.emit("match_enum", [case], {"cases": ((0,), (1,))}, type=ROW, regions=regions)

    assert kinds(simplified(build, ROW)) == ["abs"]


def test_loops_that_never_run_go() -> None:
    def build(b: Builder, x: Value) -> Value:
        acc = Value(ROW)
        with b.region([Value(scalar(DType.I64)), acc]) as body:
            body.give(b.emit("neg", [acc]))
        attrs = {"start": Dim.of(2), "stop": Dim.of(2)}
        return b.emit("static_for", [x], attrs, type=ROW, regions=[body.region])

    assert simplified(build, ROW) == []


def test_neutral_elements_of_integers_only() -> None:
    def build(b: Builder, x: Value, i: Value) -> Value:
        zero = b.emit("add", [i, b.const(0, DType.I64)])
        whole = b.broadcast(b.cast(zero, DType.F32), [], ROW)
        return b.emit(
            "add", [b.emit("add", [x, b.broadcast(b.const(0.0, DType.F32), [], ROW)]), whole]
        )

    left = kinds(simplified(build, ROW, scalar(DType.I64)))
    assert left.count("add") == 2  # -0.0 + 0.0 is not -0.0


def test_repeated_values_are_worked_on_once() -> None:
    def build(b: Builder, x: Value) -> Value:
        up = b.broadcast(x, [1], PLANE)
        half = b.broadcast(b.const(0.5, DType.F32), [], PLANE)
        return b.emit("exp", [b.emit("mul", [up, half])])

    ops = simplified(build, ROW)
    assert kinds(ops)[-1] == "broadcast" and ops[-2].result.type == ROW


def test_stretched_values_are_left_alone() -> None:
    def build(b: Builder, x: Value) -> Value:
        one = TensorType((Dim.of(1), Dim.of(N)), DType.F32)
        thin = b.emit("reshape", [x], type=one)
        wide = b.emit("broadcast", [thin], {"axes": (0, 1)}, type=PLANE)
        return b.emit("exp", [wide])

    assert kinds(simplified(build, ROW)) == ["reshape", "broadcast", "exp"]


# --- share -------------------------------------------------------------------------------------


def test_equal_operations_are_shared_where_they_see_each_other() -> None:
    def build(b: Builder, x: Value) -> Value:
        a = b.emit("add", [b.emit("exp", [x]), b.emit("exp", [x])])
        with b.region() as yes:
            yes.give(b.emit("tanh", [b.emit("exp", [x])]))
        with b.region() as no:
            no.give(b.emit("tanh", [b.emit("neg", [x])]))
        total = b.emit("reduce", [a], {"op": "sum", "axes": (0,)})
        test = b.emit("gt", [total, b.const(0.0, DType.F32)])
        y = b.emit("if", [test], type=ROW, regions=[yes.region, no.region])
        return b.emit("add", [b.emit("tanh", [b.emit("exp", [x])]), y])

    function = function_of(build, ROW)
    module = share(Module({"m::f": function}, {"f": "m::f"}, {}))
    from linnet.ir.walk import walk

    found = [op.kind for op in walk(module.functions["m::f"])]
    # One exp for all; the branch's tanh comes before the one outside and is not seen by it.
    assert found.count("exp") == 1 and found.count("tanh") == 3


def test_numbers_of_two_kinds_are_not_alike() -> None:
    def build(zero: Any, dtype: DType) -> Function:
        return function_of(lambda b: b.const(zero, dtype))

    floats = fingerprint(build(0.0, DType.F32))
    assert floats == fingerprint(build(0.0, DType.F32))
    assert floats != fingerprint(build(-0.0, DType.F32))
    assert fingerprint(build(0, DType.I64)) != fingerprint(build(0, DType.I32))


def test_alike_whatever_values_and_generics_are_called() -> None:
    m = fresh_symbol("M")
    other = TensorType((Dim.of(m),), DType.F32)
    made = Param("y", Value(other, "y"))
    b = Builder()
    body = b.finish([b.emit("exp", [made.value])])
    second = Function("m::g", "fn", None, (Generic("M", "Dim", m),), (made,), (), body)
    first = function_of(lambda b, x: b.emit("exp", [x]), ROW)
    assert fingerprint(first) == fingerprint(second)
    third = function_of(lambda b, x: b.emit("neg", [x]), ROW)
    assert fingerprint(first) != fingerprint(third)
