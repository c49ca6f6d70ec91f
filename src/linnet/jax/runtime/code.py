"""Generating, executing and compiling an entry's module."""

from __future__ import annotations

import inspect
import itertools
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax

from linnet.jax.emit.module import Callee, Generated, ModuleWriter, Options
from linnet.jax.natives.table import KERNELS, selector
from linnet.jax.plan import Plan, plan
from linnet.jax.runtime.tree import Trees, everywhere, stackable
from linnet.passes import Binding, lower
from linnet.types import GenericArg

_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model runs.

    With `whole` each entry is one program; with `scan` programs loop over stacked blocks instead of
    repeating their code. `donate` lets a call take over the storage of the state it is given,
    `trainable` code keeps ops' own gradients, `alone` programs work out for themselves what depends
    on no input, `traced` ones become part of a program of the user's, compiled by his options. With
    `bits` states of 16-bit floats are held as integers, which XLA's code for CPUs writes in place.
    """

    numerics: str
    device: str
    whole: bool = False
    scan: bool = False
    donate: bool = False
    trainable: bool = False
    alone: bool = False
    traced: bool = False
    bits: bool = False


@dataclass(frozen=True, slots=True)
class EntryCode:
    """One entry's generated module, and how it runs."""

    generated: Generated
    callee: Callee
    plan: Plan
    settings: Settings
    stacked: frozenset[tuple[str, str]]


@dataclass(slots=True)
class Loaded:
    """An executed module. `ready` holds what its prepared functions gave."""

    code: EntryCode
    function: Callable[..., Any]
    namespace: dict[str, Any]
    ready: tuple[Any, ...] | None = field(default=None)

    @property
    def makers(self) -> dict[str, list[tuple[str, Callable[..., Any]]]]:
        """What makes the fields that blocks hold besides their parameters, by the blocks' paths."""
        made: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
        for kept in self.code.plan.kept:
            run = self.alone(kept.function)
            for path in kept.paths:
                made.setdefault(path, []).append((kept.field, run))
        return made

    def alone(self, key: str) -> Callable[..., Any]:
        """A function of the module compiled by itself."""
        run: Callable[..., Any] = self.namespace[self.code.generated.names[key]]
        options = compiler_options(self.code.settings)
        if self.code.plan.stepped and options is None:
            return run
        return jax.jit(run, compiler_options=options)  # type: ignore[no-any-return]


def compiler_options(settings: Settings) -> dict[str, Any] | None:
    """XLA's options under which every rounding of a body happens."""
    if settings.numerics != "exact" or settings.traced:
        return None
    options: dict[str, Any] = {
        "xla_allow_excess_precision": False,
        # Its rules change roundings: constants are added up, `a / sqrt(b)` is `a * rsqrt(b)`.
        "xla_disable_hlo_passes": "algsimp",
    }
    if settings.device == "cpu":
        options["xla_backend_optimization_level"] = 0  # else products and sums are contracted
    return options


def generate(
    binding: Binding,
    entry: str,
    settings: Settings,
    present: frozenset[str] | None,
    sizes: Mapping[str, GenericArg] | None = None,
    title: str = "",
) -> EntryCode:
    """The source of one entry."""
    lowered = lower(
        binding,
        [entry],
        present=present,
        select=selector(settings.numerics, settings.device, settings.trainable),
        trainable=settings.trainable,
        sizes=sizes,
    )
    planned = plan(lowered, entry, whole=settings.whole, alone=settings.alone)
    jitted = planned.jitted
    stacked = frozenset[tuple[str, str]]()
    if settings.scan and not planned.stepped:
        everything = frozenset(p.path for p in binding.params)
        stacked = stackable(binding, everything if present is None else present)
        if stacked:
            planned = replace(
                planned, kept=tuple(k for k in planned.kept if everywhere(binding, k))
            )
            jitted = frozenset((*planned.ready, *(k.function for k in planned.kept)))
    options = Options(
        settings.numerics, settings.trainable, title, jitted,
        compiler_options(settings) if planned.stepped else None, planned.prepared,
        settings.donate and planned.stepped, stacked,
        {k.function: k.field for k in planned.kept}, settings.bits,
    )  # fmt: skip
    writer = ModuleWriter(
        binding, planned.functions, {entry: lowered.entries[entry]}, planned.origins, KERNELS,
        options,
    )  # fmt: skip
    generated = writer.generate()
    return EntryCode(generated, generated.calls[entry], planned, settings, stacked)


def execute(code: EntryCode, binding: Binding, name: str) -> Loaded:
    """Runs the module's text; an entry that is one program is compiled as one. Models whose text
    and generics are the same share functions, and so what is compiled of them."""
    namespace = _executed(code.generated.text, name)
    function = namespace[code.callee.name]
    if not code.plan.stepped:
        key = (code.settings, str(binding.block), tuple(sorted(binding.generics.items())))
        known: dict[Any, Any] = namespace.setdefault("__compiled__", {})
        if key not in known:
            known[key] = compiled(code, binding, function)
        function = known[key]
    return Loaded(code, function, namespace)


@lru_cache(maxsize=64)
def _executed(text: str, name: str) -> dict[str, Any]:
    file = f"<linnet jax {name} {next(_serial)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(f"linnet_generated_{name}")
    exec(compile(text, file, "exec"), module.__dict__)
    return module.__dict__


def compiled(code: EntryCode, binding: Binding, function: Callable[..., Any], **how: Any) -> Any:
    """The entry as one program, from trees and to trees whose blocks are not stacked."""
    donate = code.settings.donate and code.callee.writes
    if code.callee.takes_state and code.stacked:
        function = _stacking(code, binding, function)
    return jax.jit(
        function,
        static_argnames=code.callee.size_names,
        donate_argnames=("state",) if donate else (),
        compiler_options=compiler_options(code.settings),
        **how,
    )


def _stacking(
    code: EntryCode, binding: Binding, function: Callable[..., Any]
) -> Callable[..., Any]:
    """The function on states as they lie between calls, one array a path."""
    plain, stacked = Trees(binding), Trees(binding, code.stacked)
    callee = code.callee

    def run(*args: Any) -> Any:
        at = 1 if callee.takes_block else 0
        flat = plain.flat_states(args[at])
        result = function(*args[:at], stacked.states(flat.get), *args[at + 1 :])
        if not callee.writes:
            return result
        result, state = result if callee.function.body.results else (None, result)
        found = plain.like(args[at], stacked.flat_states(state))
        return (result, found) if callee.function.body.results else found

    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    run.__name__ = function.__name__
    return run


def prepare(loaded: Loaded) -> tuple[Any, ...]:
    """What the entry takes after its inputs, worked out once."""
    if loaded.ready is None:
        loaded.ready = tuple(loaded.alone(key)() for key in loaded.code.plan.ready)
    return loaded.ready
