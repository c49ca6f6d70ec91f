"""What is wrong with a call is said before anything is compiled or touched, on every entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.backends.errors import InputError
from linnet.backends.inputs import Reader
from linnet.native import Model, load
from linnet.native.runtime.values import NumPyArrays

PACKAGE = Path(__file__).parent.parent.parent / "models" / "qwen3.6-35b-a3b"
SIZES: dict[str, int | str] = {
    "Vocab": 96, "H": 16, "Heads": 2, "KvHeads": 1, "HeadDim": 8, "KeyHeads": 1, "ValueHeads": 2,
    "KeyDim": 4, "ValueDim": 4, "Conv": 16, "Width": 4, "Experts": 4, "TopK": 2, "ExpertInner": 8,
    "SharedInner": 8, "Groups": 1, "Batch": 2, "MaxSeq": 32, "PageSize": 8, "T": "f32",
}  # fmt: skip
OWN = {"Steps": 3, "MaxNew": 3}
# What an input must not hold, in entries that look something up by it, and what is said of it.
BAD: dict[str, tuple[int, str]] = {
    "tokens": (96, "axis Vocab"), "token": (96, "axis Vocab"), "step_tokens": (96, "axis Vocab"),
    "targets": (96, "past the last position"), "pos": (32, "axis MaxSeq"),
    "positions": (32, "past the last position"), "step_positions": (32, "past the last position"),
    "rows": (7, "past the last position"), "slots": (99, "past the last position"),
    "table": (9, "past the last position"), "last": (50, "past the last position"),
    "lengths": (9, "past the last position"), "sources": (9, "axis Rows"),
}  # fmt: skip
# Positions that nothing is looked up by, and those that the model itself cuts to its pages.
FREE = {
    *((entry, "positions") for entry in ("hidden_packed", "log_probs_packed", "loss_packed",
                                         "decode_paged", "prefill_paged", "step_paged")),
    ("step_paged", "step_positions"),
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    return load(PACKAGE, generics=SIZES, root="Model")


def zeros(model: Model, entry: str) -> dict[str, Any]:
    """Inputs that fit: zeros, of length 2 where the length is free."""
    given: dict[str, Any] = {}
    for slot in model._signature(entry).slots:
        shape = [2 if dim.constant is None else dim.constant for dim in slot.bound.dims]  # type: ignore[union-attr]
        kind = {"i32": np.int32, "i64": np.int64, "f32": np.float32}[str(slot.bound.dtype)]  # type: ignore[union-attr]
        given[slot.name] = np.full(shape, int(slot.name == "lengths"), kind)
    return given


def own(model: Model, entry: str) -> dict[str, int]:
    names = {g.name for g in model._signature(entry).generics}
    return {name: value for name, value in OWN.items() if name in names}


ENTRIES = (
    "copy_rows", "decode", "decode_paged", "decode_rows", "forward", "generate", "generate_until",
    "hidden_packed", "log_probs_packed", "loss_packed", "next_token", "prefill", "prefill_packed",
    "prefill_paged", "prefill_slots", "sample", "step_packed", "step_paged",
)  # fmt: skip


def test_every_entry_is_here(model: Model) -> None:
    assert tuple(model.entries()) == ENTRIES


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_index_outside_its_axis(entry: str, model: Model) -> None:
    given, generics = zeros(model, entry), own(model, entry)
    signature = model._signature(entry)
    model._bounds.check(signature, Reader(signature, NumPyArrays()).read(given, generics))
    seen = 0
    for name, (value, said) in BAD.items():
        if name not in given or (entry, name) in FREE:
            continue
        for wrong, message in ((value, said), (-1, "before the first position")):
            bad = {**given, name: np.full_like(given[name], wrong)}
            with pytest.raises(InputError, match=message):
                model.run_entry(entry, bad, generics)
        seen += 1
    assert seen and not model._loaded and not model._paths


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_wrong_shape_or_dtype(entry: str, model: Model) -> None:
    given, generics = zeros(model, entry), own(model, entry)
    for name, array in given.items():
        for bad, message in (
            (array.astype(np.float64), "float64; convert it with"),
            (np.zeros((*array.shape, 1), array.dtype), "of rank"),
            ("words", "not"),
        ):
            with pytest.raises(InputError, match=message):
                model.run_entry(entry, {**given, name: bad}, generics)
    with pytest.raises(InputError, match="takes"):
        model.run_entry(entry, [*given.values(), 1], generics)
    assert not model._loaded


def test_a_page_or_position_outside_the_table() -> None:
    small: dict[str, int | str] = {
        "Vocab": 96, "H": 16, "Heads": 2, "KvHeads": 1, "HeadDim": 8, "Inner": 16, "Layers": 1,
        "Batch": 1, "MaxSeq": 32, "PageSize": 8, "T": "f32",
    }  # fmt: skip
    model = load(PACKAGE.parent / "decoder", generics=small, root="Model")
    tokens, at = np.zeros((2, 1), np.int32), np.array([3, 15], np.int32)
    table = np.array([[0, 1], [2, 3]], np.int32)
    for positions, pages in ((at + 1, table), (-at, table), (at, table + 1), (at, table - 1)):
        with pytest.raises(InputError, match=r"past the last|before the first"):
            model.run_entry("decode_paged", [tokens, positions, pages])
    assert not model._loaded


def test_an_answer_past_the_last_position(model: Model) -> None:
    with pytest.raises(InputError, match=r"`pos` \+ Steps - 1 is 32, past the last position"):
        model.run_entry("generate", zeros(model, "generate") | {"pos": 30}, {"Steps": 3})
