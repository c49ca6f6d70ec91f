"""The classes that generated modules declare for structs and enums."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from linnet.backends.names import Names, attribute, field
from linnet.ir import Function
from linnet.ir.walk import bodies, walk
from linnet.types import EnumType, OptionalType, StructType, TensorType, TupleType, Type

# What an `IntEnum` has already.
_ENUM_NAMES = frozenset(("name", "value", "mro", *dir(int)))


class Types:
    """A `NamedTuple` for each struct, an `IntEnum` for each enum."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._structs: dict[str, tuple[str, dict[str, str]]] = {}  # by the declaration's path
        self._enums: dict[EnumType, tuple[str, list[str]]] = {}
        self.sections: list[list[str]] = []  # the lines of each class

    @property
    def names(self) -> set[str]:
        return {n for n, _ in self._structs.values()} | {n for n, _ in self._enums.values()}

    @property
    def structs(self) -> dict[str, str]:
        """The class of each struct, by the declaration's path."""
        return {path: name for path, (name, _) in self._structs.items()}

    def declare(self, function: Function) -> None:
        """Names what the function uses, before any local variable gets a name."""
        seen: set[Type] = set()
        waiting = deque(_types(function))
        while waiting:
            type_ = waiting.popleft()
            if isinstance(type_, TensorType) or type_ in seen:
                continue
            seen.add(type_)
            match type_:
                case StructType(fields=fields):
                    waiting.extend(inner for _, inner in fields)
                    self.struct(type_)
                case EnumType():
                    self.case(type_, 0)
                case OptionalType(inner):
                    waiting.append(inner)
                case TupleType(items):
                    waiting.extend(items)
                case _:
                    pass

    def struct(self, type_: StructType) -> str:
        """The struct's class."""
        if type_.path not in self._structs:
            name = self._names.fresh(type_.name)
            fields: dict[str, str] = {}
            for inner, _ in type_.fields:
                fields[inner] = field(inner, fields.values())
            self._structs[type_.path] = name, fields
            self.sections.append(class_lines(name, [f"{safe}: object" for safe in fields.values()]))
        return self._structs[type_.path][0]

    def field(self, type_: StructType, name: str) -> str:
        self.struct(type_)
        return self._structs[type_.path][1][name]

    def case(self, type_: EnumType, case: int) -> str:
        """An enum's case as text."""
        if type_ not in self._enums:
            name = self._names.fresh(type_.name)
            cases: list[str] = []
            for each in type_.cases:
                safe = attribute(each)
                while safe in cases or safe in _ENUM_NAMES or safe.startswith("_"):
                    safe = f"case_{safe}"
                cases.append(safe)
            self._enums[type_] = name, cases
            lines = [f"{safe} = {k}" for k, safe in enumerate(cases)]
            self.sections.append(class_lines(name, lines, "IntEnum"))
        name, cases = self._enums[type_]
        return f"{name}.{cases[case]}"


def class_lines(name: str, members: list[str], base: str = "NamedTuple") -> list[str]:
    return [f"class {name}({base}):", *(f"    {line}" for line in members or ["pass"])]


def _types(function: Function) -> Iterator[Type]:
    yield from (p.type for p in function.params)
    for body in bodies(function):
        for op in walk(body):
            yield from (v.type for v in op.results)
