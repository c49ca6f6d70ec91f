"""What is compiled, and how often."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

import linnet.jax
from linnet.nest import run

COMPILED = "/jax/core/compile/backend_compile_duration"
DECODER = Path(__file__).parent.parent.parent / "models" / "decoder"
SIZES = {"Vocab": 24, "H": 8, "Heads": 2, "KvHeads": 1, "HeadDim": 4, "Inner": 12, "Layers": 2}


@contextmanager
def compilations() -> Iterator[list[float]]:
    """The seconds of each compilation inside."""
    found: list[float] = []

    def note(event: str, seconds: float, **_: Any) -> None:
        if event == COMPILED:
            found.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture
def card(tmp_path: Path) -> Path:
    copytree(DECODER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "nest.toml").write_text(
        "[model]\nname = 'toy'\ntitle = 'Toy'\nsummary = 'A toy.'\nlicense = 'MIT'\n"
        "[source]\npath = 'src/lib.linnet'\nroot = 'Model'\nentry = 'forward'\n"
        "[generics]\n" + "\n".join(f"{name} = {size}" for name, size in SIZES.items())
        + "\nBatch = 1\nMaxSeq = 8192\nT = 'f32'\n"
    )  # fmt: skip
    return tmp_path


class Words:
    """A text model whose tokens are numbers."""

    chat = None
    end_tokens: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def detokenizer(self) -> Any:
        return self

    def add(self, token: int) -> str:
        return f"{token} "

    def end(self) -> str:
        return ""


@pytest.fixture
def weights(card: Path) -> Path:
    """Parameters of the toy, as a file."""
    generics = {**SIZES, "Batch": 1, "MaxSeq": 8, "T": "f32"}
    model = linnet.jax.load_source_model(DECODER, root="Model", generics=generics)
    rng = np.random.default_rng(0)
    made = {
        path: rng.normal(size=array.shape).astype(np.float32) / 3
        for path, array in model.parameters.items()
    }
    save_file(made, card / "toy.safetensors")
    return card / "toy.safetensors"


BACKENDS = ["jax_source", *(pytest.param(n, marks=pytest.mark.slow) for n in ("jax", "jax_model"))]


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_prompt_compiles_nothing(
    card: Path, weights: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of 3 to 60 tokens and answers of 2 to 30 have one size of caches and one padded
    length, and models that differ in weights alone share what is compiled."""
    monkeypatch.setattr(run, "load_text", lambda *_: Words())
    counts, answers = [], []
    for prompt, new in ((3, 4), (60, 30), (5, 2)):
        out, words = io.StringIO(), " ".join(str(1 + n % 23) for n in range(prompt))
        with compilations() as found:
            run.run_model(
                card, words, max_new_tokens=new, backend=backend, weights=weights, out=out,
                err=io.StringIO(),
            )  # fmt: skip
        counts.append(len(found))
        answers.append(len(out.getvalue().split()))
    assert counts[0] > 0
    assert counts[1:] == [0, 0]
    assert answers == [4, 30, 2]


def test_depth_compiles_nothing_more() -> None:
    """A layer is compiled once, and again for none of the others."""
    counts = []
    for layers in (2, 36):
        jax.clear_caches()
        generics = {**SIZES, "Layers": layers, "Batch": 1, "MaxSeq": 8, "T": "f32"}
        model = linnet.jax.load_source_model(DECODER, root="Model", generics=generics)
        with compilations() as found:
            model.run_entry("decode", [np.array([[1]], np.int32), 0])
        counts.append(len(found))
    assert 0 < counts[0] == counts[1]
