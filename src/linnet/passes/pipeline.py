"""From a bound program to the functions that a backend prints: the passes in order.

Each pass takes a `Module` and gives one. `optimize=False` stops after specialising, deciding
natives and dropping what is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linnet.ir import Function
from linnet.passes.bound import Binding
from linnet.passes.drop import drop
from linnet.passes.hoist import hoist
from linnet.passes.inline import inline, unwrap
from linnet.passes.join import join
from linnet.passes.module import Module, Note
from linnet.passes.natives import NativeSelector, natives
from linnet.passes.prepare import prepare
from linnet.passes.rename import rename
from linnet.passes.rows import rows
from linnet.passes.share import share
from linnet.passes.simplify import simplify
from linnet.passes.specialise import specialise
from linnet.passes.state import state
from linnet.passes.storage import Joined, Storage
from linnet.passes.trim import trim
from linnet.passes.unbind import unbind
from linnet.types import GenericArg

# Called with a pass's name and what it gave; tests put the verifier here.
Observer = Callable[[str, Module], None]


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a backend prints. `functions` has callees before callers; `entries` names each entry's
    function, `origins` each function's source; `prepared` functions take nothing and depend on no
    input: a call of one carries `attrs["prepared"]`, and a runtime keeps its result. `joined` says
    which parameters a `concat` marked `joined` finds in one storage, `notes` what passes did."""

    binding: Binding
    functions: Mapping[str, Function]
    entries: Mapping[str, str]
    origins: Mapping[str, str]
    prepared: tuple[str, ...] = ()
    joined: tuple[Joined, ...] = ()
    notes: tuple[Note, ...] = ()


def lower(
    binding: Binding,
    entries: Sequence[str],
    *,
    present: frozenset[str] | None = None,
    select: NativeSelector | None = None,
    optimize: bool = True,
    trainable: bool = False,
    sizes: Mapping[str, GenericArg] | None = None,
    storage: Storage | None = None,
    observe: Observer | None = None,
) -> Lowered:
    """Lowers `entries` of a bound model.

    `present` names the parameters that are bound (None: all); `sizes` gives generics of the
    entries themselves a value (without one a Dim stays symbolic); with `trainable` nothing that
    depends on parameters is prepared ahead; `storage` says which parameters already lie together.
    """
    module = specialise(binding, entries, present, sizes, gradients=trainable)

    def step(name: str, run: Callable[[Module], Module]) -> None:
        nonlocal module
        module = run(module)
        if observe is not None:
            observe(name, module)

    joined: tuple[Joined, ...] = ()

    def joining(before: Module) -> Module:
        nonlocal joined
        after, joined = join(before, binding.root, storage or Storage())
        return after

    step("specialise", lambda m: m)
    step("simplify", simplify)
    if optimize:
        step("unbind", unbind)
        step("inline", inline)
        step("simplify", simplify)
        step("share", share)
        step("rows", rows)
        step("drop", drop)
    step("natives", lambda m: natives(m, select))
    step("drop", drop)
    if optimize:
        step("join", joining)
        step("drop", drop)
        step("prepare", lambda m: prepare(m, trainable=trainable))
        step("hoist", hoist)
        step("unwrap", unwrap)
        step("share", share)
        step("drop", drop)
        step("trim", trim)
        step("drop", drop)
    step("state", state)
    step("rename", rename)
    return Lowered(
        binding, module.functions, module.entries, module.origins, module.prepared, joined,
        module.notes,
    )  # fmt: skip
