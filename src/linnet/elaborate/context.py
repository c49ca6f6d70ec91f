"""Checking one function body: the operations made so far, the scope, and what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from linnet.diagnostics import Span
from linnet.dims import Dim, DimError, Facts, Relation
from linnet.elaborate.advice import describe_facts, where_help
from linnet.elaborate.blocks import block_info
from linnet.elaborate.entities import LocalEntity, Scope
from linnet.elaborate.literals import fits
from linnet.elaborate.operands import (
    BROKEN,
    ErrorOperand,
    FloatOperand,
    IntOperand,
    LabelledOperand,
    NoneOperand,
    Operand,
    SomeOperand,
    SubOperand,
    ValueOperand,
)
from linnet.elaborate.resolve import Resolver
from linnet.elaborate.world import Obligation, Signature, World
from linnet.ir import NO_ATTRS, Member, Op, Region, Value
from linnet.syntax import tree
from linnet.types import (
    ERROR,
    F64,
    I64,
    AnyDType,
    ErrorType,
    OptionalType,
    PackVar,
    Shape,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)

# What checks one statement (`statements.run`).
Run = Callable[["Context", tree.Statement], None]
Evaluate = Callable[["Context", tree.Expr, Type | None], Operand]


@dataclass(slots=True)
class OpenRegion:
    """A region being filled."""

    ops: list[Op] = field(default_factory=list)


class Context:
    """One function body being checked and lowered.

    `evaluate` is `expressions.evaluate` and `run` is `statements.run`, handed in because these and
    the modules they are made of need each other.
    """

    def __init__(self, world: World, signature: Signature, evaluate: Evaluate, run: Run) -> None:
        self.world, self.signature = world, signature
        self.module = signature.entity.module
        self.facts: Facts = signature.facts
        self.scope = Scope(signature.scope)
        self.report = world.reporter.report
        self.region = OpenRegion()
        self._evaluate, self._run = evaluate, run
        # Whether something in the body has an error, reported here or where it comes from.
        self.broken = False
        # Locals that were never read, for the lint.
        self.unused: list[LocalEntity] = []
        # Whether an expression stands inside index notation.
        self.notation = False
        self.labels = 0
        # Functions called so far, for finding recursion.
        self.callees: dict[str, Span] = {}

    @property
    def own_members(self) -> Mapping[str, Member]:
        """The members of the block whose method this is."""
        block = self.signature.entity.block
        return block_info(self.world, block).block.members if block is not None else {}

    # --- operations ----------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        operands: tuple[Value, ...],
        type_: Type,
        span: Span,
        attrs: Mapping[str, Any] | None = None,
        regions: tuple[Region, ...] = (),
        name: str = "",
    ) -> Value:
        """Adds an operation with one result."""
        (value,) = self.emit_many(kind, operands, (type_,), span, attrs, regions, name)
        return value

    def emit_many(
        self,
        kind: str,
        operands: tuple[Value, ...],
        types: tuple[Type, ...],
        span: Span,
        attrs: Mapping[str, Any] | None = None,
        regions: tuple[Region, ...] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        results = tuple(Value(type_, name, span) for type_ in types)
        frozen = MappingProxyType(dict(attrs)) if attrs else NO_ATTRS
        self.region.ops.append(Op(kind, operands, results, frozen, regions, span))
        return results

    @contextmanager
    def open_region(self, region: OpenRegion | None = None) -> Iterator[OpenRegion]:
        """Operations go into a region of their own meanwhile; a region may be reopened."""
        outer, self.region = self.region, region if region is not None else OpenRegion()
        try:
            yield self.region
        finally:
            self.region = outer

    @contextmanager
    def inner_scope(self) -> Iterator[Scope]:
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            yield self.scope
        finally:
            for name in list(self.scope.names):
                self.note_shadowed(name)
            self.scope = outer

    @contextmanager
    def mode(self, *, notation: bool) -> Iterator[None]:
        """Expressions inside are index notation, or are not."""
        outer, self.notation = self.notation, notation
        try:
            yield
        finally:
            self.notation = outer

    def note_shadowed(self, name: str) -> None:
        """A name is about to be bound again in this scope: what it meant so far is settled."""
        entity = self.scope.names.get(name)
        if isinstance(entity, LocalEntity) and name not in self.scope.used:
            self.unused.append(entity)
        self.scope.used.discard(name)

    # --- expressions ---------------------------------------------------------------------------

    def expr(self, node: tree.Expr, expected: Type | None = None) -> Operand:
        return self._evaluate(self, node, expected)

    def run(self, body: Sequence[tree.Statement]) -> None:
        """Checks statements that may not return."""
        for statement in body:
            self._run(self, statement)

    def value(self, node: tree.Expr, expected: Type | None = None) -> Value | None:
        """The expression as a value of the expected type (or its own); None after reporting."""
        return self.coerce(self.expr(node, expected), expected, node.span)

    def resolver(self) -> Resolver:
        """For types and dimensions written in the body; `discharge` its obligations."""
        return Resolver(self.world, self.module, self.scope, [])

    def discharge(self, obligations: list[Obligation]) -> None:
        if obligations:
            self.world.discharge(obligations, self.facts)

    def type_of(self, node: tree.Type) -> Type:
        resolver = self.resolver()
        type_ = resolver.type(node)
        self.discharge(resolver.obligations)
        self.broken = self.broken or isinstance(type_, ErrorType)
        return type_

    # --- types ---------------------------------------------------------------------------------

    def equal_dims(self, a: Dim, b: Dim) -> bool:
        return a == b or self.facts.proves_equal(a, b)

    def same_shape(self, a: Shape, b: Shape) -> bool:
        return len(a) == len(b) and all(self._same_item(x, y) for x, y in zip(a, b, strict=True))

    def _same_item(self, a: Dim | PackVar, b: Dim | PackVar) -> bool:
        if isinstance(a, PackVar) or isinstance(b, PackVar):
            return a == b
        return self.equal_dims(a, b)

    def same_type(self, a: Type, b: Type) -> bool:
        """Whether the types are provably the same; an error type is the same as any."""
        if isinstance(a, ErrorType) or isinstance(b, ErrorType):
            return True
        match a, b:
            case TensorType(), TensorType():
                return a.dtype == b.dtype and self.same_shape(a.shape, b.shape)
            case TupleType(), TupleType():
                return len(a.items) == len(b.items) and all(map(self.same_type, a.items, b.items))
            case OptionalType(), OptionalType():
                return self.same_type(a.inner, b.inner)
            case StructType(), StructType():
                return a.path == b.path and all(map(self._same_arg, a.args, b.args))
            case _:
                return a == b

    def _same_arg(self, a: object, b: object) -> bool:
        if isinstance(a, Dim) and isinstance(b, Dim):
            return self.equal_dims(a, b)
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self.same_shape(a, b)
        return a == b

    # --- turning operands into values ----------------------------------------------------------

    def coerce(self, operand: Operand, expected: Type | None, span: Span) -> Value | None:
        """The operand as a value of `expected`, or of its own type when that is None.

        Reports E2101, E2103, E2105 or E2113 and gives None when it cannot be.
        """
        match operand:
            case ErrorOperand():
                return None
            case ValueOperand(value):
                return self.retype(value, expected, span)
            case IntOperand() | FloatOperand():
                return self._literal(operand, expected, span)
            case NoneOperand():
                return self._none(expected, span)
            case SomeOperand(inner):
                return self._some(inner, expected, span)
            case SubOperand():
                self.report("E1208", "a child block is not a value", span)
                return None
            case LabelledOperand():
                self.report("E3104", "an indexed value cannot be used here", span)
                return None

    def retype(self, value: Value, expected: Type | None, span: Span) -> Value | None:
        """`value` as one of type `expected`, which must provably be its type."""
        if expected is None or value.type == expected or isinstance(expected, ErrorType):
            return None if isinstance(value.type, ErrorType) else value
        if not self.same_type(value.type, expected):
            self.type_error(value.type, expected, span)
            return None
        if isinstance(expected, TensorType):
            return self.emit("reshape", (value,), expected, span, name=value.name)
        return value

    def type_error(self, found: Type, expected: Type, span: Span) -> None:
        """Reports a type that differs: E2103 for a dtype, E2202 for a shape, else E2101."""
        notes = [f"expected `{expected}`", f"found    `{found}`"]
        help_ = None
        code, message = "E2101", f"expected `{expected}`, found `{found}`"
        if isinstance(found, TensorType) and isinstance(expected, TensorType):
            if found.dtype != expected.dtype:
                code = "E2103"
                message = f"expected dtype `{expected.dtype}`, found `{found.dtype}`"
                help_ = f"convert it: `cast<{expected.dtype}>(...)`"
            else:
                code = "E2202"
                message = f"expected shape {shape_text(expected)}, found {shape_text(found)}"
                notes += self.unproven(found.shape, expected.shape)
        elif isinstance(expected, OptionalType) and self.same_type(expected.inner, found):
            help_ = "wrap it: `some(...)`"
        elif isinstance(found, OptionalType) and self.same_type(found.inner, expected):
            help_ = "unwrap it with `match ... { some(v) => ..., none => ... }`"
        self.report(code, message, span, notes=notes, help=help_)

    def unproven(self, found: Shape, expected: Shape) -> list[str]:
        """Notes for the first pair of dimensions that could not be shown equal."""
        if len(found) != len(expected):
            return []
        for a, b in zip(found, expected, strict=True):
            if isinstance(a, Dim) and isinstance(b, Dim) and not self.equal_dims(a, b):
                return [f"`{a} == {b}` is not known", *describe_facts(self.facts)]
        return []

    def _literal(
        self, operand: IntOperand | FloatOperand, expected: Type | None, span: Span
    ) -> Value | None:
        type_ = expected
        if type_ is None or isinstance(type_, ErrorType):
            type_ = I64 if isinstance(operand, IntOperand) else F64
        if not isinstance(type_, TensorType) or not type_.is_scalar:
            found = "an integer" if isinstance(operand, IntOperand) else "a float literal"
            self.report("E2101", f"expected `{type_}`, found {found}", span)
            return None
        return self.literal(operand, type_.dtype, span)

    def literal(
        self, operand: IntOperand | FloatOperand, dtype: AnyDType, span: Span
    ) -> Value | None:
        """A flexible number as a scalar of `dtype`; reports E2105 when it does not fit."""
        type_ = scalar(dtype)
        if isinstance(operand, FloatOperand):
            if not fits(operand.value, dtype):
                self._unfit(str(operand.value), dtype, span)
                return None
            return self.emit("const", (), type_, span, {"value": operand.value})
        constant = operand.dim.constant
        if not dtype.is_numeric or (constant is not None and not fits(constant, dtype)):
            self._unfit(str(operand.dim), dtype, span)
            return None
        if constant is not None:
            value: int | float = float(constant) if dtype.is_float else constant
            return self.emit("const", (), type_, span, {"value": value})
        return self.emit("dim", (), type_, span, {"dim": operand.dim}, name=str(operand.dim))

    def _unfit(self, text: str, dtype: AnyDType, span: Span) -> None:
        whole = dtype.is_integer and "." in text
        self.report(
            "E2105",
            f"`{text}` does not fit dtype `{dtype}`",
            span,
            help="write it without a point" if whole and text.endswith(".0") else None,
        )

    def _none(self, expected: Type | None, span: Span) -> Value | None:
        if isinstance(expected, ErrorType):
            return None
        if expected is None:
            self.report("E2113", "the type of this `none` is not known here", span)
            return None
        if not isinstance(expected, OptionalType):
            self.report("E2101", f"expected `{expected}`, found `none`", span)
            return None
        return self.emit("none", (), expected, span)

    def _some(self, inner: Operand, expected: Type | None, span: Span) -> Value | None:
        want = expected.inner if isinstance(expected, OptionalType) else None
        value = self.coerce(inner, want, span)
        if value is None:
            return None
        made = self.emit("some", (value,), OptionalType(value.type), span)
        return self.retype(made, expected, span)

    # --- proofs --------------------------------------------------------------------------------

    def prove(self, relation: Relation, code: str, message: str, span: Span) -> bool:
        """Whether the facts give the relation; reports and suggests the clause when not."""
        if self.facts.proves(relation):
            return True
        self.report(
            code,
            message,
            span,
            notes=describe_facts(self.facts),
            help=where_help(self.facts, relation),
        )
        return False

    @contextmanager
    def dim_errors(self, span: Span) -> Iterator[None]:
        """Turns a dimension that grows too large into a diagnostic; the body is cut short."""
        try:
            yield
        except DimError as error:
            self.world.too_large(error, span)


def shape_text(type_: TensorType) -> str:
    return "[" + ", ".join(map(str, type_.shape)) + "]" if type_.shape else "of a scalar"


def value_type(operand: Operand) -> Type | None:
    """The operand's type when it has one of its own."""
    match operand:
        case ValueOperand(value):
            return value.type
        case ErrorOperand():
            return ERROR
        case _:
            return None


__all__ = ["BROKEN", "Context", "OpenRegion", "shape_text", "value_type"]
