"""Exported files: valid, told apart by names, and running without Linnet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

import linnet
import linnet.onnx
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.onnx import ExportError, export_model
from linnet.passes import bind

from .support import checked, difference
from .toy import GENERICS, TOY, weights

ENTRIES: dict[str, Any] = {
    "forward": None, "step": None, "generate": {"Steps": 3}, "until": None, "maybe": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return checked(tmp_path_factory.mktemp("toy"), TOY)


@pytest.fixture(scope="module")
def given(program: Program) -> dict[str, Any]:
    return weights(bind(program, "Model", GENERICS))


def exported(program: Program, entry: str, **options: Any) -> ir.Model:
    settings = {"root": "Model", "generics": GENERICS, "sizes": ENTRIES.get(entry), **options}
    return export_model(program, entry=entry, **settings)


@pytest.mark.parametrize("entry", list(ENTRIES))
@pytest.mark.parametrize("opset", [20, 22, 24, linnet.onnx.NEWEST_OPSET])
def test_models_are_valid(program: Program, given: Any, entry: str, opset: int) -> None:
    proto = ir.to_proto(exported(program, entry, opset=opset, weights=given))
    onnx.checker.check_model(proto, full_check=True)
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    assert [o.version for o in proto.opset_import] == [opset]
    names = [node.name for node in proto.graph.node]
    assert len(set(names)) == len(names) and all(names)


def test_names_say_where_things_are(program: Program, given: Any) -> None:
    model = exported(program, "step", weights=given)
    names = {node.name for node in model.graph}
    assert "layers.0.norm/RMSNormalization" in names
    assert "layers.2.linear/linear/product/Gemm" in names or any(
        name.startswith("layers.2.linear/") for name in names
    )
    assert {"layers.0.linear.weight", "embedding.weight"} <= set(model.graph.initializers)
    sources = {node.metadata_props.get("linnet.source", "") for node in model.graph}
    assert any("program.linnet:" in source for source in sources)


def test_metadata_names_parameters_states_and_source(program: Program) -> None:
    model = exported(program, "step")
    props = model.metadata_props
    assert props["linnet.entry"] == "step"
    assert props["linnet.source"].endswith("::Model")
    assert json.loads(props["linnet.generics"])["H"] == 4
    assert json.loads(props["linnet.parameters"])["layers.1.norm.weight"] == "layers.1.norm.weight"
    state = json.loads(props["linnet.states"])["layers.1.cache"]
    inputs = {v.name for v in model.graph.inputs}
    outputs = {v.name for v in model.graph.outputs}
    assert state["input"] in inputs and state["output"] in outputs
    assert "layers.1.norm.weight" in inputs  # without weights parameters are inputs


RUN = """
import sys
import numpy as np
import onnxruntime as ort
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
for batch in (1, 3):
    for length in (1, 7, 130):
        tokens = np.arange(batch * length, dtype=np.int32).reshape(batch, length) % 11
        (result,) = session.run(None, {"tokens": tokens})
        np.save(f"{sys.argv[2]}/{batch}_{length}.npy", result)
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"linnet", "onnx", "onnx_ir", "torch"}, loaded
"""


def test_a_file_runs_every_batch_and_length_alone(
    program: Program, given: Any, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    exported(program, "forward", weights=given, path=path)
    subprocess.run([sys.executable, "-c", RUN, str(path), str(tmp_path)], check=True, timeout=120)
    generics = {**GENERICS, "Batch": 2, "MaxSeq": 8, "T": "f32"}
    oracle = Evaluator(program, root=f"{program.root}::Model", generics=generics, params=given)
    for batch in (1, 3):
        for length in (1, 7, 130):
            tokens = np.arange(batch * length, dtype=np.int32).reshape(batch, length) % 11
            want = oracle.run(f"{program.root}::Model.forward", [tokens])
            assert difference(np.load(tmp_path / f"{batch}_{length}.npy"), want) < 1e-4


def test_external_data(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    sizes = {**GENERICS, "H": 64}
    given = weights(bind(program, "Model", sizes))
    exported(program, "forward", generics=sizes, weights=given, path=path, external_data=True)
    assert (tmp_path / "model.onnx.data").stat().st_size > 0
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.run(None, {"tokens": np.zeros((1, 2), np.int32)})[0].shape == (1, 2, 11)


def test_plain_operators_before_the_newer_ones(program: Program, given: Any) -> None:
    kinds = {node.op_type for node in exported(program, "step", opset=20, weights=given).graph}
    assert not kinds & {"RMSNormalization", "TensorScatter", "Attention", "Swish"}
    kinds = {node.op_type for node in exported(program, "step", weights=given).graph}
    assert {"RMSNormalization", "TensorScatter"} <= kinds
    domains = {node.domain for node in exported(program, "step", weights=given).graph}
    assert domains == {""}


def test_what_cannot_be_exported_says_why(program: Program) -> None:
    with pytest.raises(ExportError, match="has `Steps`, which no input's shape gives"):
        exported(program, "generate", sizes=None)
    with pytest.raises(ExportError, match="opset is from 20"):
        exported(program, "step", opset=19)
    with pytest.raises(ExportError, match="numerics is one of"):
        exported(program, "step", numerics="loose")


def test_fixed_sizes(program: Program, given: Any) -> None:
    model = exported(program, "forward", sizes={"B": 2, "S": 5}, weights=given)
    assert [int(d) for d in model.graph.inputs[0].shape] == [2, 5]
    open_ = exported(program, "forward", weights=given)
    assert [str(d) for d in open_.graph.inputs[0].shape] == ["B", "S"]


def test_rounding_is_the_bodys_in_exact_numerics(tmp_path: Path) -> None:
    """A chain of casts and constants that optimisers like to simplify away."""
    text = """
module m
pub entry run(x: Tensor[3; f32]) -> Tensor[3; f32] {
    let narrow = cast<f32>(cast<bf16>(x))
    let tenth = cast<f32>(cast<bf16>(0.1))
    let table = cast<f32>(cast<f16>(sin(cast<f32>(iota<i64>(3)) * 0.37)))
    return (narrow * tenth + narrow) / 3.0 + table
}
"""
    given = checked(tmp_path, text)
    x = np.array([1.0078125, 3.14159, -2.7182], np.float32)
    want = Evaluator(given).run(f"{given.root}::run", [x])
    for numerics in ("exact", "fast"):
        model = linnet.onnx.load_model(given, numerics=numerics)
        assert np.array_equal(model.run_entry("run", [x]), want)
    path = tmp_path / "m.onnx"
    export_model(given, path, entry="run", numerics="exact")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(None, {"x": x})[0], want)


MIXED = """
module m
pub entry after<A: Dim, B: Dim>(x: Tensor[A + B; f32], y: Tensor[B; f32])
    -> (Tensor[A + 2 * B; f32], Tensor[A; i64]) { return (concat(x, y, axis=0), iota<i64>(A)) }
pub entry product<A: Dim, B: Dim>(x: Tensor[A * B; f32], y: Tensor[B; f32])
    -> (Tensor[A, B; f32], Tensor[A; i64]) { return (reshape(x, [A, B]), iota<i64>(A)) }
pub entry chain<A: Dim, B: Dim, C: Dim>(
    x: Tensor[2 * A + B * C; f32], y: Tensor[B + C; f32], z: Tensor[3 * C + 1; f32],
) -> (Tensor[A; i64], Tensor[B; i64]) { return (iota<i64>(A), iota<i64>(B)) }
pub entry hidden<A: Dim, B: Dim>(x: Tensor[A + B; f32]) -> Tensor[A; i64] { return iota<i64>(A) }
"""


@pytest.mark.parametrize(
    ("entry", "extents", "counts"),
    [
        ("after", [(5, 3), (2, 2), (2, 0)], [2, 0, 2]),
        ("product", [(6, 3), (0, 2), (4, 1), (0, 0)], [2, 0, 4, 0]),
        ("chain", [(7, 4, 4), (2, 3, 7)], [2, 0]),
    ],
)
def test_sizes_that_shapes_give_together(
    tmp_path: Path, entry: str, extents: list[tuple[int, ...]], counts: list[int]
) -> None:
    program = checked(tmp_path, MIXED)
    export_model(program, tmp_path / "m.onnx", entry=entry)
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    model = linnet.onnx.load_model(program, threads=1)
    for extent, count in zip(extents, counts, strict=True):
        inputs = [np.ones(n, np.float32) for n in extent]
        got = session.run(None, dict(zip("xyz", inputs, strict=False)))
        shown = got[0] if entry == "chain" else got[1]
        assert shown.tolist() == list(range(count))
        if entry != "product" or extent[1]:
            for a, b in zip(got, model.run_entry(entry, inputs), strict=True):
                assert a.shape == b.shape and np.array_equal(a, b)
    if entry == "after":
        with pytest.raises(ExportError, match="has `A`, `B`, which no input's shape gives"):
            export_model(program, None, entry="hidden")


def test_options_are_checked(program: Program) -> None:
    with pytest.raises(ValueError, match="no generic of its own called `Q`; it has `B`, `S`"):
        exported(program, "forward", sizes={"Q": 3})
    with pytest.raises(ValueError, match="which is no optional parameter"):
        exported(program, "forward", present=["nothing"])
    for opset in ("24", 24.0, True, 99):
        with pytest.raises(ExportError, match="opset is from 20 to"):
            exported(program, "forward", opset=opset)


def test_an_entry_without_results(tmp_path: Path) -> None:
    text = """
module m
pub block Model<H: Dim> {
    state s: Tensor[H; f32]
    pub entry add(x: Tensor[H; f32]) { s = s + x }
    pub entry idle(x: Tensor[H; f32]) { let y = x }
}
"""
    given = checked(tmp_path, text)
    x = np.array([1, 2], np.float32)
    model = linnet.onnx.load_model(given, generics={"H": 2}, threads=1)
    for entry in ("add", "idle", "add"):
        assert not model.run_entry(entry, [x])
    assert model.state("s").tolist() == [2, 4]
    path = tmp_path / "m.onnx"
    export_model(given, path, entry="add", generics={"H": 2})
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.run(None, {"s": x, "x": x})[0].tolist() == [2, 4]
    with pytest.raises(ExportError, match="`idle` gives nothing and changes no state"):
        export_model(given, path, entry="idle", generics={"H": 2})
