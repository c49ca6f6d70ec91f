"""The engines, and which of them run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine at one precision. `home` is the environment it runs in: this one or the peers'."""

    name: str
    runner: str
    precision: str
    options: Mapping[str, Any] = field(default_factory=dict)
    home: str = "peers"

    @property
    def ours(self) -> bool:
        return self.runner == "linnet"


def _own(name: str, precision: str, **options: Any) -> Contender:
    return Contender(f"{name}/{precision}", "linnet", precision, options, "own")


def _peer(name: str, runner: str, precision: str, home: str = "peers", **options: Any) -> Contender:
    return Contender(f"{name}/{precision}", runner, precision, options, home)


# The attention and the cache that decode fastest are not those that read a prompt fastest: each
# precision has llama.cpp with its usual settings, and with the two that are best at one of these.
_LLAMA_FILES = {"f32": "F32", "bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}

_ALL = (
    _own("native", "f32", dtype="f32"),
    _own("native", "bf16", dtype="bf16"),
    _own("native", "int8", dtype="bf16", weights_format="int8"),
    _own("native", "int4", dtype="bf16", weights_format="int4"),
    _own("native-f32", "int8", dtype="f32", weights_format="int8"),
    _own("native-f32", "int4", dtype="f32", weights_format="int4"),
    _own("native-Q4_0", "int4", dtype="bf16", gguf="Q4_0", weights_format="int4"),
    _own("native-Q4_1", "int4", dtype="bf16", gguf="Q4_1", weights_format="int4"),
    _own("torch", "f32", backend="torch", dtype="f32"),
    _own("torch", "bf16", backend="torch", dtype="bf16"),
    _own("jax_source", "f32", backend="jax_source", dtype="f32"),
    _own("jax_source", "bf16", backend="jax_source", dtype="bf16"),
    _own("jax_model", "f32", backend="jax_model", dtype="f32"),
    _own("jax_model", "bf16", backend="jax_model", dtype="bf16"),
    _own("onnx_model", "f32", backend="onnx_model", dtype="f32"),
    _peer("jax.numpy", "jax_numpy", "bf16", "own"),
    _peer("jax.numpy", "jax_numpy", "f32", "own"),
    _peer("transformers", "transformers", "f32", "own"),
    _peer("transformers", "transformers", "bf16", "own"),
    _peer("transformers-compiled", "transformers", "f32", "own", compile=True),
    _peer("transformers-compiled", "transformers", "bf16", "own", compile=True),
    *(
        _peer(name, "llama_cpp", precision, gguf=gguf, **options)
        for name, options in (
            ("llama.cpp", {"flash_attn": False, "cache": "f16"}),
            ("llama.cpp-flash", {"flash_attn": True, "cache": "f16"}),
            ("llama.cpp-q8-cache", {"flash_attn": True, "cache": "q8_0"}),
        )
        for precision, gguf in _LLAMA_FILES.items()
    ),
    _peer("llama.cpp-Q4_1", "llama_cpp", "int4", gguf="Q4_1", flash_attn=False, cache="f16"),
    _peer("onnxruntime-genai", "onnx_genai", "f32"),
    _peer("onnxruntime-genai", "onnx_genai", "int4"),
    _peer("openvino", "openvino", "f32", folder="f32", compute="f32"),
    _peer("openvino", "openvino", "bf16", folder="f32", compute="bf16"),
    *(
        _peer(f"openvino{name}", "openvino", precision, folder=precision, compute=compute)
        for name, compute in (("", "f32"), ("-bf16", "bf16"))
        for precision in ("int8", "int4")
    ),
)
CONTENDERS: dict[str, Contender] = {contender.name: contender for contender in _ALL}


@dataclass(frozen=True, slots=True)
class Group:
    """The engines of one alternating run: each of `ours` is set beside each of the others."""

    ours: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return *self.ours, *self.others


def _group(precision: str, ours: Sequence[str], others: Sequence[str]) -> Group:
    """Engines that have no such precision are left out."""
    first, rest = ([f"{name}/{precision}" for name in names] for names in (ours, others))
    return Group(tuple(first), tuple(name for name in rest if name in CONTENDERS))


_PEERS = (
    "llama.cpp", "llama.cpp-flash", "llama.cpp-q8-cache", "openvino", "openvino-bf16",
    "onnxruntime-genai", "transformers", "transformers-compiled",
)  # fmt: skip

GROUPS: dict[str, Group] = {
    **{precision: _group(precision, ["native"], _PEERS)
       for precision in ("bf16", "int8", "int4", "f32")},
    "blocks": _group("int4", ["native-Q4_1", "native-Q4_0"], ["llama.cpp-Q4_1", "llama.cpp"]),
    "jax": _group("bf16", ["jax_source", "jax_model"], ["jax.numpy", "torch", "transformers"]),
    "onnx": _group("f32", ["onnx_model"], ["onnxruntime-genai", "torch", "transformers"]),
}  # fmt: skip
"""The runs, by what they are about."""
