"""The comparison with other engines: its protocol, its files, its tables. No engine runs here."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.peers import files, measure, results
from bench.peers.contenders import CONTENDERS, GROUPS, Contender
from bench.peers.measure import Plan, agreement, measure_group, summary
from bench.peers.plot import Bar, bars
from bench.peers.process import Engine, EngineError
from bench.peers.render import render
from bench.peers.runners.scores import losses

from linnet.nest.bench_memory import Memory

ENGINE = """
import os
import sys
from bench.peers.runners import Timing

class Runner:
    def __init__(self, settings):
        self.settings = settings
        print("noise on standard output")
        print("x" * 200_000, file=sys.stderr)

    def describe(self):
        return f"toy {self.settings.precision}, {os.environ['OMP_NUM_THREADS']} threads"

    def measure(self, prompt, new_tokens):
        if self.settings.options.get("broken"):
            raise RuntimeError("where it happened\\nthe reason")
        if self.settings.options.get("dead"):
            os._exit(3)
        return Timing(0.5, new_tokens / self.settings.options["rate"], [1, 2, len(prompt)])

    def score(self, tokens):
        return [0.25] * (len(tokens) - 1)

def open_runner(settings):
    return Runner(settings)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "engine.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def contender(name: str, **options: Any) -> Contender:
    return Contender(name, "toys.engine", "f32", options, "own")


def engine(toy: Path, **options: Any) -> Engine:
    return Engine(contender("toy/f32", **options), Path(sys.executable), toy, 3, 64)


def test_an_engine_answers(toy: Path) -> None:
    with engine(toy, rate=10) as running:
        assert running.about == "toy f32, 3 threads"
        assert running.measure([7, 8], 5) == {"first": 0.5, "rest": 0.5, "tokens": [1, 2, 2]}
        assert running.score([1, 2, 3]) == [0.25, 0.25]
        with pytest.raises(EngineError, match="no request `dance`"):
            running.ask(op="dance")


def test_an_engine_that_fails(toy: Path) -> None:
    with engine(toy, broken=True) as running, pytest.raises(EngineError) as caught:
        running.measure([1], 1)
    assert str(caught.value) == "toy/f32: RuntimeError: the reason"
    with engine(toy, dead=True) as running, pytest.raises(EngineError, match="has ended"):
        running.measure([1], 1)
    lost = Contender("lost/f32", "toys.nowhere", "f32", {}, "own")
    with pytest.raises(EngineError, match=r"lost/f32: ModuleNotFoundError: .*toys\.nowhere"):
        Engine(lost, Path(sys.executable), toy, 1, 64)


def test_a_group(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines take turns; one that fails is left out and told; ratios are ours over theirs."""
    names = {
        "a/f32": contender("a/f32", rate=30), "b/f32": contender("b/f32", rate=20),
        "c/f32": contender("c/f32", broken=True),
    }  # fmt: skip
    monkeypatch.setattr(measure, "CONTENDERS", names)
    monkeypatch.setattr(measure, "_PAUSE", 0.0)
    monkeypatch.setattr(measure, "Memory", lambda threads: Memory(threads, 1 << 20))
    plan = Plan(toy, Path(sys.executable), None, (1, 2, 3), 6, 1, 2)
    told: list[tuple[str, str]] = []
    record = measure_group(plan, tuple(names), lambda *complaint: told.append(complaint))
    assert told == [("c/f32", "c/f32: RuntimeError: the reason")]
    assert record is not None and list(record["results"]) == ["a/f32", "b/f32"]
    assert record["results"]["a/f32"]["rate"] == pytest.approx([30] * 4)  # two a turn
    lines = summary(record)
    assert lines[0].startswith("a/f32: 30.0 tokens/s")
    assert "ours x1.50 at decode, x1.00 to the first token; 3 of 3 tokens" in lines[1]


def test_peers_need_their_environment(toy: Path) -> None:
    plan = Plan(toy, Path(sys.executable), None, (1,), 1, 1, 1)
    with pytest.raises(ValueError, match="--peers-python"):
        plan.python(Contender("x/f32", "x", "f32"))


def record(own: str, peer: str, rate: float) -> dict[str, Any]:
    def side(name: str, rate: float) -> dict[str, Any]:
        return {"about": f"about {name}", "load": 1.0, "first": [0.4, 0.2], "rate": [1.0, rate],
                "tokens": [1, 2, 3]}  # fmt: skip

    return {
        "time": "2026-01-01 10:00", "threads": 2, "prompt_tokens": 512, "new_tokens": 64,
        "bandwidth": [20.0, 25.0], "results": {own: side(own, rate), peer: side(peer, 20.0)},
    }  # fmt: skip


def test_the_newest_measurement_is_shown(tmp_path: Path) -> None:
    own, peer = GROUPS["f32"].names[:2]
    store = tmp_path / "peers.json"
    render(store, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for rate in (10.0, 50.0):
        results.append(store, record(own, peer, rate))
    assert len(json.loads(store.read_text())["records"]) == 2
    render(store, tmp_path / "out")
    page = (tmp_path / "out" / "peers.md").read_text()
    assert "| native | llama.cpp | 50.0 : 20.0 | 2.50 | 200 : 200 | 1.00 | 3 of 3 | 25.0 |" in page
    assert "10.0 : 20.0" not in page and "about native/f32" in page
    drawn = ET.fromstring((tmp_path / "out" / "peers.svg").read_text())
    assert drawn.tag.endswith("svg")


def test_machines_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, peer = GROUPS["f32"].names[:2]
    store, out = tmp_path / "peers.json", tmp_path / "out"
    for name, rate in (("one", 10.0), ("two", 50.0), ("one", 30.0)):
        monkeypatch.setattr(results, "machine", lambda name=name: name)
        results.append(store, record(own, peer, rate))
    render(store, out)
    first, second = (out / "peers.md").read_text().split("## two\n")
    assert "## one\n" in first and "30.0 : 20.0" in first and "50.0" not in first
    assert "50.0 : 20.0" in second and "30.0" not in second and "10.0 :" not in second
    assert "![](peers.svg)" in first and "![](peers-2.svg)" in second
    assert {p.name for p in out.iterdir()} == {"peers.md", "peers.svg", "peers-2.svg"}


def test_bars_are_as_long_as_their_values() -> None:
    text = bars([("rate", [("f32", [Bar("a & b", 50, True), Bar("c", 25, False)])])])
    drawn = ET.fromstring(text)
    rects = drawn.findall("{http://www.w3.org/2000/svg}rect")[1:]
    assert float(rects[0].get("width", 0)) == 2 * float(rects[1].get("width", 0))
    assert rects[0].get("fill") != rects[1].get("fill")


def test_every_group_names_known_engines() -> None:
    for group in GROUPS.values():
        assert group.ours and group.others
        assert all(CONTENDERS[name].ours for name in group.ours)
        assert all(name in CONTENDERS for name in group.others)


def test_agreement() -> None:
    assert agreement([1, 2, 3], [1, 2, 4]) == 2
    assert agreement([1, 2], [1, 2]) == 2
    assert agreement([], [1]) == 0


def test_losses_are_negative_log_likelihoods() -> None:
    logits = np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]], np.float32)
    found = losses(logits, [0, 1, 0])
    want = [-np.log(np.exp(1) / (1 + np.exp(1))), -np.log(np.exp(2) / (1 + np.exp(2)))]
    assert found == pytest.approx(want)


def test_gguf_files_hold_the_same_weights(tmp_path: Path) -> None:
    """Each format holds the widened floats, as near as it can, and all of the metadata."""
    gguf = pytest.importorskip("gguf")
    kinds = gguf.GGMLQuantizationType
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((4, 64), dtype=np.float32)
    writer = gguf.GGUFWriter(tmp_path / "card.gguf", "llama")
    writer.add_context_length(99)
    writer.add_token_list(["a", "b"])
    for name in ("token_embd.weight", "blk.0.ffn_up.weight"):
        writer.add_tensor(name, gguf.quants.quantize(matrix, kinds.Q4_1), raw_dtype=kinds.Q4_1)
    writer.add_tensor("output_norm.weight", matrix[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    want = gguf.quants.dequantize(gguf.quants.quantize(matrix, kinds.Q4_1), kinds.Q4_1)
    for kind, error in (("F32", 0.0), ("BF16", 0.01), ("Q8_0", 0.02), ("Q4_0", 0.4)):
        files.write_gguf(tmp_path / "card.gguf", tmp_path / f"{kind}.gguf", kind)
        made = gguf.GGUFReader(tmp_path / f"{kind}.gguf")
        tensors = {tensor.name: tensor for tensor in made.tensors}
        up = tensors["blk.0.ffn_up.weight"]
        assert up.tensor_type.name == kind
        floats = gguf.quants.dequantize(up.data, up.tensor_type)
        assert np.abs(floats - want).max() <= error
        assert tensors["output_norm.weight"].tensor_type.name == "F32"
        eight = "Q8_0" if kind == "Q4_0" else kind
        assert tensors["token_embd.weight"].tensor_type.name == eight
        assert made.get_field("llama.context_length").contents() == 99
        assert made.get_field("tokenizer.ggml.tokens").contents() == ["a", "b"]
