"""The perplexity report: what is counted, what is past its bound."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import pytest
from bench.perplexity import (
    EIGHT,
    EXACT,
    FOUR,
    PEER_FOUR,
    Score,
    bounds,
    count,
    peer_score,
    read,
    report,
)


def scores(eight: float, four: float, peer: float) -> dict[str, Score]:
    return {
        EXACT: Score(3.0), EIGHT: Score(3.0 + math.log(eight), 0.05),
        FOUR: Score(3.0 + math.log(four), 0.5), PEER_FOUR: Score(3.0 + math.log(peer)),
    }  # fmt: skip


def test_bounds() -> None:
    assert bounds(scores(1.009, 1.2, 1.21)) == []
    assert bounds(scores(1.011, 1.2, 1.21)) == ["8 bits lose more than 1 %"]
    assert bounds(scores(1.0, 1.22, 1.21)) == ["4 bits lose more than llama.cpp's Q4_0"]


def test_every_token_but_a_windows_first_is_scored() -> None:
    assert count([[1, 2, 3], [4, 5]]) == 3


def test_report() -> None:
    lines = report(scores(1.005, 1.2, 1.25), 100, 2)
    assert f"| {EIGHT} | {math.exp(3) * 1.005:.4f} | +0.50% | 5.00% |" in lines
    assert f"| {PEER_FOUR} | {math.exp(3) * 1.25:.4f} | +25.00% |  |" in lines


def test_a_store_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path / "none.json") == {}
    store = tmp_path / "scores.json"
    store.write_text('{"native/f32": {"loss": 1.5, "logits": null}}')
    assert read(store) == {"native/f32": Score(1.5)}


def test_peers_need_their_environment() -> None:
    options = argparse.Namespace(peers_python=None, work=Path("nowhere"), threads=1)
    with pytest.raises(ValueError, match="--peers-python"):
        peer_score("llama.cpp/int8", options, [[1, 2]])
