"""Callers' values into what generated code takes, checked against an entry's signature first."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import torch
from linnet.dims import Dim
from linnet.torch.emit.dtypes import STORED, WIDE
from linnet.torch.emit.folding import rounded
from linnet.torch.runtime.errors import InputError
from linnet.torch.runtime.signature import LARGEST, Signature, Slot
from linnet.types import (
    DType,
    DTypeVar,
    EnumType,
    GenericArg,
    OptionalType,
    PackVar,
    StructType,
    TensorType,
    TupleType,
    Type,
)

TORCH: dict[DType, torch.dtype] = {d: getattr(torch, name) for d, name in STORED.items()}
_LINNET = {dtype: linnet for linnet, dtype in TORCH.items()}
MAX_LIST = 1 << 20


@dataclass(slots=True)
class Checked:
    """Inputs that fit: `values` for generated code, `generics` by variable, `host` the integers
    that are in this machine's memory, by name."""

    values: list[Any] = field(default_factory=list)
    generics: dict[Any, GenericArg] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)


class Reader:
    """Checks one call's inputs."""

    def __init__(self, signature: Signature, device: torch.device) -> None:
        self.signature, self.device = signature, device
        self.pairs: list[tuple[Dim, int, str]] = []
        self.known: dict[Any, GenericArg] = {}
        self.host: dict[str, Any] = {}
        self.slot: Slot = signature.slots[0] if signature.slots else Slot("", _NOTHING, _NOTHING, 0)

    def read(self, inputs: Any, generics: Mapping[str, Any] | None) -> Checked:
        given = self.signature.arrange(inputs)
        self.known = self.signature.given_generics(generics)
        values = []
        for slot, value in zip(self.signature.slots, given, strict=True):
            self.slot = slot
            read = self._value(slot.bound, value, f"`{slot.name}`", top=True)
            values.append(read)
            if isinstance(read, int):
                self.host[slot.name] = read
        self.signature.complete(self.known, self.pairs)
        return Checked(values, self.known, self.host)

    def fail(self, problem: str) -> InputError:
        return self.signature.fail(problem)

    def _value(self, type_: Type, value: Any, what: str, top: bool = False) -> Any:
        match type_:
            case TensorType():
                if top and not type_.shape:
                    return self._scalar(type_, value, what)
                tensor = self._tensor(type_, value, what)
                return self._on_host(type_, tensor) if top and not tensor.ndim else tensor
            case OptionalType(inner):
                if value is None:
                    return None
                held = self._value(inner, value, what)
                return (held,) if isinstance(inner, OptionalType) else held
            case TupleType(items):
                if not isinstance(value, tuple | list) or len(value) != len(items):
                    raise self.fail(f"{what} is a tuple of {len(items)} values")
                return tuple(
                    self._value(t, v, f"item {k} of {what}")
                    for k, (t, v) in enumerate(zip(items, value, strict=True))
                )
            case StructType(name=name, fields=fields):
                return self._struct(name, fields, value, what)
            case EnumType(cases=cases):
                return self._enum(type_, cases, value, what)
            case _:
                raise self.fail(f"{what} has a type that no value has")

    def _struct(
        self, name: str, fields: Sequence[tuple[str, Type]], value: Any, what: str
    ) -> tuple[Any, ...]:
        if not isinstance(value, Mapping):
            if not isinstance(value, tuple | list) or len(value) != len(fields):
                raise self.fail(f"{what} is a `{name}`: a dict with {_names(fields)}")
            value = {inner: item for (inner, _), item in zip(fields, value, strict=True)}
        missing = [inner for inner, _ in fields if inner not in value]
        if missing or len(value) != len(fields):
            raise self.fail(f"{what} is a `{name}`, with exactly the fields {_names(fields)}")
        return _Fields(
            self._value(inner, value[field_], f"field `{field_}` of {what}")
            for field_, inner in fields
        )

    def _enum(self, type_: EnumType, cases: Sequence[str], value: Any, what: str) -> int:
        if isinstance(value, str) and value in cases:
            return list(cases).index(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(cases):
            return int(value)
        raise self.fail(f"{what} is a case of `{type_.name}`: one of {', '.join(cases)}")

    # --- scalars --------------------------------------------------------------------------------

    def _dtype(self, type_: TensorType, found: DType | None, what: str) -> DType:
        if isinstance(type_.dtype, DType):
            return type_.dtype
        variable: DTypeVar = type_.dtype
        bound = self.known.get(variable)
        if isinstance(bound, DType):
            return bound
        if found is None:
            raise self.fail(f"{what} does not show the dtype `{variable}`: give an array or "
                            f"generics={{{variable.name!r}: ...}}")  # fmt: skip
        if found not in _allowed(variable):
            raise self.fail(f"{what} is {found}, which is no {variable.kind} dtype")
        self.known[variable] = found
        return found

    def _scalar(self, type_: TensorType, value: Any, what: str) -> int | float | bool:
        if isinstance(value, torch.Tensor | np.ndarray):
            return self._on_host(type_, self._tensor(type_, value, what))
        dtype = self._dtype(type_, None, what)
        return self._number(dtype, value, what)

    def _on_host(self, type_: TensorType, tensor: torch.Tensor) -> int | float | bool:
        """A scalar, also one over an empty pack, as the Python number that generated code takes."""
        number: int | float | bool = tensor.item()
        return int(number) % 2**64 if self._dtype(type_, None, "") is DType.U64 else number

    def _number(self, dtype: DType, value: Any, what: str) -> int | float | bool:
        if isinstance(value, bool | np.bool_):
            if dtype is DType.BOOL:
                return bool(value)
            raise self.fail(f"{what} is {dtype}, not a bool")
        if dtype is DType.BOOL or not isinstance(value, numbers.Number):
            raise self.fail(f"{what} is {'a bool' if dtype is DType.BOOL else dtype}, "
                            f"not {value!r:.80}")  # fmt: skip
        if dtype.is_integer:
            if not isinstance(value, numbers.Integral):
                raise self.fail(f"{what} is {dtype}, an integer, not {value!r:.80}")
            whole = int(value)
            low, high = dtype.integer_range
            if not low <= whole <= high:
                raise self.fail(f"{what} is {whole}, which does not fit {dtype}")
            return whole
        if not isinstance(value, numbers.Real):
            raise self.fail(f"{what} is {dtype}, not {value!r:.80}")
        number = rounded(_float(value), dtype)
        if math.isinf(number) and math.isfinite(_float(value)):
            raise self.fail(f"{what} is {value!r:.80}, which does not fit {dtype}")
        return number

    # --- tensors --------------------------------------------------------------------------------

    def _tensor(self, type_: TensorType, value: Any, what: str) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            found = _LINNET.get(value.dtype)
            self._same_dtype(type_, found, str(value.dtype), what,
                             f"{self.slot.name}.to(torch.{{}})")  # fmt: skip
            tensor = value
        elif isinstance(value, np.ndarray):
            tensor = self._from_numpy(type_, value, what)
        else:
            tensor = self._from_numbers(type_, value, what)
        self._shape(type_, tuple(tensor.shape), what)
        whole = type_ is self.slot.bound and not tensor.dtype.is_floating_point
        if whole and tensor.device.type == "cpu":
            self.host[self.slot.name] = tensor.detach().numpy()
        if tensor.device != self.device:
            tensor = tensor.to(self.device)
        dtype = _LINNET[tensor.dtype]
        if dtype in WIDE:
            tensor = tensor.view(torch.int64) if dtype is DType.U64 else tensor.to(torch.int64)
        return tensor

    def _same_dtype(
        self, type_: TensorType, found: DType | None, shown: str, what: str, convert: str
    ) -> None:
        wanted = self._dtype(type_, found, what)
        if found is not wanted:
            raise self.fail(
                f"{what} is {wanted}, but got {shown}; convert it with "
                f"{convert.format(STORED[wanted])}"
            )

    def _from_numpy(self, type_: TensorType, value: Any, what: str) -> torch.Tensor:
        name = str(value.dtype)
        found = next((d for d, stored in STORED.items() if stored == name), None)
        if found is None:
            wanted = self._dtype(type_, None, what)
            raise self.fail(f"{what} is {wanted}, but got an array of {name}")
        self._same_dtype(type_, found, name, what, f"{self.slot.name}.astype({{!r}})")
        array = np.ascontiguousarray(value)
        if value.ndim == 0:
            array = array.reshape(())
        if not array.flags.writeable or array.dtype.byteorder not in "=|<":
            array = array.astype(array.dtype.newbyteorder("="), copy=True)
        if found is DType.BF16:
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    def _from_numbers(self, type_: TensorType, value: Any, what: str) -> torch.Tensor:
        if not isinstance(value, list | tuple | numbers.Number | np.generic):
            raise self.fail(f"{what} is {type_}, not a {type(value).__name__}")
        dtype = self._dtype(type_, None, what)
        flat: list[Any] = []
        shape = self._nested(value, what, flat, 0)
        numbers_ = [self._number(dtype, item, what) for item in flat]
        if dtype is DType.U64:
            bits = [int(n) - 2**64 if int(n) >= 2**63 else int(n) for n in numbers_]
            return torch.tensor(bits, dtype=torch.int64).view(torch.uint64).reshape(shape)
        return torch.tensor(numbers_, dtype=TORCH[dtype]).reshape(shape)

    def _nested(self, value: Any, what: str, flat: list[Any], depth: int) -> tuple[int, ...]:
        if not isinstance(value, list | tuple):
            flat.append(value)
            if len(flat) > MAX_LIST:
                raise self.fail(f"{what} is a list of over {MAX_LIST:,} numbers: give an array")
            return ()
        if depth > 16:
            raise self.fail(f"{what} is nested too deeply")
        shapes = [self._nested(item, what, flat, depth + 1) for item in value]
        if any(shape != shapes[0] for shape in shapes):
            raise self.fail(f"{what} is a list whose rows differ in length")
        return (len(value), *(shapes[0] if shapes else ()))

    def _shape(self, type_: TensorType, shape: tuple[int, ...], what: str) -> None:
        items: list[Any] = list(type_.shape)
        for at, item in enumerate(items):
            if isinstance(item, PackVar) and item in self.known:
                bound = self.known[item]
                items[at : at + 1] = list(bound) if isinstance(bound, tuple) else []
        packs = [k for k, item in enumerate(items) if isinstance(item, PackVar)]
        written = self._written(type_)
        if len(packs) > 1:
            raise self.fail(f"{what} does not show where its packs end: give them as generics")
        if packs:
            at = packs[0]
            count = len(shape) - (len(items) - 1)
            if count >= 0:
                pack = items[at]
                self.known[pack] = tuple(Dim.of(n) for n in shape[at : at + count])
                self.known[pack.count] = Dim.of(math.prod(shape[at : at + count]))
                items[at : at + 1] = list(self.known[pack])  # type: ignore[arg-type]
        if len(items) != len(shape):
            raise self.fail(f"{what} is {written}, of rank {len(items) - len(packs)}, but got "
                            f"shape {list(shape)}")  # fmt: skip
        for axis, (dim, extent) in enumerate(zip(items, shape, strict=True)):
            if extent > LARGEST:
                raise self.fail(f"axis {axis} of {what} is {extent}, past {LARGEST}")
            if dim.constant == extent:
                continue
            said = f"axis {axis} of {what} ({written}, got shape {list(shape)})"
            if dim.constant is not None:
                raise self.fail(f"{said} is {extent}, but has to be {dim.constant}")
            self.pairs.append((dim, extent, said))

    def _written(self, type_: TensorType) -> str:
        """The type in the source's words, where it is the parameter's own."""
        return str(self.slot.type) if self.slot.bound is type_ else str(type_)


class _Fields(tuple[Any, ...]):
    """A struct's fields, made into its `NamedTuple` by the entry."""


_NOTHING = TupleType(())


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _allowed(variable: DTypeVar) -> frozenset[DType]:
    from linnet.types import KIND_DTYPES

    return KIND_DTYPES[variable.kind]


def _names(fields: Sequence[tuple[str, Type]]) -> str:
    return ", ".join(f"`{name}`" for name, _ in fields)
