"""Every op of the library: bodies exactly, kernels closely, against the NumPy oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import linnet
import linnet.onnx
from linnet.dims import Dim, Symbol
from linnet.ir import Program, Value
from linnet.ir.build import Builder
from linnet.ir.evaluate import Evaluator
from linnet.onnx.natives.table import TABLE
from linnet.types import PackVar

from .support import difference

Rng = np.random.Generator
Inputs = Callable[[Rng, "Draw"], list[Any]]
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
EXACT = {"f32": 1e-5, "bf16": 2e-2, "f16": 4e-3}
FAST = {"f32": 2e-4, "bf16": 4e-2, "f16": 8e-3}


@dataclass
class Draw:
    """Makes inputs of the dtype a case runs in."""

    rng: Rng
    dtype: Any

    def t(self, *shape: int, scale: float = 1.0) -> Any:
        return np.array(self.rng.normal(size=shape) * scale, self.dtype)

    def f32(self, *shape: int, scale: float = 1.0) -> Any:
        return np.array(self.rng.normal(size=shape) * scale, np.float32)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
        return np.array(self.rng.integers(low, max(high, low + 1), shape), dtype)

    def bools(self, *shape: int) -> Any:
        return np.array(self.rng.random(shape) < 0.5)


@dataclass(frozen=True)
class Op:
    """A function of the library and inputs for it, several draws of sizes each."""

    name: str
    make: Callable[[Draw], list[Any]]
    generics: dict[str, int] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("f32", "bf16", "f16")
    label: str = ""


NN = "std.nn."
OPS: list[Op] = []


def add(name: str, make: Callable[[Draw], list[Any]], label: str = "", **more: Any) -> None:
    OPS.append(Op(name, make, label=label, **more))


for n, h in ((3, 8), (1, 1), (0, 4), (2, 33)):
    size = f"{n}x{h}"
    add("linear.linear", lambda d, n=n, h=h: [d.t(n, 2, h), d.t(5, h), None], size)
    add("linear.linear", lambda d, n=n, h=h: [d.t(n, h), d.t(5, h), d.t(5)], f"{size} bias")
    add("embedding.embedding", lambda d, n=n, h=h: [d.ints(0, 7, n, 2), d.t(7, h)], size)
    add("norm.rms_norm", lambda d, n=n, h=h: [d.t(n, 2, h), d.t(h), 1e-6], size)
    add("norm.layer_norm", lambda d, n=n, h=h: [d.t(n, h), d.t(h), d.t(h), 1e-5], size)
    add("norm.layer_norm", lambda d, n=n, h=h: [d.t(n, h), d.t(h), None, 1e-5], f"{size} plain")
    for act in ("relu", "sigmoid", "silu", "gelu", "gelu_erf", "softplus"):
        add(f"activations.{act}", lambda d, n=n, h=h: [d.t(n, h, scale=6)], size)
    add("softmax.softmax", lambda d, n=n, h=h: [d.t(n, h, scale=9)], size)
    add("decoding.argmax", lambda d, n=n, h=h: [np.round(d.t(n, h).astype(np.float32)).astype(
        d.dtype)], size)  # fmt: skip
    add("parallel.all_reduce", lambda d, n=n, h=h: [d.t(n, h)], size)
    add("parallel.shared", lambda d, n=n, h=h: [d.t(n, h)], size)
    add("parallel.all_gather", lambda d, n=n, h=h: [d.t(n, h)], size, generics={"Shards": 2})
    add("loss.log_softmax", lambda d, n=n, h=h: [d.t(n, h)], size)
    add("loss.entropy", lambda d, n=n, h=h: [d.t(n, h)], size)
    wide = {"dtype": np.int64}
    add("loss.cross_entropy", lambda d, n=n, h=h: [
        d.t(n, h), d.ints(0, h, n, dtype=np.int64), d.f32(n)], size)  # fmt: skip
    add("loss.token_log_probs", lambda d, n=n, h=h: [
        d.t(n, h), d.ints(0, h, n, dtype=np.int64)], size)  # fmt: skip
    add("loss.linear_cross_entropy", lambda d, n=n, h=h: [
        d.t(n, h), d.t(6, h), d.ints(0, 6, n, dtype=np.int64), d.f32(n)], size)  # fmt: skip
    add("loss.linear_token_log_probs", lambda d, n=n, h=h: [
        d.t(n, h), d.t(6, h), d.ints(0, 6, n, dtype=np.int64)], size)  # fmt: skip
    add("loss.split_cross_entropy", lambda d, n=n, h=h: [
        d.t(n, h), d.t(6, h), d.ints(0, 6, n, dtype=np.int64), d.f32(n)], size,
        generics={"Shards": 1})  # fmt: skip
    add("loss.split_token_log_probs", lambda d, n=n, h=h: [
        d.t(n, h), d.t(6, h), d.ints(0, 6, n, dtype=np.int64)], size,
        generics={"Shards": 1})  # fmt: skip

for b, q, k in ((2, 3, 5), (1, 1, 4), (0, 2, 3), (1, 0, 4), (3, 2, 2)):
    size = f"{b}x{q}x{k}"
    heads = lambda d, b=b, q=q, k=k, g=2: [d.t(b, 4, q, 8), d.t(b, g, k, 8), d.t(b, g, k, 8), 0.3]  # noqa: E731
    full = lambda d, b=b, q=q, k=k: [d.t(b, 4, q, 8), d.t(b, 4, k, 8), d.t(b, 4, k, 8), 0.3]  # noqa: E731
    some = lambda d, q=q, k=k: d.bools(q, k)  # noqa: E731
    rows = lambda d, b=b, q=q, k=k: d.bools(b, q, k)  # noqa: E731
    add("attention.attention", lambda d, f=full: [*f(d), None], size)
    add("attention.attention", lambda d, f=full, m=some: [*f(d), m(d)], f"{size} mask")
    add("attention.grouped_attention", lambda d, f=heads, m=some: [*f(d), m(d)], size)
    add("attention.attention_rows", lambda d, f=full, m=rows: [*f(d), m(d)], size)
    add("attention.grouped_attention_rows", lambda d, f=heads, m=rows: [*f(d), m(d)], size)
    add("attention.sink_attention", lambda d, f=heads, m=rows: [
        *f(d)[:3], d.t(4), 0.3, m(d)], size)  # fmt: skip
    add("rope.rope", lambda d, b=b, q=q: [d.t(b, 3, q, 8), d.t(q, 8), d.t(q, 8)], size)
    add("rope.rope_rows", lambda d, b=b: [d.t(b, 3, 1, 8), d.t(b, 1, 8), d.t(b, 1, 8)], size)
add("attention.causal_mask", lambda d: [], "3x5", generics={"Q": 3, "K": 5}, dtypes=("f32",))
for r in (1, 3):
    add("attention.paged_attention", lambda d, r=r: [
        d.t(r, 4, 1, 8), d.t(1, 2, 24, 8), d.t(1, 2, 24, 8), d.ints(0, 6, r, 3),
        d.ints(0, 12, r), 0.3], str(r), generics={"Size": 4})  # fmt: skip
    add("attention.paged_prefill_attention", lambda d, r=r: [
        d.t(1, 4, 5, 8), d.t(1, 2, 24, 8), d.t(1, 2, 24, 8), d.ints(0, 6, r, 3),
        d.ints(0, r, 5), d.ints(0, 12, 5), 0.3], str(r), generics={"Size": 4})  # fmt: skip
    add("cache.page_slots", lambda d, r=r: [d.ints(0, 6, r, 3), d.ints(0, 12, r)], str(r),
        generics={"Size": 4}, dtypes=("f32",))  # fmt: skip

CACHE = (2, 3, 6, 4)
for at in (-7, -2, -1, 0, 3, 5, 6, 9):  # outside on both sides, and hanging over both ends
    add("cache.write_at", lambda d, at=at: [d.t(*CACHE), d.t(2, 3, 1, 4), at], f"at {at}")
    for n in (0, 1, 2, 5, 6, 8):
        add("cache.write_span", lambda d, at=at, n=n: [d.t(*CACHE), d.t(2, 3, n, 4), at],
            f"{n} at {at}", dtypes=("f32",) if n != 5 else ("f32", "bf16"))  # fmt: skip
    for slots in ([1], [1, 0], [0, 2], [-1], []):
        add("cache.write_slots", lambda d, at=at, s=slots: [
            d.t(*CACHE), d.t(len(s), 3, 4, 4), np.array(s, np.int32), at], f"{slots} at {at}",
            dtypes=("f32",))  # fmt: skip
for where in ([0, 5], [6, -1], [3, 7], [-9, 20]):
    add("cache.write_rows", lambda d, w=where: [
        d.t(*CACHE), d.t(2, 3, 1, 4), np.array(w, np.int32)], str(where))  # fmt: skip
for rows_, places in (([0, 1, 1], [5, 0, 2]), ([0, 0, 2], [0, 6, 1]), ([0, 0, 1], [-1, 5, 9]),
                      ([], []), ([2, -1], [0, 0])):  # fmt: skip
    add("cache.write_tokens", lambda d, r=rows_, p=places: [
        d.t(*CACHE), d.t(1, 3, len(r), 4), np.array(r, np.int32), np.array(p, np.int32)],
        f"{rows_} {places}")  # fmt: skip

for b, s in ((2, 5), (1, 1), (1, 0)):
    size = f"{b}x{s}"
    add("recurrent.causal_conv", lambda d, b=b, s=s: [d.t(b, s, 3), d.t(b, 3, 3), d.t(3, 4)], size)
    add("recurrent.gated_delta_rule", lambda d, b=b, s=s: [
        d.t(b, s, 2, 3), d.t(b, s, 2, 3, scale=0.5), d.t(b, s, 4, 2), -abs(d.f32(b, s, 4)),
        abs(d.f32(b, s, 4)) % 1, d.f32(b, 4, 3, 2), 0.7], size)  # fmt: skip
    add("recurrent.gated_delta_step", lambda d, b=b: [
        d.t(b, 2, 3), d.t(b, 2, 3, scale=0.5), d.t(b, 4, 2), -abs(d.f32(b, 4)),
        abs(d.f32(b, 4)) % 1, d.f32(b, 4, 3, 2), 0.7], size)  # fmt: skip
    add("moe.linear_experts", lambda d, b=b, s=s: [
        d.t(s, 2, 6), d.t(4, 5, 6), d.ints(0, 4, s, 2, dtype=np.int64)], size)  # fmt: skip
    add("moe.linear_experts_shared", lambda d, b=b, s=s: [
        d.t(s, 6), d.t(4, 5, 6), d.ints(0, 4, s, 2, dtype=np.int64)], size)  # fmt: skip
    add("moe.combine_experts", lambda d, b=b, s=s: [
        d.t(s, 2, 6), d.t(4, 5, 6), d.ints(0, 4, s, 2, dtype=np.int64), d.t(s, 2)],
        size)  # fmt: skip
    add("moe.top_k", lambda d, s=s: [d.t(s, 7)], size, generics={"K": 3})
PACKED = ([0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 1, 2])
add("recurrent.causal_conv_packed", lambda d: [
    d.t(6, 3), d.t(2, 3, 3), d.t(3, 4), np.array(PACKED[0], np.int32),
    np.array(PACKED[1], np.int32)])  # fmt: skip
add("recurrent.gated_delta_rule_packed", lambda d: [
    d.t(6, 2, 3), d.t(6, 2, 3, scale=0.5), d.t(6, 4, 2), -abs(d.f32(6, 4)), abs(d.f32(6, 4)) % 1,
    d.f32(2, 4, 3, 2), np.array(PACKED[0], np.int32), np.array(PACKED[1], np.int32), 0.7],
)  # fmt: skip

KEY = np.array([7, 2**32 - 5], np.int64)
RANDOM = [
    Op("split", lambda d: [KEY], {"N": 5}),
    Op("fold_in", lambda d: [KEY, 9]),
    Op("bits", lambda d: [KEY], {"N": 7}),
    Op("uniform", lambda d: [KEY], {"N": 9, "T": "f32"}),  # type: ignore[dict-item]
    Op("normal", lambda d: [KEY], {"N": 9, "T": "f32"}),  # type: ignore[dict-item]
    Op("categorical", lambda d: [KEY, d.f32(3, 11)]),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    modules = dict.fromkeys(op.name.split(".")[0] for op in OPS)
    lines = ["module all", "use std.random", *(f"use {NN}{name}" for name in modules)]
    path = tmp_path_factory.mktemp("std") / "all.linnet"
    path.write_text("\n".join([*lines, "pub fn one() -> f32 { return 1.0 }"]), encoding="utf-8")
    return linnet.load_program(path)


def as_entry(program: Program, name: str) -> Program:
    """The program with an entry `run` that calls one function of the library."""
    callee = program.functions[name]
    params = tuple(replace(p, value=Value(p.type, p.name)) for p in callee.params)
    values = tuple(p.value for p in params)
    b = Builder()
    args = [Dim.of(g.var) if isinstance(g.var, Symbol) else
            (g.var,) if isinstance(g.var, PackVar) else g.var for g in callee.generics]  # fmt: skip
    attrs = {"callee": name, "generics": tuple(args), "receiver": None}
    result = b.emit("call", values, attrs, type=callee.result_types[0])
    body = b.finish([result], values)
    entry = replace(callee, name="all::run", kind="entry", params=params, body=body, grad=None)
    return replace(program, root="all", functions={**program.functions, entry.name: entry})


def compare(program: Program, name: str, op: Op, dtype: str, numerics: str, limit: float) -> None:
    draw = Draw(np.random.default_rng(len(op.label)), DTYPES[dtype])
    given = op.make(draw)
    want = Evaluator(program).run(name, given, op.generics)
    model = linnet.onnx.load_model(as_entry(program, name), numerics=numerics, threads=1)
    got = model.run_entry("run", given, op.generics)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for a, b in pairs:
        assert difference(a, b) <= limit, (op.label, dtype, a, b)


def ids(op: Op | str) -> str:
    return op if isinstance(op, str) else f"{op.name} {op.label}".strip()


def path_of(op: Op) -> str:
    module, _, name = op.name.rpartition(".")
    return f"{NN}{module}::{name}"


NATIVE = {row.op for row in TABLE.rows}
# One dtype for most: what differs between dtypes is a handful of lowerings, which the matrix tests.
EXACT_CASES = [(op, op.dtypes[k % len(op.dtypes)]) for k, op in enumerate(OPS)]


@pytest.mark.parametrize(("op", "dtype"), EXACT_CASES, ids=ids)
def test_bodies(program: Program, op: Op, dtype: str) -> None:
    compare(program, path_of(op), op, dtype, "exact", EXACT[dtype])


NATIVE_CASES = [(op, d) for op in OPS if path_of(op) in NATIVE for d in op.dtypes[:2]]


@pytest.mark.parametrize(("op", "dtype"), NATIVE_CASES, ids=ids)
def test_kernels(program: Program, op: Op, dtype: str) -> None:
    compare(program, path_of(op), op, dtype, "fast", FAST[dtype])


@pytest.mark.parametrize("op", RANDOM, ids=ids)
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_random_is_the_same_to_the_bit(program: Program, op: Op, numerics: str) -> None:
    limit = 1e-5 if op.name == "normal" else 0.0
    compare(program, f"std.random::{op.name}", op, "f32", numerics, limit)


def test_every_op_of_the_library_is_here(program: Program) -> None:
    library = {f.name for f in program.functions.values() if f.kind == "op"}
    assert library - {path_of(op) for op in OPS} == set()
