"""One operation as its dtype and shape rule sees it, and the registry of the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linnet.diagnostics import InternalError, Span
from linnet.dims import Dim
from linnet.ir.core import Attrs, Ref, Region
from linnet.ir.table import OPS, DTypeRule
from linnet.types import (
    AnyDType,
    DType,
    ErrorType,
    OptionalType,
    PackVar,
    Shape,
    ShapeItem,
    StructType,
    TensorType,
    TupleType,
    Type,
    dtypes_of,
)

Equal = Callable[[Dim, Dim], bool]


def structural(a: Dim, b: Dim) -> bool:
    """Equality without facts: of the normal forms."""
    return a == b


@dataclass(frozen=True, slots=True)
class Case:
    """One operation as the rules see it."""

    kind: str
    operands: tuple[Type, ...]
    attrs: Attrs
    hint: tuple[Type, ...]
    regions: tuple[Region, ...]
    equal: Equal
    span: Span | None

    def fail(self, what: str) -> InternalError:
        return InternalError("ir", f"`{self.kind}`: {what}", self.span)

    def tensor(self, k: int) -> TensorType:
        type_ = self.operands[k]
        if not isinstance(type_, TensorType):
            raise self.fail(f"operand {k} is {type_}, not a tensor")
        return type_

    @property
    def hinted(self) -> Type:
        if len(self.hint) != 1:
            raise self.fail("its one result's type has to be given")
        return self.hint[0]

    @property
    def hinted_tensor(self) -> TensorType:
        if not isinstance(self.hinted, TensorType):
            raise self.fail(f"the result is {self.hinted}, not a tensor")
        return self.hinted

    def same_item(self, a: ShapeItem, b: ShapeItem) -> bool:
        if isinstance(a, PackVar) or isinstance(b, PackVar):
            return a == b
        return a == b or self.equal(a, b)

    def same_shape(self, a: Shape, b: Shape) -> bool:
        return len(a) == len(b) and all(map(self.same_item, a, b))

    def axis(self, value: object, rank: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < rank:
            raise self.fail(f"axis {value!r} is not one of {rank}")
        return value

    def dims_at(self, shape: Shape, axis: int) -> Dim:
        item = shape[axis]
        if isinstance(item, PackVar):
            raise self.fail(f"item {axis} is the pack {item}")
        return item

    def same_type(self, a: Type, b: Type) -> bool:
        return same_type(a, b, self.equal)

    def check_ref(self, name: str) -> None:
        """The attribute `name` is a `Ref`."""
        if not isinstance(self.attrs[name], Ref):
            raise self.fail(f"`{name}` is {self.attrs[name]!r}, not a reference")


Rule = Callable[[Case], tuple[Type, ...]]
RULES: dict[str, Rule] = {}


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Registers the rule of some rows."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def same_type(a: Type, b: Type, equal: Equal = structural) -> bool:
    """Whether two types are one, dimensions compared with `equal`."""
    if a == b:
        return True
    match a, b:
        case TensorType(), TensorType():
            return a.dtype == b.dtype and _same_items(a.shape, b.shape, equal)
        case TupleType(), TupleType():
            return _same_types(a.items, b.items, equal)
        case StructType(), StructType():
            fields = [t for _, t in a.fields], [t for _, t in b.fields]
            return a.path == b.path and _same_types(*fields, equal)
        case OptionalType(), OptionalType():
            return same_type(a.inner, b.inner, equal)
        case _:
            return isinstance(a, ErrorType) and isinstance(b, ErrorType)


def _same_items(a: Shape, b: Shape, equal: Equal) -> bool:
    if len(a) != len(b):
        return False
    for left, right in zip(a, b, strict=True):
        packs = isinstance(left, PackVar) or isinstance(right, PackVar)
        if left != right and (packs or not equal(left, right)):  # type: ignore[arg-type]
            return False
    return True


def _same_types(a: Sequence[Type], b: Sequence[Type], equal: Equal) -> bool:
    return len(a) == len(b) and all(same_type(x, y, equal) for x, y in zip(a, b, strict=True))


# What a dtype rule asks of every dtype that a variable may stand for.
_ADMITS: dict[DTypeRule, Callable[[DType], bool]] = {
    "any": lambda d: True,
    "numeric": lambda d: d.is_numeric,
    "integer": lambda d: d.is_integer,
    "float": lambda d: d.is_float,
    "bool": lambda d: d is DType.BOOL,
    "integer_or_bool": lambda d: d.is_integer or d is DType.BOOL,
}


def check_dtype(case: Case, dtype: AnyDType, wanted: DTypeRule | None = None) -> None:
    """Raises unless `dtype` is what the row (or `wanted`) takes."""
    wanted = wanted or OPS[case.kind].dtypes
    if not all(map(_ADMITS[wanted], dtypes_of(dtype))):
        raise case.fail(f"takes {wanted.replace('_', ' ')} dtypes, not {dtype}")
