"""Values for generics: what is given, checked against what is declared and against `where`."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.dims import Dim, Relation
from linnet.ir import Generic
from linnet.types import (
    DTYPES,
    KIND_DTYPES,
    DType,
    DTypeVar,
    GenericArg,
    PackVar,
    Subst,
    render_arg,
)

MAX_SIZE = (1 << 63) - 1

BoundValue = int | str | DType | tuple[int, ...] | list[int]


class BindError(ValueError):
    """A model cannot be bound; `problems` holds every reason, `str()` all of them."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def check_generics(
    owner: str, declared: tuple[Generic, ...], given: Mapping[str, BoundValue]
) -> tuple[GenericArg, ...]:
    """An argument for each declared generic, from `given` or its default."""
    names = [generic.name for generic in declared]
    problems = [
        f"`{owner}` has no generic `{name}`; it has {_listing(names)}"
        for name in given
        if name not in names
    ]
    args: list[GenericArg] = []
    pairs: dict[object, GenericArg] = {}
    for generic in declared:
        try:
            arg = _argument(owner, generic, given, pairs)
        except BindError as error:
            problems.extend(error.problems)
            continue
        pairs[generic.var] = arg
        args.append(arg)
    if problems:
        raise BindError(*problems)
    return tuple(args)


def _argument(
    owner: str,
    generic: Generic,
    given: Mapping[str, BoundValue],
    before: dict[object, GenericArg],
) -> GenericArg:
    if generic.name in given:
        return _concrete(owner, generic, given[generic.name])
    if generic.default is None:
        raise BindError(f"the generic `{generic.name}: {generic.kind}` of `{owner}` is missing")
    return Subst.of(before).arg(generic.default)  # type: ignore[arg-type]


def _concrete(owner: str, generic: Generic, value: BoundValue) -> GenericArg:
    match generic.var:
        case DTypeVar(kind=kind):
            return _dtype(owner, generic, value, KIND_DTYPES[kind])
        case PackVar():
            if not isinstance(value, tuple | list):
                raise BindError(f"`{generic.name}` of `{owner}` takes a list of integers")
            return tuple(Dim.of(_size(owner, generic, item)) for item in value)
        case _:
            return Dim.of(_size(owner, generic, value))


def _dtype(owner: str, generic: Generic, value: BoundValue, allowed: frozenset[DType]) -> DType:
    dtype = DTYPES.get(value) if isinstance(value, str) else value
    if isinstance(dtype, DType) and dtype in allowed:
        return dtype
    names = _listing([d.value for d in DType if d in allowed])
    raise BindError(
        f"`{generic.name}` of `{owner}` takes a dtype out of {names}, not {_shown(value)}"
    )


def _size(owner: str, generic: Generic, value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise BindError(f"`{generic.name}` of `{owner}` takes an integer, not {_shown(value)}")
    size = int(value.__index__())
    if not 0 <= size <= MAX_SIZE:
        raise BindError(f"`{generic.name}` of `{owner}` is {_shown(size)}, which is no size")
    return size


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listing(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def plain_value(arg: GenericArg) -> int | DType | tuple[int, ...]:
    """A concrete argument as the value a person gives."""
    match arg:
        case DType():
            return arg
        case Dim():
            return size_of(arg)
        case tuple():
            return tuple(size_of(item) for item in arg if isinstance(item, Dim))
        case _:
            raise BindError(f"`{arg}` is not bound to a dtype")


def size_of(dim: Dim) -> int:
    """The number a concrete dimension is."""
    if dim.constant is None:
        raise BindError(f"the size `{dim}` is not known")
    return dim.constant


def check_where(
    owner: str,
    generics: tuple[Generic, ...],
    args: tuple[GenericArg, ...],
    where: tuple[Relation, ...],
    subst: Subst,
) -> None:
    """Raises `BindError` naming each clause that the arguments break."""
    broken = [clause for clause in where if not _holds(subst.relation(clause))]
    if not broken:
        return
    given = ", ".join(
        f"{g.name} = {render_arg(arg)}" for g, arg in zip(generics, args, strict=True)
    )
    raise BindError(
        *(f"`{owner}` needs `{clause}`, which does not hold with {given}" for clause in broken)
    )


def _holds(clause: Relation) -> bool:
    left, right = clause.left.constant, clause.right.constant
    if left is None or right is None:  # a division by zero stays symbolic
        return False
    match clause.op:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right
