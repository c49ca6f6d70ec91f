"""Blocks as structs of pointers, equal ones shared, and the order in which they are filled in."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.native.emit.dtypes import dtype_of, stored
from linnet.native.emit.names import Names, reserved, safe
from linnet.native.emit.values import Place
from linnet.passes import Instance, ParamInfo

Key = tuple[object, ...]


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
            while base in self._used or base in reserved():
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
        self.name(instance)
        self.packs.add((self._key(instance), member))
        return f"{self.member(member)}_packed"

    def is_packed(self, place: Place) -> bool:
        """Whether the parameter's packed form is wanted by something written before."""
        return (self._key(place.instance), place.member) in self.packs

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

    def packed_paths(self, root: Instance) -> list[str]:
        """The paths of parameters whose packed form is wanted, in the order of `fill`."""
        return self._paths(root, self.packs)

    def raw_paths(self, root: Instance) -> list[str]:
        """The paths of parameters that code reads themselves."""
        return self._paths(root, self.raws)

    def _paths(self, root: Instance, wanted: set[tuple[Key, str]]) -> list[str]:
        found: list[str] = []

        def visit(instance: Instance, prefix: str) -> None:
            key = self._key(instance)
            found.extend(prefix + name for name in instance.members if (key, name) in wanted)
            for name, child in instance.children.items():
                if not isinstance(child, tuple):
                    visit(child, f"{prefix}{name}.")
                    continue
                for k, element in enumerate(child):
                    visit(element, f"{prefix}{name}.{k}.")

        visit(root, "")
        return found


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
