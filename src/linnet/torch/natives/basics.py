"""Linear layers, look-ups, norms, activations, softmax and decoding."""

from __future__ import annotations

from linnet.backends.emit.dtypes import dtype_of
from linnet.backends.emit.elementwise import as_tensor
from linnet.backends.expr import Expr
from linnet.backends.predicates import every, filled, narrow, never_empty, not_f64, settled
from linnet.ir import Op
from linnet.torch.emit.writer import Writer
from linnet.torch.natives.model import (
    KernelWriter,
    Native,
    made,
    number_text,
    operands_of,
)


def function(name: str, extra: str = "") -> KernelWriter:
    """A kernel that is one call of PyTorch's on the operands in order."""

    def emit(w: Writer, op: Op) -> Expr:
        given = zip(operands_of(w, op), op.operands, strict=True)
        exprs = [as_tensor(w, e, dtype_of(v.type)) if e.host else e for e, v in given]
        inner = ", ".join(e.text for e in exprs)
        return made(op, f"{name}({inner}{extra})", exprs)

    return emit


def _rms_norm(w: Writer, op: Op) -> Expr:
    x, weight, eps = operands_of(w, op)
    number = number_text(w, op.operands[2], eps)
    return made(op, f"F.rms_norm({x.text}, {weight.at(20)}.shape, {weight.text}, {number})",
                (x, weight, eps))  # fmt: skip


def _layer_norm(w: Writer, op: Op) -> Expr:
    exprs = operands_of(w, op)
    x, weight, *bias, eps = exprs
    shift = bias[0].text if bias else "None"
    number = number_text(w, op.operands[-1], eps)
    text = f"F.layer_norm({x.text}, {weight.at(20)}.shape, {weight.text}, {shift}, {number})"
    return made(op, text, exprs)


def _argmax(w: Writer, op: Op) -> Expr:
    (x,) = operands_of(w, op)
    return made(op, f"{x.at(20)}.argmax(-1).to(torch.int32)", (x,))


def _same(w: Writer, op: Op) -> Expr:
    (x,) = operands_of(w, op)
    return x


def _repeated(w: Writer, op: Op) -> Expr:
    (x,) = operands_of(w, op)
    return made(op, f"{x.at(20)}.repeat(1, {op.attrs['shards']})", (x,))


_narrow = not_f64("x")
_F = "std.nn."
NATIVES: tuple[Native, ...] = (
    Native(f"{_F}linear::linear", "linear", "one matrix product, accumulated in f32",
           function("F.linear"), settled("bias"), joins=(1, 2)),
    Native(f"{_F}embedding::embedding", "embedding", "rows of the table gathered",
           function("F.embedding")),
    Native(f"{_F}norm::rms_norm", "rms_norm", "fused, in f32", _rms_norm, filled("x", -1)),
    Native(f"{_F}norm::layer_norm", "layer_norm", "fused, in f32", _layer_norm,
           every(settled("bias"), filled("x", -1))),
    Native(f"{_F}activations::relu", "relu", "one pass", function("torch.relu")),
    Native(f"{_F}activations::sigmoid", "sigmoid", "one pass, in f32", function("torch.sigmoid"),
           _narrow),
    Native(f"{_F}activations::silu", "silu", "one pass, in f32", function("F.silu"), _narrow),
    Native(f"{_F}activations::gelu", "gelu", "one pass, in f32",
           function("F.gelu", ', approximate="tanh"'), _narrow),
    Native(f"{_F}activations::gelu_erf", "gelu_erf", "one pass, in f32", function("F.gelu"),
           _narrow),
    Native(f"{_F}activations::softplus", "softplus", "one pass, in f32", function("F.softplus"),
           _narrow),
    Native(f"{_F}softmax::softmax", "softmax", "one pass, in f32", function("F.softmax", ", -1"),
           narrow("x", -1)),
    Native(f"{_F}decoding::argmax", "argmax", "the first of equals", _argmax, never_empty("x")),
    Native(f"{_F}parallel::all_reduce", "all_reduce", "one device: the value itself", _same,
           alias=(0,)),
    Native(f"{_F}parallel::shared", "shared", "one device: the value itself", _same, alias=(0,)),
)  # fmt: skip
