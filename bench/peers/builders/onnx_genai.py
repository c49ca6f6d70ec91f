"""onnxruntime-genai's builder: f32, and 4 bits in blocks of 32 with its default settings (products
in 8 bits where the processor has them)."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.peers.builders import build

_NAMES = {"f32": "fp32", "int4": "int4"}


def main(folder: Path) -> int:
    def command(target: Path, partial: Path) -> list[str]:
        given = ["-i", folder / "hf", "-o", partial, "-p", _NAMES[target.name], "-e", "cpu"]
        return [sys.executable, "-m", "onnxruntime_genai.models.builder",
                *map(str, [*given, "-c", folder / "cache"])]  # fmt: skip

    return build([folder / "onnx_genai" / name for name in _NAMES], command)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
