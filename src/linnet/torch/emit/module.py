"""A whole generated PyTorch module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linnet.backends.emit import module as base
from linnet.backends.emit.imports import Import
from linnet.backends.expr import Expr
from linnet.backends.hosts import analyze
from linnet.backends.names import quoted
from linnet.ir import Function, Op
from linnet.torch.emit.function import write_function, write_gradient
from linnet.torch.emit.writer import Writer

KernelWriter = Callable[[Writer, Op], Expr]


@dataclass(frozen=True, slots=True)
class Options:
    """What the text depends on besides the program."""

    device: str = "cpu"
    numerics: str = "fast"
    trainable: bool = False
    title: str = ""
    compiled: bool = False


@dataclass(slots=True)
class Callee(base.Callee):
    """A function as its callers see it: also its gradient's name, and what its result may share
    memory with."""

    gradient: str | None = None
    alias: frozenset[str] = frozenset("?")

    @property
    def takes_block(self) -> bool:
        return self.touched.block

    @property
    def writes(self) -> bool:
        return self.touched.changes


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's text, and where in it things are. `calls` gives each entry's function and the
    numbers of the generics it takes as integers after its arguments."""

    text: str
    calls: Mapping[str, Callee]
    loop_callees: frozenset[str]
    prepared: bool
    structs: Mapping[str, str]


class ModuleWriter(base.ModuleWriter[Callee]):
    """Everything the functions of one module share."""

    framework = "PyTorch"
    kernels_package = "linnet.torch.kernels"
    module_names = frozenset({"block", "device"})
    imports = (Import("torch"), Import("torch.nn.functional", alias="F"))
    callee_type = Callee

    def __init__(
        self,
        functions: Mapping[str, Function],
        entries: Mapping[str, str],
        origins: Mapping[str, str],
        kernels: Mapping[str, KernelWriter],
        options: Options,
    ) -> None:
        super().__init__(functions, entries, origins, analyze(functions, eager=True))
        self.kernels, self.options = kernels, options
        self.loop_callees: set[str] = set()
        self._uses_prepared = False
        self.declare()

    @property
    def on_device(self) -> bool:
        return self.options.device != "cpu"

    @property
    def device_scalars(self) -> bool:
        """Whether a division by a number has to be by a tensor to be exact."""
        return self.on_device and self.options.numerics != "fast"

    def prepared(self) -> str:
        self._uses_prepared = True
        return self.helper("prepared")

    def with_gradient(self, callee: Callee, arguments: Sequence[str]) -> str:
        inner = ", ".join([callee.name, str(callee.gradient), *arguments])
        return f"{self.helper('with_gradient')}({inner})"

    # --- the text -------------------------------------------------------------------------------

    def generate(self) -> Generated:
        text = self.text(self.options.title, self.options.numerics)
        calls = {entry: self.callees[key] for entry, key in self.entries.items()}
        loops, structs = frozenset(self.loop_callees), self.types.structs
        return Generated(text, calls, loops, self._uses_prepared, structs)

    def constants(self) -> list[str]:
        return [f"device = torch.device({quoted(self.options.device)})"]

    def function_sections(self, callee: Callee) -> list[list[str]]:
        if callee.function.grad is not None and self.options.trainable:
            return self._differentiable(callee)
        lines = write_function(self, callee)
        return [] if self.is_repeated(callee, lines) else [lines]

    def _differentiable(self, callee: Callee) -> list[list[str]]:
        """An op with its gradient: both take the same sizes, so that one call names both."""
        name = self.names.fresh(f"{callee.name}_gradient")
        _, needed = write_gradient(self, callee, name)
        lines = write_function(self, callee, needed)
        gradient, _ = write_gradient(self, callee, name)
        callee.gradient = name
        return [lines, gradient]
