"""Remembering checked modules, so that an edit to one file costs that file and its importers.

A module's result holds for its parsed tree, which the parse cache keeps as long as the bytes stay
the same, and for the results of the modules it imports.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any

from linnet.diagnostics import Diagnostic
from linnet.elaborate.entities import Entity
from linnet.elaborate.functions import Checked
from linnet.elaborate.world import Mark, World
from linnet.packages import LoadedModule
from linnet.syntax import tree

MAX_RESULTS = 512


@dataclass(frozen=True, slots=True, eq=False)
class ModuleResult:
    """What checking one module found: its items, functions, report, and table entries."""

    entities: tuple[Entity, ...]
    checked: Mapping[str, Checked]
    diagnostics: tuple[Diagnostic, ...]
    errors: int
    entries: tuple[Mapping[Any, Any], ...]
    used_members: frozenset[tree.Member]


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A result with what it holds for; keeping the objects keeps their identities theirs."""

    tree: tree.Module
    imports: tuple[tuple[int, ModuleResult | None], ...]
    result: ModuleResult


_entries: OrderedDict[str, _Entry] = OrderedDict()
_lock = Lock()


def recall(world: World, module: LoadedModule) -> ModuleResult | None:
    """The remembered result of a module that is as it was, put into `world`; else None."""
    with _lock:
        entry = _entries.get(module.id)
        if entry is None or entry.tree is not module.tree:
            return None
        if entry.imports != _imports(world, module):
            return None
        _entries.move_to_end(module.id)
    result = entry.result
    for table, entries in zip(world.tables(), result.entries, strict=True):
        table.update(entries)
    world.reporter.diagnostics.extend(result.diagnostics)
    world.reporter.errors += result.errors
    world.results[module.id] = result
    return result


def remember(
    world: World,
    module: LoadedModule,
    before: Mark,
    entities: tuple[Entity, ...],
    checked: Mapping[str, Checked],
) -> ModuleResult:
    """Collects what checking `module` added to `world`, for the next time."""
    tables = zip(world.tables(), before.sizes, strict=True)
    result = ModuleResult(
        entities,
        checked,
        tuple(world.reporter.diagnostics[before.diagnostics :]),
        world.reporter.errors - before.errors,
        tuple(dict(islice(table.items(), size, None)) for table, size in tables),
        frozenset(world.used_members),
    )
    world.results[module.id] = result
    with _lock:
        _entries[module.id] = _Entry(module.tree, _imports(world, module), result)
        _entries.move_to_end(module.id)
        while len(_entries) > MAX_RESULTS:
            _entries.popitem(last=False)
    return result


def _imports(world: World, module: LoadedModule) -> tuple[tuple[int, ModuleResult | None], ...]:
    """The results that a module's check read, by `use`."""
    found = sorted(module.imports.items())
    return tuple((index, world.results.get(target)) for index, target in found)
