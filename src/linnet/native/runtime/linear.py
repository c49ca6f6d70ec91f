"""Which parameters are weights of linear layers, whatever entries have run."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.ir import Function, Op
from linnet.ir.walk import walk
from linnet.passes import Binding

# Ops whose weight or table the kernels read packed, and where they take it.
_WEIGHT_AT = {
    "std.nn.linear::linear": 1, "std.nn.embedding::embedding": 1,
    "std.nn.moe::linear_experts": 1,
    "std.nn.moe::linear_experts_shared": 1, "std.nn.moe::combine_experts": 1,
}  # fmt: skip


def linear_weights(binding: Binding) -> frozenset[str]:
    """The paths of parameters that a linear op takes as its weight somewhere in the program."""
    if binding.root is None:
        return frozenset()
    by_block: dict[str, set[str]] = {}
    for function in binding.program.functions.values():
        if function.block is not None:
            by_block.setdefault(function.block, set()).update(_uses(function))
    return frozenset(
        prefix + path
        for prefix, instance in binding.root.places()
        for path in by_block.get(instance.block, ())
    )


def _uses(function: Function) -> Iterator[str]:
    made = {}
    for op in walk(function):
        if op.kind == "param" and op.attrs["ref"].root is None:
            made[op.result] = ".".join(map(str, op.attrs["ref"].steps))
        at = _weight_at(op)
        if at is not None and op.operands[at] in made:
            yield made[op.operands[at]]


def _weight_at(op: Op) -> int | None:
    return _WEIGHT_AT.get(op.attrs["callee"]) if op.kind == "call" else None
