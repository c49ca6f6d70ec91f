"""Matching a manifest with a checkpoint: every mismatch at once, nothing read before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from linnet.weights import (
    LoadPlan,
    Manifest,
    ParamSpec,
    WeightError,
    open_weights,
    plan_load,
    read_bindings,
)
from linnet.weights.mapping import MappingSource


class Untouchable(MappingSource):
    """A mapping whose tensors may not be read."""

    def pieces(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        raise AssertionError(f"{name} was read")


ARRAYS = {
    "a": np.ones((2, 3), np.float32),
    "b": np.arange(4, dtype=np.int64),
    "c": np.ones(3, ml_dtypes.bfloat16),
    "extra": np.ones(1),
}


def codes(params: list[ParamSpec], **options: Any) -> list[str]:
    with pytest.raises(WeightError) as caught:
        plan_load(params, Untouchable(ARRAYS), **options)
    return [d.code for d in caught.value.diagnostics]


def test_every_mismatch_is_listed() -> None:
    params = [
        ParamSpec("a", (3, 2), "bf16"),
        ParamSpec("b", (4,), "f32"),
        ParamSpec("c", (3,), "f32"),
        ParamSpec("d", (3,), "f32"),
    ]
    found = codes(params)
    assert found == ["E5009", "E5010", "E5010", "E5010", "E5008"]
    with pytest.raises(WeightError) as caught:
        plan_load(params, Untouchable(ARRAYS))
    helps = [d.help for d in caught.value.diagnostics]
    assert helps[1] is not None and "cast_dtype=True" in helps[1]  # bf16 from f32
    assert helps[2] is None  # an integer never becomes a float
    assert codes(params, cast_dtype=True) == ["E5009", "E5010", "E5008"]


def test_bindings_missing_lines_and_names() -> None:
    params = [ParamSpec("x", (2, 3), "f32"), ParamSpec("y", (4,), "i64")]
    assert codes(params, bindings=read_bindings({"x": "a"})) == ["E5007"]
    assert codes(params, bindings=read_bindings({"x": "a", "y": "bb"})) == ["E5008"]
    assert codes(params, bindings=read_bindings({"x": "a", "y": "b", "z": "c"})) == ["E5006"]


def plan(params: list[ParamSpec], **options: Any) -> LoadPlan:
    return plan_load(params, open_weights(ARRAYS), **options)


def test_tied_parameters_share_one_read() -> None:
    params = [ParamSpec("x", (2, 3), "f32"), ParamSpec("y", (2, 3), "f32")]
    made = plan(params, bindings=read_bindings({"x": "a", "y": "a"}))
    assert [item.paths for item in made.items] == [("x", "y")]
    assert made.items[0].tied and made.items[0].tensor == "a"
    mixed = [params[0], ParamSpec("y", (2, 3), "f16")]
    made = plan(mixed, bindings=read_bindings({"x": "a", "y": "a"}), cast_dtype=True)
    assert len(made.items) == 2


def test_order_is_the_files() -> None:
    params = [ParamSpec("c", (3,), "bf16"), ParamSpec("a", (2, 3), "f32")]
    assert [item.tensor for item in plan(params).items] == ["a", "c"]


def test_optional_parameters() -> None:
    made = plan([ParamSpec("a", (2, 3), "f32"), ParamSpec("d", (3,), "f32", optional=True)])
    assert made.absent == {"d"}
    made = plan([ParamSpec("a", (2, 3), "f32", optional=True)])
    assert not made.absent and len(made.items) == 1
    bound = read_bindings({"d": "nowhere"})
    assert plan([ParamSpec("d", (3,), "f32", optional=True)], bindings=bound).absent == {"d"}
    assert codes([ParamSpec("a", (9,), "f32", optional=True)]) == ["E5009"]


def test_optional_subs_are_whole_or_absent() -> None:
    sub = [ParamSpec("m.a", (2, 3), "f32", within="m"), ParamSpec("m.z", (3,), "f32", within="m")]
    absent = plan_load(sub, open_weights({"other": np.ones(1)}))
    assert absent.absent == {"m.a", "m.z"}
    with pytest.raises(WeightError) as caught:
        plan_load(sub, open_weights({"m.a": np.ones((2, 3), np.float32)}))
    assert [d.code for d in caught.value.diagnostics] == ["E5008"]
    inner = [*sub, ParamSpec("m.k.w", (1,), "f32", within="m.k")]
    with pytest.raises(WeightError):  # the inner sub is there, so the outer one is
        plan_load(inner, open_weights({"m.k.w": np.ones(1, np.float32)}))


def test_reads_copy_and_convert() -> None:
    weights = {"a": torch.ones(2, 3, dtype=torch.bfloat16), "s": torch.tensor(1.5)}
    params = Manifest((ParamSpec("a", (2, 3), "f32"), ParamSpec("s", (), "f32")))
    made = plan_load(params, open_weights(weights), cast_dtype=True)
    for item in made.items:
        tensor = made.read_torch(item)
        assert tensor.dtype == torch.float32 and tuple(tensor.shape) == item.shape
        tensor.zero_()
        assert made.read(item).sum() > 0  # the caller's own tensor is untouched
    assert weights["a"].sum() == 6


def test_values_that_are_no_arrays() -> None:
    with pytest.raises(WeightError) as caught:
        open_weights({"a": [1, 2], "b": None, "c": np.ones(1)})
    assert [d.code for d in caught.value.diagnostics] == ["E5013", "E5013"]
    held = {"a": torch.ones(2).to_sparse(), "b": torch.ones(2, device="meta")}
    with pytest.raises(WeightError, match=r"sparse_coo[\s\S]*a tensor without data") as caught:
        open_weights(held)
    assert [d.code for d in caught.value.diagnostics] == ["E5013", "E5013"]


def test_dtypes_linnet_lacks() -> None:
    with pytest.raises(WeightError) as caught:
        plan_load([ParamSpec("a", (2,), "f32")], open_weights({"a": np.ones(2, np.complex64)}))
    assert "not supported" in str(caught.value)
