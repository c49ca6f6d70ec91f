"""Every entry of the hybrid mixture-of-experts package against `transformers`, at a toy size.

Another package of the family is held to the entries it has when `LINNET_HYBRID_PACKAGE` names its
folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from linnet.weights import Manifest, read_bindings

from . import scenarios as sc
from . import toy
from .scenarios import Subject

OWN = Path(__file__).parent.parent.parent / "models" / "qwen3.6-35b-a3b"
OTHER = os.environ.get("LINNET_HYBRID_PACKAGE")
TOLERANCE = {"f32": 2e-4, "bf16": 0.25}
Scenario = Callable[[Subject], float]

QUICK: dict[str, Scenario] = {
    "whole": lambda s: sc.whole_sequences(s, (1, 2, 3, 17)),
    "chunks": lambda s: sc.chunks_then_steps(s, (2, 9), 16, 2),
    "packed": lambda s: sc.packed_prompts(s, (6, 1, 9)),
    "pages": sc.pages,
    "scores": lambda s: sc.scores_packed(s, (7, 1, 5)),
}
COMMON: dict[str, Scenario] = {
    "whole": lambda s: sc.whole_sequences(s, (1, 2, 3, 4, 5, 17, 63, 64, 65, 130)),
    "chunks": lambda s: sc.chunks_then_steps(s, (1, 2, 9, 76), 141, 5),
    "rows": sc.rows_with_a_late_request,
}
FULL: dict[str, Scenario] = {
    **COMMON,
    "idle": sc.idle_rows_keep_their_state,
    "packed": sc.packed_prompts,
    "pages": sc.pages,
    "generation": sc.generation,
    "scores": sc.scores_packed,
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Toy matrices gain nothing from threads and wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", QUICK)
def test_fast(name: str) -> None:
    assert QUICK[name](Subject(OWN, "fast")) <= 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "equivalent", "fast"])
@pytest.mark.parametrize("name", FULL)
def test_f32(name: str, numerics: str) -> None:
    assert FULL[name](Subject(OWN, numerics)) <= 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_tied_head(name: str) -> None:
    assert FULL[name](Subject(OWN, "fast", tied=True)) <= 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("name", ["whole", "rows", "packed", "pages"])
def test_bf16(name: str, numerics: str) -> None:
    subject = Subject(OWN, numerics, dtype="bf16")
    if name == "whole":
        assert sc.whole_sequences(subject, (1, 5, 40)) <= TOLERANCE["bf16"]
    else:
        assert FULL[name](subject) <= TOLERANCE["bf16"]


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="LINNET_HYBRID_PACKAGE names no package")
@pytest.mark.parametrize("numerics", ["exact", "fast"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", COMMON)
def test_another_package(name: str, dtype: str, numerics: str) -> None:
    subject = Subject(Path(str(OTHER)), numerics, dtype=dtype)
    assert COMMON[name](subject) <= TOLERANCE[dtype]


def padded_by(model: object, ids: list[int], padding: list[int]) -> torch.Tensor:
    out = model.run_entry(  # type: ignore[attr-defined]
        "prefill_slots", [sc.ints([ids + padding]), sc.ints([1]), sc.ints([len(ids)])]
    )
    assert isinstance(out, torch.Tensor)
    return out[0].clone()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_padding_is_not_read(dtype: str) -> None:
    """Two paddings of one length give the same logits and states to the last bit, exactly."""
    model = Subject(OWN, "exact", dtype=dtype).load(batch=2, max_seq=16, Groups=1)
    ids = toy.prompt(5, 1)
    found = []
    for padding in ([0] * 4, toy.prompt(4, 9)):
        model.reset_state()
        logits = padded_by(model, ids, padding)
        step = model.run_entry("decode_rows", [sc.ints([[0], [3]]), sc.ints([15, 5])])[1]
        states = {p: model.state(p) for p in model.state_paths() if "linear_attn" in p}
        found.append((logits, step, states))
    (first, second) = found
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])
    assert len(first[2]) == 6
    assert all(torch.equal(value, second[2][name]) for name, value in first[2].items())


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_padding_hardly_matters(numerics: str) -> None:
    subject = Subject(OWN, numerics)
    model = subject.load(batch=2, max_seq=32)
    ids = toy.prompt(7, 1)
    for count in (0, 1, 17):
        assert subject.gap(padded_by(model, ids, [0] * count), ids) <= 2e-4
        step = model.run_entry("decode_rows", [sc.ints([[0], [3]]), sc.ints([31, 7])])[1]
        assert subject.gap(step, [*ids, 3]) <= 2e-4


def gradients(numerics: str, lengths: tuple[int, ...], tied: bool = False) -> float:
    """The largest difference of `loss_packed`'s gradients from the sum over each prompt alone,
    relative to each parameter's largest."""
    subject = Subject(OWN, numerics, tied=tied)
    model = subject.load(trainable=True)
    line, prompts, targets, weights = sc.training_line(lengths)
    model.run_entry("loss_packed", [*line.training(), targets, weights]).backward()
    reference = toy.reference(tied)
    reference.zero_grad()
    start = 0
    for ids in prompts:
        part = slice(start, start + len(ids))
        logs = reference(torch.tensor([ids])).logits[0].log_softmax(-1)
        picked = logs.gather(1, targets[part, None])[:, 0]
        (-(weights[part] * picked).sum()).backward()
        start += len(ids)
    want = {
        name.replace("model.", "model.language_model.", 1): p.grad
        for name, p in reference.named_parameters()
    }
    worst, seen = 0.0, 0
    manifest = model_manifest(model)
    bound, _ = read_bindings(OWN / "bindings.json").expand(manifest)
    for path, parameter in model.named_parameters():
        expected = want.get(bound[path])
        if expected is None:
            continue
        seen += 1
        scale = max(float(expected.abs().max()), 1e-6)
        worst = max(worst, float((parameter.grad - expected).abs().max()) / scale)
    assert seen == len(want), (seen, len(want))
    return worst


def model_manifest(model: Any) -> Manifest:
    from linnet.weights import manifest_of

    return manifest_of(model.binding)


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_gradients(numerics: str) -> None:
    assert gradients(numerics, (7, 1, 5, 70)) <= 1e-3


def test_gradients_of_short_prompts() -> None:
    assert gradients("fast", (6, 2)) <= 1e-3
