"""Module scopes: items, imports, block members."""

from __future__ import annotations

from linnet.elaborate.entities import (
    AliasEntity,
    BlockEntity,
    BrokenEntity,
    ConstEntity,
    Entity,
    EnumEntity,
    FunctionEntity,
    ImportEntity,
    MemberEntity,
    ModuleEntity,
    Scope,
    StructEntity,
    SubEntity,
)
from linnet.elaborate.naming import declare
from linnet.elaborate.world import World
from linnet.packages import LoadedModule
from linnet.syntax import tree
from linnet.types import EnumType


def declare_module(world: World, module: LoadedModule, prelude: Scope) -> None:
    """Makes a module's scope: imports first, then items. Imported modules come before."""
    scope = Scope(prelude)
    world.modules[module.id] = scope
    for index, use in enumerate(module.tree.uses):
        _import(world, module, scope, use, module.imports.get(index))
    for item in module.tree.items:
        _item(world, module.id, scope, item, f"{module.id}::", None)


def _import(
    world: World, module: LoadedModule, scope: Scope, use: tree.Use, target: str | None
) -> None:
    if use.whole:
        name = use.path.parts[-1]
        entity: Entity = BrokenEntity() if target is None else ModuleEntity(target)
        declare(world.reporter, scope, name, ImportEntity(entity, name), "names")
        return
    for item in use.names:
        name = item.alias or item.name
        found: Entity | None = None
        if target is not None and target in world.modules:
            found = world.member_of_module(target, item.name, module.id)
        entity = ImportEntity(found or BrokenEntity(), name)
        declare(world.reporter, scope, name, entity, "names")


def _item(
    world: World,
    module: str,
    scope: Scope,
    item: tree.Item,
    prefix: str,
    block: BlockEntity | None,
) -> None:
    path = prefix + item.name.text
    entity: Entity
    match item:
        case tree.Const():
            entity = ConstEntity(item, scope, module)
        case tree.Alias():
            entity = AliasEntity(item, scope, module)
        case tree.Struct():
            entity = StructEntity(item, scope, module, path)
        case tree.Enum():
            cases = tuple(dict.fromkeys(case.text for case in item.cases))
            if len(cases) != len(item.cases):
                _repeated_case(world, item)
            entity = EnumEntity(item, module, EnumType(path, item.name.text, cases))
        case tree.Function():
            entity = FunctionEntity(item, scope, module, path, block)
        case tree.BlockDecl():
            entity = _block(world, module, scope, item, path)
    what = "items" if block is None else "members"
    declare(world.reporter, scope, item.name, entity, what)


def _repeated_case(world: World, item: tree.Enum) -> None:
    seen: set[str] = set()
    for case in item.cases:
        if case.text in seen:
            world.reporter.report("E1205", f"there are two cases named `{case.text}`", case.span)
        seen.add(case.text)


def _block(world: World, module: str, scope: Scope, item: tree.BlockDecl, path: str) -> BlockEntity:
    inner = Scope(scope)
    entity = BlockEntity(item, scope, inner, module, path)
    for member in item.members:
        made: Entity = (
            SubEntity(entity, member) if member.kind == "sub" else MemberEntity(entity, member)
        )
        declare(world.reporter, inner, member.name, made, "members")
    for nested in item.items:
        _item(world, module, inner, nested, f"{path}.", entity)
    world.block_names.setdefault(path, entity)
    return entity
