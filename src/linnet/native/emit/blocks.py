"""Blocks as structs of pointers, equal ones shared, and the order in which they are filled in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linnet.native.emit.dtypes import dtype_of, stored
from linnet.native.emit.names import Names, reserved, safe
from linnet.native.emit.values import Place
from linnet.passes import Instance, ParamInfo
from linnet.types import DType

Key = tuple[object, ...]
_PACKED = "_packed"  # what names of packed forms end with


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parameter, or several that lie together: packed, or as one array."""

    paths: tuple[str, ...]
    packed: bool


class Structs:
    """The struct of each kind of block: kinds that hold the same members share one."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.by_instance: dict[int, str] = {}
        self.by_key: dict[Key, str] = {}
        self.keys: dict[int, Key] = {}
        self.samples: dict[Key, Instance] = {}
        self.packs: set[tuple[Key, str]] = set()
        self.raws: set[tuple[Key, str]] = set()
        self.sure: set[tuple[Key, str]] = set()  # of `packs`: those that code needs packed
        self.eithers: set[tuple[Key, str]] = set()  # taken packed where they are, else as they are
        self.groups: dict[Key, dict[tuple[str, ...], str]] = {}  # parameters that lie together
        self.kept: list[Instance] = []
        self._members: dict[str, str] = {}
        self._used: set[str] = set()

    def member(self, name: str | int) -> str:
        """The C++ name of a member or child block called `name`."""
        text = str(name)
        if text not in self._members:
            base = safe(text)
            if base != text or base[0].isupper():  # structs' names start so
                base += "_"
            while base in self._used or base in reserved() or base.endswith(_PACKED):
                base += "_"
            self._used.add(base)
            self._members[text] = base
        return self._members[text]

    def name(self, instance: Instance) -> str:
        """The struct's name."""
        if id(instance) not in self.by_instance:
            key = self._key(instance)
            if key not in self.by_key:
                self.by_key[key] = self.names.fresh(instance.block.rpartition("::")[2])
                self.samples[key] = instance
            self.by_instance[id(instance)] = self.by_key[key]
            self.kept.append(instance)
        return self.by_instance[id(instance)]

    def _key(self, instance: Instance) -> Key:
        found = self.keys.get(id(instance))
        if found is None:
            members = tuple(
                (n, isinstance(m, ParamInfo), dtype_of(m.type)) for n, m in instance.members.items()
            )
            children = tuple(
                (n, len(c), self._key(c[0]) if c else ())
                if isinstance(c, tuple) else (n, None, self._key(c))
                for n, c in instance.children.items()
            )  # fmt: skip
            found = self.keys[id(instance)] = (instance.block, members, children)
            self.kept.append(instance)
        return found

    def packed(self, instance: Instance, member: str) -> str:
        """The member that holds a parameter's packed form, which is filled in from now on."""
        self.sure.add((self._key(instance), member))
        return self._packed(instance, member)

    def either(self, place: Place) -> str:
        """The member that holds a parameter's packed form where there is one, and is null where
        the parameter is held as an array instead."""
        self.eithers.add((self._key(place.instance), place.member))
        return self._packed(place.instance, place.member)

    def _packed(self, instance: Instance, member: str) -> str:
        self.name(instance)
        self.packs.add((self._key(instance), member))
        joined = member in self.groups.get(self._key(instance), {}).values()
        return f"{member if joined else self.member(member)}{_PACKED}"

    def group(self, instance: Instance, parts: tuple[str, ...], name: str) -> str:
        """The member that holds parameters below a block which lie together; `parts` are paths."""
        self.name(instance)
        members = self.groups.setdefault(self._key(instance), {})
        if parts not in members:
            members[parts] = self.member(name)  # which no member of the source has
        return members[parts]

    def use(self, place: Place) -> None:
        """Notes that code reads a parameter itself."""
        self.raws.add((self._key(place.instance), place.member))

    def text(self) -> list[str]:
        """The structs, those that others hold before them."""
        lines: list[str] = []
        for key, struct in self.by_key.items():
            lines += self._write(key, struct, self.samples[key])
        return lines

    def _write(self, key: Key, struct: str, instance: Instance) -> list[str]:
        fields: list[str] = []
        fill: list[str] = []
        for name, info in instance.members.items():
            place, kind = self.member(name), stored(dtype_of(info.type))
            if isinstance(info, ParamInfo):
                fields.append(f"  const {kind}* {place} = nullptr;")
                fill.append(f"    pointers.next({place});")
            else:
                fields.append(f"  {kind}* {place} = nullptr;")
                fill.append(f"    pointers.next_state({place});")
            if (key, name) in self.packs:
                fields.append(f"  const linnet::PackedMatrix* {place}_packed = nullptr;")
                fill.append(f"    pointers.next_packed({place}_packed);")
        for name in self.groups.get(key, {}).values():
            if (key, name) in self.packs:
                fields.append(f"  const linnet::PackedMatrix* {name}_packed = nullptr;")
                fill.append(f"    pointers.next_packed({name}_packed);")
            if (key, name) in self.raws:
                kind = stored(self._dtype(instance, key, name))
                fields.append(f"  const {kind}* {name} = nullptr;")
                fill.append(f"    pointers.next_joined({name});")
        for name, child in instance.children.items():
            place = self.member(name)
            if not isinstance(child, tuple):
                fields.append(f"  {self.name(child)} {place};")
                fill.append(f"    {place}.fill(pointers);")
            elif child:
                fields.append(f"  std::array<{self.name(child[0])}, {len(child)}> {place};")
                fill.append(f"    for (auto& each : {place}) each.fill(pointers);")
        return ["", f"struct {struct} {{", *fields, "", "  void fill(Pointers& pointers) {",
                *fill, *([] if fill else ["    (void)pointers;"]), "  }", "};"]  # fmt: skip

    def _dtype(self, instance: Instance, key: Key, member: str) -> DType:
        parts = next(parts for parts, name in self.groups[key].items() if name == member)
        return dtype_of(next(p.type for p in instance.params if p.path == parts[0]))

    def wanted(self, root: Instance) -> list[Wanted]:
        """The weights wanted besides single arrays, in the order of `fill`."""
        found: list[Wanted] = []
        for instance, prefix in _all(root):
            key = self._key(instance)
            found += [Wanted((prefix + name,), True) for name in instance.members
                      if (key, name) in self.packs]  # fmt: skip
            for parts, name in self.groups.get(key, {}).items():
                paths = tuple(prefix + part for part in parts)
                found += [Wanted(paths, form) for form, forms in ((True, self.packs),
                          (False, self.raws)) if (key, name) in forms]  # fmt: skip
        return found

    def either_paths(self, root: Instance) -> list[str]:
        """The paths of parameters that code takes packed or as they are."""
        return self._paths(root, self.eithers - self.sure)

    def raw_paths(self, root: Instance) -> list[str]:
        """The paths of parameters that code reads themselves."""
        return self._paths(root, self.raws)

    def _paths(self, root: Instance, wanted: set[tuple[Key, str]]) -> list[str]:
        return [
            prefix + name
            for instance, prefix in _all(root)
            for name in instance.members
            if (self._key(instance), name) in wanted
        ]


def _all(instance: Instance, prefix: str = "") -> Iterator[tuple[Instance, str]]:
    """Every block with what its members' paths start with, in the order of `fill`."""
    yield instance, prefix
    for name, child in instance.children.items():
        if not isinstance(child, tuple):
            yield from _all(child, f"{prefix}{name}.")
            continue
        for k, element in enumerate(child):
            yield from _all(element, f"{prefix}{name}.{k}.")


def paths(instance: Instance, states: bool, prefix: str = "") -> Iterator[str]:
    """The paths of parameters, or of states, in the order in which `fill` takes them."""
    for name, info in instance.members.items():
        if isinstance(info, ParamInfo) is not states:
            yield prefix + name
    for name, child in instance.children.items():
        if not isinstance(child, tuple):
            yield from paths(child, states, f"{prefix}{name}.")
            continue
        for k, element in enumerate(child):
            yield from paths(element, states, f"{prefix}{name}.{k}.")
