"""join: products of one input are one product over weights that lie side by side.

Needs specialised functions with natives chosen. A native whose attribute `joins` lists operands is
one that a backend allows to be joined: calls that agree in everything else may be one call on these
operands laid one after another along their first axes, whose result holds theirs one after another
along its last.

    q = linear(x, wq)                            w = concat(wq, wk)    joined: one storage
    k = linear(x, wk)                            y = linear(x, w)
                                                 q, k = y[..., :Q], y[..., Q:]

Methods that only hold such a call become part of a caller that joins it. Joined operands are
parameters of blocks; their `concat` is marked: `joined` names one storage of all of them, held at
the block `ref`, of which the parameters are views. A backend that ignores the mark copies.
Guarantees that each parameter is in at most one storage, in every function and on every block.
A joined product may round differently: the pass does nothing where no native asks for it, which is
so in `exact` numerics and when training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from linnet.dims import Dim
from linnet.ir import Function, Op, Ref, Value
from linnet.ir.build import tensor_type
from linnet.ir.rewrite import Rewriter
from linnet.ir.walk import definitions, use_counts, walk, walk_regions
from linnet.passes.alike import Unhashable, frozen
from linnet.passes.bound import Instance
from linnet.passes.inline import inline_call
from linnet.passes.module import Module
from linnet.passes.places import path_text, places
from linnet.passes.storage import Claims, Joined, Storage

JOINS, JOINED = "joins", "joined"
LONGEST = 6
_FREE = frozenset({"const", "dim", "tuple", "tuple_get", "some", "none", "param"})


def join(
    module: Module, root: Instance | None, storage: Storage
) -> tuple[Module, tuple[Joined, ...]]:
    """The module with joined products, and what is joined in it."""
    if not any(JOINS in op.attrs for f in module.functions.values() for op in walk(f.body)):
        return module, ()
    claims = Claims(places(module.functions, module.roots, root), storage, root)
    functions: dict[str, Function] = {}
    for name, function in module.functions.items():
        functions[name] = _joined(_opened(function, functions, claims), functions, claims)
    made = module.with_functions(functions)
    return made.noting(claims.notes(made)), tuple(claims.used.values())


def unread(
    functions: Mapping[str, Function],
    roots: Sequence[str],
    root: Instance | None,
) -> frozenset[str]:
    """The parameters that nothing reads by themselves, only joined with others or not at all."""
    if root is None:
        return frozenset()
    where = places(functions, roots, root)
    alone: set[str] = set()
    for name, function in functions.items():
        together = {v for op in walk(function.body) if op.attrs.get(JOINED) for v in op.operands}
        uses = use_counts(function)
        for op in walk(function.body):
            if op.kind == "param" and (uses[op.result] > 1 or op.result not in together):
                alone.update(map(path_text, where.of(name, op.attrs["ref"])))
    return frozenset(info.path for info in root.params) - alone


# --- finding products -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A native that may be joined, as the function sees it: the operation there that makes it (a
    call, where it is in a callee), its joined operands' parameters, its type."""

    op: Op
    native: Op
    refs: tuple[Ref, ...]
    key: tuple[object, ...]


def _found(function: Function, done: Mapping[str, Function]) -> Iterator[list[_Product]]:
    """The products of each region that agree in everything but their joined operands."""
    makers = definitions(function)
    for region in walk_regions(function.body):
        alike: dict[tuple[object, ...], list[_Product]] = {}
        for op in region.ops:
            for product in _products(op, makers, done):
                alike.setdefault(product.key, []).append(product)
        yield from (products for products in alike.values() if len(products) > 1)


def _products(
    op: Op, makers: Mapping[Value, Op], done: Mapping[str, Function]
) -> Iterator[_Product]:
    if JOINS in op.attrs:
        product = _product(op, op, makers, {}, None)
        if product is not None:
            yield product
    if op.kind != "call" or op.attrs.get("receiver") is None or op.attrs.get("prepared"):
        return
    callee = done[op.attrs["callee"]]
    if not _may_open(callee):
        return
    inner = definitions(callee)
    given = {p.value: v for p, v in zip(callee.params, op.operands, strict=True)}
    for native in callee.body.ops:
        if JOINS in native.attrs:
            product = _product(op, native, inner, given, op.attrs["receiver"])
            if product is not None:
                yield product


def _product(
    op: Op, native: Op, makers: Mapping[Value, Op], given: Mapping[Value, Value],
    receiver: Ref | None,
) -> _Product | None:  # fmt: skip
    """The product of a native, None where a joined operand is no parameter. `given` are the values
    of a callee's parameters, `receiver` the block that it is called on."""
    refs: list[Ref] = []
    for number in native.attrs[JOINS]:
        maker = makers.get(native.operands[number])
        if maker is None or maker.kind != "param":
            return None
        ref: Ref = maker.attrs["ref"]
        refs.append(ref if receiver is None else Ref(receiver.root, (*receiver.steps, *ref.steps)))
    if len({ref.root for ref in refs}) != 1:
        return None
    common: list[object] = []
    for number, value in enumerate(native.operands):
        if number in native.attrs[JOINS]:
            type_ = tensor_type(value)
            common.append((type_.dtype, type_.shape[1:]))
        elif receiver is None:
            common.append(value)
        elif value in given:
            common.append(given[value])
        else:
            return None
    try:
        key = (refs[0].root, tuple(common), frozen(native.attrs))
    except Unhashable:
        return None
    return _Product(op, native, tuple(refs), key)


def _may_open(function: Function) -> bool:
    """Whether a method may become part of its callers: short, straight and without state."""
    if function.kind != "fn" or function.block is None or function.grad is not None:
        return False
    ops = function.body.ops
    if any(op.regions or op.kind in ("state_read", "state_write", "call") for op in ops):
        return False
    return sum(op.kind not in _FREE for op in ops) <= LONGEST


# --- rewriting ------------------------------------------------------------------------------------


def _opened(function: Function, done: Mapping[str, Function], claims: Claims) -> Function:
    """The function with methods in place of calls where what they hold can be joined."""
    opened: set[Op] = set()
    for products in _found(function, done):
        for group in claims.groups(function.name, products):
            opened.update(p.op for p in group if p.op is not p.native)
    if not opened:
        return function

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        return inline_call(rw, op, done[op.attrs["callee"]]) if op in opened else None

    return Rewriter(transform, fresh=False).function(function)


@dataclass(eq=False, slots=True)
class _Join:
    """Products that become one, in the order of their storage; `names` say where each of their
    operands is held, `parts` what stands for each product once it is written."""

    products: list[_Product]
    names: list[tuple[Ref, str]]
    parts: dict[Op, Value] = field(default_factory=dict)


def _joined(function: Function, done: Mapping[str, Function], claims: Claims) -> Function:
    joins: dict[Op, _Join] = {}
    for products in _found(function, done):
        direct = [p for p in products if p.op is p.native]
        for group in claims.groups(function.name, direct) if len(direct) > 1 else ():
            one = _Join(group, claims.take(function.name, group))
            joins.update(dict.fromkeys((p.op for p in group), one))
    if not joins:
        return function

    def transform(rw: Rewriter, op: Op) -> Sequence[Value] | None:
        if op not in joins:
            return None
        if not joins[op].parts:
            _write(rw, op, joins[op])
        return [joins[op].parts[op]]

    return Rewriter(transform, fresh=False).function(function)


def _write(rw: Rewriter, op: Op, one: _Join) -> None:
    """The joined product where the first of its products stood, and its parts."""
    joins: tuple[int, ...] = op.attrs[JOINS]
    operands = list(rw.operands(op))
    for place, number in enumerate(joins):
        stored = [
            rw.builder.emit(
                "param", (), {"ref": rw.ref(p.refs[place])}, span=p.native.span,
                type=p.native.operands[number].type, name=p.native.operands[number].name,
            )
            for p in one.products
        ]  # fmt: skip
        at, name = one.names[place]
        attrs = {"axis": 0, JOINED: name, "ref": rw.ref(at)}
        operands[number] = rw.builder.emit("concat", stored, attrs, span=op.span)
    sizes = [tensor_type(p.native.result).dims[-1] for p in one.products]
    type_ = tensor_type(op.result)
    shape = (*type_.shape[:-1], sum(sizes, Dim.of(0)))
    whole = rw.builder.emit(
        "native", operands, op.attrs, type=type_.with_shape(shape), span=op.span
    )
    start = Dim.of(0)
    for product, size in zip(one.products, sizes, strict=True):
        bounds = (*(None for _ in shape[:-1]), (start, start + size, Dim.of(1)))
        one.parts[product.op] = rw.builder.emit(
            "slice", [whole], {"bounds": bounds}, type=product.native.result.type,
            span=product.native.span, name=product.native.result.name,
        )  # fmt: skip
        start = start + size
