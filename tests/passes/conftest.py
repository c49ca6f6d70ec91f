"""A small decoder in hand-made IR: packs, dtype variables, optionals, child arrays, state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from linnet.dims import Dim, Relation, Symbol, fresh_symbol
from linnet.ir import (
    Block,
    Function,
    Generic,
    Member,
    Op,
    Param,
    Program,
    Ref,
    Sub,
    SubVar,
    Value,
)
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.types import (
    DType,
    DTypeVar,
    OptionalType,
    PackVar,
    TensorType,
    TupleType,
    Type,
    fresh_dtype_var,
    fresh_pack,
    scalar,
)


def dim(symbol: Symbol | int) -> Dim:
    return Dim.of(symbol)


def tensor(dtype: DType | DTypeVar, *shape: Dim | Symbol | int | PackVar) -> TensorType:
    return TensorType(
        tuple(item if isinstance(item, PackVar) else Dim.of(item) for item in shape), dtype
    )


def generic(var: Symbol | PackVar | DTypeVar, default: Any = None) -> Generic:
    kind = "Dim" if isinstance(var, Symbol) else "Shape" if isinstance(var, PackVar) else var.kind
    return Generic(var.name, kind, var, default)


@dataclass
class Maker:
    """Collects functions; `fn` gives a builder and the parameters' values."""

    functions: dict[str, Function] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)

    def params(self, **types: Type) -> tuple[Param, ...]:
        return tuple(Param(name, Value(type_, name)) for name, type_ in types.items())

    def add(
        self,
        name: str,
        kind: Any,
        generics: Sequence[Generic],
        params: Sequence[Param],
        builder: Builder,
        results: Sequence[Value],
        block: str | None = None,
        where: Sequence[Relation] = (),
    ) -> Function:
        body = builder.finish(results, [p.value for p in params])
        function = Function(name, kind, block, tuple(generics), tuple(params), tuple(where), body)
        self.functions[name] = function
        return function

    def program(self) -> Program:
        return Program("m", self.functions, self.blocks)


def call(
    b: Builder,
    callee: str,
    generics: Sequence[Any],
    operands: Sequence[Value],
    type_: Type,
    receiver: Ref | None = None,
    name: str = "",
) -> Value:
    attrs = {"callee": callee, "generics": tuple(generics), "receiver": receiver}
    return b.emit("call", operands, attrs, type=type_, name=name)


SELF = Ref(None, ())


def _linear(m: Maker) -> None:
    s, i, o, t = fresh_pack("S"), fresh_symbol("In"), fresh_symbol("Out"), _float("T")
    params = m.params(x=tensor(t, s, i), weight=tensor(t, o, i), bias=OptionalType(tensor(t, o)))
    x, w, bias = (p.value for p in params)
    b, out = Builder(), tensor(t, s, o)
    product = b.emit(
        "contract", [x, w], {"inputs": ((0, 1), (2, 1)), "output": (0, 2)}, type=out, name="y"
    )
    held = Value(tensor(t, o), "held")
    with b.region([held]) as some:
        some.give(b.emit("add", [product, b.broadcast(held, [1], out)]))
    with b.region() as none:
        none.give(product)
    result = b.emit("match_optional", [bias], type=out, regions=[some.region, none.region])
    m.add("m::linear", "op", map(generic, (s, i, o, t)), params, b, [result])  # type: ignore[arg-type]


def _linear_block(m: Maker) -> None:
    i, o, t, s = fresh_symbol("In"), fresh_symbol("Out"), _float("T"), fresh_pack("S")
    block = [generic(i), generic(o), generic(t)]
    m.blocks["m::Linear"] = Block(
        "m::Linear",
        tuple(block),
        (),
        {
            "weight": Member("param", "weight", tensor(t, o, i), False),
            "bias": Member("param", "bias", tensor(t, o), True),
        },
        {},
        {"forward": "m::Linear.forward"},
    )
    params = m.params(x=tensor(t, s, i))
    b = Builder()
    w = b.emit("param", [], {"ref": SELF.child("weight")}, type=tensor(t, o, i), name="weight")
    bias = b.emit(
        "param", [], {"ref": SELF.child("bias")}, type=OptionalType(tensor(t, o)), name="bias"
    )
    args = ((s,), dim(i), dim(o), t)
    y = call(b, "m::linear", args, [params[0].value, w, bias], tensor(t, s, o))
    m.add("m::Linear.forward", "fn", [*block, generic(s)], params, b, [y], "m::Linear")


def _float(name: str) -> DTypeVar:
    return fresh_dtype_var(name, "Float")


def _tables(m: Maker) -> None:
    s, d, t = fresh_symbol("S"), fresh_symbol("D"), _float("T")
    params = m.params(theta=scalar(DType.F32))
    b, f32 = Builder(), DType.F32
    freq = b.cast(b.emit("iota", type=tensor(DType.I64, d)), f32)
    scaled = b.emit("div", [freq, b.broadcast(params[0].value, [], tensor(f32, d))])
    decay = b.emit("exp", [b.emit("neg", [scaled])], name="inv_freq")
    steps = b.cast(b.emit("iota", type=tensor(DType.I64, s)), f32)
    whole = tensor(f32, s, d)
    angles = b.emit(
        "mul", [b.broadcast(steps, [0], whole), b.broadcast(decay, [1], whole)], name="angles"
    )
    pair = b.emit("tuple", [b.cast(b.emit(k, [angles]), t) for k in ("cos", "sin")],
                  type=TupleType((tensor(t, s, d),) * 2))  # fmt: skip
    m.add("m::tables", "fn", [generic(s), generic(d), generic(t)], params, b, [pair])


def _write_at(m: Maker) -> None:
    s, h, t = fresh_symbol("S"), fresh_symbol("H"), _float("T")
    whole = tensor(t, s, h)
    params = m.params(cache=whole, value=tensor(t, 1, h), at=scalar(DType.I32))
    cache, value, at = (p.value for p in params)
    b = Builder()
    places = b.emit("iota", type=tensor(DType.I32, s))
    here = b.emit("eq", [places, b.broadcast(at, [], tensor(DType.I32, s))])
    mask = b.broadcast(here, [0], tensor(DType.BOOL, s, h))
    result = b.emit("select", [mask, b.broadcast(value, [0, 1], whole), cache])
    m.add("m::write_at", "op", [generic(s), generic(h), generic(t)], params, b, [result])


def _swap(m: Maker) -> None:
    """A small helper, inlined: `x [S, H] -> [H, S] -> [S, H]`."""
    s, h, t = fresh_symbol("S"), fresh_symbol("H"), _float("T")
    params = m.params(x=tensor(t, s, h))
    b = Builder()
    once = b.emit("permute", [params[0].value], {"order": (1, 0)})
    m.add("m::swap", "fn", [generic(s), generic(h), generic(t)], params, b, [once])


def _layer(m: Maker) -> None:
    h, top, t = fresh_symbol("H"), fresh_symbol("MaxSeq"), _float("T")
    block = [generic(h), generic(top), generic(t)]
    m.blocks["m::Layer"] = Block(
        "m::Layer",
        tuple(block),
        (Relation(dim(top), ">", dim(0)),),
        {
            "rate": Member("param", "rate", tensor(t, h), False),
            "cache": Member("state", "cache", tensor(t, top, h), False),
        },
        {
            "proj": Sub("proj", "m::Linear", (dim(h), dim(h), t), None, False),
            "extra": Sub("extra", "m::Linear", (dim(h), dim(h), t), None, True),
        },
        {"decode": "m::Layer.decode", "forward": "m::Layer.forward"},
    )
    _layer_decode(m, block, h, top, t)
    _layer_forward(m, block, h, t)


def _turned(
    b: Builder, x: Value, row: Value, type_: TensorType, s: Dim, h: Symbol, t: DTypeVar
) -> Value:
    """`proj(x) * row`, then `extra` on top where it is there."""
    args = (dim(h), dim(h), t, (s,))
    proj = call(b, "m::Linear.forward", args, [x], type_, Ref(None, ("proj",)), name="projected")
    y = b.emit("mul", [proj, row], name="turned")
    with b.region() as there:
        more = call(b, "m::Linear.forward", args, [y], type_, Ref(None, ("extra",)))
        there.give(b.emit("add", [y, more]))
    with b.region() as absent:
        absent.give(y)
    return b.emit(
        "match_sub", [], {"ref": SELF.child("extra")}, type=type_,
        regions=[there.region, absent.region],
    )  # fmt: skip


def _table_rows(b: Builder, s: Dim, h: Symbol, t: DTypeVar) -> Value:
    theta = b.const(100.0, DType.F32)
    pair = TupleType((TensorType((s, dim(h)), t),) * 2)
    both = call(b, "m::tables", (s, dim(h), t), [theta], pair)
    return b.emit("tuple_get", [both], {"index": 0}, name="cos_table")


def _layer_decode(m: Maker, block: list[Generic], h: Symbol, top: Symbol, t: DTypeVar) -> None:
    params = m.params(x=tensor(t, 1, h), pos=scalar(DType.I32))
    x, pos = (p.value for p in params)
    b, cache = Builder(), SELF.child("cache")
    table = _table_rows(b, dim(top), h, t)
    at = b.cast(pos, DType.I64)
    source = {"source": (("index", 0), ("axis", 0)), "index_axes": ((),)}
    row = b.emit("gather", [table, at], source, name="cos_at")
    row = b.emit("reshape", [row], type=tensor(t, 1, h), name="cos_row")
    y = _turned(b, x, row, tensor(t, 1, h), dim(1), h, t)
    old = b.emit("state_read", [], {"ref": cache}, type=tensor(t, top, h), name="cache")
    new = call(b, "m::write_at", (dim(top), dim(h), t), [old, y, pos], tensor(t, top, h))
    b.emit_many("state_write", [new], {"ref": cache}, types=())
    places = b.emit("iota", type=tensor(DType.I32, top), name="positions")
    seen = b.emit("le", [places, b.broadcast(pos, [], tensor(DType.I32, top))], name="seen")
    read = b.emit("state_read", [], {"ref": cache}, type=tensor(t, top, h), name="cache")
    zero = b.broadcast(b.const(0.0, t), [], tensor(t, top, h))
    kept = b.emit(
        "select", [b.broadcast(seen, [0], tensor(DType.BOOL, top, h)), read, zero], name="kept"
    )
    total = b.emit("reduce", [kept], {"op": "sum", "axes": (0,)}, name="total")
    rate = b.emit("param", [], {"ref": SELF.child("rate")}, type=tensor(t, h), name="rate")
    scaled = b.emit("mul", [total, b.emit("exp", [rate])])
    result = b.emit("add", [x, b.emit("reshape", [scaled], type=tensor(t, 1, h))])
    m.add("m::Layer.decode", "fn", block, params, b, [result], "m::Layer")


def _layer_forward(m: Maker, block: list[Generic], h: Symbol, t: DTypeVar) -> None:
    s = fresh_symbol("S")
    params = m.params(x=tensor(t, s, h))
    x = params[0].value
    b = Builder()
    table = _table_rows(b, dim(s), h, t)
    y = _turned(b, x, table, tensor(t, s, h), dim(s), h, t)
    turned = call(b, "m::swap", (dim(s), dim(h), t), [y], tensor(t, h, s))
    back = call(b, "m::swap", (dim(h), dim(s), t), [turned], tensor(t, s, h))
    result = b.emit("add", [x, back])
    m.add("m::Layer.forward", "fn", [*block, generic(s)], params, b, [result], "m::Layer")


def _model(m: Maker) -> None:
    h, n, top, t = (fresh_symbol("H"), fresh_symbol("Layers"), fresh_symbol("MaxSeq"), _float("T"))
    block = [generic(h), generic(n), generic(top), generic(t, DType.F32)]
    args = (dim(h), dim(top), t)
    m.blocks["m::Model"] = Block(
        "m::Model",
        tuple(block),
        (Relation(dim(top), ">", dim(0)), Relation(dim(h), "<=", dim(1024))),
        {},
        {"layers": Sub("layers", "m::Layer", args, dim(n), False)},
        {"decode": "m::Model.decode", "forward": "m::Model.forward"},
    )
    params = m.params(x=tensor(t, 1, h), pos=scalar(DType.I32))
    b = Builder()
    x = _loop(b, "m::Layer.decode", args, params[0].value, [params[1].value])
    m.add("m::Model.decode", "entry", block, params, b, [x], "m::Model")
    s = fresh_symbol("S")
    params = m.params(x=tensor(t, s, h))
    x = _loop(b, "m::Layer.forward", (*args, dim(s)), params[0].value, [])
    m.add("m::Model.forward", "entry", [*block, generic(s)], params, b, [x], "m::Model",
          [Relation(dim(s), ">", dim(0))])  # fmt: skip


def _loop(b: Builder, callee: str, args: Sequence[Any], x: Value, rest: Sequence[Value]) -> Value:
    var, carried = SubVar("layer"), Value(x.type, "x")
    with b.region([carried]) as body:
        body.give(call(b, callee, args, [carried, *rest], x.type, Ref(var, ())))
    attrs = {"array": SELF.child("layers"), "var": var}
    return b.emit("for_subs", [x], attrs, type=x.type, regions=[body.region])


@pytest.fixture(scope="session")
def toy() -> Program:
    m = Maker()
    for make in (_linear, _linear_block, _tables, _write_at, _swap, _layer, _model):
        make(m)
    return m.program()


GENERICS = {"H": 4, "Layers": 3, "MaxSeq": 6}


@pytest.fixture(scope="session")
def weights() -> dict[str, np.ndarray[Any, Any]]:
    """All of the toy's parameters but layer 1's `extra` and layer 2's biases."""
    rng = np.random.default_rng(7)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for k in range(3):
        found[f"layers.{k}.rate"] = rng.normal(size=4).astype(np.float32)
        for sub in ("proj", "extra"):
            if (k, sub) == (1, "extra"):
                continue
            found[f"layers.{k}.{sub}.weight"] = rng.normal(size=(4, 4)).astype(np.float32)
            if k != 2:
                found[f"layers.{k}.{sub}.bias"] = rng.normal(size=4).astype(np.float32)
    return found


def oracle(program: Program, weights: Any, **more: Any) -> Evaluator:
    return Evaluator(program, root="m::Model", generics=GENERICS, params=weights, **more)


__all__ = ["Op"]
