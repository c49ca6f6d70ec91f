"""Values for an entry's own generics: what does not fit is told before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import linnet
from linnet.passes import BindError, bind, lower
from linnet.passes.arguments import LARGEST
from linnet.types import DType

TEXT = """
module m
pub block Model<H: Dim> {
    param w: Tensor[H; f32]
    pub entry run<N: Dim, T: Float, *S: Shape>(x: Tensor[N, H; T], y: Tensor[*S; f32])
        -> Tensor[N, H; T] where N > 1, N < H { return x + x }
    pub entry other<M: Dim>(x: Tensor[M; f32]) -> Tensor[M; f32] { return x }
}
"""
GIVEN: dict[str, Any] = {"T": "f32", "S": [2, 3]}


def lowered(folder: Path, sizes: Any, *entries: str) -> Any:
    path = folder / "m.linnet"
    path.write_text(TEXT, encoding="utf-8")
    binding = bind(linnet.load_program(path), "Model", {"H": 4})
    made = lower(binding, entries or ("run",), sizes=sizes)
    return [str(p.type) for p in made.functions[made.entries["run"]].params]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"Q": 1}, "`Model.run` has no generic of its own called `Q`; it has `N`, `S`, `T`"),
        ({"H": 1}, "`Model.run` has no generic of its own called `H`"),
        ({3: 1}, "called 3"),
        ([3], r"a dict of values by name, not \[3\]"),
        ({**GIVEN, "N": 1}, "`Model.run` needs `N > 1`, which does not hold with .*N = 1"),
        ({**GIVEN, "N": 4}, "`Model.run` needs `N < H`"),
        ({**GIVEN, "N": -1}, "`N` of `Model.run` is -1, which is no size"),
        ({**GIVEN, "N": LARGEST + 1}, "is 2147483648, which is no size"),
        ({**GIVEN, "N": 10**90}, "is 1000.*which is no size"),
        ({**GIVEN, "N": 2.0}, r"takes an integer, not 2\.0"),
        ({**GIVEN, "N": True}, "takes an integer, not True"),
        ({**GIVEN, "N": "f32"}, "takes an integer, not `f32`"),
        ({**GIVEN, "N": DType.F32}, "takes an integer, not `f32`"),
        ({**GIVEN, "T": "i32"}, "`T` of `Model.run` takes a dtype out of f16.*, not `i32`"),
        ({**GIVEN, "T": 3}, "takes a dtype out of f16.*, not 3"),
        ({**GIVEN, "T": "\x1b[2J"}, r"not `\\u\{1b\}\[2J`"),
        ({**GIVEN, "S": 2}, "`S` of `Model.run` takes a list of sizes, not 2"),
        ({**GIVEN, "S": [2, "x"]}, "takes an integer, not `x`"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, sizes: Any, said: str) -> None:
    with pytest.raises(BindError, match=said):
        lowered(tmp_path, sizes)


def test_every_problem_is_told(tmp_path: Path) -> None:
    with pytest.raises(BindError) as error:
        lowered(tmp_path, {"N": -1, "T": "i32", "S": 2})
    assert len(error.value.problems) == 3


def test_what_fits(tmp_path: Path) -> None:
    assert lowered(tmp_path, GIVEN) == ["Tensor[N, 4; f32]", "Tensor[2, 3; f32]"]
    sizes = {"T": DType.BF16, "S": (), "N": 2}
    assert lowered(tmp_path, sizes) == ["Tensor[2, 4; bf16]", "f32"]
    # a size of one entry among several
    assert lowered(tmp_path, {**GIVEN, "M": 5}, "run", "other")[0] == "Tensor[N, 4; f32]"
