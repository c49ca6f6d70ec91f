"""Warnings about what is declared and never used."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.elaborate.entities import BlockEntity, ImportEntity, LocalEntity
from linnet.elaborate.world import World


def lint_imports(world: World, modules: Iterable[str]) -> None:
    for module in modules:
        scope = world.modules[module]
        for name, entity in scope.names.items():
            if isinstance(entity, ImportEntity) and name not in scope.used:
                world.reporter.report(
                    "W1001", f"`{name}` is imported but never used", entity.name.span
                )


def lint_locals(world: World, unused: Iterable[LocalEntity]) -> None:
    for entity in unused:
        text = entity.name.text
        if entity.lint and not text.startswith("_"):
            world.reporter.report(
                "W1002",
                f"`{text}` is never used",
                entity.name.span,
                help=f"name it `_{text}`, or `_`, if that is meant",
            )


def lint_members(world: World, blocks: Iterable[BlockEntity]) -> None:
    used = {member for result in world.results.values() for member in result.used_members}
    for block in blocks:
        for member in block.decl.members:
            if member not in used:
                world.reporter.report(
                    "W1003",
                    f"{member.kind} `{member.name.text}` of `{block.decl.name.text}` is never used",
                    member.name.span,
                )
