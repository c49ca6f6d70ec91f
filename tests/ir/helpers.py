"""Making small functions and blocks by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linnet.dims import Dim, Relation, Symbol, fresh_symbol
from linnet.ir import Block, Function, Generic, GenericVar, Member, Param, Ref, Sub, Value
from linnet.ir.build import Builder
from linnet.types import AnyDType, DType, DTypeVar, GenericArg, PackVar, TensorType, Type

F32, I32, I64, BOOL = DType.F32, DType.I32, DType.I64, DType.BOOL
SELF = Ref(None, ())


def tensor(dtype: AnyDType, *items: int | Symbol | Dim | PackVar) -> TensorType:
    return TensorType(
        tuple(item if isinstance(item, PackVar) else Dim.of(item) for item in items), dtype
    )


def generic(var: GenericVar, default: GenericArg | None = None) -> Generic:
    kind = var.kind if isinstance(var, DTypeVar) else "Shape" if isinstance(var, PackVar) else "Dim"
    return Generic(var.name, kind, var, default)


def function(
    name: str,
    params: dict[str, Type],
    body: Callable[..., Value | None],
    *,
    kind: Any = "fn",
    generics: Sequence[GenericVar] = (),
    block: str | None = None,
    where: Sequence[Relation] = (),
    defaults: dict[str, Any] | None = None,
) -> Function:
    """A function whose `body(builder, *params)` gives the returned value."""
    values = {key: Value(type_, key) for key, type_ in params.items()}
    b = Builder()
    result = body(b, *values.values())
    given = (defaults or {}).get
    return Function(
        name,
        kind,
        block,
        tuple(map(generic, generics)),
        tuple(Param(key, value, given(key)) for key, value in values.items()),
        tuple(where),
        b.finish([] if result is None else [result], tuple(values.values())),
    )


def block(
    name: str,
    *,
    generics: Sequence[GenericVar] = (),
    members: Sequence[Member] = (),
    subs: Sequence[Sub] = (),
) -> Block:
    return Block(
        name,
        tuple(map(generic, generics)),
        (),
        {m.name: m for m in members},
        {s.name: s for s in subs},
        {},
    )


def symbols(*names: str) -> tuple[Symbol, ...]:
    return tuple(map(fresh_symbol, names))


def call_attrs(
    callee: str, generics: Sequence[GenericArg] = (), receiver: Ref | None = None
) -> dict[str, Any]:
    return {"callee": callee, "generics": tuple(generics), "receiver": receiver}
