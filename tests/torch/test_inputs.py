"""What a call says when it does not fit its entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import linnet.torch
from linnet.torch import InputError, Model

from .support import checked
from .toy import GENERICS, TOY


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return linnet.torch.load(checked(tmp_path, TOY), generics=GENERICS)


def ints(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


STEP = r"step\(token: Tensor\[Batch, 1; i32\], pos: i32\): "


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([ints(2, 1)], "takes 2 inputs, not 1"),
        ([ints(2, 1), 0, 0], "takes 2 inputs, not 3"),
        ([ints(2, 1).to_sparse(), 0], "layout torch.sparse_coo: give a dense one"),
        ({"token": ints(2, 1)}, "the input `pos` is missing"),
        ({"token": ints(2, 1), "position": 0}, "has no input `position`"),
        ([ints(2), 0], r"`token` is Tensor\[Batch, 1; i32\], of rank 2, but got shape \[2\]"),
        ([ints(3, 1), 0], r"axis 0 of `token` \(.*got shape \[3, 1\]\) is 3, but has to be 2"),
        ([ints(2, 1).long(), 0], r"`token` is i32, but got torch.int64; .*token.to\(torch.int32\)"),
        ([np.zeros((2, 1), np.int64), 0], r"convert it with token.astype\('int32'\)"),
        ([ints(2, 1), 1.5], "`pos` is i32, an integer, not 1.5"),
        ([ints(2, 1), True], "`pos` is i32, not a bool"),
        ([ints(2, 1), 2**31], "`pos` is 2147483648, which does not fit i32"),
        ([ints(2, 1), 8], r"`pos` is 8, past the last position of axis MaxSeq \(8\)"),
        ([ints(2, 1) + 11, 0], r"`token`\) is 11, past the last position of axis V \(11\)"),
        ([[[0], [1, 2]], 0], "a list whose rows differ in length"),
        ([[[0], [0.5]], 0], "`token` is i32, an integer, not 0.5"),
        ([None, 0], "`token` is Tensor.*not a NoneType"),
        ("token", "inputs come as a list or a dict, not a str"),
    ],
)  # fmt: skip
def test_messages_speak_the_signature(model: Model, inputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=STEP + f".*{message}"):
        model.run_entry("step", inputs)


def test_wrong_entry_lists_the_entries(model: Model) -> None:
    with pytest.raises(InputError, match=r"no entry `decode`.*count_down, forward, step"):
        model.run_entry("decode", [])


def test_generics(model: Model) -> None:
    with pytest.raises(InputError, match=r"needs the generic `N`.*generics=\{'N': ...\}"):
        model.run_entry("count_down", [1, 1])
    with pytest.raises(InputError, match="has no generic `M` of its own"):
        model.run_entry("count_down", [1, 1], generics={"M": 3})
    with pytest.raises(InputError, match=r"`N > 0` does not hold with N = 0"):
        model.run_entry("count_down", [1, 1], generics={"N": 0})
    with pytest.raises(InputError, match="is -1, which is no size"):
        model.run_entry("count_down", [1, 1], generics={"N": -1})


def test_lists_numbers_and_arrays_where_they_fit(model: Model) -> None:
    want = model.run_entry("step", [torch.tensor([[1], [2]], dtype=torch.int32), 0])
    for token in ([[1], [2]], np.array([[1], [2]], np.int32)):
        for pos in (0, np.int64(0), np.array(0, np.int32), torch.tensor(0, dtype=torch.int32)):
            model.reset_state()
            assert torch.equal(model.run_entry("step", [token, pos]), want)


SIZES = """
module m
pub entry sizes<A: Dim, B: Dim>(x: Tensor[A + 1, B; f32], y: Tensor[2 * B; f32]) -> Tensor[A; f32]
where A > B {
    return x[0:A, 0]
}
pub entry any<*S: Shape, T: Float>(x: Tensor[*S; T], eps: T) -> Tensor[*S; T] {
    return x * eps
}
pub entry bits(x: Tensor[2; bf16], y: u64?) -> Tensor[2; bf16] {
    return match y { some(n) => x + cast<bf16>(n), none => x }
}
"""


def test_sizes_are_solved_and_bound_consistently(tmp_path: Path) -> None:
    source = SIZES.replace("x[0:A, 0]", "x[0:A, 0]").replace(
        "where A > B {", "where A > B, B > 0 {"
    )
    model = linnet.torch.load(checked(tmp_path, source))
    assert model.run_entry("sizes", [torch.ones(4, 2), torch.ones(4)]).shape == (3,)
    with pytest.raises(InputError, match=r"axis 0 of `y` .* is 5, but `2 \* B` is 4"):
        model.run_entry("sizes", [torch.ones(4, 2), torch.ones(5)])
    with pytest.raises(InputError, match=r"`A > B` does not hold with A = 2, B = 3"):
        model.run_entry("sizes", [torch.ones(3, 3), torch.ones(6)])


def test_dtype_and_shape_generics_come_from_the_inputs(tmp_path: Path) -> None:
    source = SIZES.replace("where A > B {", "where A > B, B > 0 {")
    model = linnet.torch.load(checked(tmp_path, source))
    assert model.run_entry("any", [torch.ones(2, 3), 0.5]).tolist() == [[0.5] * 3] * 2
    halves = model.run_entry("any", [torch.ones(4, dtype=torch.bfloat16), 0.5])
    assert halves.dtype == torch.bfloat16 and halves.shape == (4,)
    with pytest.raises(InputError, match="`x` is i32, which is no Float dtype"):
        model.run_entry("any", [ints(2), 0.5])


def test_unusual_dtypes(tmp_path: Path) -> None:
    source = SIZES.replace("where A > B {", "where A > B, B > 0 {")
    model = linnet.torch.load(checked(tmp_path, source))
    x = np.array([1, 2], ml_dtypes.bfloat16)
    assert model.run_entry("bits", [x, None]).tolist() == [1.0, 2.0]
    assert model.run_entry("bits", [x, 2**63]).tolist() == [2.0**63, 2.0**63]
