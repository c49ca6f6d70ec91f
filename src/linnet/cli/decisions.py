"""What a backend decides about each op call of a bound program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from linnet.backends.present import present_paths
from linnet.cli.target import Target
from linnet.ir import Op
from linnet.ir.walk import walk
from linnet.passes import NativeChoice, NativeQuery, bind, lower
from linnet.passes.module import Module, Note
from linnet.weights import manifest_of

# Where each backend keeps its table of natives: a module with `decide` and `selector`.
TABLES = {
    "torch": "linnet.torch.natives.table",
    "jax": "linnet.jax.natives.table",
    "onnx": "linnet.onnx.natives.table",
    "native": "linnet.native.natives.table",
}
# What each pass's notes count, in the order in which the passes run.
COUNTED = {
    "rows": "calls get fewer rows",
    "natives": "reads end where a mask does",
    "join": "products fewer in a run of each entry",
    "prepare": "values made once for a model",
    "hoist": "functions whose work is partly done before the loop that calls them",
}


@dataclass(frozen=True, slots=True)
class OpCall:
    """One call of an op: its place, operand types, and what was looked at in order.

    The last decision is the chosen one when its `reason` is None; otherwise the body runs.
    """

    caller: str
    op: str
    place: str
    operands: tuple[str, ...]
    decisions: tuple[Any, ...]  # `native` with `kernel` and `note`, and `reason`


def op_calls(
    target: Target, numerics: str, device: str, backend: str = "torch"
) -> tuple[list[OpCall], tuple[Note, ...]]:
    """Every op call that is left where the backend chooses, in program order, callees first, and
    what the passes did."""
    table = import_module(TABLES[backend.partition("_")[0]])
    if backend == "onnx_model":  # which has ONNX Runtime's own operators, too
        device = table.LOADED
    select = table.selector(numerics, device, False)
    asked: dict[Op, tuple[NativeQuery, tuple[Any, ...]]] = {}
    stages: list[tuple[str, Module]] = []

    def spy(query: NativeQuery) -> NativeChoice | None:
        asked[query.call] = query, table.decide(query, numerics, device)
        return None if select is None else select(query)

    def observe(name: str, module: Module) -> None:
        stages.append((name, module))

    binding = bind(target.program, target.block, target.generics)
    there = present_paths(manifest_of(binding), target.present)
    made = lower(
        binding, target.entries, present=there, sizes=target.sizes, select=spy, observe=observe
    )
    at = [name for name, _ in stages].index("natives")
    asking = stages[at - 1][1]
    # Bodies of ops that a native answers are asked about too; the next pass drops them.
    alive = stages[at + 1][1].functions
    calls = [
        OpCall(
            asking.origins.get(name, name),
            query.origin,
            str(op.span) if op.span is not None else "",
            tuple(str(value.type) for value in op.operands),
            decisions,
        )
        for name, function in asking.functions.items()
        if name in alive
        for op in walk(function.body)
        if op in asked
        for query, decisions in [asked[op]]
    ]
    return calls, made.notes


def describe_notes(notes: Sequence[Note]) -> Iterator[str]:
    """What each pass did: how much, then where."""
    for by, counted in COUNTED.items():
        mine = [note for note in notes if note.by == by]
        if mine:
            yield f"pass {by}: {sum(note.count for note in mine)} {counted}"
        for note in mine:
            yield f"  {note.where}: {note.text}"


def describe(calls: list[OpCall]) -> Iterator[str]:
    """The calls as lines of text, those of one caller together."""
    caller = None
    for call in calls:
        if call.caller != caller:
            caller = call.caller
            yield f"{caller}"
        yield f"  {call.op}({', '.join(call.operands)})  {call.place}".rstrip()
        chosen = False
        for decision in call.decisions:
            native = decision.native
            chosen = chosen or decision.reason is None
            verdict = "chosen" if decision.reason is None else f"no: {decision.reason}"
            yield f"    {native.kernel}: {verdict} ({native.note})"
        if not chosen:
            why = "no kernel applies" if call.decisions else "the backend has no kernel for it"
            yield f"    body: chosen ({why})"
