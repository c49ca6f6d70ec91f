"""hoist: what does not change in a loop is computed before it.

Needs specialised functions with their natives chosen. A function called in a loop is split into
`<name>_once`, which makes what depends only on the loop's invariant arguments and on sizes, and the
rest, which takes that as further parameters; callees first, through nested calls and loops.
Guarantees the same values to the bit: only pure operations move, never out of a branch, and out of
a loop that may run no time only those that cannot fail. State and parameters stay in their block.
What is as cheap to make again (constants, views, `iota`) is made where it is used.
How: `linnet.passes.motion`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from linnet.ir import Function
from linnet.passes.module import Module, Note
from linnet.passes.motion import Invariant, Mover, Split
from linnet.passes.placing import Traits


def hoist(module: Module) -> Module:
    """The module with loop-invariant work before its loops."""
    work = _Hoister(module)
    for name in module.roots:
        work.split(name, None, total_only=False)
    return work.finish()


@dataclass(slots=True)
class _Hoister:
    module: Module
    traits: Traits = field(init=False)
    made: dict[str, Function] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # made name -> the name it came under
    done: dict[tuple[str, Invariant, bool], Split] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        functions = self.module.functions
        self.traits = Traits(functions)

    def split(self, name: str, invariant: Invariant, total_only: bool) -> Split:
        """The function with its loops cleared, split for these invariant parameters."""
        total_only &= invariant is not None
        key = (name, invariant, total_only)
        if key not in self.done:
            function = self.module.functions[name]
            if function.grad is not None:  # its parameters are those of its gradient
                key = (name, None, False)
                invariant = None
            if key not in self.done:
                self.done[key] = Mover(self, function, invariant, total_only).run()
                self.note(name, self.done[key])
        return self.done[key]

    def note(self, name: str, split: Split) -> None:
        if split.once is None:
            return
        made = ", ".join(dict.fromkeys(v.name or str(v.type) for v in split.extras))
        text = f"made before the loop that calls it, not in each turn: {made}"
        self.notes.append(Note("hoist", self.module.origin(name), text))

    def original(self, name: str) -> Function:
        return self.module.functions[name]

    def whole(self, name: str) -> str:
        """The function with only its own loops cleared."""
        return self.split(name, None, False).rest

    def add(self, function: Function, suffix: str = "") -> str:
        """Keeps a new version, or part, of the module's `function`; gives its name."""
        source = function.name
        name = f"{source}{suffix}~{len(self.made)}"
        self.made[name] = made = replace(function, name=name)
        self.sources[name] = source
        self.origins[name] = self.module.origins.get(source, source)
        self.bases[name] = self.module.bases.get(source, source) + suffix
        self.traits.learn(made)
        return name

    def finish(self) -> Module:
        entries = {
            entry: self.done[(function, None, False)].rest
            for entry, function in self.module.entries.items()
        }
        prepared = tuple(n for n in self.made if self.sources[n] in self.module.prepared)
        made = Module(self.made, entries, self.origins, prepared, self.bases)
        return made.noting((*self.module.notes, *self.notes))
