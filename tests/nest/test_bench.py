"""`linnet bench`: what is counted, what is refused, and a whole run of a toy model."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from linnet.nest import NestError, Progress, bench
from linnet.nest.backend import Choice
from linnet.nest.bench import Settings, bench_model
from linnet.nest.bench_bytes import reads_of
from linnet.nest.bench_memory import Memory, peak_memory
from linnet.nest.card import Card

VOCAB, H, LAYERS, POSITIONS = 11, 64, 2, 40
CARD = f"""
[model]
name = "toy"
title = "Toy"
summary = "A toy."
license = "MIT"
family = "toy"
[source]
path = "src/lib.linnet"
root = "Model"
[generics]
Vocab = {VOCAB}
H = {H}
Layers = {LAYERS}
Batch = 1
MaxSeq = {POSITIONS}
T = "f32"
[weights]
files = ["model.safetensors"]
bindings = "bindings.json"
"""
SOURCE = """\
module toy

use std.nn.embedding::{Embedding}
use std.nn.linear::{Linear}

pub block Layer<H: Dim, Batch: Dim, MaxSeq: Dim, T: Float>
where MaxSeq > 0 {
    sub mix: Linear<H, H, T>
    state seen: Tensor[Batch, MaxSeq, H; T]

    pub fn forward(x: Tensor[Batch, H; T]) -> Tensor[Batch, H; T] {
        return mix.forward(x) + seen[:, 0, :]
    }
}

pub block Model<Vocab: Dim, H: Dim, Layers: Dim, Batch: Dim, MaxSeq: Dim, T: Float>
where MaxSeq > 0 {
    sub embedding: Embedding<Vocab, H, T>
    sub layers: [Layer<H, Batch, MaxSeq, T>; Layers]
    sub head: Linear<H, Vocab, T>

    pub entry prefill<S: Dim>(tokens: Tensor[Batch, S; i32], pos: i32) -> Tensor[Batch, Vocab; T]
    where S > 0 {
        return after(embedding.forward(tokens)[:, S - 1, :])
    }

    pub entry decode(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, Vocab; T] {
        return after(embedding.forward(token)[:, 0, :])
    }

    fn after(first: Tensor[Batch, H; T]) -> Tensor[Batch, Vocab; T] {
        var x = first
        static for layer in layers {
            x = layer.forward(x)
        }
        return head.forward(x)
    }
}
"""
BINDINGS = """{
  "embedding.weight": "table",
  "head.weight": "table",
  "layers.{i}.mix.weight": "mix.{i}"
}"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    (folder / "src").mkdir(parents=True)
    (folder / "nest.toml").write_text(CARD)
    (folder / "linnet.toml").write_text('[package]\nname = "toy"\n')
    (folder / "src" / "lib.linnet").write_text(SOURCE)
    (folder / "bindings.json").write_text(BINDINGS)
    rng = np.random.default_rng(0)
    tensors = {"table": rng.standard_normal((VOCAB, H), dtype=np.float32)}
    tensors |= {f"mix.{k}": rng.standard_normal((H, H), dtype=np.float32) for k in range(LAYERS)}
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_memory_is_read_and_counted() -> None:
    memory = Memory(2, 1 << 24)
    assert 1e8 < memory.bandwidth(rounds=2) < 1e13
    before = peak_memory()
    assert before is not None
    held = np.ones(1 << 25)  # 256 MiB
    after = peak_memory()
    assert after is not None and after >= held.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="counted there by its own pages")
def test_a_process_does_not_take_over_the_peak_of_its_parent() -> None:
    block = np.ones(25_000_000)  # 200 MB
    code = "from linnet.nest.bench_memory import peak_memory; print(peak_memory())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert int(said.stdout) < block.nbytes


@pytest.mark.parametrize(
    ("form", "layer_bits", "head_bits"),
    [(None, 32, 32), ("bf16", 16, 16), ("int8", 8, 8), ("int4", 4.5, 8.5)],
)
def test_bytes_of_a_token(
    card: Path, form: str | None, layer_bits: float, head_bits: float
) -> None:
    """The tied table is read once, as the head; the look-up of one row of it adds nothing."""
    read = Card.read(card)
    settings = Settings(weights_format=form, prompt_tokens=10, new_tokens=4)
    found = reads_of(read, read.generics, card / "model.safetensors", settings)
    assert found.weights == int((LAYERS * H * H * layer_bits + VOCAB * H * head_bits) / 8)
    assert found.caches == LAYERS * 12 * H * 4
    assert found.total == found.weights + found.caches


def test_settings_that_cannot_be() -> None:
    for bad in ({"repeat": 0}, {"prompt_tokens": 0}, {"threads": 0}):
        with pytest.raises(NestError):
            Settings(**bad)  # type: ignore[arg-type]
    with pytest.raises(NestError, match="`torch`"):
        Settings(backends=("native", "torch"), weights_format="int8")


def test_what_cannot_be_measured(card: Path) -> None:
    with pytest.raises(NestError, match="no backend `abacus`"):
        bench_model(card, Settings(backends=("abacus",)))
    with pytest.raises(NestError, match=f"need 41 positions.*has {POSITIONS}"):
        bench_model(card, Settings(prompt_tokens=30, new_tokens=10))
    source = card / "src" / "lib.linnet"
    source.write_text(SOURCE.replace("entry decode", "entry step"))
    with pytest.raises(NestError, match="it has no entry `decode`"):
        bench_model(card, Settings(prompt_tokens=3, new_tokens=4))


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte takes longer to fill than a toy to run."""
    monkeypatch.setattr(bench, "Memory", lambda threads: Memory(threads, 1 << 20))


@pytest.mark.usefixtures("small_memory")
def test_a_whole_run(card: Path) -> None:
    pytest.importorskip("torch")
    settings = Settings(
        backends=("torch",), prompt_tokens=5, new_tokens=3, repeat=2, threads=1, numerics="exact"
    )
    report = bench_model(card, settings)
    (outcome,) = report.outcomes
    assert outcome.error is None and outcome.measured
    assert len(outcome.first) == len(outcome.decode) == 2
    assert 0 < outcome.load < outcome.start
    assert all(math.isfinite(x) and x > 0 for x in (*outcome.first, *outcome.decode))
    assert outcome.peak_memory is not None and outcome.peak_memory > 1 << 20
    assert report.threads == 1 and report.bandwidth > 0


@pytest.mark.usefixtures("small_memory")
def test_a_backend_that_fails_says_why(card: Path) -> None:
    """What goes wrong in a process of a backend comes back as words."""
    pytest.importorskip("torch")
    settings = Settings(
        backends=("torch",), prompt_tokens=5, new_tokens=3, repeat=1, numerics="rough"
    )
    (outcome,) = bench_model(card, settings).outcomes
    assert not outcome.measured
    assert outcome.error is not None and "rough" in outcome.error


@pytest.mark.usefixtures("small_memory")
def test_without_a_backend_the_default_one(card: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told on stderr why that is not native."""
    pytest.importorskip("torch")
    asked: list[tuple[str | None, dict[str, object]]] = []

    def default_backend(dtype: str | None, **options: object) -> Choice:
        asked.append((dtype, options))
        return Choice("torch", "there is no compiler")

    monkeypatch.setattr(bench, "default_backend", default_backend)
    said = io.StringIO()
    report = bench_model(
        card,
        Settings(prompt_tokens=2, new_tokens=1, repeat=1, numerics="exact"),
        progress=Progress(said),
    )
    assert asked == [("f32", {"numerics": "exact"})]
    assert "native cannot be used: there is no compiler" in said.getvalue()
    assert [outcome.backend for outcome in report.outcomes] == ["torch"]
