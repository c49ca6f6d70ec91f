"""The checker's table of contents: parsed modules in, a typed program out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from linnet.diagnostics import Diagnostic, Span
from linnet.elaborate.blocks import block_info
from linnet.elaborate.cycles import cycles, short
from linnet.elaborate.declare import declare_module
from linnet.elaborate.entities import (
    AliasEntity,
    BlockEntity,
    ConstEntity,
    Entity,
    FunctionEntity,
    Scope,
    StructEntity,
)
from linnet.elaborate.functions import Checked, check_function
from linnet.elaborate.generics import alias_info, struct_info
from linnet.elaborate.incremental import ModuleResult, recall, remember
from linnet.elaborate.lints import lint_imports, lint_locals, lint_members
from linnet.elaborate.naming import PRELUDE
from linnet.elaborate.reporter import Reporter
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import World
from linnet.ir import Program
from linnet.packages import LoadedModule, ModuleGraph


def check(graph: ModuleGraph) -> Program:
    """Checks every module of `graph` and lowers it; never raises for what a source says.

    The program's root is the first of the graph's roots. Its diagnostics are those of parsing,
    packages and checking, in file order; warnings are left out when there is an error. A module
    that is as it was the last time, like all it imports, is not checked again.
    """
    world = World(Reporter())
    results = [_module(world, module) for module in graph.modules.values()]
    entities = [entity for result in results for entity in result.entities]
    checked = {name: item for result in results for name, item in result.checked.items()}
    _report_containment(world)
    recursive = _report_recursion(world, checked)
    broken = _broken(checked, recursive)
    functions = {
        name: replace(item.function, broken=True) if name in broken else item.function
        for name, item in checked.items()
    }
    if not world.reporter.errors and not graph.diagnostics:
        _lint(world, graph, entities, checked)
    blocks = {entity.name: info.block for entity, info in world.blocks.items()}
    diagnostics = _ordered((*graph.diagnostics, *world.reporter.diagnostics), graph)
    root = graph.roots[0] if graph.roots else ""
    return Program(root, functions, blocks, diagnostics)


def _module(world: World, module: LoadedModule) -> ModuleResult:
    """One module's result, checked now or remembered; imported modules come before."""
    known = recall(world, module)
    if known is not None:
        return known
    before = world.mark()
    declare_module(world, module, PRELUDE)
    entities = tuple(_items(world.modules[module.id]))
    _check_heads(world, entities)
    checked = {
        entity.name: check_function(world, entity)
        for entity in entities
        if isinstance(entity, FunctionEntity)
    }
    return remember(world, module, before, entities, checked)


def _items(scope: Scope) -> Iterator[Entity]:
    """A module's own items, those inside blocks included."""
    for entity in scope.names.values():
        if isinstance(entity, BlockEntity):
            yield entity
            yield from _items(entity.inner)
        elif isinstance(entity, FunctionEntity | ConstEntity | AliasEntity | StructEntity):
            yield entity


def _check_heads(world: World, entities: Iterable[Entity]) -> None:
    """Checks declarations that have no body, used or not."""
    for entity in entities:
        match entity:
            case BlockEntity():
                block_info(world, entity)
            case ConstEntity():
                Resolver(world, entity.module, entity.scope, []).const(entity)
            case StructEntity():
                struct_info(Resolver(world, entity.module, entity.scope, []), entity)
            case AliasEntity():
                alias_info(Resolver(world, entity.module, entity.scope, []), entity)
            case _:
                pass


def _report_recursion(world: World, checked: Mapping[str, Checked]) -> set[str]:
    """Reports functions that reach themselves (E2119), once a cycle; gives their names."""
    calls = {name: item.callees for name, item in checked.items()}
    recursive: set[str] = set()
    for cycle, span in cycles(calls):
        recursive.update(cycle)
        alone = f"`{short(cycle[0])}` calls itself"
        message = alone if len(cycle) == 1 else "these functions call each other"
        _cycle_error(world, message, cycle, span, "recursion is not part of the language")
    return recursive


def _report_containment(world: World) -> None:
    """Reports blocks that contain themselves (E2119)."""
    contains: dict[str, dict[str, Span]] = {}
    for info in world.blocks.values():
        children = contains.setdefault(info.block.name, {})
        for sub in info.block.subs.values():
            if sub.span is not None:
                children.setdefault(sub.block, sub.span)
    for cycle, span in cycles(contains):
        message = f"block `{short(cycle[0])}` contains itself"
        _cycle_error(world, message, cycle, span, "a block must end in ones without children")


def _cycle_error(world: World, message: str, cycle: list[str], span: Span, why: str) -> None:
    names = [short(name) for name in (*cycle, cycle[0])]
    shown = names if len(names) <= 6 else [*names[:3], "...", *names[-2:]]
    world.reporter.report("E2119", message, span, notes=[" -> ".join(shown), why])


def _broken(checked: Mapping[str, Checked], recursive: set[str]) -> set[str]:
    """Functions that hold an error or call, at any depth, one that does."""
    callers: dict[str, list[str]] = {}
    for name, item in checked.items():
        for callee in item.callees:
            callers.setdefault(callee, []).append(name)
    broken: set[str] = set()
    spreading = [name for name, item in checked.items() if item.function.broken]
    spreading.extend(recursive)
    while spreading:
        name = spreading.pop()
        if name not in broken:
            broken.add(name)
            spreading.extend(callers.get(name, ()))
    return broken


def _lint(
    world: World, graph: ModuleGraph, entities: list[Entity], checked: Mapping[str, Checked]
) -> None:
    """Lints the modules that were asked for, not what they import."""
    roots = set(graph.roots)
    lint_imports(world, graph.roots)
    for entity in entities:
        if isinstance(entity, FunctionEntity) and entity.module in roots:
            lint_locals(world, checked[entity.name].unused)
    blocks = [e for e in entities if isinstance(e, BlockEntity) and e.module in roots]
    lint_members(world, blocks)


def _ordered(diagnostics: tuple[Diagnostic, ...], graph: ModuleGraph) -> tuple[Diagnostic, ...]:
    """By file, imported files first, then by place."""
    files = {module.file: index for index, module in enumerate(graph.modules.values())}

    def key(diagnostic: Diagnostic) -> tuple[int, int]:
        if diagnostic.span is None:
            return -1, 0
        return files.get(diagnostic.span.file, -1), diagnostic.span.start

    return tuple(sorted(diagnostics, key=key))
