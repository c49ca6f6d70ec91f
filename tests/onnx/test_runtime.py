"""Loaded models: state, refusals, shared weights, failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import linnet.onnx
from linnet.ir.evaluate import Evaluator
from linnet.onnx import ExportError, InputError, RunError, StateError
from linnet.passes import bind

from .support import checked, difference
from .toy import GENERICS, TOY, weights


class Both:
    """The toy on ONNX Runtime, and the oracle beside it."""

    def __init__(self, folder: Path, optional: bool = False, **options: Any) -> None:
        program = checked(folder, TOY)
        given = weights(bind(program, "Model", GENERICS), optional)
        self.model = linnet.onnx.load_model(
            program, root="Model", generics=GENERICS, weights=given, threads=1, **options
        )
        self.state: dict[str, Any] = {}
        generics = {**GENERICS, "Batch": 2, "MaxSeq": 8, "T": "f32"}
        self.oracle = Evaluator(
            program, root="program::Model" if "program::Model" in program.blocks else "toy::Model",
            generics=generics, params=given, state=self.state,
        )  # fmt: skip

    def check(self, entry: str, inputs: Any, generics: Any = None) -> Any:
        got = self.model.run_entry(entry, inputs, generics)
        name = next(n for n in self.oracle.functions if n.endswith(f"Model.{entry}"))
        want = self.oracle.run(name, inputs, generics)
        for a, b in zip(_list(got), _list(want), strict=True):
            assert difference(a, b) < 1e-4, (entry, a, b)
        for path, value in self.state.items():
            assert difference(self.model.state(path), value) < 1e-4, path
        return got


def _list(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, tuple) else [value]


def ids(*rows: list[int]) -> Any:
    return np.array(rows, np.int32)


@pytest.fixture(scope="module", params=["exact", "fast"])
def both(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("toy"), numerics=request.param)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("toy"))


def test_entries_share_states(both: Both) -> None:
    both.check("forward", [ids([1, 2, 3])])
    both.check("step", [ids([1], [2]), 0])
    both.check("step", [ids([3], [0]), 1])
    both.check("generate", [ids([3], [4])], {"Steps": 3})
    both.check("until", [ids([3], [4]), 4])
    both.check("until", [ids([3], [4]), 0])
    both.check("maybe", [ids([3], [4]), True])
    both.check("maybe", [ids([3], [4]), False])
    both.check("step", [ids([5], [6]), 7])
    both.check("forward", [ids([1], [2])])


def test_optional_parts_of_a_model(tmp_path: Path) -> None:
    full = Both(tmp_path, optional=True)
    full.check("forward", [ids([1, 2, 3], [4, 5, 6])])
    assert "layers.1.extra.weight" in full.model.parameters


def test_structs_enums_and_optionals(toy: Both) -> None:
    pair = {"left": np.array([1, 2], np.float32), "right": 4}
    for mode in ("Add", "Subtract", "Nothing"):
        toy.check("shapes", [pair, mode])
        made = toy.check("shapes", [pair, mode, np.array([5, 6], np.float32)])
        assert int(made.right) == 5


def test_reset_and_copies(tmp_path: Path) -> None:
    model = Both(tmp_path).model
    step = [ids([1], [2]), 3]
    first = model.run_entry("step", step)
    kept = model.state("layers.0.cache")
    model.run_entry("step", [ids([1], [2]), 4])
    assert not np.array_equal(kept, model.state("layers.0.cache"))
    model.reset_state()
    assert not any(model.state(path).any() for path in model.state_paths())
    assert np.array_equal(model.run_entry("step", step), first)
    assert model.state_paths()[0] == "layers.0.cache"
    with pytest.raises(KeyError):
        model.state("nothing")


def test_a_cache_is_written_where_it_lies(toy: Both) -> None:
    toy.model.run_entry("step", [ids([1], [2]), 0])
    session = next(s for k, s in toy.model._sessions.items() if k[0] == "step")
    assert session.in_place["layers.0.cache"]
    assert not session.in_place["calls"]


REFUSED = [
    ("forward", [np.zeros((1, 2), np.int64)], r"is i32, but got int64; convert it with"),
    ("forward", [np.zeros(3, np.int32)], "of rank 2, but got shape"),
    ("forward", [], "takes 1 input, not 0"),
    ("forward", [[[1, 11]]], "tokens"),
    ("step", [ids([1], [2]), 8], "pos"),
    ("step", [ids([1], [2]), -1], "pos"),
    ("step", [ids([1], [2]), 2**40], "does not fit i32"),
    ("step", [ids([1]), 0], "has to be 2"),
    ("generate", [ids([1], [2])], "needs the generic `Steps`"),
    ("shapes", [{"left": [1.0, 2.0], "right": 1}, "Other"], "one of Add, Subtract, Nothing"),
    ("nothing", [], "there is no entry `nothing`"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "inputs", "said"), REFUSED)
def test_what_does_not_fit_is_refused(toy: Both, entry: str, inputs: Any, said: str) -> None:
    before = {path: toy.model.state(path) for path in toy.model.state_paths()}
    with pytest.raises(InputError, match=said):
        toy.model.run_entry(entry, inputs)
    for path, value in before.items():
        assert np.array_equal(toy.model.state(path), value)


def test_lists_and_named_inputs(toy: Both) -> None:
    tokens = [[1, 2], [3, 4]]
    want = toy.model(np.array(tokens, np.int32))
    assert np.array_equal(toy.model(tokens), want)
    assert np.array_equal(toy.model(tokens=tokens), want)
    with pytest.raises(InputError, match="given twice"):
        toy.model(tokens, tokens=tokens)


def test_a_failure_names_its_line_and_keeps_state(tmp_path: Path) -> None:
    model = Both(tmp_path).model
    model.run_entry("divided", [7, 2])
    model._bounds.known["divided", ()] = ()  # else the call is refused before it runs
    with pytest.raises(RunError, match=r"Integer division by zero at .*program.linnet:\d+"):
        model.run_entry("divided", [7, 0])
    assert model.state("calls")[0] == 1  # a spare was written, not the state itself
    assert model.run_entry("divided", [-7, 2]) == -3


def test_a_failure_after_writing_in_place_breaks_the_state(tmp_path: Path) -> None:
    both = Both(tmp_path)
    both.model.run_entry("step", [ids([1], [2]), 0])
    session = next(s for k, s in both.model._sessions.items() if k[0] == "step")
    run, session.run = session.run, _fails  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="as asked"):
        both.model.run_entry("step", [ids([1], [2]), 1])
    session.run = run  # type: ignore[method-assign]
    with pytest.raises(StateError, match=r"call reset_state\(\) first"):
        both.model.run_entry("forward", [ids([1])])
    both.model.reset_state()
    both.model.run_entry("forward", [ids([1])])


def _fails(*_: Any) -> Any:
    raise RuntimeError("as asked")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"numerics": "loose"}, "numerics is one of"),
        ({"entry": "no"}, "there is no entry"),
        ({"opset": 7}, "opset is from 20 to .*, not 7"),
        ({"opset": "24"}, "opset is from 20 to .*, not '24'"),
        ({"opset": True}, "not True"),
        ({"providers": ["Nope"]}, "no provider 'Nope' here; .* has .*CPUExecutionProvider"),
        ({"providers": "CPUExecutionProvider"}, "providers is a list of names, such as"),
        ({"providers": ()}, "providers is a list of names"),
        ({"threads": -1}, "threads is a number from 0 .*, not -1"),
        ({"threads": "2"}, "threads is a number from 0"),
        (
            {"present": ["layers.9.extra.weight"]},
            "which is no optional parameter of the model .*layers",
        ),
        ({"present": "layers.1.extra.weight"}, "`present` is a list of paths"),
    ],
)
def test_bad_options(tmp_path: Path, option: Any, said: str) -> None:
    program = checked(tmp_path, TOY)
    with pytest.raises(ValueError, match=said):
        linnet.onnx.load_model(program, root="Model", generics=GENERICS, **option)


def test_the_text_of_an_entry_with_sizes(toy: Both) -> None:
    assert "[3,5]" in toy.model.generated_source("forward", {"B": 3, "S": 5})
    with pytest.raises(ValueError, match="no generic of its own called `Q`; it has `B`, `S`"):
        toy.model.generated_source("forward", {"Q": 3})
    with pytest.raises(ValueError, match=r"`B` of `Model\.forward` takes an integer, not `x`"):
        toy.model.generated_source("forward", {"B": "x"})


NUMBERED = """
module program
pub block Model<H: Dim> {
    param _0: Tensor[H; f32]
    state _3: Tensor[H; f32]
    pub entry run(_1: Tensor[H; f32], n: i64) -> Tensor[H; f32] {
        var _2 = _1 * 2.0 + _0
        for _4 in 0..n { _2 = _2 * 2.0 - _1 * cast<f32>(_4 + 1) }
        _3 = _3 * 2.0 + _2 + 1.0
        return _3 * 3.0 - _2
    }
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_names_that_look_like_the_runtimes_own(tmp_path: Path, numerics: str) -> None:
    program = checked(tmp_path, NUMBERED)
    given = {"_0": np.array([1, 2], np.float32)}
    model = linnet.onnx.load_model(
        program, generics={"H": 2}, weights=given, numerics=numerics, threads=1
    )
    oracle = Evaluator(program, root="program::Model", generics={"H": 2}, params=given)
    for n in (3, 0):
        inputs = [np.array([3, 4], np.float32), n]
        want = oracle.run("program::Model.run", inputs)
        assert np.array_equal(model.run_entry("run", inputs), want)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_indices_crossed_with_each_other(tmp_path: Path, count: int) -> None:
    text = """
module program
pub entry run<N: Dim, M: Dim, K: Dim>(x: Tensor[N, M, 3; f32], i: Tensor[K; i32], j: Tensor[K; i64])
    -> Tensor[K, K, 3; f32] where N > 0, M > 0 {
    let found[k, l, c] = x[i[k], j[l], c]
    return found
}
"""
    x = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    i, j = np.arange(count, dtype=np.int32), 2 - np.arange(count, dtype=np.int64)
    for numerics in ("exact", "fast"):
        model = linnet.onnx.load_model(checked(tmp_path, text), numerics=numerics, threads=1)
        assert np.array_equal(model.run_entry("run", [x, i, j]), x[i[:, None], j[None, :]])


def test_values_of_the_runtime_and_of_other_libraries(toy: Both) -> None:
    value = ort.OrtValue.ortvalue_from_numpy
    tokens = ids([1, 2])
    want = toy.model(tokens)
    assert np.array_equal(toy.model(value(tokens)), want)
    assert np.array_equal(toy.model(tokens=value(tokens)), want)
    pair = {"left": value(np.array([1, 2], np.float32)), "right": value(np.array(4, np.int32))}
    assert toy.model.run_entry("shapes", [pair, "Add"]) is not None
    with pytest.raises(InputError, match="is i32, but got int64"):
        toy.model(value(tokens.astype(np.int64)))
    bits = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.uint16), 16)
    with pytest.raises(InputError, match=r"OrtValue of tensor\(bfloat16\) cannot be read"):
        toy.model(bits)

    class Foreign:
        def __array__(self) -> Any:
            return tokens

    with pytest.raises(InputError, match=r"not a Foreign: give it as np.asarray\(\.\.\.\)"):
        toy.model(Foreign())


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
try:
    import linnet.onnx
except ImportError as error:
    assert "`onnxruntime`" in str(error) and "pip install 'linnet[onnx]'" in str(error), error
else:
    raise SystemExit("imported")
"""


def test_without_the_runtime_what_installs_it() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=120)


NAMED = """
module m
pub struct class { y: i32, def: f32, _z: f32, f_z: f32 }
pub block M {
    state c: Tensor[1; i32]
    pub entry count() -> class {
        c = c + 1
        return class(y = c[0], def = 1.0, _z = 2.0, f_z = 3.0)
    }
}
"""


def test_structs_may_have_any_name(tmp_path: Path) -> None:
    model = linnet.onnx.load_model(checked(tmp_path, NAMED), threads=1)
    for turn in (1, 2):
        made = model.run_entry("count")
        assert (type(made).__name__, made._fields) == ("class_", ("y", "def_", "f_z", "f_z_"))
        assert tuple(map(float, made)) == (turn, 1.0, 2.0, 3.0)


def test_a_result_that_cannot_be_made_leaves_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = linnet.onnx.load_model(checked(tmp_path, NAMED), threads=1)
    with monkeypatch.context() as patched:
        patched.setattr("linnet.onnx.runtime.model.assembled", _fails)
        with pytest.raises(RuntimeError, match="as asked"):
            model.run_entry("count")
    assert model.state("c")[0] == 0
    assert model.run_entry("count").y == 1


def test_signatures_and_parameters_are_read(toy: Both) -> None:
    assert toy.model.signature("forward") == "forward<B: Dim, S: Dim>(tokens: Tensor[B, S; i32])"
    with pytest.raises(InputError, match="there is no entry `nothing`"):
        toy.model.signature("nothing")
    path = next(iter(toy.model.parameters))
    with pytest.raises(TypeError):
        toy.model.parameters[path] = np.zeros(1)  # type: ignore[index]


DIVIDED = "module m\npub entry main(x: Tensor[2; f32]{0}) -> Tensor[2; f32] {{ {1} }}"


def test_a_table_that_cannot_be_made_is_refused_with_its_place(tmp_path: Path) -> None:
    program = checked(tmp_path, DIVIDED.format("", "return x + exp(cast<f32>(12 / iota<i32>(2)))"))
    with pytest.raises(ExportError, match=r"divided by zero \(at [^()]*program.linnet:\d+:\d+\)$"):
        linnet.onnx.load_model(program).run_entry("main", [np.ones(2, np.float32)])


def test_what_the_runtime_does_not_open_is_a_failure_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ort.capi.onnxruntime_pybind11_state.Fail("no such kernel")

    monkeypatch.setattr(ort, "InferenceSession", refuse)
    program = checked(tmp_path, DIVIDED.format("", "return x"))
    with pytest.raises(RunError, match=r"^ONNX Runtime does not open the entry: no such kernel$"):
        linnet.onnx.load_model(program).run_entry("main", [np.ones(2, np.float32)])


def test_a_file_opens_though_a_constant_divisor_has_a_0(tmp_path: Path) -> None:
    """In a branch that is not taken it is nothing to ONNX Runtime, whatever it could work out."""
    body = """
pub block Model {
    param by: Tensor[2; i32]
    pub entry main(x: Tensor[2; i32], u: Tensor[2; u64], s: Tensor[2; i8], on: bool)
        -> Tensor[2; i32]
    {
        return if on { divided(x, u, s) + x / by } else { x / (by + 1) }
    }
}
fn divided(x: Tensor[2; i32], u: Tensor[2; u64], s: Tensor[2; i8]) -> Tensor[2; i32] {
    let wide = cast<i32>(u / iota<u64>(2)) + cast<i32>(s % iota<i8>(2))
    return x % (iota<i32>(2) * 2) + x / 0 + wide
}
"""
    program, file = checked(tmp_path, f"module m\n{body}"), tmp_path / "m.onnx"
    by = np.array([0, 1], np.int32)
    linnet.onnx.export_model(program, file, root="Model", entry="main", weights={"by": by})
    onnx.checker.check_model(onnx.load(file), full_check=True)
    session = ort.InferenceSession(file)
    x = np.array([7, -7], np.int32)
    given = {"x": x, "u": x.astype(np.uint64), "s": x.astype(np.int8)}
    (got,) = session.run(None, {**given, "on": np.array(False)})
    assert got.tolist() == [7, -3]
    with pytest.raises(Exception, match="division by zero"):
        session.run(None, {**given, "on": np.array(True)})
