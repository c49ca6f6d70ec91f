"""The weight files that engines read, all made from one checkpoint.

The card's GGUF (4-bit blocks) is widened to f32 once; every other file is made from those floats:
GGUFs as llama.cpp's own `llama-quantize` lays them out, a `transformers` folder, and what the
builders of onnxruntime-genai and OpenVINO make of that folder.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MODEL = "smollm2-135m-instruct"
GGUF_KINDS = ("F32", "BF16", "Q8_0", "Q4_0")
_FILE_TYPES = {"F32": 0, "BF16": 32, "Q8_0": 7, "Q4_0": 2}  # llama.cpp's LLAMA_FTYPE numbers


def prepare(folder: Path, peers_python: Path | None) -> list[str]:
    """Make every file that is lacking in `folder`; the problems, a line each."""
    card = card_file()
    problems = []
    (folder / "gguf").mkdir(parents=True, exist_ok=True)
    own = folder / "gguf" / "Q4_1.gguf"
    if not own.exists():
        own.symlink_to(card.resolve())
    for kind in GGUF_KINDS:
        target = folder / "gguf" / f"{kind}.gguf"
        if not target.exists():
            write_gguf(card, target, kind)
    if not (folder / "hf" / "model.safetensors").exists():
        write_transformers(folder / "gguf" / "F32.gguf", folder / "hf")
    if peers_python is not None:
        for name in ("onnx_genai", "openvino"):
            done = subprocess.run(
                [peers_python, "-m", f"bench.peers.builders.{name}", folder], check=False
            )
            if done.returncode:
                problems.append(f"the files of {name} could not all be made")
    return problems


def card_file() -> Path:
    """The card's own weight file, fetched once."""
    from linnet import nest

    return nest.pull(MODEL)[0]


def write_gguf(card: Path, target: Path, kind: str) -> None:
    """The same model with its matrices in one format. As in llama.cpp's own files a vector stays
    f32, and the embedding, which is the head too, has 8 bits where others have 4."""
    import gguf
    from gguf.constants import GGMLQuantizationType as Type

    reader = gguf.GGUFReader(str(card))
    partial = target.with_suffix(".partial")
    writer = gguf.GGUFWriter(str(partial), "llama")
    for name, value, sort, inner in _fields(reader):
        writer.add_key_value(name, value, sort, inner)
    writer.add_file_type(_FILE_TYPES[kind])
    for tensor in reader.tensors:
        floats = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        wanted = kind
        if floats.ndim == 1:
            wanted = "F32"
        elif kind == "Q4_0" and tensor.name == "token_embd.weight":
            wanted = "Q8_0"
        stored = gguf.quants.quantize(floats, Type[wanted])
        writer.add_tensor(tensor.name, stored, raw_dtype=Type[wanted])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(target)


def _fields(reader: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """The metadata to copy: name, value, type, and the type of a list's items."""
    from gguf.constants import GGUFValueType

    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        yield name, field.contents(), field.types[0], inner


def write_transformers(gguf_file: Path, folder: Path) -> None:
    """The folder that `transformers` makes of the f32 GGUF, with its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(gguf_file.parent), "gguf_file": gguf_file.name}
    read: Any = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # A model read from a GGUF refuses to be saved: its floats go into a plain one.
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model: Any = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(read.state_dict())
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    model.save_pretrained(folder)
