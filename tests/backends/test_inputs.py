"""Callers' values that every backend reads alike."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet
from linnet.backends.errors import InputError
from linnet.backends.inputs import Reader
from linnet.backends.signature import Signature, entry_named
from linnet.ir import Program
from linnet.native.runtime.values import NumPyArrays

torch = pytest.importorskip("torch")

TEXT = """
module m
pub enum Kind { Plain, Twice }
pub entry any<N: Dim, T: Float>(x: Tensor[N, 2; T], kind: Kind = Kind.Plain) -> Tensor[N, 2; T] {
    return x
}
pub entry floats<N: Dim>(x: Tensor[N, 2; f32], kind: Kind = Kind.Plain) -> Tensor[N, 2; f32] {
    return match kind { Kind.Plain => x, Kind.Twice => x + x }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path: Path = tmp_path_factory.mktemp("inputs") / "m.linnet"
    path.write_text(TEXT, encoding="utf-8")
    return linnet.load_program(path)


def read(program: Program, inputs: Any, generics: Any = None, entry: str = "floats") -> list[Any]:
    signature = Signature(entry, program.entries(None)[entry], {})
    return Reader(signature, NumPyArrays()).read(inputs, generics).values


def test_torch_tensors_that_are_views_of_other_numbers(program: Program) -> None:
    conjugate = torch.tensor([[1 + 2j, 3 - 4j]], dtype=torch.complex64).conj()
    assert torch.imag(conjugate).is_neg()
    x, _ = read(program, [torch.imag(conjugate), 0])
    assert x.tolist() == [[-2, 4]]


def test_sparse_torch_tensors_are_refused(program: Program) -> None:
    sparse = torch.eye(2).to_sparse()
    with pytest.raises(InputError, match=r"`x` is a torch tensor of layout .*: give a dense one"):
        read(program, [sparse, 0])
    assert read(program, [sparse.to_dense(), 0])[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("case", [1, np.int64(1), np.array(1, np.uint8), torch.tensor(1), "Twice"])
def test_an_enum_takes_any_integer(program: Program, case: Any) -> None:
    assert read(program, [np.ones((1, 2), np.float32), case])[1] == 1


@pytest.mark.parametrize("case", [True, np.bool_(True), 1.0, np.float32(1), 2, -1, "twice", None])
def test_an_enum_takes_nothing_else(program: Program, case: Any) -> None:
    with pytest.raises(InputError, match="`kind` is a case of `Kind`: one of Plain, Twice"):
        read(program, [np.ones((1, 2), np.float32), case])


def test_generics_are_a_dict(program: Program) -> None:
    with pytest.raises(InputError, match="generics come as a dict of values by name, not a list"):
        read(program, [np.ones((1, 2), np.float32), 0], [1])


@pytest.mark.parametrize(("name", "shown"), [([1], r"\[1\]"), (None, "None"), ("a\nb", r"a\\nb")])
def test_an_entry_of_any_other_name(program: Program, name: Any, shown: str) -> None:
    with pytest.raises(InputError, match=f"there is no entry `{shown}`; .*entries: any, floats"):
        entry_named(program.entries(None), name)


@pytest.mark.parametrize("value", [1 << 3000, -(1 << 3000), 1e39, 1 << 128])
def test_numbers_past_a_dtype_are_refused(program: Program, value: Any) -> None:
    with pytest.raises(InputError, match="which does not fit f32"):
        read(program, [[[value, 0.0]], 0])


@pytest.mark.parametrize("value", [math.inf, -math.inf, np.float32(math.inf), 3e38])
def test_numbers_of_a_dtype_are_taken(program: Program, value: Any) -> None:
    assert read(program, [[[value, 0.0]], 0])[0].tolist() == [[np.float32(value), 0.0]]


def test_arrays_of_another_byte_order_have_a_way_out(program: Program) -> None:
    with pytest.raises(InputError, match=r"an array of >f4; convert it with x.astype\('float32'\)"):
        read(program, [np.zeros((1, 2), ">f4"), "Plain"])
    with pytest.raises(InputError, match=r"an array of complex64$"):
        read(program, [np.zeros((1, 2), np.complex64), "Plain"])
    with pytest.raises(
        InputError, match=r"is T, but got .* >f4; convert it, as with x.astype\('float32'\)"
    ):
        read(program, [np.zeros((1, 2), ">f4"), "Plain"], entry="any")
    with pytest.raises(InputError, match=r"is T, but got .* >i8; convert it, as .*'float64'"):
        read(program, [np.zeros((1, 2), ">i8"), "Plain"], entry="any")
    with pytest.raises(InputError, match=r"is T, but got .* complex64$"):
        read(program, [np.zeros((1, 2), np.complex64), "Plain"], entry="any")
    with pytest.raises(InputError, match=r"is bf16, but got .* >f4; convert it with .*'bfloat16'"):
        read(program, [np.zeros((1, 2), ">f4"), "Plain"], {"T": "bf16"}, entry="any")
