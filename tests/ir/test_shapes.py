"""Dtype and shape rules: what each row gives, and malformed operations refused."""

from __future__ import annotations

from typing import Any

import pytest

from linnet.diagnostics import InternalError
from linnet.dims import Dim, Facts, Relation, floordiv
from linnet.ir import OPS, Ref, Region, SubVar, Value
from linnet.ir.shape_rules import RULES
from linnet.ir.shapes import infer, same_type
from linnet.types import (
    BOOL,
    DType,
    EnumType,
    OptionalType,
    StructType,
    TupleType,
    Type,
    fresh_dtype_var,
    fresh_pack,
    scalar,
)

from .helpers import F32, I32, I64, SELF, symbols, tensor

N, M, K = symbols("N", "M", "K")
S = fresh_pack("S")
T = fresh_dtype_var("T", "Float")
NUM = fresh_dtype_var("A", "Numeric")
MODE = EnumType("m::Mode", "Mode", ("A", "B"))
PAIR = TupleType((scalar(I32), scalar(F32)))
POINT = StructType("m::P", "P", (), (("x", scalar(I32)), ("y", scalar(F32))))
B, U8, BF16 = DType.BOOL, DType.U8, DType.BF16
LOOP: dict[str, Any] = {"array": SELF.child("layers"), "var": SubVar("layer")}


def region(params: list[Type], results: list[Type]) -> Region:
    return Region(tuple(map(Value, params)), (), tuple(map(Value, results)))


def dims(*parts: Any) -> tuple[Dim, ...]:
    return tuple(map(Dim.of, parts))


X, J = scalar(F32), scalar(I64)
# kind, operand types, attributes, hint, regions, results
GOOD: list[tuple[str, list[Type], dict[str, Any], list[Type], list[Region], list[Type]]] = [
    ("const", [], {"value": 1}, [scalar(NUM)], [], [scalar(NUM)]),
    ("const", [], {"value": 1.5}, [scalar(T)], [], [scalar(T)]),
    ("const", [], {"value": True}, [BOOL], [], [BOOL]),
    ("dim", [], {"dim": Dim.of(N)}, [scalar(T)], [], [scalar(T)]),
    ("iota", [], {}, [tensor(I32, N)], [], [tensor(I32, N)]),
    ("cast", [tensor(T, S, N)], {}, [tensor(B, S, N)], [], [tensor(B, S, N)]),
    *[(k, [tensor(T, S)], {}, [], [], [tensor(T, S)])
      for k in ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor")],
    ("not", [tensor(B, N)], {}, [], [], [tensor(B, N)]),
    *[(k, [tensor(NUM, N)] * 2, {}, [], [], [tensor(NUM, N)])
      for k in ("add", "sub", "mul", "div", "rem", "min", "max")],
    *[(k, [tensor(B, N)] * 2, {}, [], [], [tensor(B, N)]) for k in ("and", "or", "xor")],
    *[(k, [tensor(U8, N)] * 2, {}, [], [], [tensor(U8, N)]) for k in ("shl", "shr", "and")],
    *[(k, [tensor(T, N)] * 2, {}, [], [], [tensor(B, N)])
      for k in ("eq", "ne", "lt", "le", "gt", "ge")],
    ("eq", [MODE, MODE], {}, [], [], [BOOL]),
    ("select", [tensor(B, N), tensor(T, N), tensor(T, N)], {}, [], [], [tensor(T, N)]),
    ("broadcast", [tensor(T, S, 1)], {"axes": (1, 2)}, [tensor(T, 2, S, N)], [],
     [tensor(T, 2, S, N)]),
    ("reshape", [tensor(T, S, N, M)], {}, [tensor(T, Dim.of(S.count) * M, N)], [],
     [tensor(T, Dim.of(S.count) * M, N)]),
    ("permute", [tensor(T, S, N, M)], {"order": (2, 0, 1)}, [], [], [tensor(T, M, S, N)]),
    ("concat", [tensor(T, S, N), tensor(T, S, M)], {"axis": 1}, [], [],
     [tensor(T, S, Dim.of(N) + M)]),
    ("slice", [tensor(T, S, N)], {"bounds": (None, dims(0, N, 2))}, [], [],
     [tensor(T, S, floordiv(Dim.of(N) + 1, 2))]),
    ("slice", [tensor(T, N)], {"bounds": (dims(1, N, 1),)}, [], [], [tensor(T, Dim.of(N) - 1)]),
    ("gather", [tensor(T, S, N, M), tensor(I32, K, S)],
     {"source": (("axis", 1), ("index", 0), ("axis", 2)), "index_axes": ((0, 1),)}, [], [],
     [tensor(T, K, S, M)]),
    ("gather", [tensor(T, N, N)], {"source": (("axis", 0),) * 2, "index_axes": ()}, [], [],
     [tensor(T, N)]),
    ("reduce", [tensor(T, S, N)], {"op": "sum", "axes": (0,)}, [], [], [tensor(T, N)]),
    ("reduce", [tensor(B, S, N)], {"op": "any", "axes": (0, 1)}, [], [], [BOOL]),
    ("contract", [tensor(T, S, N), tensor(T, M, N)], {"inputs": ((5, 0), (1, 0)), "output": (5, 1)},
     [], [], [tensor(T, S, M)]),
    ("cumsum", [tensor(T, S, N)], {"axis": 1}, [], [], [tensor(T, S, N)]),
    ("tuple", [scalar(I32), X], {}, [], [], [PAIR]),
    ("tuple_get", [PAIR], {"index": 1}, [], [], [X]),
    ("struct", [scalar(I32), X], {}, [POINT], [], [POINT]),
    ("struct_get", [POINT], {"field": "y"}, [], [], [X]),
    ("some", [X], {}, [], [], [OptionalType(X)]),
    ("none", [], {}, [OptionalType(X)], [], [OptionalType(X)]),
    ("enum", [], {"case": 1}, [MODE], [], [MODE]),
    ("if", [BOOL], {}, [], [region([], [X, J])] * 2, [X, J]),
    ("match_optional", [OptionalType(J)], {}, [], [region([J], [X]), region([], [X])], [X]),
    ("match_enum", [MODE], {"cases": ((0,), (1,))}, [], [region([], [X])] * 2, [X]),
    ("match_sub", [], {"ref": SELF.child("bias")}, [], [region([], [])] * 2, []),
    ("while", [X, J], {}, [], [region([X, J], [BOOL]), region([X, J], [X, J])], [X, J]),
    ("for", [J, J, X], {"yields": 1}, [X, tensor(B, N, M)],
     [region([J, X], [X, tensor(B, M)])], [X, tensor(B, N, M)]),
    ("for", [J, J, X], {"yields": 0}, [], [region([J, X], [X])], [X]),
    ("static_for", [X], {"start": Dim.of(0), "stop": Dim.of(N)}, [], [region([J, X], [X])], [X]),
    ("for_subs", [X], LOOP, [], [region([X], [X])], [X]),
    ("param", [], {"ref": SELF.child("w")}, [tensor(T, N)], [], [tensor(T, N)]),
    ("state_read", [], {"ref": SELF.child("s")}, [tensor(T, N)], [], [tensor(T, N)]),
    ("state_write", [tensor(T, N)], {"ref": SELF.child("s")}, [], [], []),
    ("call", [X], {"callee": "f", "generics": (), "receiver": None}, [X], [], [X]),
    ("native", [X], {"kernel": "k", "origin": "o"}, [X], [], [X]),
]  # fmt: skip


def test_every_row_has_a_rule_and_a_case() -> None:
    assert set(RULES) == set(OPS) == {case[0] for case in GOOD}


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case[0])
def test_infers(case: Any) -> None:
    kind, operands, attrs, hint, regions, results = case
    assert infer(kind, operands, attrs, hint, regions=regions) == tuple(results)


BAD: list[tuple[str, list[Type], dict[str, Any], list[Type], list[Region], str]] = [
    ("twist", [], {}, [], [], "there is no operation"),
    ("neg", [X, X], {}, [], [], "2 operands instead of 1"),
    ("cumsum", [tensor(T, N)], {}, [], [], "`axis` is missing"),
    ("const", [], {"value": 1.5}, [scalar(NUM)], [], "takes float dtypes, not A"),
    ("const", [], {"value": 1}, [BOOL], [], "takes numeric dtypes"),
    ("const", [], {"value": "x"}, [X], [], "is not a scalar"),
    ("const", [], {"value": 1}, [tensor(F32, N)], [], "gives a scalar"),
    ("const", [], {"value": 1}, [], [], "has to be given"),
    ("dim", [], {"dim": 3}, [X], [], "one dimension"),
    ("iota", [], {}, [tensor(F32, N)], [], "takes integer dtypes"),
    ("iota", [], {}, [tensor(I32, S)], [], "the pack"),
    ("cast", [tensor(T, N)], {}, [tensor(F32, M)], [], "keeps the shape"),
    ("exp", [tensor(NUM, N)], {}, [], [], "takes float dtypes, not A"),
    ("not", [X], {}, [], [], "takes bool"),
    ("neg", [PAIR], {}, [], [], "not a tensor"),
    ("add", [tensor(T, N), tensor(T, M)], {}, [], [], "operands of one type"),
    ("add", [tensor(T, N), tensor(F32, N)], {}, [], [], "operands of one type"),
    ("add", [tensor(T, S), tensor(T, fresh_pack("S"))], {}, [], [], "operands of one type"),
    ("shl", [X, X], {}, [], [], "takes integer dtypes"),
    ("and", [X, X], {}, [], [], "takes integer or bool dtypes"),
    ("lt", [BOOL, BOOL], {}, [], [], "takes numeric"),
    ("eq", [MODE, EnumType("m::O", "O", ())], {}, [], [], "takes one enum"),
    ("select", [BOOL, tensor(T, N), tensor(T, N)], {}, [], [], "a condition of the shape"),
    ("broadcast", [tensor(T, M)], {"axes": (0,)}, [tensor(T, N)], [], "does not repeat"),
    ("broadcast", [tensor(T, 1)], {"axes": (0,)}, [tensor(T, S)], [], "does not repeat"),
    ("broadcast", [tensor(T, N, M)], {"axes": (1, 0)}, [tensor(T, M, N)], [], "does not place"),
    ("broadcast", [tensor(T, N)], {"axes": (2,)}, [tensor(T, N)], [], "is not one of 1"),
    ("broadcast", [tensor(T, N)], {"axes": (0,)}, [tensor(F32, N)], [], "keeps the dtype"),
    ("reshape", [tensor(T, N)], {}, [tensor(T, M)], [], "as many elements"),
    ("permute", [tensor(T, N, M)], {"order": (0, 0)}, [], [], "is not an order"),
    ("concat", [], {"axis": 0}, [], [], "at least one"),
    ("concat", [tensor(T, S), tensor(T, S)], {"axis": 0}, [], [], "the pack"),
    ("concat", [tensor(T, N, M), tensor(T, N, K)], {"axis": 0}, [], [], "does not fit beside"),
    ("slice", [tensor(T, S)], {"bounds": (dims(0, 1, 1),)}, [], [], "the pack"),
    ("slice", [tensor(T, N)], {"bounds": ((0, 1, 1),)}, [], [], "not \\(start, stop, step\\)"),
    ("slice", [tensor(T, N)], {"bounds": ()}, [], [], "one entry for each"),
    ("gather", [tensor(T, N), X], {"source": (("index", 0),), "index_axes": ((),)}, [], [],
     "takes integer"),
    ("gather", [tensor(T, N)], {"source": (("axis", 1),), "index_axes": ()}, [], [], "nowhere"),
    ("gather", [tensor(T, N, M)], {"source": (("axis", 0),) * 2, "index_axes": ()}, [], [],
     "item 0 has extents N and M"),
    ("gather", [tensor(T, S), J], {"source": (("index", 0),), "index_axes": ((),)}, [], [],
     "`source` has no"),
    ("reduce", [X], {"op": "mean", "axes": ()}, [], [], "no reduction"),
    ("reduce", [tensor(T, N)], {"op": "sum", "axes": (0, 0)}, [], [], "twice"),
    ("reduce", [tensor(B, N)], {"op": "sum", "axes": (0,)}, [], [], "takes numeric"),
    ("reduce", [tensor(T, N)], {"op": "any", "axes": (0,)}, [], [], "takes bool"),
    ("contract", [tensor(T, N), tensor(T, M)], {"inputs": ((0,), (0,)), "output": ()}, [], [],
     "extents N and M"),
    ("contract", [tensor(T, N, N), X], {"inputs": ((0, 0), ()), "output": ()}, [], [], "one dtype"),
    ("contract", [tensor(F32, N), X], {"inputs": ((0,), ()), "output": (1,)}, [], [], "not among"),
    ("cumsum", [tensor(T, S, N)], {"axis": 0}, [], [], "the pack"),
    ("tuple_get", [PAIR], {"index": 2}, [], [], "is not one of 2"),
    ("struct", [X, X], {}, [POINT], [], "field `x` is i32"),
    ("struct_get", [POINT], {"field": "z"}, [], [], "no field `z`"),
    ("none", [], {}, [X], [], "gives an optional"),
    ("enum", [], {"case": 2}, [MODE], [], "is not one of 2"),
    ("if", [J], {}, [], [region([], [X])] * 2, "the conditions"),
    ("if", [BOOL], {}, [], [region([], [X]), region([], [J])], "a branch's results"),
    ("if", [BOOL], {}, [], [], "0 regions instead of 2"),
    ("match_optional", [X], {}, [], [region([], [X])] * 2, "takes an optional"),
    ("match_enum", [MODE], {"cases": ((0,),)}, [], [region([], [X])], "each of Mode's once"),
    ("while", [X], {}, [], [region([X], [X]), region([X], [X])], "the condition's results"),
    ("while", [X], {}, [], [region([X], [BOOL]), region([X], [J])], "the loop's results"),
    ("for", [J], {"yields": 0}, [], [region([J], [])], "the first and the past"),
    ("for", [X, X], {"yields": 0}, [], [region([X], [])], "takes integer"),
    ("for", [J, J, X], {"yields": 1}, [], [region([J, X], [X])], "1 carried, yields 1"),
    ("for", [J, J], {"yields": 1}, [], [region([J], [X])], "have to be given"),
    ("for", [J, J], {"yields": 1}, [tensor(I64, N)], [region([J], [X])], "does not stack"),
    ("static_for", [], {"start": 0, "stop": 1}, [], [region([J], [])], "are dimensions"),
    ("for_subs", [X], {**LOOP, "var": "x"}, [], [region([X], [X])], "names no block"),
    ("param", [], {"ref": "w"}, [X], [], "not a reference"),
    ("call", [], {"callee": "f", "generics": (), "receiver": 3}, [], [], "not a reference"),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case[0]}-{case[-1]}")
def test_refuses(case: Any) -> None:
    kind, operands, attrs, hint, regions, message = case
    with pytest.raises(InternalError, match=message):
        infer(kind, operands, attrs, hint, regions=regions)


def test_facts_decide_equality() -> None:
    facts = Facts((Relation(Dim.of(N), "==", Dim.of(M)),))
    given = [tensor(F32, N), tensor(F32, M)]
    assert infer("add", given, equal=facts.proves_equal) == (given[0],)
    assert same_type(OptionalType(given[0]), OptionalType(given[1]), facts.proves_equal)
    assert not same_type(*given)
    assert not same_type(tensor(F32, N), tensor(BF16, N), facts.proves_equal)
    assert isinstance(LOOP["array"], Ref)
