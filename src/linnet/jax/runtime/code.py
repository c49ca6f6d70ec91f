"""Generating, executing and compiling an entry's module."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from linnet.jax.emit.module import Callee, Generated, ModuleWriter, Options
from linnet.jax.natives.table import KERNELS, selector
from linnet.jax.plan import Plan, plan
from linnet.passes import Binding, lower
from linnet.types import GenericArg

_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model runs. With `whole` each entry is one program; `donate` lets a call take over the
    storage of the state it is given; `trainable` code keeps ops' own gradients."""

    numerics: str
    device: str
    whole: bool = False
    donate: bool = False
    trainable: bool = False


@dataclass(frozen=True, slots=True)
class EntryCode:
    """One entry's generated module, and how it runs."""

    generated: Generated
    callee: Callee
    plan: Plan
    settings: Settings


@dataclass(slots=True)
class Loaded:
    """An executed module. `ready` holds what its prepared functions gave."""

    code: EntryCode
    function: Callable[..., Any]
    namespace: dict[str, Any]
    ready: tuple[Any, ...] | None = field(default=None)


def compiler_options(settings: Settings) -> dict[str, Any] | None:
    """XLA's options under which every rounding of a body happens."""
    if settings.numerics != "exact":
        return None
    options: dict[str, Any] = {"xla_allow_excess_precision": False}
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
    planned = plan(lowered, entry, whole=settings.whole)
    options = Options(
        settings.numerics, settings.trainable, title, planned.jitted,
        compiler_options(settings) if planned.stepped else None,
        settings.donate and planned.stepped,
    )  # fmt: skip
    writer = ModuleWriter(
        binding, planned.functions, {entry: lowered.entries[entry]}, planned.origins, KERNELS,
        options,
    )  # fmt: skip
    generated = writer.generate()
    return EntryCode(generated, generated.calls[entry], planned, settings)


def execute(code: EntryCode, name: str) -> Loaded:
    """Runs the module's text; an entry that is one program is compiled as one."""
    file = f"<linnet {name} {next(_serial)}>"
    text = code.generated.text
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(f"linnet_generated_{name}")
    namespace = module.__dict__
    exec(compile(text, file, "exec"), namespace)
    function = namespace[code.callee.name]
    return Loaded(code, function if code.plan.stepped else _whole(code, function), namespace)


def _whole(code: EntryCode, function: Callable[..., Any]) -> Callable[..., Any]:
    donate = code.settings.donate and code.callee.writes
    return jax.jit(
        function,
        static_argnames=code.callee.size_names,
        donate_argnames=("state",) if donate else (),
        compiler_options=compiler_options(code.settings),
    )


def prepare(loaded: Loaded) -> tuple[Any, ...]:
    """What the entry takes after its inputs, worked out once."""
    if loaded.ready is None:
        options = compiler_options(loaded.code.settings)
        made = []
        for key in loaded.code.plan.ready:
            run = loaded.namespace[loaded.code.generated.names[key]]
            if not loaded.code.plan.stepped:
                run = jax.jit(run, compiler_options=options)
            made.append(run())
        loaded.ready = tuple(made)
    return loaded.ready

