"""The verifier: whether a function is well formed. Runs after elaboration and each pass in tests.

It checks that values are defined once and before their use, that regions take and give what their
operation says, every row's dtype and shape rule (dimensions equal under the function's `where`),
calls against what they call, and with a `Program` also members against their blocks. It proves no
`where` clause of a callee: that is the checker's work.
"""

from __future__ import annotations

from collections.abc import Mapping

from linnet.diagnostics import InternalError, Span
from linnet.dims import Dim, DimError, Facts, Relation
from linnet.ir.core import Block, Function, GenericVar, Op, Program, Ref, Region, SubVar, Value
from linnet.ir.shapes import Equal, infer, same_type
from linnet.ir.table import OPS
from linnet.types import GenericArg, OptionalType, Subst, TensorType, Type

_MEMBERS = ("param", "state_read", "state_write", "match_sub", "for_subs")


def verify(function: Function, functions: Program | Mapping[str, Function]) -> None:
    """Raises `InternalError` at the first thing wrong; functions that hold an error pass."""
    if function.broken:
        return
    if isinstance(functions, Program):
        _Verifier(function, functions.functions, functions.blocks).function()
    else:
        _Verifier(function, functions, {}).function()


class _Verifier:
    """One function's check. `scope` are the values that may be used where it has got to."""

    def __init__(
        self, function: Function, functions: Mapping[str, Function], blocks: Mapping[str, Block]
    ) -> None:
        self.of = function
        self.functions = functions
        self.blocks = blocks
        self.facts = Facts(function.where).assume(*_extents(function))
        self.equal: Equal = self.facts.proves_equal
        self.defined: set[Value] = set()
        self.scope: set[Value] = set()
        self.subs: dict[SubVar, _Site | None] = {}

    def fail(self, what: str, span: Span | None = None) -> InternalError:
        return InternalError("ir.verify", f"in `{self.of.name}`: {what}", span or self.of.span)

    def function(self) -> None:
        params = tuple(param.value for param in self.of.params)
        self.define(params, self.of.span)
        self.body(self.of.body, params)
        if len(self.of.body.results) > 1:
            raise self.fail("it returns more than one value")
        if self.of.kind == "op" and self.of.block is not None:
            raise self.fail("an op is a method")
        grad = self.of.grad
        if grad is not None:
            self.scope = set()
            self.define(grad.params, self.of.span)
            self.gradient_types(grad.params)
            self.body(grad.body, grad.params)

    def gradient_types(self, params: tuple[Value, ...]) -> None:
        """An op's gradient takes the op's parameters, its result, and the result's gradient."""
        results = self.of.result_types
        wanted = [*(param.type for param in self.of.params), *results, *results]
        given = [value.type for value in params]
        if not self.same_types(given, wanted):
            raise self.fail("the gradient does not take the parameters, the result and its own")

    def body(self, region: Region, params: tuple[Value, ...]) -> None:
        # A body either repeats the function's parameters or leaves them to the function.
        if region.params and region.params != params:
            raise self.fail("the body's parameters are not the function's")
        self.contents(region)

    def define(self, values: tuple[Value, ...], span: Span | None) -> None:
        for value in values:
            if value in self.defined:
                raise self.fail(f"{value!r} is defined twice", span)
            self.defined.add(value)
            self.scope.add(value)

    def use(self, values: tuple[Value, ...], span: Span | None) -> None:
        for value in values:
            if value not in self.scope:
                known = "out of its region" if value in self.defined else "before it is defined"
                raise self.fail(f"{value!r} is used {known}", span)

    def contents(self, region: Region) -> None:
        outer = self.scope
        self.scope = set(outer)
        self.define(tuple(p for p in region.params if p not in outer), self.of.span)
        for op in region.ops:
            self.op(op)
        self.use(region.results, self.of.span)
        self.scope = outer

    def op(self, op: Op) -> None:
        self.use(op.operands, op.span)
        if self.of.kind == "op" and op.kind in _MEMBERS:
            raise self.fail(f"an op has `{op.kind}`", op.span)
        self.types(op)
        if op.kind == "call":
            self.call(op)
        self.refs(op)
        for region in op.regions:
            if any(param in self.defined for param in region.params):
                raise self.fail(f"a region of `{op.kind}` takes a value from outside", op.span)
            self.contents(region)
        self.define(op.results, op.span)

    def types(self, op: Op) -> None:
        given = tuple(value.type for value in op.results)
        try:
            for name in OPS[op.kind].attrs if op.kind in OPS else ():
                hash(op.attrs.get(name))  # a list or dict could be changed behind our back
            types = infer(
                op.kind,
                [value.type for value in op.operands],
                op.attrs,
                given,
                regions=op.regions,
                equal=self.equal,
                span=op.span,
            )
        except InternalError as error:
            raise self.fail(error.what, op.span) from error
        except (TypeError, ValueError, KeyError, IndexError, DimError) as error:
            raise self.fail(f"`{op.kind}` is malformed: {error!r}", op.span) from error
        if not self.same_types(given, types):
            shown = [", ".join(map(str, side)) or "nothing" for side in (given, types)]
            raise self.fail(f"`{op.kind}` gives {shown[1]}, not {shown[0]}", op.span)

    def same_types(
        self, a: tuple[Type, ...] | list[Type], b: tuple[Type, ...] | list[Type]
    ) -> bool:
        return len(a) == len(b) and all(
            same_type(x, y, self.equal) for x, y in zip(a, b, strict=True)
        )

    # --- calls -----------------------------------------------------------------------------------

    def call(self, op: Op) -> None:
        name = op.attrs["callee"]
        callee = self.functions.get(name)
        if callee is None:
            raise self.fail(f"there is no function `{name}`", op.span)
        if callee.broken:
            raise self.fail(f"`{name}` holds an error", op.span)
        if callee.kind == "entry":
            raise self.fail(f"`{name}` is an entry, which nothing calls", op.span)
        if (op.attrs["receiver"] is None) != (callee.block is None):
            raise self.fail(f"`{name}` is called with the wrong receiver", op.span)
        subst = self.arguments(op, callee)
        wanted = [subst.type(param.type) for param in callee.params]
        given = [value.type for value in op.operands]
        if not self.same_types(given, wanted):
            shown = [", ".join(map(str, side)) for side in (given, wanted)]
            raise self.fail(f"`{name}` takes ({shown[1]}), not ({shown[0]})", op.span)
        results = [subst.type(type_) for type_ in callee.result_types]
        if not self.same_types([value.type for value in op.results], results):
            raise self.fail(f"`{name}` gives {', '.join(map(str, results))}", op.span)

    def arguments(self, op: Op, callee: Function) -> Subst:
        args = op.attrs["generics"]
        if len(args) != len(callee.generics):
            raise self.fail(
                f"`{callee.name}` has {len(callee.generics)} generics, not {len(args)}", op.span
            )
        pairs: dict[GenericVar, GenericArg] = {
            generic.var: arg for generic, arg in zip(callee.generics, args, strict=True)
        }
        try:
            return Subst.of(pairs)
        except TypeError as error:
            raise self.fail(f"a generic of `{callee.name}`: {error}", op.span) from error

    # --- members ---------------------------------------------------------------------------------

    def refs(self, op: Op) -> None:
        refs = [ref for ref in op.attrs.values() if isinstance(ref, Ref)]
        for ref in refs:
            if ref.root is not None and ref.root not in self.subs:
                raise self.fail(f"`{ref}` is used outside its loop", op.span)
            if ref.root is None and self.of.block is None:
                raise self.fail(f"`{ref}` is used outside a block", op.span)
        if op.kind == "for_subs":
            self.loop_var(op)
        elif self.blocks and op.kind in ("param", "state_read", "state_write"):
            self.member(op)

    def loop_var(self, op: Op) -> None:
        site = self.site(op.attrs["array"], op.span) if self.blocks else None
        if site is not None and site.count is None:
            raise self.fail(f"`{op.attrs['array']}` is no array", op.span)
        self.subs[op.attrs["var"]] = None if site is None else _Site(site.block, site.subst, None)

    def member(self, op: Op) -> None:
        ref: Ref = op.attrs["ref"]
        site = self.site(Ref(ref.root, ref.steps[:-1]), op.span)
        if site is None:
            return
        member = site.block.members.get(str(ref.steps[-1])) if ref.steps else None
        if member is None or (member.kind == "state") != (op.kind != "param"):
            raise self.fail(f"`{op.kind}` of `{ref}`, which is no such member", op.span)
        type_: Type = site.subst.type(member.type)
        type_ = OptionalType(type_) if member.optional else type_
        (given,) = op.operands if op.kind == "state_write" else op.results
        if not same_type(given.type, type_, self.equal):
            raise self.fail(f"`{ref}` is {type_}, not {given.type}", op.span)

    def site(self, ref: Ref, span: Span | None) -> _Site | None:
        """What stands at `ref`; None where a loop's array is unknown."""
        if ref.root is not None:
            site = self.subs[ref.root]
        else:
            site = _Site(self.blocks[str(self.of.block)], Subst(), None)
        for step in ref.steps:
            if site is None:
                return None
            if isinstance(step, int):
                site = _Site(site.block, site.subst, None)
                continue
            sub = site.block.subs.get(step)
            if sub is None:
                raise self.fail(f"`{ref}`: `{site.block.name}` has no child `{step}`", span)
            block = self.blocks[sub.block]
            args = tuple(map(site.subst.arg, sub.args))
            pairs: dict[GenericVar, GenericArg] = {
                g.var: arg for g, arg in zip(block.generics, args, strict=True)
            }
            count = None if sub.count is None else site.subst.dim(sub.count)
            site = _Site(block, Subst.of(pairs), count)
        return site


class _Site:
    """A block, its generics' substitution, and for an array its length."""

    def __init__(self, block: Block, subst: Subst, count: Dim | None) -> None:
        self.block, self.subst, self.count = block, subst, count


def _extents(function: Function) -> list[Relation]:
    """Parameters' extents are at least 0: `Tensor[S - 1]` says that S is at least 1."""
    return [
        Relation(item, ">=", Dim.of(0))
        for param in function.params
        if isinstance(param.type, TensorType)
        for item in param.type.shape
        if isinstance(item, Dim) and item.constant is None
    ]
