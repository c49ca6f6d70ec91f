"""When natives apply: what is known of operands and of masks, the same for every backend."""

from __future__ import annotations

from collections.abc import Callable

from linnet.backends.natives import Case, Predicate
from linnet.dims.dim import is_at_least
from linnet.ir import Value
from linnet.passes.masks import AtMost, MaskFact
from linnet.types import DType, OptionalType, TensorType


def settled(name: str) -> Predicate:
    """Applies where optional operand `name` is known to be there or not."""

    def when(case: Case) -> str | None:
        value = case.operands.get(name)
        if value is not None and isinstance(value.type, OptionalType):
            return f"whether there is a {name} is known only when it runs"
        return None

    return when


def every(*predicates: Predicate) -> Predicate:
    """Applies where all of them do; else gives the first reason."""

    def when(case: Case) -> str | None:
        return next((r for p in predicates if (r := p(case)) is not None), None)

    return when


def filled(name: str, *axes: int) -> Predicate:
    """Applies but where one of these axes is known to be empty."""

    def when(case: Case) -> str | None:
        return "an axis is empty" if any(case.extent(name, axis) == 0 for axis in axes) else None

    return when


def never_empty(name: str) -> Predicate:
    """Applies where the last axis is known to have elements, which the kernel asks for."""

    def when(case: Case) -> str | None:
        return None if is_at_least(case.type(name).dims[-1], 1) else "the last axis may be empty"

    return when


def not_f64(name: str) -> Predicate:
    """Applies where the body's own f32 is not narrower than the dtype."""

    def when(case: Case) -> str | None:
        return "the body computes in f32" if case.dtype(name) is DType.F64 else None

    return when


def narrow(name: str, *axes: int) -> Predicate:
    """As `not_f64` and `filled` together."""
    return every(not_f64(name), filled(name, *axes))


# --- choices and losses ---------------------------------------------------------------------------


def count_taken(case: Case) -> int | None:
    """How many `top_k` takes, where that is a number."""
    result = case.query.call.results[0].type
    return result.dims[-1].constant if isinstance(result, TensorType) else None


def counted(case: Case) -> str | None:
    """Whether `top_k` takes a known number of values that f32 holds."""
    if case.dtype("x") not in (DType.F32, DType.BF16, DType.F16):
        return "the body compares in f64"
    return "how many are taken is known only when it runs" if count_taken(case) is None else None


def vocabulary(name: str, axis: int) -> Predicate:
    """As `not_f64`, and where the vocabulary, `axis` of the weight or of an operand that has it
    itself, is not known to be empty."""

    def when(case: Case) -> str | None:
        empty = case.extent("weight" if "weight" in case.operands else name, axis) == 0
        return not_f64(name)(case) or ("the vocabulary is empty" if empty else None)

    return when


def one_shard(case: Case) -> str | None:
    """As `vocabulary`, where the weight is known to be whole."""
    if case.generic("Shards") != 1:
        return "it is not known to be one shard"
    return vocabulary("hidden", 0)(case)


# --- attention ------------------------------------------------------------------------------------


def heads(case: Case) -> str | None:
    """Whether attention has a dtype, keys and a width at all."""
    if case.dtype("q") is DType.F64:
        return "the body computes in f32"
    if case.extent("k", 2) == 0:
        return "there are no keys"
    if case.extent("q", 3) == 0:
        return "heads have no width"
    return None


def dense(case: Case) -> str | None:
    return heads(case) or settled("mask")(case)


def when_mask(known: Callable[[Case], bool], why: str) -> Predicate:
    """Applies to attention under a mask of which `known` holds."""

    def when(case: Case) -> str | None:
        if "mask" not in case.operands:
            return "there is no mask"
        return dense(case) or (None if known(case) else why)

    return when


def bounded(case: Case, key: int) -> AtMost | None:
    """The mask as one bound on the key's position with an offset that is a number."""
    fact = case.fact("mask")
    atom = fact.single if isinstance(fact, MaskFact) else None
    if atom is None or atom.key != key or atom.offset.constant is None:
        return None
    return atom


def is_causal(case: Case) -> bool:
    """Whether query i sees the keys 0 .. i of as many keys as queries."""
    atom = bounded(case, 1)
    same = case.type("q").dims[2] == case.type("k").dims[2]
    plain = atom is not None and atom.query == 0 and atom.bound is None
    return same and plain and atom is not None and atom.offset.constant == 0


def starts(case: Case) -> bool:
    """Whether query i sees the keys 0 .. start + i, with one start for all."""
    atom = bounded(case, 1)
    return atom is not None and atom.query == 0 and (atom.bound is None or not atom.bound.axes)


def ends(case: Case) -> bool:
    """Whether every query sees the keys 0 .. last, with one last for all."""
    atom = bounded(case, 1)
    return atom is not None and atom.query is None and (atom.bound is None or not atom.bound.axes)


def each_ends(case: Case) -> bool:
    """Whether query i sees the keys 0 .. last[i]."""
    atom = bounded(case, 1)
    return (
        atom is not None
        and atom.query is None
        and (atom.bound is not None and atom.bound.axes == (0,))
    )


def rows_end(case: Case) -> bool:
    """Whether the queries of sequence b see its keys 0 .. last[b]."""
    atom = bounded(case, 2)
    if atom is None or atom.bound is None or atom.bound.axes != (0,):
        return False
    return atom.query is None or (atom.query == 1 and case.extent("q", 2) == 1)


def _bound(case: Case) -> AtMost | None:
    return bounded(case, len(case.type("mask").shape) - 1)


def with_bound(case: Case) -> tuple[Value, ...]:
    """Queries, keys, values, scale, and the bound where the fact has one; not the mask."""
    atom = _bound(case)
    known = without_mask(case)
    return known if atom is None or atom.bound is None else (*known, atom.bound.value)


def offset(case: Case) -> dict[str, int]:
    """What is added to the bound."""
    atom = _bound(case)
    return {"offset": 0 if atom is None else atom.offset.constant or 0}


def without_mask(case: Case) -> tuple[Value, ...]:
    return tuple(case.operands[n] for n in ("q", "k", "v", "scale"))


def page_size_known(case: Case) -> str | None:
    if case.generic("Size") is None:
        return "the page size is known only when it runs"
    return heads(case)


def page_size(case: Case) -> dict[str, int]:
    return {"size": case.generic("Size") or 0}
