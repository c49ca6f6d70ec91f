"""Callers' values into what generated code takes, checked against an entry's signature first.

Arrays are NumPy's, the backend's own (`Arrays` says what those are) and CPU torch tensors.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from linnet.backends.errors import InputError
from linnet.backends.folding import rounded
from linnet.backends.signature import Extent, Signature, Slot
from linnet.dims import Dim
from linnet.passes.arguments import LARGEST
from linnet.types import (
    KIND_DTYPES,
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

NAMES = {
    DType.BOOL: "bool", DType.I8: "int8", DType.I16: "int16", DType.I32: "int32",
    DType.I64: "int64", DType.U8: "uint8", DType.U16: "uint16", DType.U32: "uint32",
    DType.U64: "uint64", DType.F16: "float16", DType.BF16: "bfloat16", DType.F32: "float32",
    DType.F64: "float64",
}  # fmt: skip
_REAL = "biuf"  # NumPy's kinds of bools and numbers that are real
_BY_NAME = {name: dtype for dtype, name in NAMES.items()}
MAX_LIST = 1 << 20


class Arrays(Protocol):
    """What a backend makes of values that fit."""

    def own(self, value: Any) -> bool:
        """Whether the value is one of the backend's own arrays (it has `shape` and `dtype`)."""

    def scalar(self, value: int | float | bool, dtype: DType) -> Any:
        """A number as the backend takes a scalar parameter."""

    def array(self, value: Any, dtype: DType) -> Any:
        """A NumPy array of the dtype as the backend takes it."""

    def absent(self, type_: Type, generics: Mapping[Any, GenericArg]) -> Any:
        """What stands for an optional without a value."""

    def present(self, value: Any, nested: bool) -> Any:
        """An optional that holds a value."""


@dataclass(slots=True)
class Checked:
    """Inputs that fit: `values` for generated code, `generics` by variable, `host` the integers
    that are in this machine's memory, by name."""

    values: list[Any] = field(default_factory=list)
    generics: dict[Any, GenericArg] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)


class Reader:
    """Checks one call's inputs."""

    def __init__(self, signature: Signature, arrays: Arrays) -> None:
        self.signature, self.arrays = signature, arrays
        self.extents: list[Extent] = []
        self.known: dict[Any, GenericArg] = {}
        self.host: dict[str, Any] = {}
        self.absent: list[Type] = []
        self.slot: Slot = signature.slots[0] if signature.slots else Slot("", _NOTHING, _NOTHING, 0)

    def read(self, inputs: Any, generics: Mapping[str, Any] | None) -> Checked:
        given = self.signature.arrange(inputs)
        self.known = self.signature.given_generics(generics)
        values = []
        for slot, value in zip(self.signature.slots, given, strict=True):
            self.slot = slot
            values.append(self._value(slot.bound, value, f"`{slot.name}`", top=True))
        self.known = self.signature.completed(self.known, self.extents)
        if self.absent:
            missing = iter(self.absent)
            values = [self._filled(v, missing) for v in values]
        return Checked(values, self.known, self.host)

    def _filled(self, value: Any, missing: Iterator[Type]) -> Any:
        """The value with what stands for its absent parts."""
        if value is ABSENT:
            return self.arrays.absent(next(missing), self.known)
        if isinstance(value, tuple):
            parts = [self._filled(v, missing) for v in value]
            return _Fields(parts) if isinstance(value, _Fields) else tuple(parts)
        return value

    def fail(self, problem: str) -> InputError:
        return self.signature.fail(problem)

    def _value(self, type_: Type, value: Any, what: str, top: bool = False) -> Any:
        match type_:
            case TensorType():
                if top and not type_.shape:
                    return self._scalar(type_, value, what)
                return self._tensor(type_, value, what)
            case OptionalType(inner):
                if value is None:
                    self.absent.append(type_)
                    return ABSENT
                held = self._value(inner, value, what)
                return self.arrays.present(held, isinstance(inner, OptionalType))
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
        number = _index(value)
        if number is not None and 0 <= number < len(cases):
            return number
        raise self.fail(f"{what} is a case of `{type_.name}`: one of {', '.join(cases)}")

    # --- scalars ----------------------------------------------------------------------------------

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
        if found not in KIND_DTYPES[variable.kind]:
            raise self.fail(f"{what} is {found}, which is no {variable.kind} dtype")
        self.known[variable] = found
        return found

    def _scalar(self, type_: TensorType, value: Any, what: str) -> Any:
        if isinstance(value, np.ndarray) or _is_torch(value) or self.arrays.own(value):
            return self._tensor(type_, value, what)
        dtype = self._dtype(type_, None, what)
        return self._kept(self.arrays.scalar(self._number(dtype, value, what), dtype), value, dtype)

    def _kept(self, made: Any, value: Any, dtype: DType) -> Any:
        """Remembers a parameter of integers or bools that the host can look at."""
        if not dtype.is_float and not self.arrays.own(value):
            # Where it is a copy, the copy: what is looked at is what runs.
            self.host[self.slot.name] = made if isinstance(made, np.ndarray) else value
        return made

    def _number(self, dtype: DType, value: Any, what: str) -> int | float | bool:
        if isinstance(value, bool | np.bool_):
            if dtype is DType.BOOL:
                return bool(value)
            raise self.fail(f"{what} is {dtype}, not a bool")
        if dtype is DType.BOOL or not isinstance(value, numbers.Number):
            raise self.fail(f"{what} is {'a bool' if dtype is DType.BOOL else dtype}, "
                            f"not {value!r:.80}{_way_out(value)}")  # fmt: skip
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
        if math.isinf(number) and abs(value) != math.inf:
            raise self.fail(f"{what} is {value!r:.80}, which does not fit {dtype}")
        return number

    # --- tensors ----------------------------------------------------------------------------------

    def _tensor(self, type_: TensorType, value: Any, what: str) -> Any:
        if _is_torch(value):
            value = self._from_torch(type_, value, what)
        elif not isinstance(value, np.ndarray) and not self.arrays.own(value):
            value = self._from_numbers(type_, value, what)
        name = str(value.dtype)
        found = _BY_NAME.get(name)
        convert = f"{self.slot.name}.astype({{!r}})"
        if found is None:
            raise self._no_dtype(type_, value.dtype, what, convert)
        self._same_dtype(type_, found, name, what, convert)
        self._shape(type_, tuple(value.shape), what)
        if self.arrays.own(value):
            return value
        made = self.arrays.array(value, found)
        return self._kept(made, value, found) if type_ is self.slot.bound else made

    def _no_dtype(self, type_: TensorType, dtype: Any, what: str, convert: str) -> InputError:
        """For an array of a dtype that Linnet does not have, such as one of another byte order."""
        declared = type_.dtype
        bound = declared if isinstance(declared, DType) else self.known.get(declared)
        if isinstance(bound, DType):
            shown, fitting = str(bound), [bound]
        else:
            assert not isinstance(declared, DType)
            shown, fitting = str(declared), [d for d in NAMES if d in KIND_DTYPES[declared.kind]]
        way = ""
        if getattr(dtype, "kind", "") in _REAL:
            near = _BY_NAME.get(dtype.newbyteorder("=").name)
            name = NAMES[near if near in fitting else fitting[-1]]
            way = f"; convert it{', as' if len(fitting) > 1 else ''} with {convert.format(name)}"
        return self.fail(f"{what} is {shown}, but got an array of {dtype}{way}")

    def _same_dtype(
        self, type_: TensorType, found: DType | None, shown: str, what: str, convert: str
    ) -> None:
        wanted = self._dtype(type_, found, what)
        if found is not wanted:
            raise self.fail(
                f"{what} is {wanted}, but got {shown}; convert it with "
                f"{convert.format(NAMES[wanted])}"
            )

    def _from_torch(self, type_: TensorType, value: Any, what: str) -> Any:
        """A CPU torch tensor's memory as a NumPy array."""
        name = str(value.dtype).rpartition(".")[2]
        found = _BY_NAME.get(name)
        self._same_dtype(type_, found, str(value.dtype), what,
                         f"{self.slot.name}.to(torch.{{}})")  # fmt: skip
        if value.device.type != "cpu":
            raise self.fail(f"{what} is a torch tensor on {value.device}: give it as .cpu()")
        self._dense(value, what)
        value = value.detach().resolve_conj().resolve_neg()
        if found is not DType.BF16:
            return value.numpy()
        import ml_dtypes
        import torch

        return value.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)

    def _dense(self, tensor: Any, what: str) -> None:
        """Refuses a torch tensor that does not hold all its elements."""
        if tensor.layout is not sys.modules["torch"].strided:
            raise self.fail(f"{what} is a torch tensor of layout {tensor.layout}: give a dense "
                            "one, .to_dense()")  # fmt: skip
        if tensor.is_meta:
            raise self.fail(f"{what} is a torch tensor on the device `meta`, which holds no values")

    def _from_numbers(self, type_: TensorType, value: Any, what: str) -> Any:
        if not isinstance(value, list | tuple | numbers.Number | np.generic):
            raise self.fail(f"{what} is {type_}, not a {type(value).__name__}{_way_out(value)}")
        dtype = self._dtype(type_, None, what)
        flat: list[Any] = []
        shape = self._nested(value, what, flat, 0)
        numbers_ = [self._number(dtype, item, what) for item in flat]
        return np.array(numbers_, dtype=numpy_dtype(dtype)).reshape(shape)

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
            raise self.fail(f"{what} is {self._written(type_)}, of rank {len(items) - len(packs)}, "
                            f"but got shape {list(shape)}")  # fmt: skip
        for axis, (dim, extent) in enumerate(zip(items, shape, strict=True)):
            if extent > LARGEST:
                raise self.fail(f"axis {axis} of {what} is {extent}, past {LARGEST}")
            if dim.constant == extent:
                continue
            found = Extent(dim, extent, axis, what, self._source_type(type_), shape)
            if dim.constant is not None:
                raise self.fail(f"{found} is {extent}, but has to be {dim.constant}")
            self.extents.append(found)

    def _source_type(self, type_: TensorType) -> Type:
        """The type as the source has it, where it is the parameter's own."""
        return self.slot.type if self.slot.bound is type_ else type_

    def _written(self, type_: TensorType) -> str:
        return str(self._source_type(type_))


class _Fields(tuple[Any, ...]):
    """A struct's fields, made into its `NamedTuple` by the entry."""


class _Absent:
    """Stands for an optional without a value until every size is known."""


ABSENT = _Absent()
_NOTHING = TupleType(())


def dtype_named(name: str) -> DType | None:
    """The dtype that arrays call `name`, None where Linnet has none such."""
    return _BY_NAME.get(name)


def numpy_dtype(dtype: DType) -> Any:
    if dtype is not DType.BF16:
        return np.dtype(NAMES[dtype])
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _is_torch(value: Any) -> bool:
    """Whether it is a torch tensor, told without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _index(value: Any) -> int | None:
    """An integer of any type as Python's, None for what is none (a bool among them)."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _way_out(value: Any) -> str:
    """How another library's array can be given, where the value is one."""
    return ": give it as np.asarray(...)" if hasattr(value, "__array__") else ""


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _names(fields: Sequence[tuple[str, Type]]) -> str:
    return ", ".join(f"`{name}`" for name, _ in fields)
