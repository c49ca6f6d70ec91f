"""`linnet native`: the C++ source of one entry."""

from __future__ import annotations

from linnet.cli.generated import generated_command

command = generated_command(
    "the C++ source that the native backend compiles for one entry", "linnet.native"
)
