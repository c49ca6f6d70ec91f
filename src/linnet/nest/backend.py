"""Which backend `linnet run` takes when none is named: native on a CPU, else what is there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from linnet.nest.errors import fail

NATIVE = "native"
NATIVE_OPTIONS = frozenset({"weights_format", "threads"})
# What each of the others needs, in the order in which they are asked.
_OTHERS = {
    "torch": ("torch",), "jax_source": ("jax",), "onnx_model": ("onnxruntime", "onnx", "onnx_ir"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, and why it is not the native one, where it was chosen for want of that."""

    backend: str
    reason: str | None = None

    @property
    def note(self) -> str | None:
        if self.reason is None:
            return None
        return f"running on {self.backend}, as native cannot be used: {self.reason}"


def default_backend(dtype: str | None = None, **options: Any) -> Choice:
    """The backend for a model of that dtype with these options of its loader.

    Native where it runs on a CPU, has kernels for the dtype and finds a compiler.
    """
    reason = _against_native(dtype, options)
    return Choice(NATIVE) if reason is None else other_backend(reason, options)


def _against_native(dtype: str | None, options: dict[str, Any]) -> str | None:
    device = options.get("device")
    if device is not None and str(device) != "cpu":
        return f"it runs on the cpu, not on {device}"
    unknown = sorted(set(options) - {"device", "numerics", "cast_dtype", *NATIVE_OPTIONS})
    if unknown:
        return f"it has no option {unknown[0]}"
    if dtype == "f16":
        return "it has no kernels for f16"
    from linnet.native.errors import NativeError
    from linnet.native.toolchain.compiler import find_toolchain

    try:
        find_toolchain()
    except NativeError as error:
        return first_line(error)
    return None


def other_backend(reason: str, options: dict[str, Any] | None = None) -> Choice:
    """The first of the others that is installed. Raises `NestError` (E5027) where none is."""
    asked = sorted(NATIVE_OPTIONS & set(options or {}))
    if asked:
        fail(
            "E5027",
            f"only the native backend has the option {asked[0]}, and it cannot be used: {reason}",
        )
    there = (b for b, modules in _OTHERS.items() if all(find_spec(m) is not None for m in modules))
    backend = next(there, None)
    if backend is None:
        fail(
            "E5027",
            f"there is no backend to run on: native cannot be used, as {reason}",
            help="put that right, or install another backend: pip install 'linnet[torch]'",
        )
    return Choice(backend, reason)


def first_line(error: Exception) -> str:
    """What an error says, for the middle of a line."""
    return str(error).splitlines()[0].rstrip(":") if str(error) else type(error).__name__
