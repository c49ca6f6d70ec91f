"""rename: functions get the names that generated source shows.

Guarantees unique names, each its base (`Block_method`, `fn`, `Block_method_once`) where that is
free, else with a number, given out from the entries down in program order: names never hold a size
of the model.
"""

from __future__ import annotations

from dataclasses import replace

from linnet.ir.walk import callees
from linnet.passes.calls import retarget
from linnet.passes.module import Module


def rename(module: Module) -> Module:
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in _from_entries_down(module):
        base = module.bases.get(name, name)
        final, count = base, 1
        while final in taken:
            count += 1
            final = f"{base}_{count}"
        taken.add(final)
        names[name] = final
    functions = {
        names[n]: replace(retarget(f, names.__getitem__), name=names[n])
        for n, f in module.functions.items()
        if n in names
    }
    return Module(
        functions,
        {entry: names[n] for entry, n in module.entries.items()},
        {names[n]: o for n, o in module.origins.items() if n in names},
        tuple(names[n] for n in module.prepared if n in names),
        {names[n]: b for n, b in module.bases.items() if n in names},
        notes=module.notes,
    )


def _from_entries_down(module: Module) -> list[str]:
    found: dict[str, None] = {}
    stack = list(reversed(module.roots))
    while stack:
        name = stack.pop()
        if name not in found:
            found[name] = None
            stack.extend(reversed(callees(module.functions[name])))
    return list(found)
