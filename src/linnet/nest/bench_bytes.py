"""The bytes that a model must read for one token, from its card and the headers of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from linnet.api import load_program
from linnet.nest.active import row_state, shares
from linnet.nest.card import Card
from linnet.passes import bind
from linnet.types import DTYPES
from linnet.weights import manifest_of, open_weights, plan_load, read_bindings

if TYPE_CHECKING:
    from linnet.nest.bench import Settings

# Bits a weight takes with its share of the scales: a row's scale is left out, a block of 32 of 8
# bits has one of 16 bits, one of 4 bits has one too.
_BITS: dict[str, Fraction] = {
    "f32": Fraction(32), "bf16": Fraction(16), "int8": Fraction(8), "int8_group": Fraction(17, 2),
    "int4": Fraction(9, 2), "int4_group64": Fraction(17, 4),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes of weights, and of caches filled half way through the answer."""

    weights: int
    caches: int

    @property
    def total(self) -> int:
        return self.weights + self.caches


def reads_of(
    card: Card, generics: Mapping[str, int | str], weights: Any, settings: Settings
) -> Reads:
    """What one token reads: each weight once in the format it is kept in, of stacked experts those
    chosen, and what the caches hold. Raises `WeightError` or `CompileError`."""
    program = load_program(card.source_path)
    binding = bind(program, card.source.root, dict(generics))
    part = shares(binding)
    lines = None if card.bindings_path is None else read_bindings(card.bindings_path)
    total = Fraction(0)
    with open_weights(weights) as opened:
        for item in plan_load(manifest_of(binding), opened, lines, cast_dtype=True).items:
            count = 1
            for extent in item.shape:
                count *= extent
            # A tensor that several parameters share is read once, as far as any of them reads it.
            share = max(part.get(path, Fraction(1)) for path in item.paths)
            bits = Fraction(DTYPES[item.dtype].bits)
            if len(item.shape) >= 2 and settings.weights_format is not None:
                bits = _BITS[_format(settings.weights_format, item.paths)]
            total += count * share * bits / 8
    state = row_state(binding)
    middle = settings.prompt_tokens + settings.new_tokens // 2
    held = 0 if state is None else state.fixed + state.each * middle
    return Reads(int(total), held)


def _format(wanted: str, paths: tuple[str, ...]) -> str:
    """A weight that there is once, outside the layers, is kept in 8 bits where others have 4."""
    inside = any(step.isdigit() for path in paths for step in path.split("."))
    return wanted if inside or not wanted.startswith("int4") else "int8_group"
