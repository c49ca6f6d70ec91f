"""Normalisation, activations and decoding; linear layers and look-ups are best as their bodies,
which XLA sees whole."""

from __future__ import annotations

from linnet.backends.expr import ATOM, Expr
from linnet.backends.predicates import last_axis
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Native, made, operands_of


def _argmax(w: Writer, op: Op) -> Expr:
    (x,) = operands_of(w, op)
    return made(op, f"{x.at(ATOM)}.argmax(-1).astype(jnp.int32)", (x,))


NATIVES: tuple[Native, ...] = (
    Native("std.nn.decoding::argmax", "argmax", "the first of equals", _argmax, last_axis("x")),
)
