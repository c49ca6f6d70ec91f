"""Generating, executing and compiling an entry's module."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from linnet.passes import Binding, Storage, lower
from linnet.passes.storage import Joined
from linnet.torch.emit.module import Callee, Generated, ModuleWriter, Options
from linnet.torch.natives.table import KERNELS, selector
from linnet.types import GenericArg

_serial = itertools.count()
COMPILE_MODES = (False, True, "inductor", "reduce-overhead")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model runs."""

    numerics: str
    compile: bool | str
    trainable: bool
    device: str

    @property
    def mode(self) -> str:
        """What compiles the code; nothing where it runs as it is."""
        if self.compile is True:
            return "" if self.device == "cpu" else "inductor"
        return self.compile or ""


@dataclass(frozen=True, slots=True)
class EntryCode:
    """One entry's generated module; `sizes` number the entry's generics it takes as integers."""

    generated: Generated
    callee: Callee
    writes: bool
    joined: tuple[Joined, ...] = ()


@dataclass(slots=True)
class Loaded:
    """An executed module."""

    function: Callable[..., Any]
    namespace: dict[str, Any]
    code: EntryCode
    prepared_stamp: Any = field(default=None)


def generate(
    binding: Binding,
    entry: str,
    settings: Settings,
    present: frozenset[str] | None,
    sizes: Mapping[str, GenericArg] | None = None,
    title: str = "",
    storage: Storage | None = None,
) -> EntryCode:
    """The source of one entry."""
    lowered = lower(
        binding,
        [entry],
        present=present,
        select=selector(settings.numerics, settings.device, settings.trainable),
        trainable=settings.trainable,
        sizes=sizes,
        storage=storage,
    )
    options = Options(
        settings.device, settings.numerics, settings.trainable, title, bool(settings.mode)
    )
    writer = ModuleWriter(lowered.functions, lowered.entries, lowered.origins, KERNELS, options)
    generated = writer.generate()
    callee = generated.calls[entry]
    return EntryCode(generated, callee, callee.writes, lowered.joined)


def execute(code: EntryCode, settings: Settings, name: str) -> Loaded:
    """Runs the module's text, and puts compiled functions in where the settings ask for it."""
    file = f"<linnet torch {name} {next(_serial)}>"
    text = code.generated.text
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(f"linnet_generated_{name}")
    namespace = module.__dict__
    exec(compile(text, file, "exec"), namespace)
    if settings.mode:
        _compile(code, namespace, settings.mode, settings)
    return Loaded(namespace[code.callee.name], namespace, code)


def _compile(code: EntryCode, namespace: dict[str, Any], mode: str, settings: Settings) -> None:
    """Layers compile once each, not once for every element of their array."""
    names = code.generated.loop_callees or {code.callee.name}
    how: dict[str, Any] = {"dynamic": True}
    if mode == "reduce-overhead":
        how["mode"] = mode
    elif settings.numerics == "exact":
        how["options"] = {"emulate_precision_casts": True}
    for name in names:
        namespace[name] = torch.compile(namespace[name], **how)
