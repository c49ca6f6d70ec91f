"""A small model with the parts that matter: arrays, state, optional and tied weights, loops."""

from __future__ import annotations

TOY = """
module toy
use std.nn.cache::{write_at, write_span}
use std.nn.embedding::{Embedding}
use std.nn.linear::{Linear}
use std.nn.norm::{RmsNorm}

pub block Layer<H: Dim, Batch: Dim, MaxSeq: Dim, T: Float>
where
    H > 0
{
    sub norm: RmsNorm<H, T>
    sub linear: Linear<H, H, T>
    param gain: Tensor[H; T]? = none
    state cache: Tensor[Batch, 1, MaxSeq, H; T]

    pub fn forward<B: Dim, S: Dim>(x: Tensor[B, S, H; T]) -> Tensor[B, S, H; T] {
        let y = linear.forward(norm.forward(x))
        let scaled = match gain {
            some(g) => y * g,
            none => y,
        }
        return x + scaled
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

    pub entry forward<B: Dim, S: Dim>(tokens: Tensor[B, S; i32]) -> Tensor[B, S, V; T] {
        var x = embedding.forward(tokens)
        static for layer in layers {
            x = layer.forward(x)
        }
        return head.forward(x)
    }

    pub entry step(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, 1, V; T] {
        var x = embedding.forward(token)
        static for layer in layers {
            x = layer.step(x, pos)
        }
        return head.forward(x)
    }

    pub entry count_down<N: Dim>(start: i32, limit: i32) -> (Tensor[N; i32], i32)
    where N > 0 {
        var left = start
        var turns: i32 = 0
        while left > 0 && turns < limit {
            left = left - 1
            turns = turns + 1
        }
        return (fill<i32>([N], left), turns)
    }
}
"""

GENERICS = {"V": 11, "H": 4, "Layers": 3}
