"""`linnet jax`: the JAX source of one entry."""

from __future__ import annotations

from linnet.cli.generated import generated_command

command = generated_command("the Python source that JAX runs for one entry", "linnet.jax")
