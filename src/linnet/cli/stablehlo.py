"""`linnet stablehlo`: the StableHLO module of one entry."""

from __future__ import annotations

from linnet.cli.generated import generated_command

command = generated_command(
    "the StableHLO module of one entry", "linnet.jax", "stablehlo",
    "Shapes are static: every dimension of the entry itself needs a value too.",
)  # fmt: skip
