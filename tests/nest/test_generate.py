"""Generation and `run` over a model whose answers are written down."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nest_toy import TOKENS, ScriptedModel, write_gguf

from linnet.nest import NestError
from linnet.nest.generate import Sampling, choose, generate
from linnet.nest.run import INTERRUPTED, run_model

HELL, BANG = TOKENS.index("hell"), TOKENS.index("!")


def test_greedy_calls_and_end_token() -> None:
    model = ScriptedModel([HELL, BANG, 0, 7])
    assert list(generate(model, [3, 4], 9, frozenset({0}))) == [HELL, BANG]
    assert model.calls == [
        ("prefill", [[3, 4]], 0),
        ("decode", [[HELL]], 2),
        ("decode", [[BANG]], 3),
    ]


def test_the_last_token_asks_for_no_more() -> None:
    model = ScriptedModel([HELL, BANG])
    assert list(generate(model, [3], 2)) == [HELL, BANG]
    assert len(model.calls) == 2
    assert list(generate(model, [3], 0)) == []


def test_sampling_is_a_draw_from_the_softmax() -> None:
    logits = np.array([0.0, 1.0, 2.0, -np.inf], np.float32)
    rng = np.random.default_rng(0)
    counts = np.bincount([choose(logits, 0.7, rng) for _ in range(20_000)], minlength=4)
    want = np.exp(logits / 0.7) / np.exp(logits / 0.7).sum()
    assert np.abs(counts / 20_000 - want).max() < 0.015 and counts[3] == 0
    assert choose(logits, 0.0, rng) == 2
    assert choose(logits, 1e-300, rng) == 2


def test_seeds_repeat() -> None:
    def draw(seed: int) -> list[int]:
        model = ScriptedModel([0] * 20)
        return list(generate(model, [3], 20, sampling=Sampling(50.0, seed)))

    assert draw(1) == draw(1) != draw(2)


def test_settings_that_cannot_be() -> None:
    for temperature in (-1.0, float("nan"), float("inf")):
        with pytest.raises(NestError):
            Sampling(temperature)
    with pytest.raises(NestError):
        Sampling(1.0, -1)
    with pytest.raises(NestError):
        list(generate(ScriptedModel([1]), [], 3))
    with pytest.raises(NestError):
        choose(np.array([np.nan, 1.0], np.float32), 0.0, np.random.default_rng(0))


CARD = """
[model]
name = "toy"
[source]
path = "lib.linnet"
root = "Model"
[generics]
MaxSeq = 40
T = "bf16"
[weights]
gguf = "m.gguf"
"""

Runner = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "nest.toml").write_text(CARD)
    write_gguf(folder / "m.gguf")
    seen: dict[str, Any] = {}

    def go(prompt: str, script: list[int], **options: Any) -> tuple[int, str, str]:
        model = options.pop("model", None) or ScriptedModel(script)
        options.setdefault("backend", "torch")

        def load(source: str, **given: Any) -> ScriptedModel:
            seen.update(given)
            return model

        monkeypatch.setattr("linnet.nest.loader.find_loader", lambda backend: load)
        monkeypatch.setattr("linnet.nest.run.find_loader", lambda backend: load)
        out, err = io.StringIO(), io.StringIO()
        code = run_model(str(folder), prompt, out=out, err=err, **options)
        return code, out.getvalue(), err.getvalue()

    go.seen = seen  # type: ignore[attr-defined]
    return go


def bytes_of(text: str) -> list[int]:
    return [2 + byte for byte in text.encode()]


def test_run_streams_text_alone(run: Runner) -> None:
    code, out, err = run("hell", [*bytes_of("🙂 yes"), 0], max_new_tokens=12)
    assert (code, out) == (0, "🙂 yes\n")
    assert "8 tokens" in err and "tokens per second" in err and "note:" not in err
    generics = run.seen["generics"]  # type: ignore[attr-defined]
    assert generics["Batch"] == 1 and generics["T"] == "bf16"
    prompt = len("user\n") + 1 + len("\nassistant\n") + 3
    assert generics["MaxSeq"] == prompt + 12


def test_run_raw_and_dtype(run: Runner) -> None:
    run("hell", [0], raw=True, dtype="f32", max_new_tokens=3)
    generics = run.seen["generics"]  # type: ignore[attr-defined]
    assert generics["MaxSeq"] == 4 and generics["T"] == "f32"


def test_run_drops_half_a_character(run: Runner) -> None:
    assert run("x", bytes_of("a🙂"), raw=True, max_new_tokens=3)[1] == "a\n"


def test_run_ends_at_the_models_limit(run: Runner) -> None:
    _, out, err = run("x" * 37, bytes_of("abc"), raw=True)
    assert out == "abc\n" and "reached the model's 40 positions" in err
    with pytest.raises(NestError, match="40 positions"):
        run("x" * 40, [0], raw=True)


def test_run_refuses_an_empty_prompt(run: Runner) -> None:
    with pytest.raises(NestError, match="empty"):
        run("", [0], raw=True)
    with pytest.raises(NestError):
        run("x", [0], max_new_tokens=0)


def test_run_stops_on_ctrl_c(run: Runner) -> None:
    class Interrupted(ScriptedModel):
        def run_entry(self, name: str, inputs: Any, generics: Any = None) -> Any:
            if self.at == 2:
                raise KeyboardInterrupt
            return super().run_entry(name, inputs, generics)

    code, out, err = run("x", [], raw=True, model=Interrupted(bytes_of("ab")))
    assert (code, out) == (INTERRUPTED, "ab\n")
    assert "interrupted" in err and "2 tokens" in err


def test_a_drawn_seed_is_told(run: Runner) -> None:
    _, _, err = run("x", [0] * 9, raw=True, temperature=1.0, max_new_tokens=2)
    assert "seed " in err
