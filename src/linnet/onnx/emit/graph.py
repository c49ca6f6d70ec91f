"""Building one ONNX graph: scopes, names, constants.

Nodes go into the innermost open scope: the main graph, or the body of a branch or loop, which may
use every value of the scopes around it. Constants and whatever depends on sizes or parameters alone
is put into the main graph, before the node whose body is being written, so that loops don't repeat
it. A value made once is found again (`memo`) in the scope that made it and in all inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from linnet.diagnostics import Span
from linnet.ir.semantics import NUMPY
from linnet.onnx.emit.dtypes import ONNX
from linnet.types import DType

MICROSOFT = "com.microsoft"
# What a node's metadata says: its place in the source, and why it fails where it does.
SOURCE, REFUSAL = "linnet.source", "linnet.refusal"


def refusing(value: ir.Value, why: str) -> None:
    """Notes what it means where the node that makes `value` fails."""
    node = value.producer()
    assert node is not None
    node.metadata_props[REFUSAL] = why


@dataclass(slots=True)
class Scope:
    """The nodes of one graph being written, and what was made in it."""

    nodes: list[ir.Node] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict)


class GraphBuilder:
    """Writes nodes; every value and node gets a name of its own."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.scopes = [Scope()]
        self.initializers: dict[str, ir.Value] = {}
        self.constants: dict[tuple[DType, tuple[int, ...], bytes], ir.Value] = {}
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}
        self.place: list[str] = []  # where in the model: the block's path, the function
        self.spans: list[Span | None] = []
        self.domains: set[str] = set()
        self.fixed: set[int] = set()  # values that are the same at every call

    # --- names ----------------------------------------------------------------------------------

    def fresh(self, wanted: str) -> str:
        """A name nobody has, `wanted` itself where it is free."""
        wanted = re.sub(r"[^\w./:<>+*() -]", "_", wanted) or "value"
        if wanted not in self.taken:
            self.taken.add(wanted)
            return wanted
        while True:
            self.counts[wanted] = count = self.counts.get(wanted, 1) + 1
            name = f"{wanted}_{count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Names inside start with `place`."""
        self.place.append(place)
        yield
        self.place.pop()

    def _named(self, hint: str) -> str:
        return f"{self.place[-1]}/{hint}" if self.place and self.place[-1] else hint

    # --- scopes ---------------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        return len(self.scopes)

    @contextmanager
    def inner(self) -> Iterator[Scope]:
        """A new innermost scope."""
        scope = Scope()
        self.scopes.append(scope)
        yield scope
        self.scopes.pop()

    @contextmanager
    def outermost(self) -> Iterator[None]:
        """Writes into the main graph, before the node whose body is open."""
        inner, self.scopes = self.scopes, self.scopes[:1]
        yield
        self.scopes = inner

    def recall(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            if key in scope.memo:
                return scope.memo[key]
        return None

    def remember(self, key: Any, value: Any) -> None:
        self.scopes[-1].memo[key] = value

    # --- nodes ----------------------------------------------------------------------------------

    def nodes(
        self,
        op: str,
        inputs: Sequence[ir.Value | None],
        dtypes: Sequence[DType],
        hint: str = "",
        domain: str = "",
        **attrs: Any,
    ) -> list[ir.Value]:
        """A node with several results."""
        outputs = []
        for dtype in dtypes:
            name = self.fresh(self._named(hint or op.lower()))
            outputs.append(ir.Value(name=name, type=ir.TensorType(ONNX[dtype])))
        node = ir.node(
            op,
            inputs,
            attributes={k: v for k, v in attrs.items() if v is not None},
            domain=domain,
            outputs=outputs,
            name=self.fresh(self._named(f"{hint}/{op}" if hint else op)),
        )
        span = next((s for s in reversed(self.spans) if s is not None), None)
        if span is not None:
            node.metadata_props[SOURCE] = str(span)
        if domain:
            self.domains.add(domain)
        self.scopes[-1].nodes.append(node)
        return outputs

    def node(
        self,
        op: str,
        inputs: Sequence[ir.Value | None],
        dtype: DType,
        hint: str = "",
        domain: str = "",
        **attrs: Any,
    ) -> ir.Value:
        """A node with one result of `dtype`."""
        (value,) = self.nodes(op, inputs, (dtype,), hint, domain, **attrs)
        return value

    def once(
        self, op: str, inputs: Sequence[ir.Value | None], dtype: DType, **attrs: Any
    ) -> ir.Value:
        """A node found again when asked for again."""
        key = (op, tuple(id(v) for v in inputs), dtype, tuple(sorted(attrs.items())))
        found = self.recall(key)
        if found is None:
            found = self.node(op, inputs, dtype, **attrs)
            self.remember(key, (found, inputs))
            return found
        value: ir.Value = found[0]
        return value

    # --- constants ------------------------------------------------------------------------------

    def constant(self, array: np.ndarray[Any, Any], dtype: DType, hint: str = "") -> ir.Value:
        """An initialiser holding `array`; equal ones are one."""
        array = np.ascontiguousarray(array.astype(NUMPY[dtype], copy=False)).reshape(array.shape)
        key = (dtype, array.shape, array.tobytes())
        found = self.constants.get(key)
        if found is None:
            name = self.fresh(f"constant/{hint or _told(array, dtype)}")
            found = self.constants[key] = self.initializer(name, array, dtype)
        return found

    def initializer(self, name: str, array: np.ndarray[Any, Any], dtype: DType) -> ir.Value:
        value = ir.Value(
            name=name,
            type=ir.TensorType(ONNX[dtype]),
            shape=ir.Shape(array.shape),
            const_value=ir.Tensor(array, dtype=ONNX[dtype], name=name),
        )
        self.keep(value)
        return value

    def keep(self, value: ir.Value) -> None:
        """Registers an initialiser."""
        assert value.name is not None
        self.initializers[value.name] = value
        self.fixed.add(id(value))

    def integers(self, *values: int) -> ir.Value:
        """A list of `i64`."""
        return self.constant(np.array(values, np.int64), DType.I64)

    def scalar(self, value: int | float | bool, dtype: DType) -> ir.Value:
        return self.constant(_scalar(value, dtype), dtype)


def _scalar(value: int | float | bool, dtype: DType) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore"):
        return np.array(value).astype(NUMPY[dtype])


def _told(array: np.ndarray[Any, Any], dtype: DType) -> str:
    if array.ndim == 0:
        return f"{dtype}_{array.item()}"
    if array.ndim == 1 and array.size <= 4:
        return f"{dtype}_{'_'.join(str(x) for x in array.tolist())}"
    return f"{dtype}_{'x'.join(map(str, array.shape))}"
