"""JAX's own arrays among an entry's inputs."""

from __future__ import annotations

from typing import Any

import jax

from linnet.backends.inputs import NAMES, dtype_named, numpy_dtype
from linnet.backends.inputs import Reader as AnyReader
from linnet.backends.signature import Signature
from linnet.jax.runtime.arrays import JaxArrays
from linnet.jax.runtime.given import is_gone
from linnet.types import DType, TensorType

# What JAX makes of 64-bit integers unless it is told to keep them (`jax_enable_x64`).
_SHORT = {DType.I64: DType.I32, DType.U64: DType.U32}
_LONG = (*_SHORT, DType.F64)


class Reader(AnyReader):
    """Checks one call's inputs.

    A JAX array of `int32` is taken for `i64`, one of `uint32` for `u64`: by default JAX makes no
    longer ones, and nothing is lost.
    """

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature, JaxArrays())

    def _tensor(self, type_: TensorType, value: Any, what: str) -> Any:
        if not isinstance(value, jax.Array):
            return super()._tensor(type_, value, what)
        if is_gone(value):
            raise self.fail(
                f"{what} is an array whose memory a call took over, as it does a state's: "
                "give what that call returned, or a copy made before it"
            )
        found = dtype_named(str(value.dtype))
        wanted = self._dtype(type_, found, what)
        if found is None:
            raise self.fail(f"{what} is {wanted}, but got an array of {value.dtype}")
        if found is not _SHORT.get(wanted):
            self._same_dtype(type_, found, str(value.dtype), what, self._way(found, wanted))
        self._shape(type_, tuple(value.shape), what)
        # Integers on an accelerator are not fetched for a check (nor does PyTorch's backend fetch
        # them): that would wait at each step for all that was asked of the device before.
        if type_ is self.slot.bound and not wanted.is_float and _on_host(value):
            self.host[self.slot.name] = value
        return value if found is wanted else value.astype(numpy_dtype(wanted))

    def _way(self, found: DType, wanted: DType) -> str:
        """How to convert an array of one dtype to the other, in a form that JAX has by default."""
        if wanted is DType.F64:
            return f"numpy.asarray({self.slot.name}, 'float64')"
        target = wanted if found in _LONG else _SHORT.get(wanted, wanted)
        return f"{self.slot.name}.astype({NAMES[target]!r})"


def _on_host(array: jax.Array) -> bool:
    """Whether its elements can be read without moving them."""
    if isinstance(array, jax.core.Tracer) or not array.is_fully_addressable:
        return False
    return all(device.platform == "cpu" for device in array.devices())
