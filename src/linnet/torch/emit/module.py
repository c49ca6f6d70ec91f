"""A whole generated module: header, types, kernels, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linnet.backends.expr import Expr
from linnet.backends.hosts import Hosts, analyze
from linnet.backends.names import Names, attribute, comment, field
from linnet.backends.sources import kernel_names, kernel_text
from linnet.diagnostics import CompileError, Diagnostic
from linnet.ir import Function, Op, Region
from linnet.torch.emit.function import write_function, write_gradient
from linnet.torch.emit.writer import Writer
from linnet.types import (
    EnumType,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

KernelWriter = Callable[[Writer, Op], Expr]

KERNELS = "linnet.torch.kernels"

# What the generated module itself calls things.
MODULE_NAMES = frozenset({"F", "IntEnum", "NamedTuple", "block", "device", "math", "torch"})


@dataclass(frozen=True, slots=True)
class Options:
    """What the text depends on besides the program."""

    device: str = "cpu"
    numerics: str = "fast"
    trainable: bool = False
    title: str = ""


@dataclass(slots=True)
class Callee:
    """A function as its callers see it; `size_args` number the generics passed as integers."""

    key: str
    name: str
    origin: str
    function: Function
    takes_block: bool
    writes: bool
    host_params: Sequence[bool]
    host_results: Sequence[bool]
    hint: str
    gradient: str | None = None
    alias: frozenset[str] = frozenset("?")
    size_args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's text, and where in it things are. `calls` gives each entry's function and the
    numbers of the generics it takes as integers after its arguments."""

    text: str
    calls: Mapping[str, Callee]
    loop_callees: frozenset[str]
    prepared: bool
    structs: Mapping[str, str]


class ModuleWriter:
    """Everything the functions of one module share."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        entries: Mapping[str, str],
        origins: Mapping[str, str],
        kernels: Mapping[str, KernelWriter],
        options: Options,
    ) -> None:
        self.functions, self.entries, self.origins = functions, entries, origins
        self.kernels, self.options = kernels, options
        self.hosts: Hosts = analyze(functions, eager=True)
        self.names = Names((*kernel_names(KERNELS), *MODULE_NAMES))
        self.callees: dict[str, Callee] = {}
        self.loop_callees: set[str] = set()
        self.types: list[str] = []
        self._helpers: dict[str, None] = {}
        self._structs: dict[str, tuple[str, dict[str, str]]] = {}  # by the declaration's path
        self._enums: dict[EnumType, tuple[str, list[str]]] = {}
        self._regions = 0
        self._written: dict[str, str] = {}
        self._uses_prepared = False
        for key, function in functions.items():
            self._declare(key, function)
        for function in functions.values():
            self._declare_types(function)

    def _declare_types(self, function: Function) -> None:
        """Names structs and enums before any local variable gets a name."""
        stack = [p.type for p in function.params]
        regions = [function.body] + ([function.grad.body] if function.grad is not None else [])
        while regions:
            for op in regions.pop().ops:
                regions.extend(op.regions)
                stack.extend(v.type for v in op.results)
        seen: set[Type] = set()
        while stack:
            type_ = stack.pop()
            if isinstance(type_, TensorType) or type_ in seen:
                continue
            seen.add(type_)
            match type_:
                case StructType(fields=fields):
                    stack.extend(inner for _, inner in fields)
                    self.struct(type_)
                case EnumType():
                    self.enum_case(type_, 0)
                case OptionalType(inner):
                    stack.append(inner)
                case TupleType(items):
                    stack.extend(items)
                case _:
                    pass

    def _declare(self, key: str, function: Function) -> None:
        block, writes = _touches(function, self.callees)
        result = function.body.results
        short = self.origins.get(key, function.name).rpartition("::")[2]
        self.callees[key] = Callee(
            key, self.names.fresh(key), self.origins.get(key, function.name), function, block,
            writes, self.hosts.params[key], self.hosts.results[key],
            (result[0].name if result else "") or short.rpartition(".")[2],
        )  # fmt: skip

    @property
    def top_names(self) -> set[str]:
        """Names that no local variable may hide."""
        made = {name for name, _ in self._structs.values()} | {n for n, _ in self._enums.values()}
        own = {c.name for c in self.callees.values()}
        return own | made | kernel_names(KERNELS) | MODULE_NAMES

    @property
    def on_device(self) -> bool:
        return self.options.device != "cpu"

    @property
    def device_scalars(self) -> bool:
        """Whether a division by a number has to be by a tensor to be exact."""
        return self.on_device and self.options.numerics != "fast"

    def next_region(self) -> int:
        self._regions += 1
        return self._regions

    def callee(self, key: str) -> Callee:
        return self.callees[key]

    def helper(self, name: str) -> str:
        """The name of a kernel, whose text the module will hold."""
        self._helpers[name] = None
        return name

    def prepared(self) -> str:
        self._uses_prepared = True
        return self.helper("prepared")

    def with_gradient(self, callee: Callee, arguments: Sequence[str]) -> str:
        inner = ", ".join([callee.name, str(callee.gradient), *arguments])
        return f"{self.helper('with_gradient')}({inner})"

    def refuse(self, op: Op, what: str) -> CompileError:
        """The error for an operation that PyTorch has no exact way to do."""
        message = f"the PyTorch backend cannot do {what} exactly"
        return CompileError((Diagnostic("E5301", message, op.span,
                                        help="use a signed or smaller dtype here"),))  # fmt: skip

    # --- types ----------------------------------------------------------------------------------

    def struct(self, type_: StructType) -> str:
        if type_.path not in self._structs:
            name = self.names.fresh(type_.name)
            fields: dict[str, str] = {}
            for inner, _ in type_.fields:
                fields[inner] = field(inner, fields.values())
            self._structs[type_.path] = name, fields
            self.types += [f"class {name}(NamedTuple):"]
            self.types += [f"    {safe}: object" for safe in fields.values()] or ["    pass"]
            self.types += ["", ""]
        return self._structs[type_.path][0]

    def struct_field(self, type_: StructType, name: str) -> str:
        self.struct(type_)
        return self._structs[type_.path][1][name]

    def enum_case(self, type_: EnumType, case: int) -> str:
        if type_ not in self._enums:
            name = self.names.fresh(type_.name)
            cases: list[str] = []
            for each in type_.cases:
                safe = attribute(each)
                while safe in cases or safe in _ENUM_NAMES or safe.startswith("_"):
                    safe = f"case_{safe}"
                cases.append(safe)
            self._enums[type_] = name, cases
            self.types += [f"class {name}(IntEnum):"]
            self.types += [f"    {safe} = {k}" for k, safe in enumerate(cases)] + ["", ""]
        name, cases = self._enums[type_]
        return f"{name}.{cases[case]}"

    # --- the text -------------------------------------------------------------------------------

    def generate(self) -> Generated:
        body: list[str] = []
        for callee in self.callees.values():
            lines = self._function(callee)
            body += ["", "", *lines] if lines else []
        text = "\n".join([*self._header(), *self.types, *self._kernel_lines(), *body]) + "\n"
        calls = {entry: self.callees[key] for entry, key in self.entries.items()}
        structs = {path: name for path, (name, _) in self._structs.items()}
        return Generated(text, calls, frozenset(self.loop_callees), self._uses_prepared, structs)

    def _function(self, callee: Callee) -> list[str]:
        if callee.function.grad is not None and self.options.trainable:
            return self._differentiable(callee)
        lines = write_function(self, callee)
        key = "\n".join(lines).replace(f"def {callee.name}(", "def (", 1)
        if key in self._written:
            callee.name = self._written[key]  # differs from it in sizes that the text doesn't show
            return []
        self._written[key] = callee.name
        return lines

    def _differentiable(self, callee: Callee) -> list[str]:
        """An op with its gradient: both take the same sizes, so that one call names both."""
        name = self.names.fresh(f"{callee.name}_gradient")
        _, needed = write_gradient(self, callee, name)
        lines = write_function(self, callee, needed)
        gradient, _ = write_gradient(self, callee, name)
        callee.gradient = name
        return [*lines, "", "", *gradient]

    def _header(self) -> list[str]:
        entries = ", ".join(sorted(self.entries))
        return [
            "# PyTorch code made by linnet from",
            f"# {comment(self.options.title)}",
            f"# entries: {comment(entries)}; numerics: {self.options.numerics}",
            "",
            "from __future__ import annotations",
            "",
            "import math",
            "from enum import IntEnum",
            "from typing import NamedTuple",
            "",
            "import torch",
            "import torch.nn.functional as F",
            "",
            f"device = torch.device({self.options.device!r})",
            "",
        ]

    def _kernel_lines(self) -> list[str]:
        return kernel_text(KERNELS, self._helpers)


_ENUM_NAMES = frozenset(("name", "value", "mro", *dir(int)))


def _touches(function: Function, known: Mapping[str, Callee]) -> tuple[bool, bool]:
    """`(uses its block, writes state)`, what it calls included."""
    block = writes = False
    stack: list[Region] = [function.body]
    if function.grad is not None:
        stack.append(function.grad.body)
    while stack:
        for op in stack.pop().ops:
            stack.extend(op.regions)
            if op.kind in ("param", "state_read", "state_write", "match_sub", "for_subs"):
                block = True
            writes |= op.kind == "state_write" or bool(op.attrs.get("in_place"))
            if op.kind == "call":
                callee = known[op.attrs["callee"]]
                block |= callee.takes_block
                writes |= callee.writes
    return block, writes
