"""What the passes promise, looked at where it runs: on each backend's own code and memory.

* work without inputs is done once for a model, work that a layer doesn't change once for a call
* a cache is read to the position: what lies well past it may be anything
* the output head runs on the last position alone where nothing else is asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet
from linnet.backends.source import bound
from linnet.ir import Op, Program
from linnet.ir.evaluate import Evaluator
from linnet.packages import models_root
from linnet.passes import Binding, Instance, Lowered, lower

DECODER = {
    "Vocab": 96, "H": 32, "Heads": 4, "KvHeads": 2, "HeadDim": 8, "Inner": 48, "Layers": 3,
    "Batch": 1, "MaxSeq": 1024, "T": "f32",
}  # fmt: skip
LAST = """
module net
use std.nn.linear::{Linear}
use std.nn.norm::{rms_norm}

pub block Net<V: Dim, H: Dim> where H > 0 {
    param scale: Tensor[H; f32]
    sub head: Linear<H, V, f32>

    fn every<S: Dim>(x: Tensor[S, H; f32]) -> Tensor[S, V; f32] {
        return head.forward(rms_norm(x, scale, 1e-5)) * 2.0
    }

    pub entry last<S: Dim>(x: Tensor[S, H; f32]) -> Tensor[V; f32] where S > 0 {
        return every(x)[S - 1, :]
    }
}
"""
BACKENDS = ["torch", "jax_source", "jax_model", "onnx", "native"]


@dataclass(frozen=True)
class Backend:
    """How a backend is used here: loading, its natives, its states' memory."""

    name: str

    @property
    def package(self) -> str:
        return self.name.partition("_")[0]

    def load(self, source: Any, root: str, generics: Mapping[str, Any], weights: Any) -> Any:
        module = pytest.importorskip(f"linnet.{self.package}")
        options: dict[str, Any] = {"generics": generics, "weights": weights, "root": root}
        if self.name == "torch":
            return module.load(source, compile=False, **options)
        if self.name == "native":
            return module.load(source, **options)
        if self.name == "jax_source":
            return module.load_source_model(source, **options)
        return module.load_model(source, **options)

    def selector(self) -> Any:
        pytest.importorskip(f"linnet.{self.package}")
        return import_module(f"linnet.{self.package}.natives.table").selector("fast", "cpu", False)

    def spoil(self, model: Any, first: int) -> None:
        """Puts NaN into every cache from position `first` on."""
        if self.package == "jax":
            jax = import_module("jax")
            model._state = jax.tree.map(
                lambda a: a.at[:, :, first:].set(float("nan")), model._state
            )
            return
        states = getattr(model._states, "buffers", model._states)
        for state in states.values():
            array = getattr(state, "array", state)
            array[:, :, first:] = float("nan")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    made = Backend(request.param)
    for name in {"torch": ("torch",), "jax": ("jax",), "onnx": ("onnxruntime", "onnx_ir")}.get(
        made.package, ()
    ):
        pytest.importorskip(name)
    return made


@pytest.fixture(scope="module")
def decoder() -> Program:
    return linnet.load_program(models_root() / "decoder" / "src" / "lib.linnet")


def weights_of(binding: Binding) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {p.path: rng.normal(size=[d.constant or 0 for d in p.type.dims]).astype(np.float32) * 0.3
            for p in binding.params if not p.optional}  # fmt: skip


def numpy(value: Any) -> Any:
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def runs(low: Lowered, entry: str, kind: str, keeping: bool = False) -> int:
    """How often an operation runs in a call of an entry; with `keeping` what is prepared counts."""

    def count(name: str, instance: Instance | None) -> int:
        return sum(op_runs(op, instance) for op in low.functions[name].body.ops)

    def op_runs(op: Op, instance: Instance | None) -> int:
        if op.kind == "call" and (keeping or not op.attrs.get("prepared")):
            receiver = op.attrs.get("receiver")
            inner = instance
            if receiver is not None and receiver.root is None and instance is not None:
                found = instance.child(receiver.steps)
                inner = found if isinstance(found, Instance) else None
            elif receiver is not None:
                inner = element.get(receiver.root)
            return count(op.attrs["callee"], inner)
        if op.kind == "for_subs":
            assert instance is not None
            array = instance.child(op.attrs["array"].steps)
            assert isinstance(array, tuple)
            element[op.attrs["var"]] = array[0]
            return len(array) * sum(op_runs(inner, instance) for inner in op.regions[0].ops)
        return int(op.kind == kind) + sum(
            op_runs(inner, instance) for region in op.regions for inner in region.ops
        )

    element: dict[Any, Instance] = {}
    return count(low.entries[entry], low.binding.root)


@pytest.mark.parametrize("entry", ["decode", "prefill", "decode_rows"])
def test_tables_are_made_once_and_rows_of_them_once_a_call(
    backend: Backend, decoder: Program, entry: str
) -> None:
    binding = bound(decoder, "Model", None, DECODER, None)
    present = frozenset(weights_of(binding))
    select = backend.selector()
    plain = lower(binding, [entry], present=present, select=select, optimize=False)
    made = lower(binding, [entry], present=present, select=select)
    # The frequencies take a logarithm, their angles a cosine: in each layer, as it is written.
    assert (runs(plain, entry, "log"), runs(plain, entry, "cos")) == (3, 3)
    assert (runs(made, entry, "log"), runs(made, entry, "cos")) == (0, 1)
    assert runs(made, entry, "log", keeping=True) == 1
    assert {note.by for note in made.notes} >= {"prepare", "hoist"}


def test_a_graph_holds_one_rotation_for_all_layers(decoder: Program) -> None:
    """The backends whose programs are flat: what is written is what runs."""
    pytest.importorskip("onnx_ir")
    onnx = pytest.importorskip("linnet.onnx")
    model = onnx.export_model(decoder, entry="decode", root="Model", generics=DECODER)
    kinds = [node.op_type for node in model.graph.all_nodes()]
    assert kinds.count("Cos") == 1 and kinds.count("Exp") == 0


def test_a_compiled_program_holds_one_rotation_for_all_layers(decoder: Program) -> None:
    pytest.importorskip("jax")
    from linnet.jax import stablehlo

    text = stablehlo(decoder, "Model", "decode", DECODER)
    assert text.count("stablehlo.cosine") == 1


def test_a_cache_is_read_to_the_position_alone(backend: Backend, decoder: Program) -> None:
    binding = bound(decoder, "Model", None, DECODER, None)
    model = backend.load(decoder, "Model", DECODER, weights_of(binding))
    token = np.array([[9]], np.int32)
    for position in range(4):
        want = numpy(model.run_entry("decode", [token, position]))
    backend.spoil(model, 256)  # blocks of keys are read whole
    got = numpy(model.run_entry("decode", [token, 3]))
    assert np.isfinite(want).all() and np.array_equal(got, want)


def test_prompts_read_a_cache_to_their_end_alone(backend: Backend, decoder: Program) -> None:
    if backend.name == "native":
        return  # the same kernel as above, and a second entry to compile
    binding = bound(decoder, "Model", None, DECODER, None)
    model = backend.load(decoder, "Model", DECODER, weights_of(binding))
    prompt = np.array([[5, 6, 7, 8]], np.int32)
    want = numpy(model.run_entry("prefill", [prompt, 0]))
    backend.spoil(model, 256)
    assert np.array_equal(numpy(model.run_entry("prefill", [prompt, 0])), want)


def test_the_head_runs_on_the_last_position_alone(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "net.linnet"
    path.write_text(LAST, encoding="utf-8")
    sizes = {"V": 64, "H": 16}
    program = linnet.load_program(path)
    binding = bound(program, "Net", None, sizes, None)
    weights = weights_of(binding)
    low = lower(binding, ["last"], present=frozenset(weights), select=backend.selector())
    assert [n.text for n in low.notes if n.by == "rows"] == ["`Net.every` gets 1 of S rows"]
    model = backend.load(program, "Net", sizes, weights)
    x = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    oracle = Evaluator(program, root="net::Net", generics=sizes, params=weights)
    want = oracle.run("net::Net.last", [x], generics={"S": 7})
    np.testing.assert_allclose(numpy(model.run_entry("last", [x])), want, rtol=2e-4, atol=2e-4)
