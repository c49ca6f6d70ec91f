"""Losses, recurrent layers and experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import EVERY, NARROW, Case, Rng, Sizes, floats, one_input

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
         [{"S": 3, "N": 8}, {"S": 1, "N": 1}, {"S": 0, "N": 4}], one_input("S", "N")),
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
