"""On which blocks of the bound model each function runs, and where each loop over blocks stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linnet.ir import Function, Op, Ref, SubVar
from linnet.ir.walk import callees_first, walk
from linnet.passes.bound import Instance

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """`functions` gives the paths of the blocks that a function is a method of, `loops` those that
    a loop's variable goes through, each once and in order."""

    functions: Mapping[str, tuple[Steps, ...]] = field(default_factory=dict)
    loops: Mapping[SubVar, tuple[Steps, ...]] = field(default_factory=dict)

    def of(self, function: str, ref: Ref) -> tuple[Steps, ...]:
        """The paths that `ref` stands for in `function`."""
        starts = self.functions.get(function, ()) if ref.root is None else self.loops[ref.root]
        return tuple((*start, *ref.steps) for start in starts)


def places(program: Mapping[str, Function], roots: Sequence[str], root: Instance | None) -> Places:
    """Where functions run, from the `roots` among them on."""
    if root is None:
        return Places()
    functions: dict[str, dict[Steps, None]] = {name: {(): None} for name in roots}
    loops: dict[SubVar, tuple[Steps, ...]] = {}
    for name in reversed(callees_first(program, roots)):
        known = Places({name: tuple(functions.get(name, ()))}, loops)
        for op in walk(program[name].body):
            if op.kind == "for_subs":
                arrays = known.of(name, op.attrs["array"])
                loops[op.attrs["var"]] = tuple(_elements(op, arrays, root))
            elif op.kind == "call":
                receiver: Ref | None = op.attrs.get("receiver")
                if receiver is not None:
                    reached = functions.setdefault(op.attrs["callee"], {})
                    reached.update(dict.fromkeys(known.of(name, receiver)))
    return Places({name: tuple(found) for name, found in functions.items()}, loops)


def _elements(op: Op, arrays: Iterable[Steps], root: Instance) -> Iterable[Steps]:
    """The paths of the elements that a loop goes through."""
    for array in arrays:
        start, stop = op.attrs.get("start"), op.attrs.get("stop")
        found = root.child(array)
        last = len(found) if isinstance(found, tuple) else 0
        for k in range(start or 0, last if stop is None else stop):
            yield (*array, k)


def path_text(steps: Steps) -> str:
    return ".".join(map(str, steps))
