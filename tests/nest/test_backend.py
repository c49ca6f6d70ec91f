"""Which backend `run` takes when none is named, and what it says when that is not native."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linnet import nest
from linnet.native import NativeError
from linnet.native.toolchain import compiler
from linnet.nest import backend, run
from linnet.nest.backend import Choice, default_backend, other_backend
from linnet.nest.errors import NestError


@pytest.fixture
def with_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiler.Toolchain(("c++",), "1")
    monkeypatch.setattr(compiler, "find_toolchain", lambda: found)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NativeError("there is no compiler\nof any kind")

    monkeypatch.setattr(compiler, "find_toolchain", none)


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(backend, "find_spec", lambda name: name if name in names else None)


@pytest.mark.usefixtures("with_compiler")
def test_native_on_a_cpu_with_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    for dtype in (None, "f32", "bf16"):
        choice = default_backend(dtype, numerics="exact", cast_dtype=True)
        assert choice == Choice("native") and choice.note is None
    given = {"device": "cpu", "weights_format": "int8", "threads": 2}
    assert default_backend("f32", **given).backend == "native"


@pytest.mark.usefixtures("with_compiler")
@pytest.mark.parametrize(
    ("dtype", "options", "reason"),
    [
        ("f32", {"device": "cuda"}, "it runs on the cpu, not on cuda"),
        ("f16", {}, "it has no kernels for f16"),
        ("f32", {"compile": False}, "it has no option compile"),
    ],
)
def test_what_native_does_not_do(
    dtype: str, options: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, "torch")
    choice = default_backend(dtype, **options)
    assert choice.backend == "torch"
    assert choice.note == f"running on torch, as native cannot be used: {reason}"


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "jax", "onnxruntime", "onnx", "onnx_ir")
    choice = default_backend("f32")
    assert choice.backend == "jax_source"
    assert choice.note == ("running on jax_source, as native cannot be used: there is no compiler")
    installed(monkeypatch, "onnxruntime", "onnx", "onnx_ir")
    assert default_backend("f32").backend == "onnx_model"
    installed(monkeypatch, "onnxruntime")
    with pytest.raises(NestError, match="native cannot be used, as there is no compiler"):
        default_backend("f32")
    installed(monkeypatch, "torch")
    with pytest.raises(NestError, match="only the native backend has the option threads"):
        default_backend("f32", threads=2)


class Silent:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


class Failing:
    def prepare(self, *names: str, note: Any) -> None:
        note()
        raise NativeError("the compiler failed with exit code 1:\nand said this")


def test_a_model_that_native_cannot_compile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another backend runs it, with one line that says why, unless native was asked for."""
    seen: list[tuple[str, object]] = []

    def load(card: object, name: str, *, generics: dict[str, int], **options: object) -> object:
        seen.append((name, generics["MaxSeq"]))
        return Failing() if name == "native" else "model"

    monkeypatch.setattr(run, "load", load)
    installed(monkeypatch, "torch")
    said = Silent()
    made = run._loaded(None, Choice("native"), True, {}, 10, {"progress": said})  # type: ignore[arg-type]
    assert made == "model" and seen == [("native", 1024), ("torch", 10)]
    assert said.lines == [
        run.COMPILING,
        "running on torch, as native cannot be used: the compiler failed with exit code 1",
    ]
    with pytest.raises(NativeError, match="and said this"):
        run._loaded(None, Choice("native"), False, {}, 10, {"progress": said})  # type: ignore[arg-type]


def test_what_compiling_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "cache"))
    assert run._compiling() == run.COMPILING
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("LINNET_CACHE", str(tmp_path / "file"))
    assert run._compiling().startswith(run.COMPILING_ONCE)


def test_options_of_native_alone() -> None:
    with pytest.raises(NestError, match="only the native backend has the option threads"):
        run._choose("torch", {}, {"threads": 2})
    assert other_backend("x").backend in ("torch", "jax_source", "onnx_model")


def test_an_option_that_the_backend_lacks_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(NestError, match="`torch` has no option `weight_format`") as caught:
        nest.load(tmp_path, "torch", weight_format="int8")
    assert "numerics" in caught.value.diagnostics[0].notes[0]
