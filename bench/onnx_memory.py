"""What a model's entries on ONNX Runtime add to memory, all loaded together and each run once.

    python bench/onnx_memory.py [--card smollm2-135m-instruct | --package FOLDER] [--dtype f32]
        [--set H=1024 ...] [--positions 512]

A card is loaded with its own weights. A package of the same family is loaded with random weights at
the sizes given (about 1 GiB in f32). Prints the weights' size and, as multiples of it, the size of
the states, the resident memory that loading added, that every entry added up to itself, and all
that was added but for the states.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import linnet.onnx
from linnet import nest
from linnet.backends.signature import Signature
from linnet.backends.source import block_args, bound
from linnet.dims import Dim
from linnet.ir.semantics import NUMPY
from linnet.onnx.emit.dtypes import concrete
from linnet.onnx.emit.members import shape_of
from linnet.types import DType, TensorType

SIZES: dict[str, int] = {
    "Vocab": 32_768, "H": 1_024, "Heads": 16, "KvHeads": 8, "HeadDim": 64, "Inner": 3_072,
    "Layers": 16, "Batch": 1, "PageSize": 64,
}  # fmt: skip
# Values of inputs by name, where zero would not do; extents by generic, where one would not.
VALUES: dict[str, float] = {"tokens": 1, "token": 1, "lengths": 8, "temperature": 1, "weights": 1}
EXTENTS: dict[str, int] = {"S": 8, "P": 8}
STEPS = {"Steps": 2, "MaxNew": 2}


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--card", default="smollm2-135m-instruct")
    options.add_argument("--package", help="a package's root source instead of a card")
    options.add_argument("--dtype", default="f32", choices=("f32", "f16", "bf16"))
    options.add_argument("--set", action="append", default=[], metavar="G=N")
    options.add_argument("--positions", type=int, default=512, help="of the caches")
    given = options.parse_args()
    sizes: dict[str, int | str] = {"MaxSeq": given.positions}
    sizes |= {name: int(value) for name, _, value in (s.partition("=") for s in given.set)}
    print(json.dumps(measured(given.card, given.package, given.dtype, sizes), indent=2))


def measured(
    card: str, package: str | None, dtype: str, sizes: dict[str, int | str]
) -> dict[str, Any]:
    started()
    before = resident()
    if package is None:
        model = nest.load(card, "onnx_model", generics=sizes, threads=1)
    else:
        model = random_model(Path(package), {**SIZES, **sizes, "T": dtype})
    weights = sum({id(a): a.nbytes for a in model.parameters.values()}.values())

    def added() -> float:
        return round((resident() - before) / weights, 3)

    states = sum(model.state(path).nbytes for path in model.state_paths())
    shown: dict[str, Any] = {
        "weights_mib": round(weights / 2**20), "states": round(states / weights, 3),
        "loaded": added(),
    }  # fmt: skip
    for name, signature in signatures(model):
        steps = {g.name: STEPS[g.name] for g in signature.generics if g.name in STEPS}
        model.run_entry(name, inputs(signature), steps or None)
        shown[name] = added()
    shown["without_states"] = round(added() - states / weights, 3)
    return shown


def started() -> None:
    """Starts the runtime, whose own tables are no part of any model."""
    text = "module m\npub entry run(x: f32) -> f32 { return x + 1.0 }\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.linnet"
        path.write_text(text, encoding="utf-8")
        linnet.onnx.load_model(path, threads=1).run_entry("run", [1.0])


def signatures(model: Any) -> list[tuple[str, Signature]]:
    binding = model.binding
    entries = binding.program.entries(binding.block)
    return [(name, Signature(name, f, block_args(binding))) for name, f in entries.items()]


def random_model(package: Path, sizes: dict[str, int | str]) -> Any:
    binding = bound(package, "Model", None, sizes, None)
    rng = np.random.default_rng(0)

    def drawn(type_: TensorType) -> Any:
        made = rng.standard_normal(shape_of(type_), np.float32) * np.float32(0.02)
        return made.astype(NUMPY[concrete(type_.dtype)])

    weights = {p.path: drawn(p.type) for p in binding.params if not p.optional}
    return linnet.onnx.load_model(binding, weights=weights, threads=1)


def inputs(signature: Signature) -> list[Any]:
    return [value_of(slot.name, slot.bound) for slot in signature.slots]


def value_of(name: str, type_: Any) -> Any:
    number = VALUES.get(name, 0)
    if not isinstance(type_, TensorType):
        return None
    assert isinstance(type_.dtype, DType)
    kind = NUMPY[type_.dtype]
    shape = tuple(extent(d) for d in type_.dims)
    return np.full(shape, number, kind) if shape else kind.type(number).item()


def extent(dim: Dim) -> int:
    values = {symbol: EXTENTS.get(symbol.name, 1) for symbol in dim.symbols}
    return int(dim.evaluate(values))


def resident() -> int:
    """This process's memory once everything unused has gone back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (s for s in text.splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
