"""A whole generated module: header, imports, classes, kernels, functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from linnet.backends.emit.imports import STANDARD, Import, import_lines, names_in
from linnet.backends.emit.types import Types
from linnet.backends.emit.uses import Touched, touched
from linnet.backends.hosts import Hosts
from linnet.backends.names import Names, comment
from linnet.backends.sources import kernel_names, kernel_sections
from linnet.ir import Function

KERNELS = "linnet.backends.kernels"


@dataclass(slots=True)
class Callee:
    """A function as its callers see it; `size_args` number the generics passed as integers."""

    key: str
    name: str
    origin: str
    function: Function
    touched: Touched
    host_params: Sequence[bool]
    host_results: Sequence[bool]
    hint: str
    size_args: tuple[int, ...] = ()

    @property
    def comment(self) -> str:
        """Where the function comes from, as a comment."""
        span = self.function.span
        place = "" if span is None else f"  {span.file.path}:{span.line}"
        return f"# {comment(self.origin + place)}"


AnyCallee = TypeVar("AnyCallee", bound=Callee)


class ModuleWriter(ABC, Generic[AnyCallee]):
    """Everything the functions of one module share. A subclass readies what it needs besides, then
    calls `declare`."""

    framework: ClassVar[str]
    kernels_package: ClassVar[str]  # where the framework's functions lie that modules copy
    module_names: ClassVar[frozenset[str]]  # what generated modules call things themselves
    imports: ClassVar[Sequence[Import]]  # of the framework
    callee_type: type[AnyCallee]

    def __init__(
        self, functions: Mapping[str, Function], entries: Mapping[str, str],
        origins: Mapping[str, str], hosts: Hosts,
    ) -> None:  # fmt: skip
        self.functions, self.entries, self.origins = functions, entries, origins
        self.hosts = hosts
        self.names = Names((
            *kernel_names(KERNELS, self.kernels_package), *self.module_names,
            *(each.bound for each in STANDARD), *(each.bound for each in self.imports),
        ))  # fmt: skip
        self.callees: dict[str, AnyCallee] = {}
        self.types = Types(self.names)
        self._helpers: dict[str, None] = {}
        self._written: dict[str, str] = {}

    def declare(self) -> None:
        """Names every function and class, before any local variable gets a name."""
        for key, function in self.functions.items():
            result = function.body.results
            origin = self.origins.get(key, function.name)
            hint = (result[0].name if result else "") or origin.rpartition("::")[2]
            self.callees[key] = self.callee_type(
                key, self.names.fresh(key), origin, function, touched(function, self.callees),
                self.hosts.params[key], self.hosts.results[key], hint.rpartition(".")[2],
            )  # fmt: skip
        for function in self.functions.values():
            self.types.declare(function)

    def callee(self, key: str) -> AnyCallee:
        return self.callees[key]

    def helper(self, name: str) -> str:
        """The name of a kernel, whose text the module will hold."""
        self._helpers[name] = None
        return name

    # --- the text -------------------------------------------------------------------------------

    @abstractmethod
    def function_sections(self, callee: AnyCallee) -> list[list[str]]:
        """The lines of a function, and of what stands beside it; nothing where it is another's."""

    def extra_sections(self) -> list[list[str]]:
        """What stands after the classes of structs and enums."""
        return []

    def constants(self) -> list[str]:
        """Assignments below the imports."""
        return []

    def is_repeated(self, callee: AnyCallee, shown: Sequence[str]) -> bool:
        """Whether a function with the same lines is there already, under whose name this one is
        called from now on: it differs in sizes that the text doesn't show."""
        key = "\n".join(shown).replace(f"def {callee.name}(", "def (", 1)
        known = self._written.setdefault(key, callee.name)
        callee.name, before = known, callee.name
        return known != before

    def text(self, title: str, numerics: str, notes: Sequence[str] = ()) -> str:
        """The module. What its heading says may hold any characters."""
        functions = [s for callee in self.callees.values() for s in self.function_sections(callee)]
        kernels = kernel_sections((KERNELS, self.kernels_package), self._helpers)
        body = _joined([*self.types.sections, *self.extra_sections(), *kernels, *functions], 2)
        constants = self.constants()
        used = names_in("\n".join([*constants, body]))
        entries = ", ".join(sorted(self.entries))
        about = [
            f"{self.framework} code made by linnet from", title,
            f"entries: {entries}; numerics: {numerics}", *notes,
        ]  # fmt: skip
        heading = [f"# {comment(line)}" for line in about]
        imports = import_lines((STANDARD, self.imports), used)
        future = ["from __future__ import annotations"]
        head = _joined([heading, future, imports, constants], 1)
        return f"{head}\n\n\n{body}\n"


def _joined(sections: Iterable[Sequence[str]], blank: int) -> str:
    """The sections that are not empty, `blank` empty lines between them."""
    return ("\n" * (blank + 1)).join("\n".join(lines) for lines in sections if lines)
