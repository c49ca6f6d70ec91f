"""Reading functions: every operation, what uses what, what a region takes from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from linnet.diagnostics import InternalError
from linnet.ir.core import Function, Op, Region, Value
from linnet.ir.table import OPS


def walk(where: Function | Region | Op) -> Iterator[Op]:
    """Every operation in program order, one with regions before what lies in them.

    Of a function the body alone; its gradient is `function.grad.body`.
    """
    region = where.body if isinstance(where, Function) else where
    if isinstance(region, Op):
        yield region
        for inner in region.regions:
            yield from walk(inner)
        return
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


def walk_regions(region: Region) -> Iterator[Region]:
    """The region and every region inside it, outer before inner."""
    yield region
    for op in region.ops:
        for inner in op.regions:
            yield from walk_regions(inner)


def bodies(function: Function) -> tuple[Region, ...]:
    """The body, and the gradient's when there is one."""
    return (function.body,) if function.grad is None else (function.body, function.grad.body)


def definitions(where: Function | Region) -> dict[Value, Op]:
    """The operation that each result comes from; parameters have none."""
    return {value: op for op in walk(where) for value in op.results}


def use_counts(where: Function | Region) -> dict[Value, int]:
    """How often each value is an operand or a region's result, inside regions too."""
    counts: dict[Value, int] = {}
    outer = where.body if isinstance(where, Function) else where
    for region in walk_regions(outer):
        for value in region.results:
            counts[value] = counts.get(value, 0) + 1
        for op in region.ops:
            for value in op.operands:
                counts[value] = counts.get(value, 0) + 1
    return counts


def users(where: Function | Region) -> dict[Value, tuple[Op, ...]]:
    """The operations that have each value as an operand, in program order, each once.

    A region's results are not operands: `use_counts` and `free_values` see those.
    """
    found: dict[Value, dict[Op, None]] = {}
    for op in walk(where):
        for value in op.operands:
            found.setdefault(value, {})[op] = None
    return {value: tuple(ops) for value, ops in found.items()}


def free_values(region: Region) -> tuple[Value, ...]:
    """The values of regions around it that it uses, in the order of first use."""
    free: dict[Value, None] = {}
    _collect_free(region, set(), free)
    return tuple(free)


def free_of_op(op: Op) -> tuple[Value, ...]:
    """What an operation needs from before it: operands, and what its regions take from outside."""
    free: dict[Value, None] = dict.fromkeys(op.operands)
    for region in op.regions:
        free.update(dict.fromkeys(free_values(region)))
    return tuple(free)


def _collect_free(region: Region, bound: set[Value], free: dict[Value, None]) -> None:
    # Values are defined once, so `bound` may keep what sibling regions defined.
    bound.update(region.params)
    for op in region.ops:
        free.update((value, None) for value in op.operands if value not in bound)
        for inner in op.regions:
            _collect_free(inner, bound, free)
        bound.update(op.results)
    free.update((value, None) for value in region.results if value not in bound)


def has_effects(op: Op, call_has_effects: Callable[[Op], bool] | None = None) -> bool:
    """Whether an operation reads or writes state, itself or inside its regions.

    A call has, unless `call_has_effects` knows better.
    """
    if op.kind == "call" and call_has_effects is not None:
        return call_has_effects(op)
    if OPS[op.kind].effects:
        return True
    return any(has_effects(inner, call_has_effects) for r in op.regions for inner in r.ops)


def callees(function: Function) -> tuple[str, ...]:
    """The names of the functions it calls, its gradient too, each once in order."""
    found = {
        str(op.attrs["callee"]): None
        for body in bodies(function)
        for op in walk(body)
        if op.kind == "call"
    }
    return tuple(found)


def callees_first(
    functions: Mapping[str, Function], roots: Iterable[str] | None = None
) -> tuple[str, ...]:
    """The names reachable from `roots` (None: all), each after those it calls.

    Calls of functions that are not among `functions` are passed over; recursion is an error.
    """
    order: dict[str, None] = {}
    for root in functions if roots is None else roots:
        _visit(root, functions, order)
    return tuple(order)


def _visit(root: str, functions: Mapping[str, Function], order: dict[str, None]) -> None:
    # An explicit stack: a chain of calls may be deeper than Python's own.
    stack = [(root, iter(callees(functions[root])))]
    open_names = {root}
    while stack:
        name, pending = stack[-1]
        for callee in pending:
            if callee in open_names:
                raise InternalError("ir", f"`{callee}` calls itself", functions[name].span)
            if callee in functions and callee not in order:
                stack.append((callee, iter(callees(functions[callee]))))
                open_names.add(callee)
                break
        else:
            stack.pop()
            open_names.discard(name)
            order[name] = None
