"""Linear layers and decoding; norms, activations and look-ups are best as their bodies, which XLA
sees whole."""

from __future__ import annotations

from linnet.backends.expr import ATOM, Expr
from linnet.backends.predicates import never_empty, settled
from linnet.ir import Op
from linnet.jax.emit.writer import Writer
from linnet.jax.natives.model import Case, Native, calling, made, operands_of
from linnet.types import DType


def _argmax(w: Writer, op: Op) -> Expr:
    (x,) = operands_of(w, op)
    return made(op, f"{x.at(ATOM)}.argmax(-1).astype(jnp.int32)", (x,))


def _on_a_cpu(case: Case) -> str | None:
    if case.device != "cpu" or case.dtype("x") not in (DType.BF16, DType.F16):
        return "the body is best, but for 16 bits on a CPU"
    return settled("bias")(case)


NATIVES: tuple[Native, ...] = (
    Native("std.nn.linear::linear", "linear", "one row without a wide copy of the weight",
           calling("linear_rows"), _on_a_cpu),
    Native("std.nn.decoding::argmax", "argmax", "the first of equals", _argmax, never_empty("x")),
)  # fmt: skip
