"""Every native against its op's body: random shapes, dtypes and edge sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import linnet.torch
from linnet.torch.natives.table import NATIVES

from .support import checked, difference, oracle, to_numpy, to_torch

TOLERANCE = {"f32": 2e-4, "bf16": 2e-2, "f16": 4e-3}
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
EVERY, NARROW = ("f32", "bf16", "f16"), ("bf16", "f16")
Sizes = dict[str, int]
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A module with one entry `run`, inputs for it, and the kernel it should reach."""

    kernel: str
    use: str
    entry: str
    sizes: list[Sizes]
    inputs: Callable[[Rng, Sizes], list[Any]]
    dtypes: tuple[str, ...] = EVERY
    name: str = ""
    numerics: str = "fast"  # those under which the kernel is the one chosen


def floats(rng: Rng, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def ints(rng: Rng, low: int, high: int, *shape: int) -> Any:
    return rng.integers(low, max(high, low + 1), shape).astype(np.int32)


def one_input(*names: str) -> Callable[[Rng, Sizes], list[Any]]:
    return lambda rng, s: [floats(rng, *(s[n] for n in names))]


SHAPES = [{"S": 3, "N": 8}, {"S": 1, "N": 1}, {"S": 0, "N": 4}, {"S": 2, "N": 33}]
LINEAR = [{"S": 3, "I": 8, "O": 5}, {"S": 1, "I": 1, "O": 1}, {"S": 0, "I": 4, "O": 2},
          {"S": 2, "I": 0, "O": 3}, {"S": 4, "I": 3, "O": 0},
          {"S": 2, "I": 40, "O": 64}]  # fmt: skip


def activation(name: str) -> Case:
    return Case(
        name, f"use std.nn.activations::{{{name}}}",
        f"<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] {{ return {name}(x) }}",
        SHAPES, lambda rng, s: [floats(rng, s["S"], s["N"]) * 6],
    )  # fmt: skip


BASICS = [
    Case("linear", "use std.nn.linear::{linear}",
         "<S: Dim, I: Dim, O: Dim>(x: Tensor[S, I; T], w: Tensor[O, I; T]) -> Tensor[S, O; T] "
         "{ return linear(x, w) }", LINEAR,
         lambda rng, s: [floats(rng, s["S"], s["I"]), floats(rng, s["O"], s["I"])]),
    Case("linear", "use std.nn.linear::{linear}",
         "<S: Dim, I: Dim, O: Dim>(x: Tensor[S, 2, I; T], w: Tensor[O, I; T], b: Tensor[O; T]) "
         "-> Tensor[S, 2, O; T] { return linear(x, w, some(b)) }", LINEAR,
         lambda rng, s: [floats(rng, s["S"], 2, s["I"]), floats(rng, s["O"], s["I"]),
                         floats(rng, s["O"])], name="linear_bias"),
    Case("embedding", "use std.nn.embedding::{embedding}",
         "<S: Dim, V: Dim, H: Dim>(i: Tensor[S, 2; i32], t: Tensor[V, H; T]) -> Tensor[S, 2, H; T] "
         "{ return embedding(i, t) }",
         [{"S": 3, "V": 7, "H": 4}, {"S": 1, "V": 1, "H": 1}, {"S": 0, "V": 5, "H": 2},
          {"S": 2, "V": 3, "H": 0}],
         lambda rng, s: [ints(rng, 0, s["V"], s["S"], 2), floats(rng, s["V"], s["H"])]),
    Case("rms_norm", "use std.nn.norm::{rms_norm}",
         "<S: Dim, N: Dim>(x: Tensor[S, 2, N; T], w: Tensor[N; T]) -> Tensor[S, 2, N; T] "
         "{ return rms_norm(x, w, 1e-6) }", SHAPES,
         lambda rng, s: [floats(rng, s["S"], 2, s["N"]), floats(rng, s["N"])]),
    Case("layer_norm", "use std.nn.norm::{layer_norm}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T], w: Tensor[N; T], b: Tensor[N; T]) "
         "-> Tensor[S, N; T] { return layer_norm(x, w, some(b), 1e-5) }", SHAPES,
         lambda rng, s: [floats(rng, s["S"], s["N"]), floats(rng, s["N"]), floats(rng, s["N"])]),
    Case("layer_norm", "use std.nn.norm::{layer_norm}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T], w: Tensor[N; T]) -> Tensor[S, N; T] "
         "{ return layer_norm(x, w) }", SHAPES,
         lambda rng, s: [floats(rng, s["S"], s["N"]), floats(rng, s["N"])], name="layer_norm_2"),
    *map(activation, ("relu", "sigmoid", "silu", "gelu", "gelu_erf", "softplus")),
    Case("softmax", "use std.nn.softmax::{softmax}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] { return softmax(x) }", SHAPES,
         lambda rng, s: [floats(rng, s["S"], s["N"]) * 9]),
    Case("argmax", "use std.nn.decoding::{argmax}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S; i32] { return argmax(x) }", SHAPES,
         lambda rng, s: [np.round(floats(rng, s["S"], s["N"]))]),
    Case("all_reduce", "use std.nn.parallel::{all_reduce}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] { return all_reduce(x) + x }",
         SHAPES, one_input("S", "N")),
    Case("shared", "use std.nn.parallel::{shared}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] { return shared(x) * x }",
         SHAPES, one_input("S", "N")),
]  # fmt: skip

# --- attention --------------------------------------------------------------------------------

HEADS = [
    {"B": 2, "H": 4, "G": 2, "Q": 3, "K": 5, "D": 8},
    {"B": 1, "H": 2, "G": 1, "Q": 1, "K": 1, "D": 2},
    {"B": 0, "H": 2, "G": 2, "Q": 2, "K": 2, "D": 4},
    {"B": 1, "H": 3, "G": 3, "Q": 0, "K": 4, "D": 4},
    {"B": 2, "H": 6, "G": 2, "Q": 7, "K": 7, "D": 16},
    {"B": 1, "H": 4, "G": 2, "Q": 4, "K": 2, "D": 8},
]  # fmt: skip
GENERICS = "B: Dim, Q: Dim, K: Dim, D: Dim"


def heads(rng: Rng, s: Sizes) -> list[Any]:
    return [floats(rng, s["B"], s["H"], s["Q"], s["D"]),
            floats(rng, s["B"], s["G"], s["K"], s["D"]),
            floats(rng, s["B"], s["G"], s["K"], s["D"])]  # fmt: skip


def attention_entry(s: Sizes, extra: str, mask: str, op: str) -> str:
    """The entry with its head counts written out: `grouped` needs their divisibility proved."""
    q, kv = f"Tensor[B, {s['H']}, Q, D; T]", f"Tensor[B, {s['G']}, K, D; T]"
    return (
        f"<{GENERICS}>(q: {q}, k: {kv}, v: {kv}{extra}) -> {q} "
        f"{{ {mask} return {op}(q, k, v, 0.3{', m' if mask else ''}) }}"
    )


@dataclass(frozen=True)
class Masked:
    kernel: str
    mask: str
    extra: str
    inputs: Callable[[Rng, Sizes], list[Any]]
    rows: bool = False
    same: bool = False  # as many keys as queries
    wants: Callable[[Sizes], bool] = lambda s: True


def positions(rng: Rng, s: Sizes) -> list[Any]:
    return [int(rng.integers(-1, s["K"] + 1))]


MASKS = {
    "none": Masked("attention", "", "", lambda rng, s: []),
    "given": Masked("attention", "let m = some(mask)", ", mask: Tensor[Q, K; bool]",
                    lambda rng, s: [rng.random((s["Q"], s["K"])) < 0.4]),
    "causal": Masked("attention", "let m = some(causal_mask<Q, K>())", "", lambda rng, s: []),
    "from": Masked("attention_from", "let keys = iota<i32>(K) let queries = iota<i32>(Q) "
                   "let seen[i, s] = keys[s] <= pos + queries[i] let m = some(seen)",
                   ", pos: i32", positions),
    "upto": Masked("attention_upto", "let keys = iota<i32>(K) let seen[s] = keys[s] <= pos "
                   "let m = some(broadcast_to(reshape(seen, [1, K]), [Q, K]))", ", pos: i32",
                   positions),
    "each": Masked("attention_each_upto", "let keys = iota<i32>(K) "
                   "let seen[i, s] = keys[s] <= at[i] let m = some(seen)", ", at: Tensor[Q; i32]",
                   lambda rng, s: [ints(rng, -1, s["K"] + 1, s["Q"])]),
    "rows": Masked("attention_rows", "let m = mask", ", mask: Tensor[B, Q, K; bool]",
                   lambda rng, s: [rng.random((s["B"], s["Q"], s["K"])) < 0.4], rows=True),
    "rows_upto": Masked("attention_rows_upto", "let keys = iota<i32>(K) "
                        "let seen[b, s] = keys[s] <= at[b] "
                        "let m = broadcast_to(reshape(seen, [B, 1, K]), [B, Q, K])",
                        ", at: Tensor[B; i32]",
                        lambda rng, s: [ints(rng, -1, s["K"] + 1, s["B"])], rows=True),
}  # fmt: skip


def attention_cases() -> Iterator[Case]:
    for label, masked in MASKS.items():
        for s in HEADS:
            op = "grouped_attention" if s["H"] != s["G"] else "attention"
            op = f"{op}_rows" if masked.rows else op
            use = f"use std.nn.attention::{{{op}, causal_mask}}"
            entry = attention_entry(s, masked.extra, masked.mask, op)
            yield Case(
                masked.kernel,
                use,
                entry,
                [s],
                _heads_and(masked.inputs),
                name=f"{label}-{'-'.join(map(str, s.values()))}",
                dtypes=("f32", "bf16", "f16") if s is HEADS[0] else ("f32", "bf16"),
            )


def _heads_and(more: Callable[[Rng, Sizes], list[Any]]) -> Callable[[Rng, Sizes], list[Any]]:
    return lambda rng, s: [*heads(rng, s), *more(rng, s)]


# --- caches -----------------------------------------------------------------------------------

CACHES = [{"B": 2, "H": 3, "S": 5, "N": 2, "M": 2, "P": 4, "D": 4},
          {"B": 1, "H": 1, "S": 1, "N": 1, "M": 1, "P": 1, "D": 1},
          {"B": 3, "H": 2, "S": 4, "N": 0, "M": 0, "P": 0, "D": 2},
          {"B": 2, "H": 1, "S": 3, "N": 5, "M": 1, "P": 6, "D": 2}]  # fmt: skip
_CACHE = "B: Dim, H: Dim, S: Dim, D: Dim"


def cache(rng: Rng, s: Sizes) -> Any:
    return floats(rng, s["B"], s["H"], s["S"], s["D"])


def distinct_places(rng: Rng, s: Sizes) -> tuple[Any, Any]:
    """Rows and positions that name no place twice, some of them outside."""
    every = [(b, p) for b in range(-1, s["B"] + 1) for p in range(-1, s["S"] + 1)]
    picked = [every[k] for k in rng.permutation(len(every))[: s["P"]]]
    flat = np.array(picked, np.int32).reshape(len(picked), 2)
    return flat[:, 0].copy(), flat[:, 1].copy()


def token_inputs(rng: Rng, s: Sizes) -> list[Any]:
    rows, at = distinct_places(rng, s)
    return [cache(rng, s), floats(rng, 1, s["H"], len(rows), s["D"]), rows, at]


def cache_case(
    name: str, params: str, call: str, inputs: Callable[[Rng, Sizes], list[Any]]
) -> Case:
    entry = (f"<{_CACHE}, N: Dim, M: Dim, P: Dim>(cache: Tensor[B, H, S, D; T], {params}) "
             f"-> Tensor[B, H, S, D; T] {{ return {name}(cache, {call}) }}")  # fmt: skip
    for generic, _ in (("N: Dim", "; N"), ("M: Dim", "[M"), ("P: Dim", ", P,")):
        letter = generic[0]
        used = f"[{letter}" in params or f", {letter}," in params or f"[{letter};" in params
        if not used:
            entry = entry.replace(f", {generic}", "", 1)
    return Case(name, f"use std.nn.cache::{{{name}}}", entry, CACHES, inputs)


CACHE_CASES = [
    cache_case("write_at", "value: Tensor[B, H, 1, D; T], at: i32", "value, at",
               lambda rng, s: [cache(rng, s), floats(rng, s["B"], s["H"], 1, s["D"]),
                               int(rng.integers(-1, s["S"] + 1))]),
    cache_case("write_span", "value: Tensor[B, H, N, D; T], at: i32", "value, at",
               lambda rng, s: [cache(rng, s), floats(rng, s["B"], s["H"], s["N"], s["D"]),
                               int(rng.integers(-3, s["S"] + 2))]),
    cache_case("write_rows", "value: Tensor[B, H, 1, D; T], at: Tensor[B; i32]", "value, at",
               lambda rng, s: [cache(rng, s), floats(rng, s["B"], s["H"], 1, s["D"]),
                               ints(rng, -1, s["S"] + 1, s["B"])]),
    cache_case("write_slots", "value: Tensor[M, H, N, D; T], slots: Tensor[M; i32], at: i32",
               "value, slots, at",
               lambda rng, s: [cache(rng, s), floats(rng, s["M"], s["H"], s["N"], s["D"]),
                               rng.permutation(s["B"] + 1)[: s["M"]].astype(np.int32),
                               int(rng.integers(-2, s["S"] + 1))]),
    cache_case("write_tokens", "value: Tensor[1, H, P, D; T], rows: Tensor[P; i32], "
               "at: Tensor[P; i32]", "value, rows, at", token_inputs),
]  # fmt: skip

# --- losses -----------------------------------------------------------------------------------

VOCABULARY = [{"N": 4, "H": 6, "V": 9}, {"N": 1, "H": 1, "V": 1}, {"N": 0, "H": 2, "V": 3},
              {"N": 3, "H": 0, "V": 5}]  # fmt: skip


def loss_case(name: str, kernel: str, linear: bool, weighted: bool, shards: str = "") -> Case:
    start = "hidden: Tensor[N, H; T], weight: Tensor[V, H; T]" if linear else "x: Tensor[N, V; T]"
    given = "hidden, weight" if linear else "x"
    params = f"{start}, t: Tensor[N; i64]{', w: Tensor[N; f32]' if weighted else ''}"
    result = "f32" if weighted else "Tensor[N; f32]"
    generics = f"N: Dim, {'H: Dim, ' if linear else ''}V: Dim"
    call = f"{name}{shards}({given}, t{', w' if weighted else ''})"

    def inputs(rng: Rng, s: Sizes) -> list[Any]:
        first = [floats(rng, s["N"], s["H"]), floats(rng, s["V"], s["H"])] if linear else [
            floats(rng, s["N"], s["V"]) * 3]  # fmt: skip
        targets = rng.integers(0, s["V"], s["N"]).astype(np.int64)
        return [*first, targets, *([floats(rng, s["N"])] if weighted else [])]

    return Case(kernel, f"use std.nn.loss::{{{name}}}",
                f"<{generics}>({params}) -> {result} {{ return {call} }}", VOCABULARY, inputs,
                name=name)  # fmt: skip


LOSSES = [
    loss_case("token_log_probs", "log_probs", False, False),
    loss_case("cross_entropy", "cross_entropy", False, True),
    loss_case("linear_token_log_probs", "linear_log_probs", True, False),
    loss_case("linear_cross_entropy", "linear_cross_entropy", True, True),
    loss_case("split_token_log_probs", "linear_log_probs", True, False, "<N, H, V, 1, T>"),
    loss_case("split_cross_entropy", "linear_cross_entropy", True, True, "<N, H, V, 1, T>"),
    Case("log_softmax", "use std.nn.loss::{log_softmax}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; f32] { return log_softmax(x) }",
         SHAPES, one_input("S", "N")),
]  # fmt: skip

# --- sequences --------------------------------------------------------------------------------

RECURRENT = [
    Case("causal_conv", "use std.nn.recurrent::{causal_conv}",
         "<B: Dim, S: Dim, C: Dim>(x: Tensor[B, S, C; T], h: Tensor[B, 3, C; T], "
         "t: Tensor[C, 4; T]) -> Tensor[B, S, C; f32] { return causal_conv(x, h, t) }",
         [{"B": 2, "S": 5, "C": 3}, {"B": 1, "S": 1, "C": 1}, {"B": 1, "S": 0, "C": 2},
          {"B": 0, "S": 3, "C": 2}, {"B": 1, "S": 2, "C": 0}],
         lambda rng, s: [floats(rng, s["B"], s["S"], s["C"]), floats(rng, s["B"], 3, s["C"]),
                         floats(rng, s["C"], 4)]),
]  # fmt: skip


def delta_inputs(rng: Rng, s: Sizes, step: bool) -> list[Any]:
    tokens = () if step else (s["S"],)
    q, k = (floats(rng, s["B"], *tokens, 2, 4) for _ in range(2))
    unit = [x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6) for x in (q, k)]
    decay = -np.abs(floats(rng, s["B"], *tokens, 4)) * rng.choice([0.1, 1.0, 40.0])
    beta = rng.random((s["B"], *tokens, 4)).astype(np.float32)
    return [*unit, floats(rng, s["B"], *tokens, 4, 3), decay.astype(np.float32), beta,
            floats(rng, s["B"], 4, 4, 3)]  # fmt: skip


RECURRENT += [
    Case("delta_rule", "use std.nn.recurrent::{gated_delta_rule}",
         "<B: Dim, S: Dim>(q: Tensor[B, S, 2, 4; T], k: Tensor[B, S, 2, 4; T], "
         "v: Tensor[B, S, 4, 3; T], d: Tensor[B, S, 4; f32], b: Tensor[B, S, 4; f32], "
         "m: Tensor[B, 4, 4, 3; f32]) -> Tensor[B, S + 4, 4, 3; f32] "
         "{ return gated_delta_rule(q, k, v, d, b, m, 0.5) }",
         [{"B": 1, "S": 1}, {"B": 2, "S": 70}, {"B": 1, "S": 0}, {"B": 0, "S": 3},
          {"B": 1, "S": 64}],
         lambda rng, s: delta_inputs(rng, s, False)),
    Case("delta_step", "use std.nn.recurrent::{gated_delta_step}",
         "<B: Dim>(q: Tensor[B, 2, 4; T], k: Tensor[B, 2, 4; T], "
         "v: Tensor[B, 4, 3; T], d: Tensor[B, 4; f32], b: Tensor[B, 4; f32], "
         "m: Tensor[B, 4, 4, 3; f32]) -> Tensor[B, 5, 4, 3; f32] "
         "{ return gated_delta_step(q, k, v, d, b, m, 0.5) }",
         [{"B": 2}, {"B": 1}, {"B": 0}], lambda rng, s: delta_inputs(rng, s, True)),
]  # fmt: skip


RUNS = [{"P": 9, "R": 3}, {"P": 1, "R": 1}, {"P": 5, "R": 0}, {"P": 70, "R": 2}]


def packed(rng: Rng, s: Sizes) -> list[Any]:
    """Each token's row, one that is there or not, and its segment: runs that share no row."""
    cuts = np.sort(rng.integers(1, s["P"] + 1, 2))
    lengths = [n for n in np.diff([0, *cuts, s["P"]]) if n]
    rows = rng.permutation(np.arange(-1, max(s["R"], 2)))[: len(lengths)]
    return [np.repeat(rows, lengths).astype(np.int32),
            np.repeat(9 - np.arange(len(lengths)), lengths).astype(np.int32)]  # fmt: skip


def packed_rule(rng: Rng, s: Sizes) -> list[Any]:
    *tokens, _ = delta_inputs(rng, {"B": 1, "S": s["P"]}, False)
    return [*(x[0] for x in tokens), floats(rng, s["R"], 4, 4, 3), *packed(rng, s)]


RECURRENT += [
    Case("causal_conv_packed", "use std.nn.recurrent::{causal_conv_packed}",
         "<P: Dim, R: Dim, C: Dim>(x: Tensor[P, C; T], h: Tensor[R, 3, C; T], t: Tensor[C, 4; T], "
         "r: Tensor[P; i32], s: Tensor[P; i32]) -> Tensor[P, C; f32] where P > 0 "
         "{ return causal_conv_packed(x, h, t, r, s) }",
         [{**s, "C": c} for s, c in zip(RUNS, (3, 1, 2, 2), strict=True)],
         lambda rng, s: [floats(rng, s["P"], s["C"]), floats(rng, s["R"], 3, s["C"]),
                         floats(rng, s["C"], 4), *packed(rng, s)]),
    Case("delta_rule_packed", "use std.nn.recurrent::{gated_delta_rule_packed}",
         "<P: Dim, R: Dim>(q: Tensor[P, 2, 4; T], k: Tensor[P, 2, 4; T], v: Tensor[P, 4, 3; T], "
         "d: Tensor[P, 4; f32], b: Tensor[P, 4; f32], m: Tensor[R, 4, 4, 3; f32], "
         "r: Tensor[P; i32], s: Tensor[P; i32]) -> Tensor[P + R * 4, 4, 3; f32] where P > 0 "
         "{ return gated_delta_rule_packed(q, k, v, d, b, m, r, s, 0.5) }", RUNS, packed_rule),
]  # fmt: skip


def expert_case(
    name: str, shared: bool, weighted: bool, kernel: str = "", chosen: str = "fast"
) -> Case:
    x = "Tensor[R, I; T]" if shared else "Tensor[R, K, I; T]"
    more = ", w: Tensor[R, K; T]" if weighted else ""
    result = "Tensor[R, O; T]" if weighted else "Tensor[R, K, O; T]"

    def inputs(rng: Rng, s: Sizes) -> list[Any]:
        first = floats(rng, s["R"], s["I"]) if shared else floats(rng, s["R"], s["K"], s["I"])
        experts = rng.integers(0, s["E"], (s["R"], s["K"])).astype(np.int64)
        last = [floats(rng, s["R"], s["K"])] if weighted else []
        return [first, floats(rng, s["E"], s["O"], s["I"]) / 2, experts, *last]

    return Case(kernel or name, f"use std.nn.moe::{{{name}}}",
                f"<R: Dim, K: Dim, I: Dim, E: Dim, O: Dim>(x: {x}, m: Tensor[E, O, I; T], "
                f"e: Tensor[R, K; i64]{more}) -> {result} "
                f"{{ return {name}(x, m, e{', w' if weighted else ''}) }}",
                [{"R": 5, "K": 2, "I": 4, "E": 3, "O": 3}, {"R": 1, "K": 1, "I": 1, "E": 1, "O": 1},
                 {"R": 0, "K": 2, "I": 2, "E": 2, "O": 2},
                 {"R": 2, "K": 0, "I": 2, "E": 2, "O": 2}],
                inputs, NARROW if kernel else EVERY, kernel, chosen)  # fmt: skip


EXPERTS = [
    expert_case("linear_experts", False, False),
    expert_case("linear_experts_shared", True, False),
    expert_case("combine_experts", False, True),
    # Under `equivalent` numerics narrow products are summed unrounded.
    expert_case("combine_experts", False, True, "combine_experts_wide", "equivalent"),
    Case("top_k", "use std.nn.moe::{top_k}",
         "<R: Dim, N: Dim>(x: Tensor[R, N; T]) -> Tensor[R, 3; i64] where 3 <= N "
         "{ return top_k<R, N, 3, T>(x) }",
         [{"R": 4, "N": 7}, {"R": 1, "N": 3}, {"R": 0, "N": 4}, {"R": 2, "N": 33}],
         lambda rng, s: [np.round(floats(rng, s["R"], s["N"]) * 4)]),
]  # fmt: skip

# --- pages and sinks --------------------------------------------------------------------------

POOL = 24  # places, in pages of 4


def page_inputs(rng: Rng, s: Sizes, prompts: bool) -> list[Any]:
    rows, pages = s["R"], s["P"]
    pool = [floats(rng, 1, 2, POOL, 4) for _ in range(2)]
    table = ints(rng, 0, POOL // 4, rows, pages)
    if not prompts:
        return [floats(rng, rows, 4, 1, 4), *pool, table, ints(rng, -1, 4 * pages, rows)]
    count = s["N"]
    return [floats(rng, 1, 4, count, 4), *pool, table, ints(rng, 0, rows, count),
            ints(rng, -1, 4 * pages, count)]  # fmt: skip


POOLS = f"k: Tensor[1, 2, {POOL}, 4; T], v: Tensor[1, 2, {POOL}, 4; T], table: Tensor[R, P; i32]"
PAGED = [
    Case("paged_attention", "use std.nn.attention::{paged_attention}",
         f"<R: Dim, P: Dim>(q: Tensor[R, 4, 1, 4; T], {POOLS}, at: Tensor[R; i32]) "
         "-> Tensor[R, 4, 1, 4; T] "
         f"{{ return paged_attention<R, 4, 2, {POOL}, P, 4, 4, T>(q, k, v, table, at, 0.4) }}",
         [{"R": 3, "P": 2}, {"R": 1, "P": 1}, {"R": 0, "P": 2}, {"R": 2, "P": 5}],
         lambda rng, s: page_inputs(rng, s, False)),
    Case("paged_prefill_attention", "use std.nn.attention::{paged_prefill_attention}",
         f"<N: Dim, R: Dim, P: Dim>(q: Tensor[1, 4, N, 4; T], {POOLS}, rows: Tensor[N; i32], "
         "at: Tensor[N; i32]) -> Tensor[1, 4, N, 4; T] { return "
         f"paged_prefill_attention<N, 4, 2, {POOL}, R, P, 4, 4, T>"
         "(q, k, v, table, rows, at, 0.4) }",
         [{"N": 6, "R": 3, "P": 2}, {"N": 1, "R": 1, "P": 1}, {"N": 0, "R": 2, "P": 2},
          {"N": 9, "R": 2, "P": 5}], lambda rng, s: page_inputs(rng, s, True)),
]  # fmt: skip
SINKS = [
    Case("sink_attention", "use std.nn.attention::{sink_attention}",
         attention_entry(s, f", sinks: Tensor[{s['H']}; T], mask: Tensor[B, Q, K; bool]", "",
                         "sink_attention").replace("q, k, v, 0.3", "q, k, v, sinks, 0.3, mask"),
         [s], _heads_and(lambda rng, s: [floats(rng, s["H"]),
                                         rng.random((s["B"], s["Q"], s["K"])) < 0.4]),
         name=f"sinks-{'-'.join(map(str, s.values()))}", dtypes=("f32", "bf16")) for s in HEADS
]  # fmt: skip
SQUARE = [
    {"B": 2, "H": 4, "G": 2, "Q": 5, "K": 5, "D": 8},
    {"B": 1, "H": 2, "G": 2, "Q": 1, "K": 1, "D": 4},
]
CAUSAL = [
    Case("attention_causal", f"use std.nn.attention::{{{op}, causal_mask}}",
         attention_entry(s, "", "let m = some(causal_mask<Q, Q>())", op).replace(", K,", ", Q,")
         .replace(", K: Dim", ""), [s], _heads_and(lambda rng, s: []),
         name=f"causal-{s['Q']}")
    for s, op in zip(SQUARE, ("grouped_attention", "attention"), strict=True)
]  # fmt: skip

CASES = [*BASICS, *attention_cases(), *CACHE_CASES, *LOSSES, *RECURRENT, *EXPERTS, *PAGED, *SINKS,
         *CAUSAL]  # fmt: skip


def as_dtype(value: Any, dtype: str) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype == np.float32
    return value.astype(DTYPES[dtype]) if is_float else value


def typed(case: Case, made: list[Any], dtype: str) -> list[Any]:
    """The inputs in `dtype`, but for those that the entry declares as f32."""
    params = case.entry[case.entry.index("(") :].split("; ")[1 : len(made) + 9]
    kinds = [part.split("]")[0] for part in params]
    arrays = iter(kinds)
    return [as_dtype(v, dtype) if isinstance(v, np.ndarray) and next(arrays) == "T" else v
            for v in made]  # fmt: skip


def text_of(case: Case, dtype: str) -> str:
    body = case.entry.replace("; T]", f"; {dtype}]").replace(", T>", f", {dtype}>")
    lines = body.replace(" let ", "\n let ").replace(" return ", "\n return ")
    return f"module m\n{case.use}\npub entry run{lines}\n"


FIRST = {case.kernel: case for case in reversed(CASES)}.values()
SLOW = pytest.mark.slow


def is_quick(number: int, case: Case, dtype: str) -> bool:
    """Each kernel's first case in two dtypes, and now and then another, for its sizes."""
    return dtype in case.dtypes[:2] if case in FIRST else number % 5 == 1 and dtype == "f32"


@pytest.mark.parametrize(
    ("case", "dtype"),
    [pytest.param(c, d, id=f"{c.name or c.kernel}-{d}", marks=() if is_quick(k, c, d) else SLOW)
     for k, c in enumerate(CASES) for d in c.dtypes],
)  # fmt: skip
def test_native_agrees_with_its_body(case: Case, dtype: str, tmp_path: Path) -> None:
    program = checked(tmp_path, text_of(case, dtype))
    models = {n: linnet.torch.load(program, numerics=n, compile=False)
              for n in ("exact", "equivalent", "fast")}  # fmt: skip
    for model in models.values():  # let positions outside their axis through to the kernels
        model._linnet.bounds.known["run"] = ()
    rng = np.random.default_rng(len(case.entry))
    for number, sizes in enumerate(case.sizes * 3):
        inputs = typed(case, case.inputs(rng, sizes), dtype)
        given = list(map(to_torch, inputs))
        want = to_numpy(models["exact"].run_entry("run", given))
        if dtype == "f32" and number < len(case.sizes):
            assert difference(want, oracle(program, "run", inputs)) < 2e-4, (sizes, "body")
        for numerics in ("equivalent", "fast"):
            copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in given]
            got = to_numpy(models[numerics].run_entry("run", copies))
            gap = difference(got, want)
            assert gap < TOLERANCE[dtype], (case.kernel, numerics, sizes, gap)
    assert uses(program, case.kernel, case.numerics), models["fast"].generated_source("run")


DIFFERENTIABLE = [
    c for c in CASES if c.kernel not in ("argmax", "top_k") and not c.kernel.startswith("write_")
]


@pytest.mark.parametrize(
    ("case", "numerics"),
    [pytest.param(c, n, id=f"{c.name or c.kernel}-{n}",
                  marks=() if c in FIRST and n == c.numerics else SLOW)
     for c in DIFFERENTIABLE for n in ("equivalent", "fast")],
)  # fmt: skip
def test_gradients_agree_with_the_body(case: Case, numerics: str, tmp_path: Path) -> None:
    program = checked(tmp_path, text_of(case, "f32"))
    rng = np.random.default_rng(len(case.entry))
    for sizes in case.sizes:
        inputs = list(map(to_torch, case.inputs(rng, sizes)))
        slopes: list[list[torch.Tensor]] = []
        for kind in ("exact", numerics):
            model = linnet.torch.load(program, numerics=kind, compile=False, trainable=True)
            model._linnet.bounds.known["run"] = ()
            given = [leaf(v) for v in inputs]
            out = model.run_entry("run", given)
            weights = torch.linspace(-1.0, 1.0, max(out.numel(), 1))[: out.numel()]
            if out.requires_grad:  # what has no elements may come from nothing
                (out * weights.reshape(out.shape)).sum().backward()
            slopes.append([grad_of(v) for v in given if is_float(v)])
        for got, want in zip(slopes[1], slopes[0], strict=True):
            assert difference(to_numpy(got), to_numpy(want)) < 1e-3, (case.kernel, sizes)


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def leaf(value: Any) -> Any:
    return value.clone().requires_grad_() if is_float(value) else value


def grad_of(value: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(value) if value.grad is None else value.grad


def uses(program: Any, kernel: str, numerics: str) -> bool:
    """Whether the entry's code runs the kernel."""
    from linnet.ir.walk import walk
    from linnet.passes import bind, lower
    from linnet.torch.natives.table import selector

    lowered = lower(bind(program, None, {}), ["run"], select=selector(numerics, "cpu", False))
    return any(
        op.kind == "native" and op.attrs["kernel"] == kernel
        for function in lowered.functions.values() for op in walk(function.body)
    )  # fmt: skip


def test_every_native_is_tested() -> None:
    tested = {case.kernel for case in CASES}
    every = {row.kernel for rows in NATIVES.values() for row in rows}
    assert every - tested == set(), sorted(every - tested)
