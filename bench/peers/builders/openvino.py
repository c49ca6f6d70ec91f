"""OpenVINO models as optimum-intel exports them.

f32 serves bf16 too (the plugin rounds the weights when it compiles for bf16); `int8` has a scale a
row, and `int4` one for each 32 weights of the layers, with 8 bits for the embedding and head, which
is how the other engines' files are.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.peers.builders import build

_OPTIONS: dict[str, tuple[str, ...]] = {
    "f32": ("--weight-format", "fp32"),
    "int8": ("--weight-format", "int8"),
    "int4": ("--weight-format", "int4", "--group-size", "32", "--ratio", "1.0", "--sym"),
}


def main(folder: Path) -> int:
    def command(target: Path, partial: Path) -> list[str]:
        source = ["--model", str(folder / "hf"), "--task", "text-generation-with-past"]
        return [sys.executable, "-m", "optimum.commands.optimum_cli", "export", "openvino",
                *source, *_OPTIONS[target.name], str(partial)]  # fmt: skip

    return build([folder / "openvino" / name for name in _OPTIONS], command)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
