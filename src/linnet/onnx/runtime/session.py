"""One entry on ONNX Runtime: its session, and its bindings to shared weights and states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from linnet.diagnostics import InternalError
from linnet.onnx.emit.dtypes import NUMPY
from linnet.onnx.emit.entry import Written
from linnet.onnx.runtime.aliasing import updated_in_place
from linnet.onnx.runtime.joins import join_products
from linnet.onnx.runtime.values import Array, to_ort
from linnet.onnx.runtime.weights import Weights
from linnet.types import DType


class RunError(RuntimeError):
    """A call that the runtime gave up: an index outside its axis, a division by zero."""


@dataclass(slots=True)
class Buffer:
    """A state: its array, the runtime's view of it, and a spare for calls that can't write in
    place."""

    array: Array
    value: ort.OrtValue
    dtype: DType
    spare: tuple[Array, ort.OrtValue] | None = None

    @staticmethod
    def zeros(shape: tuple[int, ...], dtype: DType) -> Buffer:
        array = np.zeros(shape, NUMPY[dtype])
        return Buffer(array, to_ort(array, dtype), dtype)

    def other(self) -> ort.OrtValue:
        """Memory of the same size to write the next value to."""
        if self.spare is None:
            array = np.empty_like(self.array)
            self.spare = array, to_ort(array, self.dtype)
        return self.spare[1]

    def swap(self) -> None:
        assert self.spare is not None
        before = self.array, self.value
        self.array, self.value = self.spare
        # A large one costs more to hold than to take anew.
        self.spare = before if self.array.nbytes <= SPARE else None


SPARE = 1 << 20
_FAILED = re.compile(r"Name:'(?P<name>[^']*)' Status Message: (?P<why>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Options:
    """How sessions are made."""

    exact: bool
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    threads: int = 0


def session_options(options: Options) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.log_severity_level = 4  # what goes wrong is raised
    made.enable_cpu_mem_arena = False  # an arena an entry would keep each one's peak for good
    if options.threads:
        made.intra_op_num_threads = options.threads
    # Optimisers rewrite what rounds; an exact run is the graph as it was written.
    level = ort.GraphOptimizationLevel
    made.graph_optimization_level = level.ORT_DISABLE_ALL if options.exact else level.ORT_ENABLE_ALL
    return made


class EntrySession:
    """A written entry ready to run."""

    def __init__(self, written: Written, weights: Weights, options: Options) -> None:
        self.written, self.weights = written, weights
        graph = written.model.graph
        self.in_place = updated_in_place(written)
        bound = {} if options.exact else join_products(written, weights.join)
        self.places: dict[str, str] = {}
        for node in graph.all_nodes():  # the runtime would keep what it is told
            self.places[node.name] = intern(node.metadata_props.pop("linnet.source", ""))
        data = ir.to_proto(written.model).SerializeToString()
        self.session = ort.InferenceSession(
            data, session_options(options), providers=list(options.providers)
        )
        del data
        written.model = None  # the session has it now
        self.taken = {i.name for i in self.session.get_inputs()}
        self.binding = self.session.io_binding()
        self.bound = bound or {name: (path,) for path, name in written.params.items()}
        self.version = -1
        self.holding: dict[str, ort.OrtValue] = {}  # the states' values that are bound

    def writes_in_place(self) -> bool:
        return any(self.in_place.values())

    def run(
        self, inputs: Sequence[tuple[Array, DType]], states: Mapping[str, Buffer],
        sizes: Mapping[str, int],
    ) -> list[Array]:  # fmt: skip
        """Runs on checked inputs; states are as the entry leaves them once it returns."""
        written, binding = self.written, self.binding
        self._bind_weights()
        held = []  # what is bound is not owned by the binding
        for name, (array, dtype) in zip(written.inputs, inputs, strict=True):
            if name in self.taken:
                held.append(to_ort(array, dtype))
                binding.bind_ortvalue_input(name, held[-1])
        results: list[Array] = []
        for name, (dtype, dims) in zip(written.outputs, written.types, strict=True):
            shape = tuple(self._extent(d, sizes) for d in dims)
            results.append(np.empty(shape, NUMPY[dtype]))
            held.append(to_ort(results[-1], dtype))
            binding.bind_ortvalue_output(name, held[-1])
        swapped = self._bind_states(states)
        try:
            self.session.run_with_iobinding(binding)
        except Exception as error:
            raise RunError(self._told(str(error))) from None
        for buffer in swapped:
            buffer.swap()
        return results

    def allows(self, inputs: Sequence[Array], sizes: Mapping[str, int]) -> bool:
        """Whether the inputs are as the model takes for granted that they are."""
        for name, array in zip(self.written.inputs, inputs, strict=True):
            limits = self.written.limits.get(name, ())
            least = min((self._extent(limit, sizes) for limit in limits), default=None)
            if least is not None and array.size and not 0 <= array.min() <= array.max() <= least:
                return False
        return True

    def _bind_weights(self) -> None:
        if self.version == self.weights.version:
            return
        for name, paths in self.bound.items():
            if name in self.taken:
                self.binding.bind_ortvalue_input(name, self.weights.value(paths))
        self.version = self.weights.version

    def _told(self, problem: str) -> str:
        """The runtime's message with the place in the source, without its own files' names."""
        found = _FAILED.search(problem)
        if found is None:
            return problem
        place = self.places.get(found["name"], "")
        reason = found["why"].rpartition(" was false. ")[2].strip()
        return f"{reason} at {found['name']}{f' ({place})' if place else ''}"

    def _bind_states(self, states: Mapping[str, Buffer]) -> list[Buffer]:
        """Binds what isn't bound yet; gives the states whose spare is written."""
        swapped: list[Buffer] = []
        for path, (given, after) in self.written.states.items():
            buffer = states[path]
            if given is not None and given in self.taken and self._is_new(given, buffer.value):
                self.binding.bind_ortvalue_input(given, buffer.value)
            if after is None:
                continue
            value = buffer.value
            if not self.in_place.get(path, False):
                value = buffer.other()
                swapped.append(buffer)
            if self._is_new(after, value):
                self.binding.bind_ortvalue_output(after, value)
        return swapped

    def _is_new(self, name: str, value: ort.OrtValue) -> bool:
        """Whether another value is bound under the name so far."""
        if self.holding.get(name) is value:
            return False
        self.holding[name] = value
        return True

    def _extent(self, dim: Any, sizes: Mapping[str, int]) -> int:
        if dim.constant is not None:
            return int(dim.constant)
        values = {s: sizes[name] for s, name in self.written.symbols.items() if name in sizes}
        if not dim.symbols <= values.keys():
            raise InternalError("onnx.runtime", f"the size {dim} of a result is not known")
        return int(dim.evaluate(values))
