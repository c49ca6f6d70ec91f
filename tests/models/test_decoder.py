"""`models/decoder` under the NumPy evaluator: every cached way to read a text gives what reading it
whole gives, with and without the parts a checkpoint may lack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.api import load_program
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator

SOURCE = Path(__file__).parent.parent.parent / "models" / "decoder"
ROOT = "decoder::Model"
VOCAB, H, HEADS, KV_HEADS, HEAD_DIM, INNER, LAYERS = 40, 12, 4, 2, 6, 10, 2
SIZES = {
    "Vocab": VOCAB,
    "H": H,
    "Heads": HEADS,
    "KvHeads": KV_HEADS,
    "HeadDim": HEAD_DIM,
    "Inner": INNER,
    "Layers": LAYERS,
    "T": "f32",
}
Array = Any


def weights(*, norms: bool, biases: bool) -> dict[str, Array]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Array:
        around = 1.0 if len(shape) == 1 else 0.0
        return (around + rng.normal(size=shape) * 0.4).astype(np.float32)

    given = {
        "embedding.weight": draw(VOCAB, H),
        "norm.weight": draw(H),
        "lm_head.weight": draw(VOCAB, H),
    }
    for i in range(LAYERS):
        layer = f"layers.{i}"
        shapes = {
            "attention.q_proj": (HEADS * HEAD_DIM, H),
            "attention.k_proj": (KV_HEADS * HEAD_DIM, H),
            "attention.v_proj": (KV_HEADS * HEAD_DIM, H),
            "attention.o_proj": (H, HEADS * HEAD_DIM),
            "mlp.gate": (INNER, H),
            "mlp.up": (INNER, H),
            "mlp.down": (H, INNER),
            "attention_norm": (H,),
            "mlp_norm": (H,),
        }
        if norms:
            shapes |= {"attention.q_norm": (HEAD_DIM,), "attention.k_norm": (HEAD_DIM,)}
        given |= {f"{layer}.{name}.weight": draw(*shape) for name, shape in shapes.items()}
        if biases:
            given |= {
                f"{layer}.attention.{name}.bias": draw(shapes[f"attention.{name}"][0]) - 1
                for name in ("q_proj", "k_proj", "v_proj")
            }
    return given


@pytest.fixture(scope="module")
def program() -> Program:
    return load_program(SOURCE)


class Model:
    def __init__(self, program: Program, params: dict[str, Array], **sizes: int) -> None:
        generics = SIZES | {"Batch": 1, "MaxSeq": 16} | sizes
        self.evaluator = Evaluator(program, root=ROOT, generics=generics, params=params)

    def __call__(self, entry: str, *inputs: Any, **generics: int) -> Any:
        return self.evaluator.run(f"{ROOT}.{entry}", [_input(x) for x in inputs], generics)

    def logits(self, tokens: Sequence[int]) -> Array:
        return self("forward", [tokens])[0]


def _input(x: Any) -> Any:
    return np.array(x, np.int32) if isinstance(x, list) else x


@pytest.fixture(params=["llama", "qwen2", "qwen3"])
def params(request: pytest.FixtureRequest) -> dict[str, Array]:
    return weights(norms=request.param == "qwen3", biases=request.param == "qwen2")


def text(count: int, seed: int) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, VOCAB, count)]


def near(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_optional_parts_matter(program: Program) -> None:
    outputs = [
        Model(program, weights(norms=norms, biases=biases)).logits([1, 2, 3])
        for norms, biases in ((False, False), (True, False), (False, True))
    ]
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-2
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-2


def test_family_numbers_matter(program: Program, params: dict[str, Array]) -> None:
    tokens = text(9, 1)
    plain = Model(program, params).logits(tokens)
    assert np.abs(Model(program, params, RopeTheta=50).logits(tokens) - plain).max() > 1e-3
    assert np.abs(Model(program, params, InverseEps=20).logits(tokens) - plain).max() > 1e-3


def test_batch(program: Program, params: dict[str, Array]) -> None:
    model = Model(program, params, Batch=2)
    a, b = text(7, 1), text(7, 2)
    near(model("forward", [a, b]), np.stack([model.logits(a), model.logits(b)]))
    near(model("next_token", [a, b])[1], model.logits(b)[-1])
    near(model("prefill", [a[:4], b[:4]], 0)[0], model.logits(a[:4])[-1])
    near(model("prefill", [a[4:6], b[4:6]], 4)[1], model.logits(b[:6])[-1])
    near(model("decode", [a[6:], b[6:]], 6), [model.logits(a)[-1], model.logits(b)[-1]])


def test_rows(program: Program, params: dict[str, Array]) -> None:
    model = Model(program, params, Batch=3)
    a, b, c = text(6, 1), text(4, 2), text(5, 3)
    out = model("prefill_slots", [a[:5], [*b[:3], 0, 0]], [2, 0], [5, 3])
    near(out, [model.logits(a[:5])[-1], model.logits(b[:3])[-1]])
    # Row 1 is filled while rows 2 and 0 step; row 1 steps along at a place nobody reads.
    out = model(
        "step_packed",
        [*c, 0],
        [1] * 6,
        [*range(5), 15],
        [0] * 5 + [9],
        [4, 4, 4],
        [[b[3]], [0], [a[5]]],
        [3, 15, 5],
    )
    near(out[[0, 3, 5]], [model.logits(c)[-1], model.logits(b)[-1], model.logits(a)[-1]])
    rows = [[*row, 7] for row in (b, c, a)]
    out = model("decode_rows", [row[-1:] for row in rows], [len(row) - 1 for row in rows])
    near(out, [model.logits(row)[-1] for row in rows])


def test_packed(program: Program, params: dict[str, Array]) -> None:
    model = Model(program, params, Batch=2)
    a, b = text(5, 1), text(3, 2)
    positions, segments = [*range(5), *range(3)], [0] * 5 + [1] * 3
    out = model("prefill_packed", a + b, [1] * 5 + [0] * 3, positions, segments, [4, 7])
    near(out, [model.logits(a)[-1], model.logits(b)[-1]])
    out = model("decode_rows", [[1], [2]], [3, 5])
    near(out, [model.logits([*b, 1])[-1], model.logits([*a, 2])[-1]])
    targets, shares = np.arange(8), np.linspace(-1, 1, 8).astype(np.float32)
    logits = np.concatenate([model.logits(a), model.logits(b)]).astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    picked = logs[np.arange(8), targets]
    near(model("log_probs_packed", a + b, positions, segments, targets), picked)
    loss = model("loss_packed", a + b, positions, segments, targets, shares)
    near(loss, -(shares * picked).sum())
    hidden = model("hidden_packed", a + b, positions, segments)
    near(hidden @ params["lm_head.weight"].T, logits)


def test_pages(program: Program, params: dict[str, Array]) -> None:
    model = Model(program, params, PageSize=4)
    table = [[2, 0], [3, 1]]
    a, b = text(6, 1), text(3, 2)

    def place(row: int, position: int) -> int:
        return table[row][position // 4] * 4 + position % 4

    slots = [place(0, p) for p in range(4)] + [place(1, p) for p in range(3)]
    out = model(
        "prefill_paged", a[:4] + b, [0, 1, 2, 3, 0, 1, 2], [0] * 4 + [1] * 3, slots, [3, 6], table
    )
    near(out, [model.logits(a[:4])[-1], model.logits(b)[-1]])
    # The rest of `a` in a chunk while row 1 steps; row 0 steps along where nobody reads.
    out = model(
        "step_paged", a[4:], [4, 5], [0, 0], [place(0, 4), place(0, 5)], [1, 1],
        [[0], [5]], [7, 3], table,
    )  # fmt: skip
    near(out[[0, 3]], [model.logits(a)[-1], model.logits([*b, 5])[-1]])
    out = model("decode_paged", [[6], [8]], [6, 4], table)
    near(out, [model.logits([*a, 6])[-1], model.logits([*b, 5, 8])[-1]])


def test_generation(program: Program, params: dict[str, Array]) -> None:
    model = Model(program, params, Batch=2)
    a, b = text(4, 1), text(4, 2)

    def greedy(tokens: list[int], steps: int) -> list[int]:
        for _ in range(steps):
            tokens = [*tokens, int(model.logits(tokens)[-1].argmax())]
        return tokens[-steps:]

    want = [greedy(a, 6), greedy(b, 6)]
    model("prefill", [a[:3], b[:3]], 0)
    assert model("generate", [a[3:], b[3:]], 3, Steps=6).tolist() == want
    tokens, count = model("generate_until", [a[3:], b[3:]], 3, np.int32(-1), MaxNew=6)
    assert (tokens.tolist(), int(count)) == (want, 6)
    # It goes on until the second of the rows has ended too.
    eos = want[0][0]
    ends = [row.index(eos) if eos in row else 5 for row in want]
    tokens, count = model("generate_until", [a[3:], b[3:]], 3, np.int32(eos), MaxNew=6)
    assert int(count) == max(ends) + 1
    assert tokens[:, : max(ends) + 1].tolist() == [row[: max(ends) + 1] for row in want]
    assert not tokens[:, max(ends) + 1 :].any()
    key = np.array([3, 4])
    draws = [
        model("sample", [a[3:], b[3:]], 3, key, np.float32(2), Steps=5).tolist() for _ in range(2)
    ]
    assert draws[0] == draws[1] != [row[:5] for row in want]
    cold = model("sample", [a[3:], b[3:]], 3, key, np.float32(1e-4), Steps=6)
    assert cold.tolist() == want


def test_shards_split_the_sizes(program: Program) -> None:
    """One shard of two holds half the heads, hidden units and rows of the head."""
    whole = weights(norms=True, biases=False)
    rows = ("q_proj", "k_proj", "v_proj", "gate", "up", "lm_head")
    columns = ("o_proj", "down")

    def half(path: str, value: Array) -> Array:
        name = path.split(".")[-2]
        if name in rows:
            return value[: len(value) // 2]
        return value[:, : value.shape[1] // 2] if name in columns else value

    part = {path: half(path, value) for path, value in whole.items()}
    out = Model(program, part, Shards=2)("forward", [[1, 2, 3]])
    assert out.shape == (1, 3, VOCAB)
    assert out[..., : VOCAB // 2].tolist() == out[..., VOCAB // 2 :].tolist()
