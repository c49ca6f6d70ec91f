"""Calls like an earlier one, to a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.backends.inputs import Checked
from linnet.backends.repeat import Values
from linnet.backends.signature import Signature
from linnet.ir.semantics import NUMPY
from linnet.onnx.runtime.session import EntrySession, Shape, within
from linnet.onnx.runtime.values import Array
from linnet.passes.bounds import Requirement


@dataclass(frozen=True, slots=True)
class Repeat:
    """A session for inputs of one key (`linnet.backends.repeat`)."""

    session: EntrySession
    values: Values
    limits: tuple[int | None, ...]  # what the session takes for granted
    shapes: tuple[Shape, ...]  # of the results

    @staticmethod
    def of(
        session: EntrySession,
        signature: Signature,
        requirements: Sequence[Requirement],
        inputs: Sequence[Any],
        checked: Checked,
    ) -> Repeat | None:
        """For calls like the one that passed with these inputs, None where they need more."""
        values = Values.of(signature, requirements, inputs, checked)
        if values is None:
            return None
        sizes = signature.sizes(checked.generics)
        shapes, limits = session.shapes(sizes), session.limits(sizes)
        return Repeat(session, values, tuple(limits), tuple(shapes))

    def take(self, inputs: tuple[Any, ...]) -> list[Array] | None:
        """The session's inputs, None where their values are not what they have to be."""
        held = self.values.held(inputs)
        if held is None:
            return None
        for at, dtype, *_ in self.values.scalars:
            held[at] = np.array(inputs[at], NUMPY[dtype])
        return held if within(held, self.limits) else None
