"""Token after token from any loaded model that has the entries `prefill` and `decode`."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from linnet.nest.errors import fail


class Generator(Protocol):
    """What every backend's model object offers."""

    def run_entry(
        self, name: str, inputs: Sequence[Any], generics: dict[str, Any] | None = None
    ) -> Any: ...

    def reset_state(self) -> None: ...

    def entries(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen: temperature 0 takes the best, else a draw from `seed`."""

    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not _is_temperature(self.temperature):
            shown = _shown(self.temperature)
            fail("E5026", f"the temperature is {shown}; it has to be finite and not below 0")
        object.__setattr__(self, "temperature", float(self.temperature))
        if not _is_whole(self.seed, 1 << 64):
            fail("E5026", f"the seed is {_shown(self.seed)}; it has to be from 0 to 2**64 - 1")


def _is_temperature(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return 0 <= float(value) < math.inf
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__}"


def _is_whole(value: Any, below: int) -> bool:
    return _is_integer(value) and 0 <= int(value) < below


def _is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Integral)


def generate(
    model: Generator,
    prompt: Sequence[int],
    max_new_tokens: int,
    end_tokens: frozenset[int] = frozenset(),
    sampling: Sampling = Sampling(),
) -> Iterator[int]:
    """The answer's tokens as they are made; an end token ends it and is not given out.

    The model was loaded with `Batch = 1` and a `MaxSeq` of at least prompt and answer together. Its
    caches hold one answer: nothing else may use it until this one's last token. Raises `NestError`
    where the prompt is not one of token ids.
    """
    prompt = _tokens(prompt)
    if not _is_integer(max_new_tokens):
        fail("E5026", f"max_new_tokens is {_shown(max_new_tokens)}; it has to be an integer")
    if max_new_tokens < 1:
        return
    model.reset_state()
    rng = np.random.default_rng(sampling.seed)
    logits = prefill(model, prompt)
    for step in range(max_new_tokens):
        token = choose(row(logits), sampling.temperature, rng)
        if token in end_tokens:
            return
        yield token
        if step + 1 < max_new_tokens:
            at = len(prompt) + step
            logits = model.run_entry("decode", [np.asarray([[token]], np.int32), at])


def _tokens(prompt: Any) -> list[int]:
    """The prompt's token ids, all of which fit i32."""
    if hasattr(prompt, "tolist"):  # NumPy's and PyTorch's arrays
        prompt = prompt.tolist()
    if not isinstance(prompt, Iterable) or isinstance(prompt, str | bytes | Mapping | Set):
        fail("E5026", f"the prompt is {_shown(prompt)}; it has to be a sequence of token ids")
    tokens = list(prompt)
    if not tokens:
        fail("E5026", "the prompt has no tokens")
    for at, token in enumerate(tokens):
        if not _is_whole(token, 1 << 31):
            shown = f"token {at} of the prompt is {_shown(token)}"
            fail("E5026", f"{shown}; ids are integers from 0 on")
    return list(map(int, tokens))


SHORTEST = 64  # the length that shorter prompts are padded to


def prefill(model: Generator, prompt: Sequence[int]) -> Any:
    """Fills the caches with the prompt; the logits after it.

    Where a backend compiles each shape (`static_shapes`) and the model has the entry for it, the
    prompt is padded to one of a few lengths.
    """
    known = getattr(model, "static_shapes", False) and "prefill_slots" in model.entries()
    if not known:
        return model.run_entry("prefill", [np.asarray([prompt], np.int32), 0])
    length = SHORTEST
    while length < len(prompt):
        length *= 2
    tokens = np.zeros((1, length), np.int32)
    tokens[0, : len(prompt)] = prompt
    one, count = np.zeros(1, np.int32), np.asarray([len(prompt)], np.int32)
    return model.run_entry("prefill_slots", [tokens, one, count])


def row(logits: Any) -> np.ndarray[Any, Any]:
    """The one row of a backend's `[1, Vocab]` logits as a NumPy vector of f32, or f64 where they
    have 64 bits."""
    if hasattr(logits, "detach"):
        wide = logits.detach().cpu()
        logits = (wide if wide.element_size() > 4 else wide.float()).numpy()
    array = np.asarray(logits)
    kind = np.float64 if array.dtype.itemsize > 4 else np.float32
    return array.astype(kind, copy=False).reshape(-1)


def choose(logits: np.ndarray[Any, Any], temperature: float, rng: np.random.Generator) -> int:
    """The best token, or a draw from `softmax(logits / temperature)`."""
    if not logits.size:
        fail("E5026", "the model gave no logits, so no token can be chosen")
    best = int(logits.argmax())  # the first NaN where there is one
    peak = float(logits[best])
    if math.isnan(peak):
        fail("E5026", "the model's logits are not numbers (NaN), so no token can be chosen")
    if peak == -math.inf:
        fail("E5026", "the model's logits are all -inf, so no token can be chosen")
    if temperature == 0:
        return best
    if peak == math.inf:  # what the softmax tends to: those alone, alike
        weights = (logits == math.inf).astype(np.float64)
    else:
        with np.errstate(over="ignore"):  # a tiny temperature: -inf, which weighs nothing
            weights = np.exp((logits.astype(np.float64) - peak) / temperature)
    # Searching the running sum draws one index without a normalised copy.
    total = np.cumsum(weights)
    at = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
    return min(at, logits.size - 1)
