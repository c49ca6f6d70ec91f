"""A whole generated module: header, types, kernels, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linnet.backends.expr import Expr
from linnet.backends.hosts import Hosts, analyze
from linnet.backends.names import Names, attribute, comment
from linnet.backends.sources import kernel_names, kernel_text
from linnet.ir import Function, Op, Ref, Region, SubVar
from linnet.ir.walk import walk
from linnet.jax.emit.blocks import BlockTypes
from linnet.jax.emit.function import write_function
from linnet.jax.emit.names import MODULE_NAMES, field
from linnet.jax.emit.writer import Writer
from linnet.passes import Binding
from linnet.types import EnumType, OptionalType, StructType, TensorType, TupleType, Type

KernelWriter = Callable[[Writer, Op], Expr]

KERNELS = "linnet.jax.kernels"
# A static loop up to so many operations in all is unrolled; longer ones are loops of the device.
UNROLL_LIMIT = 48


@dataclass(frozen=True, slots=True)
class Options:
    """What the text depends on besides the program.

    `jitted` names the functions (by key) that are compiled by themselves, `compiler` XLA's options
    for them; with `donate` they take over the storage of the state they change. `stacked` names
    the arrays of blocks, by declaring block and name, that are one block whose arrays have a first
    axis more: loops over those are `lax.scan`.
    """

    numerics: str = "fast"
    trainable: bool = False
    title: str = ""
    jitted: frozenset[str] = frozenset()
    compiler: Mapping[str, object] | None = None
    donate: bool = False
    stacked: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class Callee:
    """A function as its callers see it; `size_args` number the generics passed as integers."""

    key: str
    name: str
    origin: str
    function: Function
    takes_block: bool
    takes_state: bool
    writes: bool
    host_params: Sequence[bool]
    host_results: Sequence[bool]
    hint: str
    size_args: tuple[int, ...] = ()
    size_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's text, and where in it things are: each entry's function, the name of each
    function, the class of each struct."""

    text: str
    calls: Mapping[str, Callee]
    names: Mapping[str, str]
    structs: Mapping[str, str]


class ModuleWriter:
    """Everything the functions of one module share."""

    def __init__(
        self,
        binding: Binding,
        functions: Mapping[str, Function],
        entries: Mapping[str, str],
        origins: Mapping[str, str],
        kernels: Mapping[str, KernelWriter],
        options: Options,
    ) -> None:
        self.functions, self.entries, self.origins = functions, entries, origins
        self.kernels, self.options = kernels, options
        self.program = binding.program
        device = {*entries.values(), *options.jitted}
        device.update(n for n, f in functions.items() if f.grad is not None)
        self.hosts: Hosts = analyze(functions, device, self._rolled_loops(), enums=False)
        self.names = Names((*kernel_names(KERNELS), *MODULE_NAMES))
        self.blocks = BlockTypes(binding, self.names)
        self.callees: dict[str, Callee] = {}
        self.types: list[str] = []
        self._helpers: dict[str, None] = {}
        self._structs: dict[str, tuple[str, dict[str, str]]] = {}  # by the declaration's path
        self._enums: dict[EnumType, tuple[str, list[str]]] = {}
        self._regions = 0
        self._written: dict[str, str] = {}
        for key, function in functions.items():
            self._declare(key, function)
        for function in functions.values():
            self._declare_types(function)

    @property
    def exact(self) -> bool:
        return self.options.numerics == "exact"

    def _rolled_loops(self) -> frozenset[Op]:
        """The loops over blocks or between constants that run as loops of the device."""
        found = set()
        for function in self.functions.values():
            places: dict[SubVar, str] = {}
            for op in walk(function.body):
                if op.kind == "static_for" and not _is_short(op):
                    found.add(op)
                elif op.kind == "for_subs":
                    owner, name, inner = self.array(function, op.attrs["array"], places)
                    places[op.attrs["var"]] = inner
                    if (owner, name) in self.options.stacked:
                        found.add(op)
        return frozenset(found)

    def array(
        self, function: Function, ref: Ref, places: Mapping[SubVar, str]
    ) -> tuple[str, str, str]:
        """The block that declares the array `ref`, the array's name, and its elements' block."""
        at = str(function.block) if ref.root is None else places[ref.root]
        *way, last = ref.steps
        for step in way:
            if isinstance(step, str):
                at = self.program.blocks[at].subs[step].block
        return at, str(last), self.program.blocks[at].subs[str(last)].block

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
        block, state, writes = _touches(function, self.callees)
        result = function.body.results
        short = self.origins.get(key, function.name).rpartition("::")[2]
        self.callees[key] = Callee(
            key, self.names.fresh(key), self.origins.get(key, function.name), function, block,
            state, writes, self.hosts.params[key], self.hosts.results[key],
            (result[0].name if result else "") or short.rpartition(".")[2],
        )  # fmt: skip

    @property
    def top_names(self) -> set[str]:
        """Names that no local variable may hide."""
        made = {name for name, _ in self._structs.values()} | {n for n, _ in self._enums.values()}
        made |= self.blocks.names
        return (
            {c.name for c in self.callees.values()}
            | made
            | set(kernel_names(KERNELS))
            | (MODULE_NAMES - {"block", "state"})
        )

    def next_region(self) -> int:
        self._regions += 1
        return self._regions

    def callee(self, key: str) -> Callee:
        return self.callees[key]

    def helper(self, name: str) -> str:
        """The name of a kernel, whose text the module will hold."""
        self._helpers[name] = None
        return name

    def decorators(self, callee: Callee) -> list[str]:
        """`@jit` for a function that is compiled by itself."""
        if callee.key not in self.options.jitted:
            return []
        how = []
        if callee.size_names:
            names = ", ".join(repr(name) for name in callee.size_names)
            how.append(f"static_argnames=({names},)")
        if callee.writes and self.options.donate:
            how.append('donate_argnames=("state",)')
        jit = "jit" if self.options.compiler else "jax.jit"
        return [f"@partial({jit}, {', '.join(how)})" if how else f"@{jit}"]

    # --- types ------------------------------------------------------------------------------------

    def struct(self, type_: StructType) -> str:
        if type_.path not in self._structs:
            name = self.names.fresh(type_.name)
            fields = {inner: field(inner) for inner, _ in type_.fields}
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

    # --- the text ---------------------------------------------------------------------------------

    def generate(self) -> Generated:
        body: list[str] = []
        for callee in self.callees.values():
            lines = self._function(callee)
            body += ["", "", *lines] if lines else []
        lines = [
            *self._header(), *self.types, *self.blocks.lines(),
            *kernel_text(KERNELS, self._helpers)[2:], *body,
        ]  # fmt: skip
        calls = {entry: self.callees[key] for entry, key in self.entries.items()}
        structs = {path: name for path, (name, _) in self._structs.items()}
        names = {key: callee.name for key, callee in self.callees.items()}
        return Generated("\n".join(lines) + "\n", calls, names, structs)

    def _function(self, callee: Callee) -> list[str]:
        lines = write_function(self, callee)
        key = "\n".join(lines[1:]).replace(f"def {callee.name}(", "def (", 1)
        if key in self._written and callee.function.grad is None:
            callee.name = self._written[key]  # differs from it in sizes that the text doesn't show
            return []
        self._written[key] = callee.name
        if callee.function.grad is None or not self.options.trainable:
            return lines
        from linnet.jax.emit.gradients import write_gradient

        return write_gradient(self, callee, lines)

    def _notes(self) -> list[str]:
        if not self.options.stacked:
            return []
        arrays = sorted(
            f"{block.rpartition('::')[2]}.{name}" for block, name in self.options.stacked
        )
        return [comment(f"# stacked along a first axis: {', '.join(arrays)}")]

    def _header(self) -> list[str]:
        entries = ", ".join(sorted(self.entries))
        lines = [
            "# JAX code made by linnet from",
            f"# {comment(self.options.title)}",
            f"# entries: {comment(entries)}; numerics: {self.options.numerics}",
            *self._notes(),
            "",
            "from __future__ import annotations",
            "",
            "import math",
            "from collections.abc import Callable",
            "from enum import IntEnum",
            "from functools import partial",
            "from typing import Any, NamedTuple",
            "",
            "import jax",
            "import jax.numpy as jnp",
            "from jax import lax",
            "",
        ]
        if self.options.compiler and self.options.jitted:
            options = ", ".join(f"{k!r}: {v!r}" for k, v in self.options.compiler.items())
            lines += [f"jit = partial(jax.jit, compiler_options={{{options}}})", ""]
        return [*lines, ""]


_ENUM_NAMES = frozenset(("name", "value", "mro", *dir(int)))


def _is_short(op: Op) -> bool:
    start, stop = op.attrs["start"].constant, op.attrs["stop"].constant
    if start is None or stop is None:
        return False
    inner = list(walk(op.regions[0]))
    if any(o.kind == "for_subs" for o in inner):
        return False
    weight = sum(8 if o.kind == "call" else 1 for o in inner)
    return bool(stop - start <= 1 or (stop - start) * weight <= UNROLL_LIMIT)


def _touches(function: Function, known: Mapping[str, Callee]) -> tuple[bool, bool, bool]:
    """`(uses its block's parameters, uses its state, writes it)`, what it calls included."""
    block = state = writes = False
    stack: list[Region] = [function.body]
    if function.grad is not None:
        stack.append(function.grad.body)
    while stack:
        for op in stack.pop().ops:
            stack.extend(op.regions)
            block |= op.kind in ("param", "match_sub", "for_subs")
            state |= op.kind in ("state_read", "state_write")
            writes |= op.kind == "state_write"
            if op.kind == "call":
                callee = known[op.attrs["callee"]]
                block |= callee.takes_block
                state |= callee.takes_state
                writes |= callee.writes
    return block, state, writes


__all__ = ["Callee", "Generated", "ModuleWriter", "Options"]
