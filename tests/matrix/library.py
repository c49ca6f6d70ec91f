"""A call of every op of the standard library, drawn from its signature.

Sizes are random and satisfy the op's `where`; floats are normal; integers have a meaning, which
`DOMAINS` gives for each parameter: an op with an integer that is not there fails its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import linnet
from linnet.dims import Dim, Symbol
from linnet.dims.polynomial import DimError
from linnet.ir import Function, Op, Program, Value
from linnet.ir.build import Builder
from linnet.ir.semantics import NUMPY
from linnet.ir.walk import walk
from linnet.types import DType, DTypeVar, OptionalType, PackVar, TensorType

STDLIB = Path(linnet.__file__).parent / "stdlib"
FLOATS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
# Public functions that are no ops, but whose results are promised.
FUNCTIONS = (
    "std.random::threefry2x32", "std.random::split", "std.random::fold_in", "std.random::bits",
    "std.random::uniform", "std.random::normal", "std.random::categorical",
    "std.nn.cache::page_slots", "std.nn.recurrent::packed_history",
)  # fmt: skip
Array = np.ndarray[Any, Any]


class NoneFits(Exception):
    """No value of a parameter makes sense at these sizes."""


@dataclass
class Draw:
    """One call as it is put together: sizes by generic, and what values of one parameter say about
    another's."""

    rng: np.random.Generator
    sizes: dict[str, int]
    made: dict[str, Any] = field(default_factory=dict)

    def between(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        """Integers of `low .. high - 1`."""
        if high <= low and 0 not in shape:
            raise NoneFits
        return self.rng.integers(low, max(high, low + 1), shape)


Domain = Callable[[Draw, tuple[int, ...]], Any]


def below(generic: str) -> Domain:
    return lambda d, shape: d.between(0, d.sizes[generic], shape)


def around(generic: str, before: int = 2, after: int = 2) -> Domain:
    """Positions along an axis, some of them outside."""
    return lambda d, shape: d.between(-before, d.sizes[generic] + after, shape)


def distinct(low: int, generic: str, after: int) -> Domain:
    """No position twice, so that no two writes meet."""

    def draw(d: Draw, shape: tuple[int, ...]) -> Array:
        count = int(np.prod(shape))
        every = np.arange(low, max(d.sizes[generic] + after, low + count))
        return d.rng.permutation(every)[:count].reshape(shape)

    return draw


def pages(d: Draw, shape: tuple[int, ...]) -> Array:
    """Pages that lie in the pool."""
    return d.between(0, d.sizes["N"] // d.sizes["Size"] if "N" in d.sizes else 9, shape)


def within_pages(d: Draw, shape: tuple[int, ...]) -> Array:
    return d.between(0, d.sizes["Pages"] * d.sizes["Size"], shape)


def packed_rows(d: Draw, shape: tuple[int, ...]) -> Array:
    """Runs of tokens, each a sequence of its own with a row or none."""
    count = shape[0]
    cuts = np.sort(d.rng.integers(0, count + 1, 2))
    lengths = [int(n) for n in np.diff([0, *cuts, count]) if n]
    rows = d.rng.permutation(np.arange(-1, max(d.sizes["R"], len(lengths))))[: len(lengths)]
    d.made["_segments"] = np.repeat(9 - np.arange(len(lengths)), lengths)
    return np.repeat(rows, lengths)


def packed_segments(d: Draw, shape: tuple[int, ...]) -> Any:
    return d.made["_segments"]


def key(d: Draw, shape: tuple[int, ...]) -> Array:
    return d.rng.integers(0, 2**32, shape)


def words(d: Draw, shape: tuple[int, ...]) -> Array:
    return d.rng.integers(-(2**40), 2**40, shape)


def rounded(d: Draw, shape: tuple[int, ...]) -> Array:
    """Floats among which there are equal ones."""
    return np.round(d.rng.normal(size=shape) * 2)


def wide(d: Draw, shape: tuple[int, ...]) -> Array:
    return d.rng.normal(size=shape) * 6


# By `op.parameter`, or `*.parameter` for all ops.
DOMAINS: dict[str, Domain] = {
    "*.targets": below("V"),
    "*.experts": below("E"),
    "*.ids": below("V"),
    "*.key": key,
    "*.high": words,
    "*.low": words,
    "*.data": words,
    "*.at": around("S"),
    "write_tokens.at": distinct(-2, "S", 2),
    "write_tokens.rows": around("B", 1, 1),
    "write_slots.slots": distinct(-1, "B", 1),
    "*.table": pages,
    "embedding.table": lambda d, shape: d.rng.normal(size=shape),
    "*.positions": within_pages,
    "paged_attention.positions": lambda d, shape: d.between(
        -1, d.sizes["Pages"] * d.sizes["Size"], shape
    ),
    "paged_prefill_attention.rows": below("Rows"),
    "*.rows": packed_rows,
    "*.segments": packed_segments,
    "*.decay": lambda d, shape: -np.abs(d.rng.normal(size=shape)) * d.rng.choice([0.1, 1.0, 40.0]),
    "*.beta": lambda d, shape: d.rng.random(shape),
    "gated_delta_rule.k": lambda d, shape: d.rng.normal(size=shape) * 0.4,
    "gated_delta_rule_packed.k": lambda d, shape: d.rng.normal(size=shape) * 0.4,
    "argmax.x": rounded,
    "top_k.x": rounded,
    "softmax.x": wide,
    **{f"{name}.x": wide for name in ("relu", "sigmoid", "silu", "gelu", "gelu_erf", "softplus")},
}


def library(folder: Path) -> Program:
    """A program with every module of the library, and an entry for each op and function."""
    modules = sorted(path.relative_to(STDLIB).with_suffix("") for path in STDLIB.rglob("*.linnet"))
    lines = ["module all", *(f"use std.{'.'.join(path.parts)}" for path in modules)]
    file = folder / "all.linnet"
    file.write_text("\n".join([*lines, "pub fn one() -> f32 { return 1.0 }"]), encoding="utf-8")
    program = linnet.load_program(file)
    assert not program.has_errors
    functions = dict(program.functions)
    for name in names(program):
        made = _entry(functions[name])
        functions[made.name] = made
    return replace(program, root="all", functions=functions)


def names(program: Program) -> list[str]:
    ops = [f.name for f in program.functions.values()
           if f.kind == "op" and f.block is None and f.name.startswith("std.")]  # fmt: skip
    return [*ops, *FUNCTIONS]


def entry_name(name: str) -> str:
    return name.replace("::", "_").replace(".", "_")


def _entry(callee: Function) -> Function:
    """An entry that calls one function."""
    params = tuple(replace(p, value=Value(p.type, p.name)) for p in callee.params)
    values = tuple(p.value for p in params)
    b = Builder()
    args = [Dim.of(g.var) if isinstance(g.var, Symbol) else
            (g.var,) if isinstance(g.var, PackVar) else g.var for g in callee.generics]  # fmt: skip
    attrs = {"callee": callee.name, "generics": tuple(args), "receiver": None}
    result = b.emit("call", values, attrs, type=callee.result_types[0])
    return replace(
        callee, name=f"all::{entry_name(callee.name)}", kind="entry", params=params,
        body=b.finish([result], values), grad=None,
    )  # fmt: skip


@dataclass(frozen=True)
class Call:
    """What an entry is given: its inputs, and the generics that they don't show."""

    inputs: list[Any]
    generics: dict[str, Any]
    sizes: dict[str, Any]


def call(function: Function, rng: np.random.Generator, dtype: str) -> Call:
    """Sizes and inputs for a function; its float generics become `dtype`."""
    for _ in range(2000):
        try:
            return _call(function, rng, dtype)
        except (NoneFits, DimError):
            continue
    raise AssertionError(f"no sizes satisfy the where clause of {function.name}")


def _call(function: Function, rng: np.random.Generator, dtype: str) -> Call:
    symbols = [g.var for g in function.generics if isinstance(g.var, Symbol)]
    numbers = {s: int(rng.choice([0, 1, 1, 2, 2, 3, 4, 6, 8])) for s in symbols}
    packs = {g.var: tuple(map(int, rng.choice([0, 1, 2, 3], int(rng.integers(0, 3)))))
             for g in function.generics if isinstance(g.var, PackVar)}  # fmt: skip
    if not all(relation.evaluate(numbers) for relation in function.where):
        raise NoneFits
    draw = Draw(rng, {s.name: n for s, n in numbers.items()})
    inputs = [_value(function, param.name, param.type, draw, numbers, packs, dtype)
              for param in function.params]  # fmt: skip
    shown = set(_shown(function))
    missing = {g.name: numbers[g.var] if isinstance(g.var, Symbol) else dtype
               for g in function.generics
               if not isinstance(g.var, PackVar) and g.var not in shown}  # fmt: skip
    return Call(inputs, missing, dict(draw.sizes))


def _value(
    function: Function, name: str, type_: Any, draw: Draw, numbers: dict[Symbol, int],
    packs: dict[PackVar, tuple[int, ...]], dtype: str,
) -> Any:  # fmt: skip
    if isinstance(type_, OptionalType):
        if draw.rng.random() < 0.4:
            return None
        type_ = type_.inner
    assert isinstance(type_, TensorType), f"{function.name}: {name} is {type_}"
    shape: tuple[int, ...] = ()
    for item in type_.shape:
        if isinstance(item, PackVar):
            shape += packs[item]
        else:
            extent = item.evaluate(numbers)
            if extent < 0:
                raise NoneFits
            shape += (extent,)
    short = function.short_name
    domain = DOMAINS.get(f"{short}.{name}") or DOMAINS.get(f"*.{name}")
    kind = type_.dtype
    numpy = FLOATS[dtype] if isinstance(kind, DTypeVar) else NUMPY[kind]
    if isinstance(kind, DType) and kind.is_integer:
        assert domain is not None, f"{short}.{name} needs a domain"
    if kind is DType.BOOL:
        made: Any = draw.rng.random(shape) < 0.5
    elif domain is not None:
        made = domain(draw, shape)
    elif not shape and kind is DType.F32:
        made = draw.rng.uniform(0.05, 0.5)
    else:
        made = draw.rng.normal(size=shape)
    return np.asarray(made).astype(numpy)


def _shown(function: Function) -> Iterator[Any]:
    """The generics that inputs' shapes and dtypes give."""
    for param in function.params:
        type_ = param.type.inner if isinstance(param.type, OptionalType) else param.type
        assert isinstance(type_, TensorType)
        yield type_.dtype
        for item in type_.shape:
            if not isinstance(item, PackVar):
                yield from (s for s in (g.var for g in function.generics) if item == Dim.of(s))


def sums(program: Program, name: str) -> bool:
    """Whether the order of a sum is free somewhere in a function."""
    return any(
        op.kind in ("contract", "cumsum") or (op.kind == "reduce" and op.attrs["op"] in _ADDING)
        for op in _operations(program, name, set())
    )


_ADDING = ("sum", "prod")


def _operations(program: Program, name: str, seen: set[str]) -> Iterator[Op]:
    if name in seen:
        return
    seen.add(name)
    for op in walk(program.functions[name].body):
        yield op
        if op.kind == "call":
            yield from _operations(program, op.attrs["callee"], seen)
