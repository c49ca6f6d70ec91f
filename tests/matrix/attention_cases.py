"""Attention under every kind of mask that is recognised, over pages and with sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .cases import Case, Rng, Sizes, floats, ints

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
