"""An op inside a block: pure, and generic over the block's generics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from linnet.elaborate import check
from linnet.ir.evaluate import Evaluator
from linnet.ir.verify import verify
from linnet.packages import load_sources

SOURCE = """module t

pub block Net<H: Dim> {
    param w: Tensor[H; f32]

    op twice<B: Dim>(x: Tensor[B, H; f32]) -> Tensor[B, H; f32] {
        return x + x
    } grad(_, dy) {
        return dy + dy
    }

    pub entry forward<B: Dim>(x: Tensor[B, H; f32]) -> Tensor[B, H; f32] {
        return twice(x) * w
    }
}
"""


def test_an_op_in_a_block_takes_the_blocks_generics(tmp_path: Path) -> None:
    path = tmp_path / "t.linnet"
    path.write_text(SOURCE, encoding="utf-8")
    program = check(load_sources([path]))
    assert not program.diagnostics
    for function in program.functions.values():
        verify(function, program)
    op = next(f for f in program.functions.values() if f.kind == "op")
    assert op.block is None
    run = Evaluator(program, program.blocks)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = run.run(op.name, [x], {"H": 3, "B": 2})
    np.testing.assert_array_equal(result, x + x)


def test_an_op_in_a_block_cannot_read_its_members(tmp_path: Path) -> None:
    path = tmp_path / "t.linnet"
    path.write_text(SOURCE.replace("return x + x", "return x * w"), encoding="utf-8")
    program = check(load_sources([path]))
    assert [d.code for d in program.diagnostics] == ["E1208"]


def test_an_op_in_a_block_cannot_call_its_methods(tmp_path: Path) -> None:
    path = tmp_path / "t.linnet"
    method = "fn own() -> Tensor[H; f32] { return w }\n\n    op twice"
    source = SOURCE.replace("op twice", method).replace("return x + x", "return x * own()")
    path.write_text(source, encoding="utf-8")
    assert [d.code for d in check(load_sources([path])).diagnostics] == ["E1208"]
