"""`linnet torch`: the PyTorch source of one entry."""

from __future__ import annotations

from linnet.cli.generated import generated_command

command = generated_command("the Python source that PyTorch runs for one entry", "linnet.torch")
