"""An entry as its callers know it: parameter names, types and conditions in the source's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linnet.backends.errors import InputError
from linnet.backends.recent import Recent
from linnet.diagnostics.escape import escape_text
from linnet.dims import Dim, DimError, Relation, Symbol
from linnet.ir import NONE_DEFAULT, Function, Generic
from linnet.passes.arguments import LARGEST
from linnet.types import (
    DTYPES,
    KIND_DTYPES,
    DType,
    DTypeVar,
    GenericArg,
    PackVar,
    Subst,
    Type,
    render_arg,
)

MISSING = object()


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter: `type` as written, for messages; `bound` with the block's generics filled in."""

    name: str
    type: Type
    bound: Type
    default: int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Extent:
    """What a dimension of a type is in an input. In words, the place: "axis 1 of `ids` (...)"."""

    dim: Dim
    size: int
    axis: int
    what: str
    type: Type
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"axis {self.axis} of {self.what} ({self.type}, got shape {list(self.shape)})"


class Signature:
    """One entry of a bound model."""

    def __init__(self, name: str, function: Function, block: Mapping[str, GenericArg]) -> None:
        self.name, self.function = name, function
        self.block = block
        outer = {g.var: block[g.name] for g in function.generics if g.name in block}
        self.generics = tuple(g for g in function.generics if g.name not in block)
        self.subst = Subst.of(outer)
        self.slots = tuple(
            Slot(p.name, p.type, self.subst.type(p.type), p.default) for p in function.params
        )
        self.where = tuple((clause, self.subst.relation(clause)) for clause in function.where)
        self._completed: Recent[Any, dict[Any, GenericArg]] = Recent()

    def __str__(self) -> str:
        generics = ", ".join(f"{g.name}: {g.kind}" for g in self.generics)
        params = ", ".join(f"{s.name}: {s.type}" for s in self.slots)
        return f"{self.name}{f'<{generics}>' if generics else ''}({params})"

    def fail(self, problem: str) -> InputError:
        return InputError(f"{self}: {problem}")

    def arrange(self, inputs: object) -> list[Any]:
        """One input for each parameter, in order, defaults filled in."""
        if isinstance(inputs, Mapping):
            return self._by_name(inputs)
        if not isinstance(inputs, Sequence) or isinstance(inputs, str | bytes):
            raise self.fail(f"inputs come as a list or a dict, not {_a(inputs)}")
        if len(inputs) > len(self.slots):
            raise self._wrong_count(len(inputs))
        given = list(inputs)
        for slot in self.slots[len(given) :]:
            if slot.default is None:
                raise self._wrong_count(len(inputs))
            given.append(_default(slot))
        return given

    def _wrong_count(self, count: int) -> InputError:
        least = sum(1 for slot in self.slots if slot.default is None)
        most = len(self.slots)
        wanted = str(most) if least == most else f"{least} to {most}"
        return self.fail(f"takes {wanted} input{'s' * (wanted != '1')}, not {count}")

    def _by_name(self, inputs: Mapping[str, Any]) -> list[Any]:
        known = {slot.name for slot in self.slots}
        unknown = [str(name) for name in inputs if name not in known]
        if unknown:
            raise self.fail(f"has no input `{unknown[0]}`")
        given = []
        for slot in self.slots:
            if slot.name in inputs:
                given.append(inputs[slot.name])
            elif slot.default is not None:
                given.append(_default(slot))
            else:
                raise self.fail(f"the input `{slot.name}` is missing")
        return given

    def together(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Inputs in order and by name as one list or dict."""
        if not named:
            return list(inputs)
        if len(inputs) > len(self.slots):
            raise self._wrong_count(len(inputs) + len(named))
        whole = dict(named)
        for slot, value in zip(self.slots, inputs, strict=False):
            if slot.name in named:
                raise self.fail(f"the input `{slot.name}` is given twice")
            whole[slot.name] = value
        return whole

    # --- generics -------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether there is code for each dtype or shape that callers choose."""
        return any(isinstance(g.var, DTypeVar | PackVar) for g in self.generics)

    def forms(self, known: Mapping[Any, GenericArg]) -> dict[str, GenericArg]:
        """The dtypes and shapes among the entry's own generics, by name: what code is made for."""
        return {
            g.name: known[g.var]
            for g in self.generics
            if isinstance(g.var, DTypeVar | PackVar) and g.var in known
        }

    def sizes(self, known: Mapping[Any, GenericArg]) -> dict[str, int]:
        """The sizes among the entry's own generics, by name."""
        found: dict[str, int] = {}
        for generic in self.generics:
            size = known[generic.var]
            if isinstance(size, Dim) and size.constant is not None:
                found[generic.name] = size.constant
        return found

    def given_generics(self, values: Mapping[str, Any] | None) -> dict[Any, GenericArg]:
        """What a caller says about the entry's own generics, by variable."""
        named = {g.name: g for g in self.generics}
        known: dict[Any, GenericArg] = {}
        if values is not None and not isinstance(values, Mapping):
            raise self.fail(f"generics come as a dict of values by name, not {_a(values)}")
        for name, value in (values or {}).items():
            if name not in named:
                listed = ", ".join(f"`{n}`" for n in named) or "none"
                raise self.fail(f"has no generic `{name}` of its own (it has: {listed})")
            known[named[name].var] = self._argument(named[name], value)
        return known

    def _argument(self, generic: Generic, value: Any) -> GenericArg:
        match generic.var:
            case DTypeVar(kind=kind):
                dtype = DTYPES.get(value) if isinstance(value, str) else value
                if not isinstance(dtype, DType) or dtype not in KIND_DTYPES[kind]:
                    raise self.fail(f"`{generic.name}` takes a {kind} dtype's name, not {value!r}")
                return dtype
            case PackVar():
                if not isinstance(value, Sequence) or isinstance(value, str):
                    raise self.fail(f"`{generic.name}` takes a list of sizes, not {value!r}")
                return tuple(Dim.of(self._size(generic, item)) for item in value)
            case _:
                return Dim.of(self._size(generic, value))

    def _size(self, generic: Generic, value: Any) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise self.fail(f"the generic `{generic.name}` is an integer, not {value!r}")
        size = int(value.__index__())
        if not 0 <= size <= LARGEST:
            raise self.fail(f"the generic `{generic.name}` is {size}, which is no size")
        return size

    def completed(
        self, known: Mapping[Any, GenericArg], extents: Sequence[Extent]
    ) -> dict[Any, GenericArg]:
        """`known` with what shapes show indirectly and with defaults, everything checked."""
        key = (frozenset(known.items()), tuple((e.dim, e.size) for e in extents))
        found = self._completed.get(key)
        if found is None:
            found = dict(known)
            self._complete(found, extents)
            self._completed[key] = found
        return dict(found)

    def _complete(self, known: dict[Any, GenericArg], extents: Sequence[Extent]) -> None:
        for generic in self.generics:
            if generic.var not in known and generic.default is not None:
                _solve(extents, known)
                known.setdefault(generic.var, Subst.of(known).arg(generic.default))
        _solve(extents, known)
        for generic in self.generics:
            if generic.var not in known:
                misfit = _misfit(extents, known)
                if misfit:
                    raise self.fail(misfit)
                raise self.fail(
                    f"needs the generic `{generic.name}`, which no input shows: "
                    f"name it as run_entry's generics={{{generic.name!r}: ...}}"
                )
        subst = Subst.of(known)
        for each in extents:
            wanted = subst.dim(each.dim).constant
            if wanted != each.size:
                raise self.fail(f"{each} is {each.size}, but {_value(each.dim, wanted)}")
        for written, clause in self.where:
            if not _holds(subst.relation(clause)):
                raise self.fail(f"`{written}` does not hold with {self._said(known, written)}")

    def _said(self, known: Mapping[Any, GenericArg], clause: Relation) -> str:
        values = dict(self.block)
        for generic in self.generics:
            values[generic.name] = known[generic.var]
        symbols = {s.name for dim in (clause.left, clause.right) for s in dim.symbols}
        said = [f"{n} = {render_arg(v)}" for n, v in values.items() if n in symbols]
        return ", ".join(said) or "these inputs"


def entry_named(entries: Mapping[str, Function], name: object) -> Function:
    """The entry a caller asks for. Raises `InputError` where there is none of that name."""
    if isinstance(name, str) and name in entries:
        return entries[name]
    asked = escape_text(name if isinstance(name, str) else repr(name), 80)
    known = ", ".join(sorted(entries)) or "none"
    raise InputError(f"there is no entry `{asked}`; the model's entries: {known}")


def frozen(sizes: Mapping[str, GenericArg] | None) -> tuple[tuple[str, GenericArg], ...]:
    """Generics by name as a key of a dict."""
    return tuple(sorted((sizes or {}).items(), key=lambda item: item[0]))


def _default(slot: Slot) -> Any:
    return None if slot.default == NONE_DEFAULT else slot.default


def _a(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _value(dim: Dim, wanted: int | None) -> str:
    if dim.constant is not None:
        return f"has to be {wanted}"
    return f"`{dim}` is {wanted}"


def _solve(extents: Sequence[Extent], known: dict[Any, GenericArg]) -> None:
    """Finds each symbol that alone is unknown in a linear place."""
    progress = True
    while progress:
        progress = False
        subst = Subst.of(known)
        for each in extents:
            left = subst.dim(each.dim)
            if len(left.symbols) != 1:
                continue
            (symbol,) = left.symbols
            value = _root(left, symbol, each.size)
            if value is not None:
                known[symbol] = Dim.of(value)
                progress = True
                break


def _misfit(extents: Sequence[Extent], known: Mapping[Any, GenericArg]) -> str | None:
    """What is wrong with an extent that no value of its dimension's one unknown symbol gives."""
    subst = Subst.of(known)
    for each in extents:
        left = subst.dim(each.dim)
        if len(left.symbols) == 1 and _slope(left) is not None:
            return f"{each} is {each.size}, which `{each.dim}` is for no size"
    return None


def _slope(dim: Dim) -> int | None:
    """By how much a dimension in one symbol grows with it, where it is linear."""
    (symbol,) = dim.symbols
    try:
        zero, one, two = (dim.evaluate({symbol: k}) for k in (0, 1, 2))
    except DimError:
        return None
    return one - zero if one != zero and two - one == one - zero else None


def _root(dim: Dim, symbol: Symbol, target: int) -> int | None:
    slope = _slope(dim)
    if slope is None:
        return None
    value, rest = divmod(target - dim.evaluate({symbol: 0}), slope)
    return None if rest or value < 0 or dim.evaluate({symbol: value}) != target else value


def _holds(clause: Relation) -> bool:
    left, right = clause.left.constant, clause.right.constant
    if left is None or right is None:
        return False
    compare = {
        "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
        ">": left > right, ">=": left >= right,
    }  # fmt: skip
    return compare[clause.op]
