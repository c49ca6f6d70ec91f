"""One entry on ONNX Runtime: its session, and its bindings to shared weights and states."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from sys import intern
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from linnet.backends.errors import RunError
from linnet.diagnostics import InternalError
from linnet.diagnostics.escape import escape_text
from linnet.ir.semantics import NUMPY
from linnet.onnx.emit.entry import Written
from linnet.onnx.emit.graph import REFUSAL, SOURCE
from linnet.onnx.runtime.aliasing import updated_in_place
from linnet.onnx.runtime.states import Buffer, States
from linnet.onnx.runtime.values import Array, to_ort
from linnet.types import DType

# What the runtime raises; anything else, a class made of one of these too, comes from a signal's
# handler.
_PROBLEMS: tuple[type[Exception], ...] = (RuntimeError, *(
    kind for kind in vars(ort.capi.onnxruntime_pybind11_state).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
))  # fmt: skip
# Of the innermost node: branches and loops tell of the node in them.
_FAILED = re.compile(r".*Name:'(?P<name>[^']*)' Status Message: (?P<why>.*)", re.DOTALL)


Shape = tuple[int, ...]


_INDEX = re.compile(
    r"idx=(?P<a>-?\d+) must be within the inclusive range \[-?\d+,(?P<last>-?\d+)\]"
    r"|invalid index found, index = (?P<b>-?\d+)"
)
_FILE = re.compile(r"^\S+\.(?:cc|h):\d+ \S+ ")  # of the runtime's own
_PAST = {str(dtype.integer_range[1]) for dtype in (DType.I32, DType.I64)}  # see `emit.indices`


def _reason(why: str) -> str:
    """The runtime's reason; where it is an index, as the program means it."""
    found = _INDEX.search(why)
    if found is None:
        return _FILE.sub("", why)
    number = found["a"] or found["b"]
    index = "an index" if number in _PAST else f"index {number}"
    axis = f"an axis of extent {int(found['last']) + 1}" if found["last"] else "its axis"
    return f"{index} is outside {axis}"


@dataclass(frozen=True, slots=True)
class Options:
    """How sessions are made."""

    exact: bool
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    threads: int = 0


def within(inputs: Sequence[Array], limits: Sequence[int | None]) -> bool:
    """Whether the inputs are as a session takes for granted that they are: see `limits`."""
    return all(
        most is None or not array.size or 0 <= array.min() <= array.max() <= most
        for array, most in zip(inputs, limits, strict=True)
    )


def known_providers(providers: Any) -> tuple[str, ...]:
    """Those that this ONNX Runtime has; raises `ValueError` for others, which it would pass over
    with a warning."""
    there = ort.get_available_providers()
    if isinstance(providers, str) or not isinstance(providers, Collection) or not providers:
        given = escape_text(repr(providers), 80)
        raise ValueError(f"providers is a list of names, such as {there[-1:]}, not {given}")
    for name in providers:
        if name not in there:
            raise ValueError(f"there is no provider {escape_text(repr(name), 80)} here; this ONNX "
                             f"Runtime has {', '.join(there)}")  # fmt: skip
    return tuple(providers)


def known_threads(threads: Any) -> int:
    """A number of threads; raises `ValueError` for what is none."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 0 <= threads <= 4096:
        given = escape_text(repr(threads), 40)
        raise ValueError(f"threads is a number from 0 (as ONNX Runtime likes) on, not {given}")
    return threads


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


@dataclass(frozen=True, slots=True)
class Place:
    """A node: its name, its place in the source, and why it fails, where that is known before."""

    name: str
    source: str = ""
    refusal: str = ""


def shortened(graph: ir.Graph) -> list[Place]:
    """Numbers in place of the names that the runtime would keep for each node, value and source
    line; gives the nodes' places by their numbers."""
    places: list[Place] = []
    taken, names = _kept(graph), count()
    for node in graph.all_nodes():
        notes = (intern(node.metadata_props.pop(key, "")) for key in (SOURCE, REFUSAL))
        places.append(Place(node.name or "", *notes))
        node.name = str(len(places) - 1)
        for value in node.outputs:
            if value.name and not value.is_graph_output():
                value.name = next(name for name in (f"_{n}" for n in names) if name not in taken)
    return places


def _kept(graph: ir.Graph) -> set[str]:
    """The names that stay as they are, of this graph and of the bodies inside it: whatever the
    source calls an input, a parameter or a state may look like a number."""
    graphs = [graph, *graph.subgraphs()]
    values = [v for g in graphs for v in (*g.inputs, *g.outputs, *g.initializers.values())]
    return {value.name or "" for value in values}


class EntrySession:
    """A written entry ready to run."""

    def __init__(
        self, written: Written, weights: Mapping[str, ort.OrtValue], options: Options
    ) -> None:
        self.written = written
        graph = written.model.graph
        self.in_place = updated_in_place(written)
        self.idle = not graph.outputs  # gives and changes nothing: the runtime takes no such graph
        if self.idle:
            return
        self.places = shortened(graph)
        data = ir.to_proto(written.model).SerializeToString()
        with self._failures("ONNX Runtime does not open the entry: "):
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
        self.swaps = any(
            after is not None and not self.in_place.get(path, False)
            for path, (_, after) in written.states.items()
        )
        self.holding = -1  # the version of the states that are bound

    def writes_in_place(self) -> bool:
        return any(self.in_place.values())

    def run(
        self, inputs: Sequence[tuple[Array, DType]], states: States, shapes: Sequence[Shape]
    ) -> tuple[list[Array], list[Buffer]]:
        """Runs on checked inputs, for results of the `shapes`. Gives them, and the states whose
        next values lie in their spares, which `States.swap` makes theirs; the others are as the
        entry leaves them."""
        if self.idle:
            return [], []
        written, binding = self.written, self.binding
        held = []  # what is bound is not owned by the binding
        for name, (array, dtype) in zip(written.inputs, inputs, strict=True):
            if name in self.taken:
                held.append(to_ort(array, dtype))
                binding.bind_ortvalue_input(name, held[-1])
        results: list[Array] = []
        for name, (dtype, _), shape in zip(written.outputs, written.types, shapes, strict=True):
            results.append(np.empty(shape, NUMPY[dtype]))
            held.append(to_ort(results[-1], dtype))
            binding.bind_ortvalue_output(name, held[-1])
        swapped = self._bind_states(states)
        with self._failures():
            self.session.run_with_iobinding(binding)
        return results, swapped

    def shapes(self, sizes: Mapping[str, int]) -> list[Shape]:
        """The results' shapes for the entry's sizes."""
        return [tuple(self._extent(d, sizes) for d in dims) for _, dims in self.written.types]

    def limits(self, sizes: Mapping[str, int]) -> list[int | None]:
        """The most that each input may be (and 0 the least), None where it may be anything."""
        limits = (self.written.limits.get(name, ()) for name in self.written.inputs)
        return [min((self._extent(d, sizes) for d in dims), default=None) for dims in limits]

    @contextmanager
    def _failures(self, what: str = "") -> Iterator[None]:
        """The runtime's failures as ours, `what` before its reason."""
        try:
            yield
        except _PROBLEMS as error:
            if type(error) not in _PROBLEMS:
                raise
            raise RunError(f"{what}{self._told(str(error))}") from None

    def _told(self, problem: str) -> str:
        """The runtime's message with the place in the source, without its own files' names."""
        found = _FAILED.search(problem)
        if found is None:
            return problem
        number = found["name"]
        place = self.places[int(number)] if number.isdecimal() else Place(number)
        reason = place.refusal or _reason(found["why"].rpartition(" was false. ")[2].strip())
        return f"{reason} at {place.name}{f' ({place.source})' if place.source else ''}"

    def _bind_states(self, states: States) -> list[Buffer]:
        """Binds the states' memory, where it isn't bound; gives those whose spare is written."""
        if self.holding == states.version and not self.swaps:
            return []
        swapped: list[Buffer] = []
        for path, (given, after) in self.written.states.items():
            buffer = states.buffers[path]
            if given is not None and given in self.taken:
                self.binding.bind_ortvalue_input(given, buffer.value)
            if after is None:
                continue
            value = buffer.value
            if not self.in_place.get(path, False):
                value = buffer.other()
                swapped.append(buffer)
            self.binding.bind_ortvalue_output(after, value)
        self.holding = states.version
        return swapped

    def _extent(self, dim: Any, sizes: Mapping[str, int]) -> int:
        if dim.constant is not None:
            return int(dim.constant)
        values = {s: sizes[name] for s, name in self.written.symbols.items() if name in sizes}
        if not dim.symbols <= values.keys():
            raise InternalError("onnx.runtime", f"the size {dim} of a result is not known")
        return int(dim.evaluate(values))
