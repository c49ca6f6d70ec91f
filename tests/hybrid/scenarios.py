"""What a package of the family must do, each scenario giving its largest difference from
`transformers` on each prompt alone. `Subject` is a package at the toy's size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import toy

Ids = Sequence[int]
MAX_SEQ = 64


class Subject:
    """A package to load, over and over at different sizes."""

    def __init__(
        self, folder: Path, numerics: str, *, dtype: str = "f32", tied: bool = False,
        backend: str = "torch",
    ) -> None:  # fmt: skip
        self.folder, self.numerics, self.dtype, self.tied = folder, numerics, dtype, tied
        self.backend = backend

    def load(self, batch: int = 1, max_seq: int = MAX_SEQ, **sizes: Any) -> Any:
        from linnet import nest

        generics = {**toy.SIZES, "Batch": batch, "MaxSeq": max_seq, "T": self.dtype}
        options = {"trainable": sizes.pop("trainable")} if "trainable" in sizes else {}
        model = nest.load(
            self.folder, self.backend, numerics=self.numerics, weights=toy.checkpoint(self.tied),
            generics=generics | sizes, cast_dtype=True, **options,
        )  # fmt: skip
        return model if self.backend == "torch" else Converting(model)

    def logits(self, ids: Ids) -> torch.Tensor:
        return toy.logits(ids, self.tied)

    def gap(self, got: torch.Tensor, ids: Ids) -> float:
        """How far `got` is from the reference's logits after `ids`."""
        return self.apart(got, self.logits(ids)[-1])

    def apart(self, got: torch.Tensor, want: torch.Tensor) -> float:
        """The largest difference; in bf16, where now and then another expert is chosen (as it is
        by `transformers` in bf16), the mean one. Unrelated logits are 1.1 apart in the mean."""
        if self.dtype == "f32":
            return difference(got, want)
        return float((got.detach().float() - want).abs().mean())


class Converting:
    """A model of another backend, its results as tensors."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, *inputs: Any) -> Any:
        return as_tensors(self.model(*inputs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def run_entry(self, *args: Any, **named: Any) -> Any:
        return as_tensors(self.model.run_entry(*args, **named))

    def state(self, path: str) -> Any:
        return as_tensors(self.model.state(path))


def as_tensors(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(as_tensors, value))
    array = np.asarray(value)
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array  # bf16 holds f32's
    return torch.tensor(wide)


def difference(got: torch.Tensor, want: torch.Tensor) -> float:
    assert got.shape == want.shape, (got.shape, want.shape)
    return float((got.detach().float() - want.float()).abs().max())


def ints(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def whole_sequences(subject: Subject, lengths: Sequence[int]) -> float:
    model, worst = subject.load(), 0.0
    for n in lengths:
        ids = toy.prompt(n, n)
        worst = max(worst, subject.apart(model(ints([ids]))[0], subject.logits(ids)))
    a, b = toy.prompt(9, 1), toy.prompt(9, 2)
    both = model.run_entry("next_token", [ints([a, b])])
    return max(worst, subject.gap(both[0], a), subject.gap(both[1], b))


def chunks_then_steps(subject: Subject, cuts: Sequence[int], length: int, steps: int) -> float:
    """A prompt in chunks that end at `cuts`, then `steps` tokens one by one, in two rows."""
    model, worst = subject.load(batch=2, max_seq=length + steps), 0.0
    model.run_entry("prefill", [ints([toy.prompt(5, 90), toy.prompt(5, 91)]), 0])  # left behind
    rows = [toy.prompt(length + steps, seed) for seed in (1, 2)]
    start = 0
    for stop in (*cuts, length):
        out = model.run_entry("prefill", [ints([row[start:stop] for row in rows]), start])
        worst = max(worst, *(subject.gap(out[i], rows[i][:stop]) for i in (0, 1)))
        start = stop
    for at in range(length, length + steps):
        out = model.run_entry("decode", [ints([[row[at]] for row in rows]), at])
        worst = max(worst, *(subject.gap(out[i], rows[i][: at + 1]) for i in (0, 1)))
    return worst


def rows_with_a_late_request(subject: Subject) -> float:
    model, worst = subject.load(batch=4), 0.0
    rows = {2: toy.prompt(7, 1), 0: toy.prompt(2, 2)}
    padded = [rows[2] + [0] * 2, rows[0] + [0] * 7]
    out = model.run_entry("prefill_slots", [ints(padded), ints([2, 0]), ints([7, 2])])
    worst = max(subject.gap(out[0], rows[2]), subject.gap(out[1], rows[0]))
    for step in range(6):
        if step == 2:
            rows[3] = toy.prompt(5, 3)
            out = model.run_entry("prefill_slots", [ints([rows[3]]), ints([3]), ints([5])])
            worst = max(worst, subject.gap(out[0], rows[3]))
        tokens, positions = [[0]] * 4, [MAX_SEQ - 1] * 4
        for r in rows:
            rows[r] = rows[r] + toy.prompt(1, 10 * step + r)
            tokens[r], positions[r] = rows[r][-1:], len(rows[r]) - 1
        out = model.run_entry("decode_rows", [ints(tokens), ints(positions)])
        worst = max(worst, *(subject.gap(out[r], rows[r]) for r in rows))
    return worst


def idle_rows_keep_their_state(subject: Subject) -> float:
    """A row that steps along at `MaxSeq - 1` between its own tokens."""
    model, worst = subject.load(batch=2), 0.0
    rows = [toy.prompt(5, 1), toy.prompt(5, 2)]
    model.run_entry("prefill", [ints(rows), 0])
    for step in range(5):
        turn = step % 2
        rows[turn] = rows[turn] + toy.prompt(1, 40 + step)
        tokens, positions = [[3], [3]], [MAX_SEQ - 1] * 2
        tokens[turn], positions[turn] = rows[turn][-1:], len(rows[turn]) - 1
        out = model.run_entry("decode_rows", [ints(tokens), ints(positions)])
        worst = max(worst, subject.gap(out[turn], rows[turn]))
    return worst


class Line:
    """Prompts packed end to end, with what each entry says of their tokens."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.rows: list[int] = []
        self.positions: list[int] = []
        self.segments: list[int] = []
        self.slots: list[int] = []
        self.last: dict[int, int] = {}

    def add(self, row: int, ids: Ids, start: int = 0, place: Any = None) -> Line:
        segment = self.segments[-1] + 1 if self.segments else 0
        for i, token in enumerate(ids):
            self.tokens.append(token)
            self.rows.append(row)
            self.positions.append(start + i)
            self.segments.append(segment)
            self.slots.append(place(row, start + i) if place else 0)
        self.last[row] = len(self.tokens) - 1
        return self

    def pad(self, count: int, position: int, row: int = 0) -> Line:
        for _ in range(count):
            self.tokens.append(1)
            self.rows.append(row)
            self.positions.append(position)
            self.segments.append(99)
            self.slots.append(0)
        return self

    def ends(self, rows: int) -> torch.Tensor:
        return ints([self.last.get(row, 0) for row in range(rows)])

    def packed(self) -> list[torch.Tensor]:
        return [ints(x) for x in (self.tokens, self.rows, self.positions, self.segments)]

    def paged(self) -> list[torch.Tensor]:
        return [ints(x) for x in (self.tokens, self.positions, self.rows, self.slots)]

    def training(self) -> list[torch.Tensor]:
        return [ints(x) for x in (self.tokens, self.positions, self.segments)]


def packed_prompts(subject: Subject, lengths: Sequence[int] = (6, 1, 40, 3)) -> float:
    """Prompts of mixed lengths packed, all rows stepping; then one more while the others step."""
    count = len(lengths)
    model = subject.load(batch=count + 1)
    model.run_entry("prefill", [ints([toy.prompt(4, 70 + b) for b in range(count + 1)]), 0])
    rows = {(r + 2) % (count + 1): toy.prompt(n, n) for r, n in enumerate(lengths)}
    line = Line()
    for r, ids in rows.items():
        line.add(r, ids)
    line.pad(3, MAX_SEQ - 1, row=min(rows))
    out = model.run_entry("prefill_packed", [*line.packed(), line.ends(count + 1)])
    worst = max(subject.gap(out[r], ids) for r, ids in rows.items())
    (free,) = set(range(count + 1)) - set(rows)
    late, tokens, positions = toy.prompt(5, 60), [[0]] * (count + 1), [MAX_SEQ - 1] * (count + 1)
    for r in rows:
        rows[r] = rows[r] + toy.prompt(1, 30 + r)
        tokens[r], positions[r] = rows[r][-1:], len(rows[r]) - 1
    line = Line().add(free, late).pad(2, MAX_SEQ - 1)
    out = model.run_entry(
        "step_packed", [*line.packed(), line.ends(count + 1), ints(tokens), ints(positions)]
    )
    worst = max(worst, subject.gap(out[free], late))
    worst = max(worst, *(subject.gap(out[count + 1 + r], ids) for r, ids in rows.items()))
    rows[free] = late
    rows = {r: rows[r] + toy.prompt(1, 50 + r) for r in sorted(rows)}
    last = [ids[-1:] for ids in rows.values()]
    out = model.run_entry("decode_rows", [ints(last), ints([len(x) - 1 for x in rows.values()])])
    return max(worst, *(subject.gap(out[r], ids) for r, ids in rows.items()))


def pages(subject: Subject) -> float:
    """Prompts in pages and in chunks, steps, a page table reused, and a shared prefix."""
    size, pool = 8, 12
    model = subject.load(max_seq=size * pool, PageSize=size, Rows=4)
    tables = [[3, 5, 1], [7, 2, 9]]

    def place(row: int, position: int) -> int:
        return tables[row][position // size] * size + position % size

    def prefill(line: Line) -> torch.Tensor:
        out = model.run_entry("prefill_paged", [*line.paged(), line.ends(2), ints(tables)])
        assert isinstance(out, torch.Tensor)
        return out

    a, b = toy.prompt(11, 1), toy.prompt(6, 2)
    out = prefill(Line().add(0, a[:7], place=place).add(1, b, place=place).pad(3, 0))
    worst = max(subject.gap(out[0], a[:7]), subject.gap(out[1], b))
    out = prefill(Line().add(0, a[7:8], 7, place).pad(2, size * 3 - 1))  # one token alone
    worst = max(worst, subject.gap(out[0], a[:8]))
    # The rest of the prompt while the other row steps.
    b = [*b, 5]
    line = Line().add(0, a[8:], 8, place).pad(1, size * pool - 1)
    out = model.run_entry(
        "step_paged",
        [*line.paged(), line.ends(2), ints([[0], [5]]), ints([size * 3 - 1, 6]), ints(tables)],
    )
    worst = max(worst, subject.gap(out[0], a), subject.gap(out[3], b))
    for step in range(4):
        a, b = a + toy.prompt(1, step), b + toy.prompt(1, 10 + step)
        out = model.run_entry(
            "decode_paged",
            [ints([a[-1:], b[-1:]]), ints([len(a) - 1, len(b) - 1]), ints(tables)],
        )
        worst = max(worst, subject.gap(out[0], a), subject.gap(out[1], b))
    # Row 0 goes to a new prompt on pages that were in use, while row 1 steps.
    third, b = toy.prompt(5, 3), [*b, 7]
    tables[0] = [5, 3, 8]
    line = Line().add(0, third, place=place)
    out = model.run_entry(
        "step_paged",
        [*line.paged(), line.ends(2), ints([[0], [7]]), ints([size * pool - 1, len(b) - 1]),
         ints(tables)],
    )  # fmt: skip
    worst = max(worst, subject.gap(out[0], third), subject.gap(out[3], b))
    return max(worst, _shared_prefix(subject, model, tables, size))


def _shared_prefix(subject: Subject, model: Any, tables: list[list[int]], size: int) -> float:
    """Two rows that go on from one page: its state is kept in a row of its own."""
    tables[:] = [[3, 5, 1], [10, 2, 9]]

    def place(row: int, position: int) -> int:
        return tables[row][position // size] * size + position % size

    prefix, worst = toy.prompt(size, 8), 0.0
    line = Line().add(0, prefix, place=place)
    model.run_entry("prefill_paged", [*line.paged(), line.ends(2), ints(tables)])
    model.run_entry("copy_rows", [ints([0]), ints([3])])
    tables[1] = [3, 2, 9]
    for row in (1, 0):
        model.run_entry("copy_rows", [ints([3]), ints([row])])
        own = prefix + toy.prompt(3, 20 + row)
        line = Line().add(row, own[size:], size, place)
        out = model.run_entry("prefill_paged", [*line.paged(), line.ends(2), ints(tables)])
        worst = max(worst, subject.gap(out[row], own))
    return worst


def generation(subject: Subject) -> float:
    """Each produced token is, to a margin, the best after those before it."""
    model, worst = subject.load(batch=2), 0.0
    rows = [toy.prompt(6, 1), toy.prompt(6, 2)]

    def start() -> list[Any]:
        model.run_entry("prefill", [ints([row[:-1] for row in rows]), 0])
        return [ints([row[-1:] for row in rows]), 5]

    produced = model.run_entry("generate", start(), generics={"Steps": 6})
    for row, tokens in zip(rows, produced.tolist(), strict=True):
        for i, token in enumerate(tokens):
            scores = subject.logits(row + tokens[:i])[-1]
            worst = max(worst, float(scores.max() - scores[token]))
    tokens, count = model.run_entry("generate_until", [*start(), -1], generics={"MaxNew": 6})
    assert int(count) == 6
    assert tokens.tolist() == produced.tolist()
    key = torch.tensor([3, 4])
    cold = model.run_entry("sample", [*start(), key, 1e-4], generics={"Steps": 6})
    assert cold.tolist() == produced.tolist()
    warm = model.run_entry("sample", [*start(), key, 5.0], generics={"Steps": 6})
    assert warm.tolist() != produced.tolist()
    return worst


def training_line(lengths: Sequence[int]) -> tuple[Line, list[list[int]], Any, Any]:
    """Prompts packed with padding between and after, next tokens as targets, and weights."""
    prompts = [toy.prompt(n, n) for n in lengths]
    line, targets, weights = Line(), [], []
    for k, ids in enumerate(prompts):
        line.add(0, ids)
        targets += [*ids[1:], 0]
        weights += [0.5 + 0.5 * k] * (len(ids) - 1) + [0.0]
    line.pad(2, 0)
    return line, prompts, torch.tensor([*targets, 0, 0]), torch.tensor([*weights, 0.0, 0.0])


def scores_packed(subject: Subject, lengths: Sequence[int] = (7, 1, 5, 70)) -> float:
    model = subject.load()
    line, prompts, targets, weights = training_line(lengths)
    given = line.training()
    logs = torch.cat([subject.logits(ids).log_softmax(-1) for ids in prompts])
    want = logs.gather(1, targets[: len(logs), None])[:, 0]
    got = model.run_entry("log_probs_packed", [*given, targets])[: len(logs)]
    worst = difference(got, want)
    loss = model.run_entry("loss_packed", [*given, targets, weights])
    expected = -(weights[: len(want)] * want).sum()
    worst = max(worst, difference(loss, expected) / max(1.0, float(expected)))
    hidden = model.run_entry("hidden_packed", given)[: len(logs)]
    head = toy.reference(subject.tied).lm_head.weight
    return max(worst, difference(hidden @ head.mT, torch.cat([subject.logits(p) for p in prompts])))
