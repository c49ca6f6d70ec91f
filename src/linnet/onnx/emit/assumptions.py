"""What a model may take for granted of its inputs, because its caller looks before each call.

A write into a cache, or a look at what a position reaches, has to do what the body says wherever
the position lies: that takes several operators to bring it into range. A caller that checks
`0 <= input <= limit` first gets a model without them, and another model for the rare call that the
check refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from linnet.dims import Dim
from linnet.onnx.emit.held import Held

# Operators whose result holds only elements of their first input.
_MOVING = frozenset(
    {"Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)
_PLAIN = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(slots=True)
class Assumptions:
    """`trusting` says whether anything may be assumed; `inputs` are the entry's own tensors by the
    identity of their values; `limits` what was assumed, by input."""

    trusting: bool = False
    inputs: dict[int, str] = field(default_factory=dict)
    limits: dict[str, list[Dim]] = field(default_factory=dict)

    def within(self, held: Held, limit: Dim) -> bool:
        """Whether all elements lie in `0..=limit`, assuming it of inputs where that is allowed."""
        if not self.trusting:
            return False
        if held.const is not None:
            return _constant_within(np.asarray(held.const), limit)
        assert held.value is not None
        return self._value_within(held.value, limit)

    def _value_within(self, value: ir.Value, limit: Dim) -> bool:
        name = self.inputs.get(id(value))
        if name is not None:
            known = self.limits.setdefault(name, [])
            if limit not in known:
                known.append(limit)
            return True
        if value.const_value is not None:
            return _constant_within(value.const_value.numpy(), limit)
        node = value.producer()
        if node is None:
            return False
        if node.op_type == "Concat":
            return all(v is not None and self._value_within(v, limit) for v in node.inputs)
        if node.op_type in _MOVING and node.inputs[0] is not None:
            return self._value_within(node.inputs[0], limit)
        return False

    def origin(self, value: ir.Value) -> str | None:
        """The input whose elements `value` holds, all of them in their order."""
        while id(value) not in self.inputs:
            node = value.producer()
            if node is None or node.op_type not in _PLAIN or node.inputs[0] is None:
                return None
            value = node.inputs[0]
        return self.inputs[id(value)]


def _constant_within(array: np.ndarray, limit: Dim) -> bool:
    if limit.constant is None:
        return False
    return bool(((array >= 0) & (array <= limit.constant)).all())
