"""Facts about masks against the masks themselves, element by element."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim, Symbol, fresh_symbol
from linnet.ir import Function, Generic, Param, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.ir.semantics import Call
from linnet.ir.verify import verify
from linnet.ir.walk import walk
from linnet.passes.drop import drop
from linnet.passes.masks import AtMost, Bound, MaskFact, Ordered, Same, mask_facts
from linnet.passes.module import Module
from linnet.passes.natives import NativeChoice, NativeQuery, natives
from linnet.types import DType, OptionalType, TensorType, scalar

Q, K = fresh_symbol("Q"), fresh_symbol("K")
GENERICS = (Generic("Q", "Dim", Q), Generic("K", "Dim", K))
PARAMS = {
    "pos": scalar(DType.I32),
    "at": TensorType((Dim.of(Q),), DType.I32),
    "ids": TensorType((Dim.of(Q),), DType.I32),
    "keys": TensorType((Dim.of(K),), DType.I32),
}
SHAPE = (Dim.of(Q), Dim.of(K))


class MaskWriter:
    """Random masks `[Q, K]` of the kinds models write, with views on the way."""

    def __init__(self, rng: random.Random, params: tuple[Param, ...]) -> None:
        self.rng, self.b = rng, Builder()
        self.values = {p.name: p.value for p in params}

    def whole(self, value: Value, axis: int | None) -> Value:
        """An `[n]` or scalar value over the mask's shape, by a route or another."""
        type_ = value.type
        assert isinstance(type_, TensorType)
        to = type_.with_shape(SHAPE)
        if axis is None:
            return self.b.broadcast(value, [], to)
        if self.rng.random() < 0.3:
            turned = self.b.broadcast(value, [1 - axis], type_.with_shape(SHAPE[::-1]))
            return self.b.emit("permute", [turned], {"order": (1, 0)})
        if self.rng.random() < 0.4:
            ones = tuple(SHAPE[k] if k == axis else Dim.of(1) for k in range(2))
            up = self.b.emit("reshape", [value], type=type_.with_shape(ones))
            return self.b.emit("broadcast", [up], {"axes": (0, 1)}, type=to)
        return self.b.broadcast(value, [axis], to)

    def iota(self, axis: int, dtype: DType) -> Value:
        made = self.b.emit("iota", type=TensorType((SHAPE[axis],), DType.I64))
        return self.whole(self.b.cast(made, dtype), axis)

    def number(self, dtype: DType) -> Value:
        if self.rng.random() < 0.5:
            return self.whole(self.b.const(self.rng.randint(-2, 2), dtype), None)
        return self.whole(self.b.dim(Dim.of(self.rng.choice((Q, K))), dtype), None)

    def given(self, dtype: DType) -> tuple[str, Value]:
        name = self.rng.choice(list(PARAMS))
        axis = {"pos": None, "at": 0, "ids": 0, "keys": 1}[name]
        return name, self.b.cast(self.whole(self.values[name], axis), dtype)

    def side(self, dtype: DType) -> Value:
        parts = [self.rng.choice((self.iota_any, self.value_any, self.number))(dtype)
                 for _ in range(self.rng.randint(1, 3))]  # fmt: skip
        total = parts[0]
        for part in parts[1:]:
            total = self.b.emit(self.rng.choice(("add", "add", "sub")), [total, part])
        return total

    def iota_any(self, dtype: DType) -> Value:
        return self.iota(self.rng.randrange(2), dtype)

    def value_any(self, dtype: DType) -> Value:
        return self.given(dtype)[1]

    def atom(self) -> Value:
        dtype = self.rng.choice((DType.I32, DType.I64))
        kind = self.rng.choice(("le", "le", "lt", "ge", "gt", "eq"))
        if kind == "eq":
            return self.b.emit("eq", [self.value_any(dtype), self.value_any(dtype)])
        return self.b.emit(kind, [self.iota(1, dtype), self.side(dtype)])

    def mask(self) -> Value:
        found = self.atom()
        while self.rng.random() < 0.4:
            found = self.b.emit("and", [found, self.atom()])
        return found


def random_mask(seed: int) -> Function:
    params = tuple(Param(name, Value(type_, name)) for name, type_ in PARAMS.items())
    writer = MaskWriter(random.Random(seed), params)
    body = writer.b.finish([writer.mask()])
    return Function("m::mask", "fn", None, GENERICS, params, (), body)


def holds(
    atom: Any, at: tuple[int, int], values: dict[Value, Any], sizes: dict[Symbol, int]
) -> bool:
    def of(bound: Bound) -> int:
        array = np.asarray(values[bound.value])
        return int(array[tuple(0 if a is None else at[a] for a in bound.axes)])

    if isinstance(atom, AtMost):
        limit = 0 if atom.query is None else at[atom.query]
        limit += 0 if atom.bound is None else of(atom.bound)
        return at[atom.key] <= limit + atom.offset.evaluate(sizes)
    if isinstance(atom, Ordered):
        return of(atom.left) <= of(atom.right) + atom.offset.evaluate(sizes)
    assert isinstance(atom, Same)
    return of(atom.left) == of(atom.right)


def facts_of(function: Function) -> MaskFact | None:
    module = Module({function.name: function}, {"e": function.name}, {})
    return mask_facts(module)[function.name].get(function.body.results[0])


def test_facts_say_where_a_mask_is_true() -> None:
    known = 0
    for seed in range(300):
        function = random_mask(seed)
        verify(function, {function.name: function})
        fact = facts_of(function)
        if fact is None:
            continue
        known += 1
        rng = np.random.default_rng(seed)
        for q, k in ((1, 1), (2, 3), (3, 2)):
            draw = {"pos": rng.integers(-1, 4, ()), "at": rng.integers(-1, 4, q),
                    "ids": rng.integers(0, 2, q), "keys": rng.integers(0, 3, k)}  # fmt: skip
            inputs = [np.array(draw[name], np.int32) for name in PARAMS]
            sizes = {"Q": q, "K": k}
            mask = Evaluator({function.name: function}).run(function.name, inputs, sizes)
            values = dict(zip((p.value for p in function.params), inputs, strict=True))
            for at in itertools.product(range(q), range(k)):
                want = all(holds(a, at, values, {Q: q, K: k}) for a in fact.atoms)
                assert bool(mask[at]) == want, f"random_mask({seed}) at {at}"
    assert known > 60, known


def _function(name: str, generics: Any, params: Any, build: Any) -> Function:
    b = Builder()
    made = tuple(Param(n, Value(t, n)) for n, t in params.items())
    result = build(b, *(p.value for p in made))
    return Function(name, "op", None, generics, made, (), b.finish([result]))


def _causal(q: Symbol, k: Symbol) -> Function:
    def build(b: Builder) -> Value:
        shape = (Dim.of(q), Dim.of(k))
        whole = TensorType(shape, DType.I64)
        rows = b.broadcast(b.emit("iota", type=TensorType(shape[:1], DType.I64)), [0], whole)
        keys = b.broadcast(b.emit("iota", type=TensorType(shape[1:], DType.I64)), [1], whole)
        ahead = b.broadcast(b.dim(Dim.of(k) - Dim.of(q), DType.I64), [], whole)
        return b.emit("le", [keys, b.emit("add", [rows, ahead])])

    generics = (Generic("Q", "Dim", q), Generic("K", "Dim", k))
    return _function("m::causal", generics, {}, build)


def test_a_causal_mask_through_a_call_in_the_callers_sizes() -> None:
    s = fresh_symbol("S")
    causal = _causal(fresh_symbol("Q"), fresh_symbol("K"))

    def build(b: Builder) -> Value:
        attrs = {"callee": "m::causal", "generics": (Dim.of(s), Dim.of(s)), "receiver": None}
        shape = TensorType((Dim.of(s), Dim.of(s)), DType.BOOL)
        mask = b.emit("call", [], attrs, type=shape)
        return b.emit("some", [mask], type=OptionalType(shape))

    caller = _function("m::caller", (Generic("S", "Dim", s),), {}, build)
    module = Module({"m::causal": causal, "m::caller": caller}, {"e": "m::caller"}, {})
    fact = mask_facts(module)["m::caller"][caller.body.results[0]]
    assert fact.atoms == (AtMost(1, 0, None, Dim.of(0)),) and fact.single is not None


@pytest.mark.parametrize("agree", [True, False])
def test_facts_of_parameters_need_every_call_to_agree(agree: bool) -> None:
    """A mask and its bound both handed on: the callee knows the mask by its own parameter."""
    s = fresh_symbol("S")
    mask_type = TensorType((Dim.of(s),), DType.BOOL)
    inner_params = {"mask": mask_type, "pos": scalar(DType.I32)}
    inner = _function(
        "m::inner", (Generic("S", "Dim", s),), inner_params, lambda b, mask, pos: mask
    )
    n = fresh_symbol("N")

    def build(b: Builder, pos: Value, other: Value, outside: Value) -> Value:
        row = TensorType((Dim.of(n),), DType.I32)
        kinds = [pos, pos if agree else other]
        masks = []
        for bound in kinds:
            seen = b.emit("le", [b.emit("iota", type=row), b.broadcast(bound, [], row)])
            attrs = {"callee": "m::inner", "generics": (Dim.of(n),), "receiver": None}
            masks.append(b.emit("call", [seen, pos], attrs, type=row.with_dtype(DType.BOOL)))
        return b.emit("and", masks)

    params = {"pos": scalar(DType.I32), "other": scalar(DType.I32), "outside": mask_type}
    outer = _function("m::outer", (Generic("N", "Dim", n), Generic("S", "Dim", s)), params, build)
    module = Module({"m::inner": inner, "m::outer": outer}, {"e": "m::outer"}, {})
    fact = mask_facts(module)["m::inner"].get(inner.params[0].value)
    if agree:
        bound = Bound(inner.params[1].value, ())
        assert fact == MaskFact((AtMost(0, None, bound, Dim.of(0)),))
    else:
        assert fact is None


def test_a_mask_from_outside_has_no_fact() -> None:
    mask = {"mask": TensorType((Dim.of(3),), DType.BOOL)}
    function = _function("m::f", (), mask, lambda b, m: b.emit("and", [m, m]))
    assert facts_of(function) is None


def _masked_program(outside: bool) -> dict[str, Function]:
    """`outer` makes a mask, hands it to `middle` (not its bound), which hands it to an op."""
    n = fresh_symbol("N")
    generics = (Generic("N", "Dim", n),)
    row = TensorType((Dim.of(n),), DType.I32)
    mask, data = row.with_dtype(DType.BOOL), row.with_dtype(DType.F32)

    def attend(b: Builder, x: Value, seen: Value) -> Value:
        zero = b.broadcast(b.const(0.0, DType.F32), [], data)
        return b.emit("select", [seen, x, zero])

    def middle(b: Builder, x: Value, seen: Value) -> Value:
        attrs = {"callee": "m::attend", "generics": (Dim.of(n),), "receiver": None}
        return b.emit("call", [x, seen], attrs, type=data)

    def outer(b: Builder, x: Value, pos: Value, given: Value) -> Value:
        after = b.emit("add", [pos, b.const(1, DType.I32)])
        seen = b.emit("lt", [b.emit("iota", type=row), b.broadcast(after, [], row)])
        attrs = {"callee": "m::middle", "generics": (Dim.of(n),), "receiver": None}
        first = b.emit("call", [x, seen], attrs, type=data)
        return b.emit("call", [first, given if outside else seen], attrs, type=data)

    params = {"x": data, "pos": scalar(DType.I32), "given": mask}
    made = [
        _function("m::attend", generics, {"x": data, "seen": mask}, attend),
        replace(_function("m::middle", generics, {"x": data, "seen": mask}, middle), kind="fn"),
        replace(_function("m::outer", generics, params, outer), kind="entry"),
    ]
    return {function.name: function for function in made}


def _prefix(query: NativeQuery) -> NativeChoice | None:
    fact = query.facts.get(1)
    if fact is None or fact.single is None or fact.single.bound is None:
        return None
    return NativeChoice("prefix", (query.call.operands[0], fact.single.bound.value))


def _prefix_meaning(call: Call) -> Any:
    x, pos = call.operands
    return np.where(np.arange(len(x)) <= pos, x, 0).astype(np.float32)


@pytest.mark.parametrize("outside", [False, True])
def test_bounds_go_along_with_masks(outside: bool) -> None:
    functions = _masked_program(outside)
    module = Module(functions, {"outer": "m::outer"}, {name: name for name in functions})
    after = drop(natives(module, _prefix))
    for function in after.functions.values():
        verify(function, after.functions)
    kinds = [op.kind for op in walk(after.functions["m::middle"])]
    assert kinds == (["call"] if outside else ["native"])
    names = [p.name for p in after.functions["m::middle"].params]
    assert names == (["x", "seen"] if outside else ["x", "pos"])
    x = np.arange(1, 6, dtype=np.float32)
    inputs = [x, np.int32(2), np.array([True, False, True, False, True])]
    natives_ = {"prefix": _prefix_meaning}
    results = [
        Evaluator(f, natives=natives_).run("m::outer", inputs) for f in (functions, after.functions)
    ]
    np.testing.assert_array_equal(*results)


def test_an_entrys_parameters_are_anyones() -> None:
    """Calls from inside may agree; what a user passes is not known."""
    functions = _masked_program(False)
    module = Module(
        functions, {"outer": "m::outer", "middle": "m::middle"}, {n: n for n in functions}
    )
    assert not mask_facts(module)["m::middle"]
