"""One entry on ONNX Runtime: its session, and its bindings to shared weights and states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from linnet.diagnostics import InternalError
from linnet.onnx.emit.dtypes import NUMPY
from linnet.onnx.emit.entry import Written
from linnet.onnx.runtime.aliasing import in_place
from linnet.onnx.runtime.values import Array, to_ort
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
_NOTHING = ort.OrtValue.ortvalue_from_numpy(np.zeros(0, np.float32))
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

    def __init__(
        self, written: Written, weights: Mapping[str, ort.OrtValue], options: Options
    ) -> None:
        self.written = written
        graph = written.model.graph
        self.in_place = {
            path: in_place(graph, given, after)
            for path, (given, after) in written.states.items()
            if given is not None and after is not None
        }
        self.places = {
            node.name: node.metadata_props.get("linnet.source", "") for node in graph.all_nodes()
        }
        data = ir.to_proto(written.model).SerializeToString()
        self.session = ort.InferenceSession(
            data, session_options(options), providers=list(options.providers)
        )
        del data
        written.model = None  # the session has it now
        self.taken = {i.name for i in self.session.get_inputs()}
        self.binding = self.session.io_binding()
        for path, name in written.params.items():
            if name in self.taken:
                self.binding.bind_ortvalue_input(name, weights[path])

    def writes_in_place(self) -> bool:
        return any(self.in_place.values())

    def run(
        self, inputs: Sequence[tuple[Array, DType]], states: Mapping[str, Buffer],
        sizes: Mapping[str, int],
    ) -> list[Array]:  # fmt: skip
        """Runs on checked inputs; states are as the entry leaves them once it returns."""
        written, binding = self.written, self.binding
        held = []
        for name, (array, dtype) in zip(written.inputs, inputs, strict=True):
            if name in self.taken:
                value = to_ort(array, dtype)
                held.append(value)
                binding.bind_ortvalue_input(name, value)
        results: list[Array] = []
        for name, (dtype, dims) in zip(written.outputs, written.types, strict=True):
            shape = tuple(self._extent(d, sizes) for d in dims)
            results.append(np.empty(shape, NUMPY[dtype]))
            value = to_ort(results[-1], dtype)
            held.append(value)
            binding.bind_ortvalue_output(name, value)
        swapped = self._bind_states(states)
        try:
            self.session.run_with_iobinding(binding)
        except Exception as error:
            raise RunError(self._told(str(error))) from None
        finally:
            self._release()
        for buffer in swapped:
            buffer.swap()
        return results

    def _release(self) -> None:
        """Lets go of this call's memory, which a binding would hold until the next one."""
        self.binding.clear_binding_outputs()
        for path, (given, after) in self.written.states.items():
            if given in self.taken and after is not None and not self.in_place.get(path, False):
                self.binding.bind_ortvalue_input(given, _NOTHING)

    def _told(self, problem: str) -> str:
        """The runtime's message with the place in the source, without its own files' names."""
        found = _FAILED.search(problem)
        if found is None:
            return problem
        place = self.places.get(found["name"], "")
        reason = found["why"].rpartition(" was false. ")[2].strip()
        return f"{reason} at {found['name']}{f' ({place})' if place else ''}"

    def _bind_states(self, states: Mapping[str, Buffer]) -> list[Buffer]:
        swapped: list[Buffer] = []
        for path, (given, after) in self.written.states.items():
            buffer = states[path]
            if given is not None and given in self.taken:
                self.binding.bind_ortvalue_input(given, buffer.value)
            if after is None:
                continue
            if self.in_place.get(path, False):
                self.binding.bind_ortvalue_output(after, buffer.value)
            else:
                self.binding.bind_ortvalue_output(after, buffer.other())
                swapped.append(buffer)
        return swapped

    def _extent(self, dim: Any, sizes: Mapping[str, int]) -> int:
        if dim.constant is not None:
            return int(dim.constant)
        values = {s: sizes[name] for s, name in self.written.symbols.items() if name in sizes}
        if not dim.symbols <= values.keys():
            raise InternalError("onnx.runtime", f"the size {dim} of a result is not known")
        return int(dim.evaluate(values))
