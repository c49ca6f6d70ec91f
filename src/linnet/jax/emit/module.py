"""A whole generated JAX module."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linnet.backends.emit import module as base
from linnet.backends.emit.imports import Import
from linnet.backends.expr import Expr
from linnet.backends.hosts import analyze
from linnet.ir import Function, Op, Ref, SubVar
from linnet.ir.walk import walk
from linnet.jax.emit.blocks import BlockTypes
from linnet.jax.emit.function import write_function
from linnet.jax.emit.gradients import write_gradient
from linnet.jax.emit.names import MODULE_NAMES
from linnet.jax.emit.writer import Writer
from linnet.passes import Binding

KernelWriter = Callable[[Writer, Op], Expr]

# A static loop up to so many operations in all is unrolled; longer ones are loops of the device.
UNROLL_LIMIT = 48


@dataclass(frozen=True, slots=True)
class Options:
    """What the text depends on besides the program.

    `jitted` names the functions (by key) that are compiled by themselves, `compiler` XLA's options
    for them; with `donate` they take over the storage of the state they change. Where there are
    options, a runtime compiles those of `prepared`: JAX refuses options inside another program, and
    a call without arrays does not show that it is in one. `stacked` names the arrays of blocks, by
    declaring block and name, that are one block whose arrays have a first axis more: loops over
    those are `lax.scan`. `kept` gives, for functions of a block's parameters alone, the field of
    the block that holds their result. With `bits` states of 16-bit floats are integers with their
    bits.
    """

    numerics: str = "fast"
    trainable: bool = False
    title: str = ""
    jitted: frozenset[str] = frozenset()
    compiler: Mapping[str, object] | None = None
    prepared: frozenset[str] = frozenset()
    donate: bool = False
    stacked: frozenset[tuple[str, str]] = frozenset()
    kept: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bits: bool = False


@dataclass(slots=True)
class Callee(base.Callee):
    """A function as its callers see it; `size_names` are the parameters of its sizes."""

    size_names: tuple[str, ...] = ()

    @property
    def takes_block(self) -> bool:
        return self.touched.params

    @property
    def takes_state(self) -> bool:
        return self.touched.state

    @property
    def writes(self) -> bool:
        return self.touched.writes


@dataclass(frozen=True, slots=True)
class Generated:
    """A module's text, and where in it things are: each entry's function, the name of each
    function, the class of each struct."""

    text: str
    calls: Mapping[str, Callee]
    names: Mapping[str, str]
    structs: Mapping[str, str]


class ModuleWriter(base.ModuleWriter[Callee]):
    """Everything the functions of one module share."""

    framework = "JAX"
    kernels_package = "linnet.jax.kernels"
    module_names = MODULE_NAMES
    imports = (Import("jax"), Import("jax.numpy", alias="jnp"), Import("jax", "lax"))
    callee_type = Callee

    def __init__(
        self,
        binding: Binding,
        functions: Mapping[str, Function],
        entries: Mapping[str, str],
        origins: Mapping[str, str],
        kernels: Mapping[str, KernelWriter],
        options: Options,
    ) -> None:
        self.kernels, self.options = kernels, options
        self.program = binding.program
        device = {*entries.values(), *options.jitted}
        device.update(n for n, f in functions.items() if f.grad is not None)
        hosts = analyze(functions, device, self._rolled_loops(functions), enums=False)
        super().__init__(functions, entries, origins, hosts)
        held: dict[str, list[str]] = {}
        for name, kept in options.kept.items():
            held.setdefault(str(functions[name].block), []).append(kept)
        self.blocks = BlockTypes(binding, self.names, held)
        self.declare()

    @property
    def exact(self) -> bool:
        return self.options.numerics == "exact"

    def _rolled_loops(self, functions: Mapping[str, Function]) -> frozenset[Op]:
        """The loops over blocks or between constants that run as loops of the device."""
        found = set()
        for function in functions.values():
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

    def decorators(self, callee: Callee) -> list[str]:
        """`@jit` for a function that is compiled by itself."""
        if callee.key not in self.options.jitted:
            return []
        if self.options.compiler and callee.key in self.options.prepared:
            return []
        how = []
        if callee.size_names:
            names = ", ".join(repr(name) for name in callee.size_names)
            how.append(f"static_argnames=({names},)")
        if callee.writes and self.options.donate:
            how.append('donate_argnames=("state",)')
        jit = "jit" if self.options.compiler else "jax.jit"
        return [f"@partial({jit}, {', '.join(how)})" if how else f"@{jit}"]

    # --- the text -------------------------------------------------------------------------------

    def generate(self) -> Generated:
        text = self.text(self.options.title, self.options.numerics, self._notes())
        calls = {entry: self.callees[key] for entry, key in self.entries.items()}
        names = {key: callee.name for key, callee in self.callees.items()}
        return Generated(text, calls, names, self.types.structs)

    def _notes(self) -> list[str]:
        arrays = sorted(f"{b.rpartition('::')[2]}.{name}" for b, name in self.options.stacked)
        return [f"stacked along a first axis: {', '.join(arrays)}"] if arrays else []

    def extra_sections(self) -> list[list[str]]:
        if not (self.options.compiler and self.options.jitted):
            return self.blocks.sections
        options = ", ".join(f"{k!r}: {v!r}" for k, v in self.options.compiler.items())
        return [*self.blocks.sections, _JIT.format(options=f"{{{options}}}").splitlines()]

    def function_sections(self, callee: Callee) -> list[list[str]]:
        lines = write_function(self, callee)
        if callee.function.grad is None:
            return [] if self.is_repeated(callee, lines[1:]) else [lines]
        return write_gradient(self, callee, lines) if self.options.trainable else [lines]


# JAX takes options where a program starts, and refuses them inside another.
_JIT = '''\
def jit(function, **how):
    """`function` compiled with these options, or as part of the program that calls it"""
    compiled = jax.jit(function, compiler_options={options}, **how)

    def call(*args):
        leaves = jax.tree.leaves(args)
        inside = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return (function if inside else compiled)(*args)

    return call'''


def _is_short(op: Op) -> bool:
    start, stop = op.attrs["start"].constant, op.attrs["stop"].constant
    if start is None or stop is None:
        return False
    inner = list(walk(op.regions[0]))
    if any(o.kind == "for_subs" for o in inner):
        return False
    weight = sum(8 if o.kind == "call" else 1 for o in inner)
    return bool(stop - start <= 1 or (stop - start) * weight <= UNROLL_LIMIT)
