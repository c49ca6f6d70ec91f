"""Operations of blocks and calls on every backend: parameters, state, children of all kinds.

One program holds them all; a sequence of calls is compared with the evaluator's, states included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet
from linnet.diagnostics import CompileError
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.ir.walk import walk
from linnet.types import DType

from .backends import BACKENDS, loader, on_every_backend, one_of, to_numpy
from .compare import difference, flat
from .rows import IN_BLOCKS

PROGRAM = """
module m
pub fn scaled<N: Dim, T: Numeric>(x: Tensor[N; T], by: T) -> Tensor[N; T] { return x * by }

pub block Part<N: Dim, T: Numeric> {
    param weight: Tensor[N; T]
    param bias: Tensor[N; T]? = none
    state last: Tensor[N; T]
    state calls: i32
    pub fn apply(x: Tensor[N; T]) -> Tensor[N; T] {
        let y = x * weight + last
        last = match bias { some(b) => y + b, none => scaled(y, 2) }
        calls = calls + 1
        return last
    }
}

pub block Main<N: Dim, Layers: Dim, T: Numeric = f32> {
    buffer table: Tensor[3, N; T]
    sub parts: [Part<N, T>; Layers]
    sub extra: Part<N, T>? = none
    sub more: Part<N, T>? = none
    state total: Tensor[N; T]
    pub entry step(x: Tensor[N; T], at: i32) -> (Tensor[N; T], Tensor[N; T]) {
        let before = total
        var y = x + table[at]
        static for part in parts {
            y = part.apply(y)
        }
        y = match extra { some(e) => e.apply(y), none => y + 1 }
        y = match more { some(e) => e.apply(y), none => y + 1 }
        total = total + y
        return (before, y)
    }
    pub entry repeat(x: Tensor[N; T], times: i32) -> Tensor[N; T] {
        var y = x
        for _ in 0..times {
            static for part in parts {
                y = part.apply(y)
            }
            total = y
        }
        return y + total
    }
}
"""
CASES = [(n, layers, dtype) for n, layers, dtype in
         [(3, 2, "f32"), (1, 1, "i32"), (0, 3, "bf16"), (4, 0, "u8")]]  # fmt: skip


def weights(rng: np.random.Generator, program: Program, n: int, layers: int, dtype: Any) -> Any:
    paths = [f"parts.{k}" for k in range(layers)] + ["extra"]
    made = {f"{path}.weight": (n,) for path in paths} | {"table": (3, n)}
    if layers > 1:  # layers that differ: runs of alike ones
        made["parts.1.bias"] = (n,)
    return {path: np.array(rng.integers(0, 4, shape), dtype) for path, shape in made.items()}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("blocks") / "m.linnet"
    path.write_text(PROGRAM, encoding="utf-8")
    return linnet.load_program(path)


def test_the_program_has_these_operations(program: Program) -> None:
    kinds = {op.kind for f in program.functions.values() for op in walk(f.body)}
    assert kinds >= IN_BLOCKS


def calls(rng: np.random.Generator, n: int, dtype: Any) -> Iterator[tuple[str, list[Any]]]:
    for k in range(3):
        yield "step", [np.array(rng.integers(0, 5, n), dtype), k]
        yield "repeat", [np.array(rng.integers(0, 5, n), dtype), k]


@pytest.mark.parametrize(
    ("backend", "case"),
    [one_of(b, k, slow=b.startswith("jax") and k > 1) for b in BACKENDS for k in range(len(CASES))],
)
def test_calls_in_a_row(program: Program, backend: str, case: int) -> None:
    from linnet.ir.semantics import NUMPY

    n, layers, name = CASES[case]
    dtype = NUMPY[next(d for d in DType if str(d) == name)]
    rng = np.random.default_rng(case)
    generics = {"N": n, "Layers": layers, "T": name}
    given = weights(rng, program, n, layers, dtype)
    oracle = Evaluator(program, root="m::Main", generics=generics, params=given)
    model = loader(backend)(
        program, root="Main", generics=generics, weights=given, numerics="exact"
    )
    for entry, inputs in calls(rng, n, dtype):
        want = oracle.run(f"m::Main.{entry}", inputs)
        got = to_numpy(model.run_entry(entry, inputs))
        for a, b in zip(flat(got), flat(want), strict=True):
            assert difference(a, b) < 1e-5, (entry, inputs, a, b)
    for path in model.state_paths():
        held = to_numpy(model.state(path))
        want = oracle.state.get(path, np.zeros_like(held))  # a child that is not there keeps none
        assert difference(held, want) < 1e-5, path


REFUSED = {
    "jax": """
module m
pub block Main {
    state left: i32
    fn more() -> bool {
        left = left - 1
        return left > 0
    }
    pub entry run() -> i32 {
        var n: i32 = 0
        while more() { n = n + 1 }
        return n
    }
}
""",
    "onnx": "module m\n\npub entry run<N: Dim>(x: Tensor[N; f64]) -> Tensor[N; f64] {\n"
    "    return erf(x)\n}\n",
}
# The line of the refused operation, and words of the message.
SAID = {"jax": (11, ("while", "condition")), "onnx": (4, ("erf", "f64"))}


@on_every_backend()
def test_what_a_runtime_cannot_do_is_refused_by_name_and_line(backend: str, tmp_path: Path) -> None:
    kind = backend.partition("_")[0]
    for name, text in REFUSED.items():
        path = tmp_path / f"{name}.linnet"
        path.write_text(text, encoding="utf-8")
        model = loader(backend)(path, numerics="exact")
        inputs = [np.array([0.5, -2.0])] if name == "onnx" else []
        if kind != name:
            model.run_entry("run", inputs)
            continue
        with pytest.raises((CompileError, ValueError)) as caught:
            model.run_entry("run", inputs)
        line, words = SAID[name]
        assert f"{path.name}:{line}" in str(caught.value)
        assert all(word in str(caught.value) for word in words)
