"""A small model with the parts that matter: arrays, state, optional and tied weights, loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.passes import Binding

TOY = """
module toy
use std.nn.cache::{write_at}
use std.nn.embedding::{Embedding}
use std.nn.linear::{Linear}
use std.nn.norm::{RmsNorm}

pub struct Pair { left: Tensor[2; f32], right: i32 }
pub enum Mode { Add, Subtract, Nothing }

pub block Layer<H: Dim, Batch: Dim, MaxSeq: Dim, T: Float>
where
    H > 0
{
    sub norm: RmsNorm<H, T>
    sub linear: Linear<H, H, T>
    sub extra: Linear<H, H, T> = none
    param gain: Tensor[H; T]? = none
    state cache: Tensor[Batch, 1, MaxSeq, H; T]

    pub fn forward<B: Dim, S: Dim>(x: Tensor[B, S, H; T]) -> Tensor[B, S, H; T] {
        let y = linear.forward(norm.forward(x))
        let scaled = match gain {
            some(g) => y * g,
            none => y,
        }
        let more = match extra {
            some(e) => e.forward(scaled),
            none => scaled,
        }
        return x + more
    }

    pub fn step(x: Tensor[Batch, 1, H; T], pos: i32) -> Tensor[Batch, 1, H; T] {
        cache = write_at(cache, reshape(x, [Batch, 1, 1, H]), pos)
        let total[b, h] = sum[s] cache[b, 0, s, h]
        return forward(x) + reshape(total, [Batch, 1, H])
    }
}

pub block Model<V: Dim, H: Dim, Layers: Dim, Batch: Dim = 2, MaxSeq: Dim = 8, T: Float = f32>
where
    H > 0
{
    sub embedding: Embedding<V, H, T>
    sub layers: [Layer<H, Batch, MaxSeq, T>; Layers]
    sub head: Linear<H, V, T>
    state calls: Tensor[1; i32]

    pub entry forward<B: Dim, S: Dim>(tokens: Tensor[B, S; i32]) -> Tensor[B, S, V; T] {
        var x = embedding.forward(tokens)
        static for layer in layers {
            x = layer.forward(x)
        }
        return head.forward(x)
    }

    pub entry step(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, 1, V; T] {
        calls = calls + 1
        return walk(token, pos)
    }

    pub entry generate<Steps: Dim>(token: Tensor[Batch, 1; i32]) -> Tensor[Batch, 1, V; T]
    where Steps > 0 {
        var logits = walk(token, 0)
        static for i in 1..Steps {
            logits = logits + walk(token, cast<i32>(i))
        }
        return logits
    }

    pub entry until(token: Tensor[Batch, 1; i32], last: i32) -> (Tensor[Batch, 1, V; T], i32) {
        var logits = walk(token, 0)
        var count: i32 = 1
        while count < last {
            logits = logits + walk(token, count)
            count = count + 1
        }
        return (logits, count)
    }

    pub entry maybe(token: Tensor[Batch, 1; i32], go: bool) -> i32 {
        let n: i32 = if go { touch() } else { 7 }
        return n
    }

    fn touch() -> i32 {
        calls = calls + 10
        return calls[0]
    }

    pub entry divided(a: i32, b: i32) -> i32 {
        calls = calls + 1
        return a / b
    }

    pub entry shapes(p: Pair, m: Mode, extra: Tensor[2; f32]? = none) -> Pair {
        let moved = match m { Mode.Add => p.left + 1.0, Mode.Subtract => p.left - 1.0, _ => p.left }
        let more = match extra { some(e) => moved + e, none => moved }
        return Pair(left = more, right = p.right + 1)
    }

    fn walk(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, 1, V; T] {
        var x = embedding.forward(token)
        static for layer in layers {
            x = layer.step(x, pos)
        }
        return head.forward(x)
    }
}
"""

GENERICS = {"V": 11, "H": 4, "Layers": 3}


def weights(binding: Binding, optional: bool = False, seed: int = 0) -> dict[str, Any]:
    """Random weights for every parameter, optional ones on request."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for info in binding.params:
        shape = [d.constant or 0 for d in info.type.dims]
        value = rng.normal(size=shape).astype(np.float32)
        if optional or not info.optional:
            found[info.path] = value
    return found
