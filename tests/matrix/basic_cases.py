"""Products, norms, activations, rotation and writes into caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case, Rng, Sizes, floats, ints, one_input

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
         "<S: Dim, N: Dim>(x: Tensor[S, N + 1; T]) -> Tensor[S; i32] { return argmax(x) }", SHAPES,
         lambda rng, s: [np.round(floats(rng, s["S"], s["N"] + 1))]),
    Case("all_reduce", "use std.nn.parallel::{all_reduce}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] { return all_reduce(x) + x }",
         SHAPES, one_input("S", "N")),
    Case("shared", "use std.nn.parallel::{shared}",
         "<S: Dim, N: Dim>(x: Tensor[S, N; T]) -> Tensor[S, N; T] { return shared(x) * x }",
         SHAPES, one_input("S", "N")),
]  # fmt: skip

ROPE = [
    Case("rope", "use std.nn.rope::{rope}",
         "<B: Dim, S: Dim>(x: Tensor[B, 3, S, 8; T], c: Tensor[S, 8; T], s: Tensor[S, 8; T]) "
         "-> Tensor[B, 3, S, 8; T] { return rope(x, c, s) }",
         [{"B": 2, "S": 5}, {"B": 1, "S": 1}, {"B": 0, "S": 2}],
         lambda rng, s: [floats(rng, s["B"], 3, s["S"], 8), floats(rng, s["S"], 8),
                         floats(rng, s["S"], 8)]),
    Case("rope_rows", "use std.nn.rope::{rope_rows}",
         "<B: Dim>(x: Tensor[B, 3, 1, 8; T], c: Tensor[B, 1, 8; T], s: Tensor[B, 1, 8; T]) "
         "-> Tensor[B, 3, 1, 8; T] { return rope_rows(x, c, s) }",
         [{"B": 3}, {"B": 1}, {"B": 0}],
         lambda rng, s: [floats(rng, s["B"], 3, 1, 8), floats(rng, s["B"], 1, 8),
                         floats(rng, s["B"], 1, 8)]),
]  # fmt: skip

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
