"""Specialising alone: packs and axes, dtypes, optionals, entries of modules, large loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim, fresh_symbol
from linnet.ir import Function, Generic, Grad, Op, Param, Program, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.passes import BindError, Lowered, bind, lower
from linnet.passes.module import Module
from linnet.passes.specialise import specialise
from linnet.types import (
    DType,
    DTypeVar,
    OptionalType,
    PackVar,
    TensorType,
    Type,
    fresh_dtype_var,
    fresh_pack,
    scalar,
)

F64 = DType.F64


def tensor(dtype: DType | DTypeVar, *shape: Any) -> TensorType:
    return TensorType(tuple(s if isinstance(s, PackVar) else Dim.of(s) for s in shape), dtype)


def function(
    name: str, kind: Any, generics: Any, params: dict[str, Type], build: Any, grad: Any = None
) -> Function:
    b = Builder()
    made = tuple(Param(n, Value(t, n)) for n, t in params.items())
    result = build(b, *(p.value for p in made))
    return Function(f"m::{name}", kind, None, tuple(generics), made, (), b.finish([result]), grad)


def program(*functions: Function) -> Program:
    return Program("m", {f.name: f for f in functions}, {})


def lowered(made: Program, entry: str = "main", **options: Any) -> Lowered:
    def observe(name: str, module: Module) -> None:
        for each in module.functions.values():
            verify(each, module.functions)

    return lower(bind(made, None, {}), [entry], observe=observe, **options)


def call(b: Builder, callee: str, generics: Any, operands: Any, type_: Type) -> Value:
    attrs = {"callee": f"m::{callee}", "generics": tuple(generics), "receiver": None}
    return b.emit("call", operands, attrs, type=type_)


def _packed() -> Function:
    """Every operation with axis numbers, around a pack."""
    s, h, t = fresh_pack("S"), fresh_symbol("H"), fresh_dtype_var("T", "Float")

    def build(b: Builder, x: Value, w: Value, at: Value) -> Value:
        product = b.emit("contract", [x, w], {"inputs": ((0, 1), (2, 1)), "output": (2, 0)})
        back = b.emit("permute", [product], {"order": (1, 0)})
        bounds = (None, (Dim.of(0), Dim.of(2), Dim.of(1)))
        both = b.emit("concat", [b.emit("slice", [back], {"bounds": bounds})] * 2, {"axis": 1})
        summed = b.emit("cumsum", [both], {"axis": 1})
        picked = b.emit("gather", [summed, at],
                        {"source": (("axis", 0), ("index", 0)), "index_axes": ((),)})  # fmt: skip
        most = b.emit("reduce", [x], {"op": "max", "axes": (1,)})
        total = b.emit("add", [picked, most])
        wide = b.emit("broadcast", [total], {"axes": (0,)}, type=x.type)
        return b.emit("mul", [wide, x])

    generics = [Generic("S", "Shape", s), Generic("H", "Dim", h), Generic("T", "Float", t)]
    params: dict[str, Type] = {
        "x": tensor(t, s, h),
        "w": tensor(t, 3, h),
        "at": scalar(DType.I64),
    }
    return function("packed", "fn", generics, params, build)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_packs_of_any_length(shape: tuple[int, ...]) -> None:
    packed = _packed()
    n = fresh_symbol("N")
    dims = tuple(Dim.of(n) if k == 0 else Dim.of(d) for k, d in enumerate(shape))
    x_type = tensor(F64, *dims, 4)

    def build(b: Builder, x: Value, w: Value, at: Value) -> Value:
        return call(b, "packed", (dims, Dim.of(4), F64), [x, w, at], x_type)

    params: dict[str, Type] = {"x": x_type, "w": tensor(F64, 3, 4), "at": scalar(DType.I64)}
    generics = [Generic("N", "Dim", n)] if shape else []
    made = program(packed, function("main", "entry", generics, params, build))
    low = lowered(made, optimize=False)
    assert len(low.functions["packed"].generics) == len(shape[:1])
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(*shape, 4)), rng.normal(size=(3, 4)), 2]
    want = Evaluator(made).run("m::main", inputs)
    np.testing.assert_array_equal(want, Evaluator(low.functions).run(low.entries["main"], inputs))


def test_equal_sizes_of_one_call_become_one() -> None:
    a, b_, n = fresh_symbol("A"), fresh_symbol("B"), fresh_symbol("N")
    inner = function(
        "inner", "op", [Generic("A", "Dim", a), Generic("B", "Dim", b_)],
        {"x": tensor(F64, a, b_)}, lambda b, x: b.emit("neg", [x]),
    )  # fmt: skip

    def build(b: Builder, x: Value, y: Value) -> Value:
        square, oblong = tensor(F64, n, n), TensorType((Dim.of(n), Dim.of(n) + 1), F64)
        call(b, "inner", (Dim.of(n), Dim.of(n) + 1), [y], oblong)
        return call(b, "inner", (Dim.of(n), Dim.of(n)), [x], square)

    params: dict[str, Type] = {
        "x": tensor(F64, n, n),
        "y": TensorType((Dim.of(n), Dim.of(n) + 1), F64),
    }
    made = program(inner, function("main", "entry", [Generic("N", "Dim", n)], params, build))
    module = specialise(bind(made, None, {}), ["main"])
    sizes = {name: [g.name for g in f.generics] for name, f in module.functions.items()}
    assert sorted(map(len, sizes.values())) == [1, 1, 2]
    calls = [op for op in module.functions[module.entries["main"]].body.ops if op.kind == "call"]
    assert [op.attrs["generics"] for op in calls] == [
        (Dim.of(n), Dim.of(n) + 1),
        (Dim.of(n),),
    ]


def _with_optional() -> Function:
    n = fresh_symbol("N")
    row = tensor(F64, n)

    def build(b: Builder, x: Value, bias: Value) -> Value:
        held = Value(row, "held")
        with b.region([held]) as some:
            some.give(b.emit("add", [x, held]))
        with b.region() as none:
            none.give(x)
        return b.emit("match_optional", [bias], type=row, regions=[some.region, none.region])

    params: dict[str, Type] = {"x": row, "bias": OptionalType(row)}
    made = function("shift", "op", [Generic("N", "Dim", n)], params, build)
    b = Builder()
    types = [p.type for p in made.params] + [row, row]
    values = tuple(Value(t) for t in types)
    body = b.finish([values[3]])
    return Function(**{**_fields(made), "grad": Grad(values, body)})


def _fields(made: Function) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__slots__}


@pytest.mark.parametrize("there", [True, False])
def test_known_optionals_are_unwrapped_in_bodies_and_gradients(there: bool) -> None:
    shift = _with_optional()
    row = tensor(F64, 3)

    def build(b: Builder, x: Value, y: Value) -> Value:
        optional = OptionalType(row)
        bias = b.emit("some", [y], type=optional) if there else b.emit("none", type=optional)
        return call(b, "shift", (Dim.of(3),), [x, bias], row)

    made = program(shift, function("main", "entry", [], {"x": row, "y": row}, build))
    low = lowered(made, trainable=True)
    op = low.functions["shift"]
    assert [p.name for p in op.params] == (["x", "bias"] if there else ["x"])
    assert all(p.type == row for p in op.params)
    assert op.grad is not None and len(op.grad.params) == len(op.params) + 2
    assert lowered(made, optimize=False).functions["shift"].grad is None
    x = np.arange(3.0)
    result = Evaluator(low.functions).run(low.entries["main"], [x, x])
    np.testing.assert_array_equal(result, x + x if there else x)


def test_an_entrys_optional_stays() -> None:
    shift = _with_optional()
    row = tensor(F64, 3)

    def build(b: Builder, x: Value, y: Value) -> Value:
        return call(b, "shift", (Dim.of(3),), [x, y], row)

    params: dict[str, Type] = {"x": row, "y": OptionalType(row)}
    low = lowered(program(shift, function("main", "entry", [], params, build)))
    x = np.arange(3.0)
    ev = Evaluator(low.functions)
    np.testing.assert_array_equal(ev.run("main", [x, None]), x)
    np.testing.assert_array_equal(ev.run("main", [x, x]), x + x)


def test_dtypes_and_packs_of_an_entry_have_to_be_given() -> None:
    t, s = fresh_dtype_var("T", "Float"), fresh_pack("S")
    neg = lambda b, x: b.emit("neg", [x])  # noqa: E731
    generics = [Generic("T", "Float", t), Generic("S", "Shape", s)]
    made = program(function("main", "entry", generics, {"x": tensor(t, s)}, neg))
    with pytest.raises(BindError, match="`main` needs a dtype for its generic `T`"):
        lowered(made)
    with pytest.raises(BindError, match="`main` needs a list of sizes for its generic `S`"):
        lowered(made, sizes={"T": F64})
    low = lowered(made, sizes={"T": F64, "S": (Dim.of(2), Dim.of(3))})
    assert str(low.functions["main"].params[0].type) == "Tensor[2, 3; f64]"


def test_long_static_loops_and_huge_tensors_cost_nothing() -> None:
    row = tensor(DType.F32, 10**15)

    def build(b: Builder, x: Value) -> Value:
        number, acc = Value(scalar(DType.I64)), Value(scalar(DType.F32))
        with b.region([number, acc]) as body:
            wide = b.emit("exp", [b.broadcast(acc, [], row)])
            body.give(b.emit("reduce", [wide], {"op": "max", "axes": (0,)}))
        attrs = {"start": Dim.of(0), "stop": Dim.of(10**12)}
        return b.emit("static_for", [x], attrs, type=x.type, regions=[body.region])

    low = lowered(program(function("main", "entry", [], {"x": scalar(DType.F32)}, build)))
    assert not low.prepared and any(_is_loop(op) for op in low.functions["main"].body.ops)


def _is_loop(op: Op) -> bool:
    return op.kind == "static_for"


def test_sizes_are_rounded_as_their_dtype_rounds() -> None:
    def build(b: Builder) -> Value:
        return b.emit("dim", [], {"dim": Dim.of(4097)}, type=scalar(DType.BF16))

    low = lowered(program(function("main", "entry", [], {}, build)))
    (op,) = low.functions["main"].body.ops
    assert op.kind == "const" and op.attrs["value"] == 4096.0
