"""Every row's meaning, on small values worked out by hand or by plain Python.

`CASES` holds at least one case for each row without regions; a row without a meaning or a case
fails `test_every_row_has_a_meaning_and_a_case`. Rows with control flow have theirs in
`test_evaluate.py`, which this file lists.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.dims import Dim
from linnet.ir import OPS
from linnet.ir.control import CONTROL
from linnet.ir.semantics import NUMPY, SEMANTICS, Call, EvaluationError, Some
from linnet.types import (
    BOOL,
    DType,
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)

I64_MIN, I64_MAX = -(2**63), 2**63 - 1


def tensor(dtype: DType, *extents: int) -> TensorType:
    return TensorType(tuple(map(Dim.of, extents)), dtype)


def array(dtype: DType, value: Any) -> Any:
    return np.array(value, NUMPY[dtype])


@dataclass(frozen=True)
class Given:
    """`kind` of `operands` is `expected`; types follow from the arrays where not given."""

    kind: str
    operands: tuple[Any, ...]
    expected: Any
    attrs: dict[str, Any] = field(default_factory=dict)
    result: Type | None = None
    inputs: tuple[Type, ...] | None = None


def type_of(value: Any) -> Type:
    dtype = next(d for d, numpy in NUMPY.items() if numpy == value.dtype)
    return tensor(dtype, *value.shape)


def meaning(given: Given) -> Any:
    inputs = given.inputs or tuple(map(type_of, given.operands))
    result = given.result or type_of(given.expected)
    call = Call(given.kind, given.operands, given.attrs, (result,), inputs, None)
    with np.errstate(all="ignore"):
        return SEMANTICS[given.kind](call)


def unary(kind: str, dtype: DType, x: Any, y: Any) -> Given:
    return Given(kind, (array(dtype, x),), array(dtype, y))


def binary(kind: str, dtype: DType, a: Any, b: Any, y: Any, to: DType | None = None) -> Given:
    return Given(kind, (array(dtype, a), array(dtype, b)), array(to or dtype, y))


def cast(source: DType, x: Any, target: DType, y: Any) -> Given:
    return Given("cast", (array(source, x),), array(target, y))


I8, I32, I64, U8, U16, U64 = DType.I8, DType.I32, DType.I64, DType.U8, DType.U16, DType.U64
F16, BF16, F32, F64, B = DType.F16, DType.BF16, DType.F32, DType.F64, DType.BOOL
NAN, INF = math.nan, math.inf
GRID = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
PAIR = TupleType((scalar(I32), BOOL))
POINT = StructType("m::Point", "Point", (), (("x", scalar(I32)), ("y", scalar(I32))))
MODE = EnumType("m::Mode", "Mode", ("A", "B", "C"))


def dims(*parts: int) -> tuple[Dim, ...]:
    return tuple(map(Dim.of, parts))


CASES = [
    Given("const", (), array(F32, 0.1), {"value": 0.1}),
    Given("const", (), array(BF16, 3.0), {"value": 3}),
    Given("const", (), array(U64, 2**64 - 1), {"value": 2**64 - 1}),
    Given("const", (), array(B, True), {"value": True}),
    Given("dim", (), array(I32, 7), {"dim": Dim.of(7)}),
    Given("dim", (), array(F16, 2048), {"dim": Dim.of(2049)}),  # even of the two neighbours
    Given("iota", (), array(I32, [0, 1, 2, 3])),
    Given("iota", (), array(I32, [])),
    Given("iota", (), array(U8, [*range(256), 0, 1])),  # wraps
    cast(F32, [1.9, -1.9, NAN, INF, -INF, 300.0], I8, [1, -1, 0, 127, -128, 127]),
    cast(F32, [-1.0, 256.0, 255.9, -0.5], U8, [0, 255, 255, 0]),
    cast(F64, [9.3e18, -9.3e18, 2.0**62], I64, [I64_MAX, I64_MIN, 2**62]),
    cast(F32, [1.9e19, 1.8e19], U64, [2**64 - 1, int(np.float32(1.8e19))]),
    cast(I64, [300, -1, 128], U8, [44, 255, 128]),
    cast(I64, [300, -1, 128], I8, [44, -1, -128]),
    cast(U64, [2**64 - 1], I32, [-1]),
    cast(B, [True, False], F16, [1.0, 0.0]),
    cast(B, [True, False], I8, [1, 0]),
    cast(F32, [0.0, -0.0, 0.5, NAN], B, [False, False, True, True]),
    cast(I32, [0, 5, -1], B, [False, True, True]),
    # 1 + 2^-8 + 2^-60 lies above the middle of two bf16s; through f32 it would be a tie.
    cast(F64, [1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8], BF16, [1 + 2**-7, 1.0, 1 + 2**-6]),
    cast(I64, [(1 << 62) + (1 << 54) + 1], BF16, [float((1 << 62) + (1 << 55))]),
    cast(I64, [(1 << 62) + (1 << 54)], BF16, [float(1 << 62)]),
    cast(I64, [-(1 << 62) - (1 << 54) - 1], BF16, [-float((1 << 62) + (1 << 55))]),
    cast(U64, [(1 << 63) + (1 << 55) + 1], BF16, [float((1 << 63) + (1 << 56))]),
    cast(I32, [2049], F16, [2048.0]),
    cast(I64, [70000], F16, [INF]),
    cast(BF16, [1.5, -2.5], F32, [1.5, -2.5]),
    cast(F16, [1.5], BF16, [1.5]),
    unary("neg", F32, [1.0, -2.0], [-1.0, 2.0]),
    unary("neg", I8, [5, -128], [-5, -128]),
    unary("neg", U8, [1, 0], [255, 0]),
    unary("neg", BF16, [1.0], [-1.0]),
    unary("not", B, [True, False], [False, True]),
    unary("abs", I8, [-5, -128, 3], [5, -128, 3]),
    unary("abs", F32, [-1.5, NAN], [1.5, NAN]),
    unary("exp", F32, [0.0, 1.0, -INF], [1.0, math.e, 0.0]),
    unary("exp", F16, [12.0], [INF]),
    unary("log", F64, [1.0, 0.0, -1.0], [0.0, -INF, NAN]),
    unary("sqrt", F32, [4.0, -1.0], [2.0, NAN]),
    unary("rsqrt", F32, [4.0, 0.0], [0.5, INF]),
    unary("sin", F32, [0.0, math.pi / 2], [0.0, 1.0]),
    unary("cos", BF16, [0.0], [1.0]),
    unary("tanh", F32, [0.0, 100.0], [0.0, 1.0]),
    unary("erf", F32, [0.0, 1.0, INF], [0.0, math.erf(1.0), 1.0]),
    unary("erf", F32, np.zeros((0, 2)), np.zeros((0, 2))),
    unary("floor", F16, [1.5, -1.5], [1.0, -2.0]),
    binary("add", I8, [100], [100], [-56]),
    binary("add", BF16, [1.0], [2**-9], [1.0]),
    binary("add", F32, 1.0, 2.0, 3.0),
    binary("sub", U8, [1], [2], [255]),
    binary("sub", F16, [1.0], [0.5], [0.5]),
    binary("mul", I64, [I64_MAX], [2], [-2]),
    binary("mul", BF16, [1.0 + 2**-7], [1.0 + 2**-7], [1.0 + 2**-6]),
    binary("mul", F16, [300.0], [300.0], [INF]),
    binary("div", I32, [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]),
    binary("div", I64, [I64_MIN, 5], [-1, -1], [I64_MIN, -5]),
    binary("div", U8, [255], [2], [127]),
    binary("div", F32, [1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [INF, -INF, NAN]),
    binary("rem", I32, [7, -7, 7, -7], [2, 2, -2, -2], [1, -1, 1, -1]),
    binary("rem", I64, [I64_MIN], [-1], [0]),
    binary("rem", U8, [255], [2], [1]),
    binary("rem", F32, [5.5, -5.5], [2.0, 2.0], [1.5, -1.5]),
    binary("min", F32, [1.0, NAN, 2.0], [2.0, 1.0, NAN], [1.0, NAN, NAN]),
    binary("min", BF16, [1.0], [2.0], [1.0]),
    binary("max", F16, [1.0, NAN, 2.0], [2.0, 1.0, NAN], [2.0, NAN, NAN]),
    binary("max", U64, [2**63], [1], [2**63]),
    binary("and", I8, [0b1100, -1], [0b1010, 5], [0b1000, 5]),
    binary("and", B, [True, True], [True, False], [True, False]),
    binary("or", U8, [0b1100], [0b1010], [0b1110]),
    binary("xor", I32, [0b1100], [0b1010], [0b0110]),
    binary("xor", B, [True, True], [True, False], [False, True]),
    binary("shl", I32, [1, 1, 1, 1], [31, 32, 33, -1], [-(2**31), 0, 0, 0]),
    binary("shl", U8, [255], [4], [240]),
    binary("shr", I8, [-128, -128, 64, -1, 64], [2, 8, 2, 100, -1], [-32, -1, 16, -1, 0]),
    binary("shr", U8, [128, 128], [7, 8], [1, 0]),
    binary("shr", U64, [2**63], [63], [1]),
    binary("eq", F32, [1.0, NAN], [1.0, NAN], [True, False], B),
    binary("eq", B, [True], [False], [False], B),
    Given("eq", (1, 1), array(B, True), inputs=(MODE, MODE)),
    binary("ne", F32, [1.0, NAN], [1.0, NAN], [False, True], B),
    Given("ne", (1, 2), array(B, True), inputs=(MODE, MODE)),
    binary("lt", U64, [2**63], [1], [False], B),
    binary("le", I32, [1, 2], [1, 1], [True, False], B),
    binary("gt", BF16, [2.0], [1.0], [True], B),
    binary("ge", F32, [NAN], [1.0], [False], B),
    Given(
        "select",
        (array(B, [True, False]), array(F32, [1, 2]), array(F32, [3, NAN])),
        array(F32, [1, NAN]),
    ),
    Given("broadcast", (array(I32, [1, 2]),), array(I32, [[1, 1], [2, 2]]), {"axes": (0,)}),
    Given("broadcast", (array(I32, [[5]]),), array(I32, [[5, 5]]), {"axes": (0, 1)}),
    Given("broadcast", (array(I32, 5),), array(I32, [5, 5]), {"axes": ()}),
    Given("reshape", (GRID,), GRID.reshape(6, 4)),
    Given("reshape", (array(F32, [3.0]),), array(F32, 3.0)),
    Given("permute", (GRID,), GRID.transpose(2, 0, 1), {"order": (2, 0, 1)}),
    Given("concat", (GRID, GRID[:, :1]), np.concatenate([GRID, GRID[:, :1]], 1), {"axis": 1}),
    Given("slice", (GRID,), GRID[:, 1:3, 0:4:2], {"bounds": (None, dims(1, 3, 1), dims(0, 4, 2))}),
    Given("slice", (GRID,), GRID[:, 3:3], {"bounds": (None, dims(3, 3, 1), None)}),
    Given("slice", (GRID[:, :0],), GRID[:, :0], {"bounds": (None, dims(1, 0, 2), None)}),
    Given(
        "gather",
        (GRID, array(I32, [2, 0])),
        GRID[:, [2, 0], :].transpose(1, 0, 2),
        {"source": (("axis", 1), ("index", 0), ("axis", 2)), "index_axes": ((0,),)},
    ),
    Given(
        "gather",  # a diagonal
        (GRID[0, :, :3],),
        GRID[0, [0, 1, 2], [0, 1, 2]],
        {"source": (("axis", 0), ("axis", 0)), "index_axes": ()},
    ),
    Given(
        "gather",  # one index runs along an axis of the result, one is a scalar
        (GRID, array(U8, [1, 0, 1, 1]), array(I64, 2)),
        np.array([GRID[i, 2, j] for j, i in enumerate([1, 0, 1, 1])], np.int32),
        {"source": (("index", 0), ("index", 1), ("axis", 0)), "index_axes": ((0,), ())},
    ),
    Given(
        "gather",  # nothing is read, so an index out of range does no harm
        (np.zeros((2, 0), np.int32), array(I64, [9])),
        np.zeros((1, 0), np.int32),
        {"source": (("index", 0), ("axis", 1)), "index_axes": ((0,),)},
    ),
    Given("gather", (array(I32, 4),), array(I32, 4), {"source": (), "index_axes": ()}),
    Given("reduce", (GRID,), GRID.sum((0, 2), dtype=np.int32), {"op": "sum", "axes": (0, 2)}),
    Given("reduce", (array(I8, [100, 100]),), array(I8, -56), {"op": "sum", "axes": (0,)}),
    Given("reduce", (array(U8, [20, 20]),), array(U8, 144), {"op": "prod", "axes": (0,)}),
    Given("reduce", (np.zeros((0,), np.float32),), array(F32, 1.0), {"op": "prod", "axes": (0,)}),
    Given("reduce", (array(F32, [1, NAN]),), array(F32, NAN), {"op": "max", "axes": (0,)}),
    Given("reduce", (GRID[:0, :0],), GRID[:0, 0], {"op": "max", "axes": (1,)}),
    Given("reduce", (array(BF16, [3, 1]),), array(BF16, 1), {"op": "min", "axes": (0,)}),
    Given("reduce", (array(B, [[True, False]]),), array(B, [True]), {"op": "any", "axes": (1,)}),
    Given("reduce", (array(B, [[True, False]]),), array(B, [False]), {"op": "all", "axes": (1,)}),
    Given("reduce", (np.zeros((0, 2), bool),), array(B, [True] * 2), {"op": "all", "axes": (0,)}),
    Given("reduce", (GRID,), GRID, {"op": "sum", "axes": ()}),
    # 256 + 1 is no bf16: partial sums are held in f32.
    Given("reduce", (array(BF16, [256, 1, 1]),), array(BF16, 258), {"op": "sum", "axes": (0,)}),
    Given(
        "contract",
        (array(F32, [[1, 2], [3, 4]]), array(F32, [[5, 6], [7, 8]])),
        array(F32, [[19, 22], [43, 50]]),
        {"inputs": ((0, 1), (1, 2)), "output": (0, 2)},
    ),
    Given(
        "contract",  # an outer product, the second operand's other axis summed alone
        (array(I64, [1, 2]), array(I64, [[1, 2], [3, 4]])),
        array(I64, [[3, 6], [7, 14]]),
        {"inputs": ((9,), (4, 7)), "output": (4, 9)},
    ),
    Given(
        "contract",
        (array(I8, [100, 2]), array(I8, [2, 3])),
        array(I8, 206 - 256),
        {"inputs": ((0,), (0,)), "output": ()},
    ),
    Given(
        "contract",  # (1 + 2^-7)^2 is rounded to 1 + 2^-6 before it is summed
        (array(BF16, [1 + 2**-7] * 2), array(BF16, [1 + 2**-7, -1 - 2**-6])),
        array(BF16, 1 + 2**-6 - (1 + 3 * 2**-7)),
        {"inputs": ((0,), (0,)), "output": ()},
    ),
    Given("cumsum", (GRID,), np.cumsum(GRID, 1, dtype=np.int32), {"axis": 1}),
    Given("cumsum", (array(I8, [100, 100]),), array(I8, [100, -56]), {"axis": 0}),
    Given("cumsum", (array(BF16, [256, 1, 1]),), array(BF16, [256, 256, 258]), {"axis": 0}),
    Given("tuple", (array(I32, 1), array(B, True)), (1, True), result=PAIR),
    Given("tuple_get", ((4, 5),), 5, {"index": 1}, scalar(I32), (PAIR,)),
    Given("struct", (array(I32, 1), array(I32, 2)), {"x": 1, "y": 2}, result=POINT),
    Given("struct_get", ({"x": 1, "y": 2},), 2, {"field": "y"}, scalar(I32), (POINT,)),
    Given("some", (array(I32, 3),), Some(3), result=OptionalType(scalar(I32))),
    Given("none", (), None, result=OptionalType(scalar(I32))),
    Given("enum", (), 2, {"case": 2}, MODE),
]


def test_every_row_has_a_meaning_and_a_case() -> None:
    assert set(OPS) == set(SEMANTICS) | set(CONTROL)
    assert not set(SEMANTICS) & set(CONTROL)
    assert {case.kind for case in CASES} == set(SEMANTICS)


@pytest.mark.parametrize("given", CASES, ids=lambda g: g.kind)
def test_meaning(given: Given) -> None:
    result = meaning(given)
    if not isinstance(given.expected, np.ndarray):
        assert result == given.expected
        return
    assert np.asarray(result).dtype == given.expected.dtype
    np.testing.assert_array_equal(
        np.asarray(result, np.float64), np.asarray(given.expected, np.float64)
    )
    if given.expected.dtype.kind in "iu":  # f64 does not tell large integers apart
        np.testing.assert_array_equal(result, given.expected)


FAILURES = [
    (Given("div", (array(I32, [1]), array(I32, [0])), array(I32, [0])), "divided by zero"),
    (Given("rem", (array(U8, [1]), array(U8, [0])), array(U8, [0])), "divided by zero"),
    (Given("dim", (), array(I8, 0), {"dim": Dim.of(200)}), "size 200 does not fit i8"),
    (
        Given(
            "gather",
            (GRID[0], array(I64, [0, 3])),
            GRID[0, :2],
            {"source": (("index", 0), ("axis", 1)), "index_axes": ((0,),)},
        ),
        "index 3 is outside an axis of extent 3",
    ),
    (
        Given(
            "gather",
            (GRID[0], array(I64, -1)),
            GRID[0, 0],
            {"source": (("index", 0), ("axis", 0)), "index_axes": ((),)},
        ),
        "index -1 is outside",
    ),
    (
        Given("reduce", (np.zeros((0,), np.float32),), array(F32, 0), {"op": "max", "axes": (0,)}),
        "the max of no elements",
    ),
    (Given("slice", (GRID,), GRID, {"bounds": (dims(0, 3, 1), None, None)}), "leaves an axis"),
    (Given("slice", (GRID[:0],), GRID[:0], {"bounds": (dims(2, 0, 2), None, None)}), "leaves an"),
    (Given("reshape", (GRID,), GRID[0]), "do not fill"),
]


@pytest.mark.parametrize(("given", "message"), FAILURES, ids=lambda x: getattr(x, "kind", ""))
def test_no_meaning(given: Given, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        meaning(given)


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div"])
def test_half_arithmetic_is_correctly_rounded(dtype: DType, kind: str) -> None:
    """Against the exact result in f64 (which holds it, or rounds it far from any tie of halves)."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**16, (2, 4000), dtype=np.uint16)
    a, b = (x.view(NUMPY[dtype]) for x in bits)
    exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[kind]
    with np.errstate(all="ignore"):
        wide = exact(a.astype(np.float64), b.astype(np.float64))
    result = meaning(Given(kind, (a, b), a))
    expected = meaning(Given("cast", (wide,), a))
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


def test_f64_to_bf16_rounds_once() -> None:
    """Each value between two bf16 neighbours goes to the nearer, ties to the even one."""
    rng = np.random.default_rng(6)
    low_bits = rng.integers(0, 0x7F00, 3000, dtype=np.uint16)
    low = low_bits.view(ml_dtypes.bfloat16).astype(np.float64)
    high = (low_bits + 1).astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    middle = (low + high) / 2
    for x, want in [
        (np.nextafter(middle, 0), low),
        (np.nextafter(middle, np.inf), high),
        (middle, np.where(low_bits % 2 == 0, low, high)),
    ]:
        for sign in (1.0, -1.0):
            result = meaning(Given("cast", (sign * x,), np.zeros(len(x), ml_dtypes.bfloat16)))
            np.testing.assert_array_equal(result.astype(np.float64), sign * want)


def test_large_rounded_contractions_are_worked_out_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from linnet.ir.semantics import reduction

    rng = np.random.default_rng(7)
    a = rng.normal(size=(3, 4, 5)).astype(ml_dtypes.bfloat16)
    b = rng.normal(size=(4, 5, 6)).astype(ml_dtypes.bfloat16)
    attrs = {"inputs": ((2, 0, 1), (0, 1, 3)), "output": (3, 0, 2)}
    given = Given("contract", (a, b), np.zeros((6, 4, 3), ml_dtypes.bfloat16), attrs)
    whole = meaning(given)
    monkeypatch.setattr(reduction, "_PRODUCTS_AT_ONCE", 10)
    np.testing.assert_array_equal(meaning(given).astype(np.float32), whole.astype(np.float32))
