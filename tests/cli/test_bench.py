"""`linnet bench`: what reaches the measurement, and how its report is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from linnet.cli.app import main
from linnet.nest import bench
from linnet.nest.bench import Outcome, Report, Settings
from linnet.nest.bench_bytes import Reads

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that were asked for; the first backend is measured, the others fail."""
    seen: list[Settings] = []

    def bench_model(model: str, settings: Settings, **_: Any) -> Report:
        seen.append(settings)
        first, *others = settings.backends or ("native",)
        outcomes = [Outcome(first, 0.5, 1.25, [0.3, 0.2], [0.02, 0.01], 250_000_000)]
        outcomes += [Outcome(name, error="it broke") for name in others]
        reads = Reads(weights=90_000_000, caches=10_000_000)
        return Report(model, "bf16", 2, settings, 20e9, reads, tuple(outcomes))

    monkeypatch.setattr(bench, "bench_model", bench_model)
    return seen


def test_report(asked: list[Settings], capsys: Capture) -> None:
    assert main(["bench", "toy", "--repeat", "2", "--prompt-tokens", "9"]) == 0
    assert asked == [Settings(prompt_tokens=9, repeat=2)]
    assert capsys.readouterr().out.splitlines() == [
        "toy, weights bf16, batch 1, prompt of 9 tokens, 64 more, 2 threads, best of 2",
        "a token reads 90 MB of weights and 10 MB of caches; memory is read at 20.0 GB/s",
        "",
        "backend    load   start  first token          decode   a token           reads  memory",
        "native   0.50 s  1.25 s       200 ms  100.0 tokens/s  10.00 ms  10.0 GB/s, 50%  250 MB",
    ]


def test_backends_side_by_side(asked: list[Settings], capsys: Capture) -> None:
    """Each is named once; one that fails says why, and the exit code tells."""
    given = ["--backend", "native", "--backend", "torch", "--backend", "native"]
    assert main(["bench", "toy", *given, "--dtype", "f32"]) == 1
    assert asked[0].backends == ("native", "torch") and asked[0].dtype == "f32"
    assert capsys.readouterr().out.splitlines()[-1] == "torch: it broke"


def test_json(asked: list[Settings], capsys: Capture) -> None:
    assert main(["bench", "toy", "--json", "--weights-format", "int8"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["settings"]["weights_format"] == asked[0].weights_format == "int8"
    assert data["outcomes"][0]["decode"] == [0.02, 0.01]
    assert data["bandwidth"] == 20e9 and data["reads"]["weights"] == 90_000_000


def test_misuse(capsys: Capture) -> None:
    assert main(["bench", "toy", "--repeat", "0"]) == 2
    assert main(["bench", "no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err
    assert main(["bench", "smollm2-135m-instruct", "--backend", "abacus"]) == 1
    assert "there is no backend `abacus`" in capsys.readouterr().err
    assert main(["bench", "toy", "--backend", "torch", "--weights-format", "int4"]) == 1
    assert "`native`" in capsys.readouterr().err
