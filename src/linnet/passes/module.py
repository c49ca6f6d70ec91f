"""What passes hand to each other: specialised functions and the entries they serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from linnet.dims import Dim
from linnet.ir import Function


@dataclass(frozen=True, slots=True)
class Note:
    """What a pass did, for people: `linnet explain` prints it. `where` is a source function,
    `count` how much of it there is in a run of each entry."""

    by: str
    where: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Module:
    """Functions by name, callees before callers.

    `entries` gives each entry's function, `origins` each function's source function, `prepared`
    the functions without parameters whose results a runtime keeps (see `prepare`), `bases` the name
    that each function would like (see `rename`), `arguments` what the source's Dim generics are
    bound to in each function, in its own symbols, `notes` what passes did.
    """

    functions: Mapping[str, Function]
    entries: Mapping[str, str]
    origins: Mapping[str, str]
    prepared: tuple[str, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Dim]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.entries.values()))

    def noting(self, notes: Iterable[Note]) -> Module:
        """The module with further notes, each once."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *notes))))

    def origin(self, name: str) -> str:
        return self.origins.get(name, name)

    def with_functions(self, functions: Mapping[str, Function]) -> Module:
        """The module with these functions; what is kept of `origins` and `prepared` follows."""
        return replace(
            self,
            functions=functions,
            origins={n: o for n, o in self.origins.items() if n in functions},
            prepared=tuple(name for name in self.prepared if name in functions),
            bases={n: b for n, b in self.bases.items() if n in functions},
        )
