"""Which scalars are Python numbers in generated code, and which are arrays of rank 0.

Sizes, counters of unrolled loops and integer arithmetic on them stay on the host, and entries'
scalars, branches and loops where the backend has them there. Float arithmetic stays there only when
its value is known while generating, since Python rounds to f64. A parameter of a function is on the
host when every caller has it there; a loop's carried value when it starts and stays there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from linnet.backends import folding
from linnet.backends.folding import Number
from linnet.ir import Function, Grad, Op, Region, Value
from linnet.types import DType, EnumType, TensorType, Type

_INTEGER_BINARY = frozenset(
    "add sub mul div rem min max and or xor shl shr eq ne lt le gt ge".split()
)
_UNARY = frozenset("neg not abs exp log sqrt rsqrt sin cos tanh erf floor".split())


@dataclass
class Hosts:
    """The analysis' answer: host values by id with their constant (None: known when run)."""

    params: dict[str, list[bool]] = field(default_factory=dict)
    results: dict[str, list[bool]] = field(default_factory=dict)
    values: dict[int, Number | None] = field(default_factory=dict)
    rolled: frozenset[Op] = frozenset()  # static loops that are loops of the device
    enums: bool = True  # whether cases of enums are host numbers
    eager: bool = False  # whether branches, loops and gradients run in Python

    def is_host(self, value: Value) -> bool:
        return value.id in self.values

    def may_be(self, type_: Type) -> bool:
        """Whether values of this type can be host numbers at all."""
        return is_scalar(type_) and (self.enums or isinstance(type_, TensorType))

    def repeats(self, op: Op) -> bool:
        """Whether a loop runs in Python, or is written out."""
        return self.eager or (op.kind in ("static_for", "for_subs") and op not in self.rolled)


def is_scalar(type_: Type) -> bool:
    return (isinstance(type_, TensorType) and not type_.shape) or isinstance(type_, EnumType)


def analyze(
    functions: Mapping[str, Function],
    device: Collection[str] = (),
    rolled: frozenset[Op] = frozenset(),
    enums: bool = True,
    eager: bool = False,
) -> Hosts:
    """`functions` callees before callers. Scalars of functions in `device` come and go as arrays;
    loops in `rolled`, and unless `eager` every `if`, `while` and `for`, run on the device."""
    hosts = Hosts(rolled=rolled, enums=enums, eager=eager)
    for name, function in functions.items():
        host = name not in device
        hosts.params[name] = [host and hosts.may_be(p.type) for p in function.params]
        hosts.results[name] = [host and hosts.may_be(t) for t in function.result_types]
    changed = True
    while changed:
        changed = False
        hosts.values.clear()
        for name, function in functions.items():
            changed |= _Local(hosts).function(name, function)
    return hosts


class _Local:
    def __init__(self, hosts: Hosts) -> None:
        self.hosts, self.values = hosts, hosts.values
        self.changed = False

    def function(self, name: str, function: Function) -> bool:
        for param, host in zip(function.params, self.hosts.params[name], strict=True):
            if host:
                self.values[param.value.id] = None
        self.region(function.body)
        if function.grad is not None and self.hosts.eager:
            self.gradient(name, function.grad)
        kept = self.hosts.results[name]
        for k, value in enumerate(function.body.results):
            if kept[k] and value.id not in self.values:
                kept[k] = False
                self.changed = True
        return self.changed

    def gradient(self, name: str, grad: Grad) -> None:
        """The parameters come as the function's do, result and gradient as arrays."""
        for value, host in zip(grad.params, self.hosts.params[name], strict=False):
            if host:
                self.values[value.id] = None
        self.region(grad.body)

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        match op.kind:
            case "const":
                self.values[op.result.id] = op.attrs["value"]
            case "dim":
                self.dim(op)
            case "enum":
                if self.hosts.enums:
                    self.values[op.result.id] = None
            case "call":
                self.call(op)
            case "if" | "match_optional" | "match_enum" | "match_sub":
                self.branches(op)
            case "while" | "for" | "static_for" | "for_subs":
                self.loop(op)
            case _:
                for region in op.regions:
                    self.region(region)
                if op.operands and all(is_scalar(v.type) for v in (*op.operands, *op.results)):
                    self.scalar(op)

    def dim(self, op: Op) -> None:
        dtype = _dtype(op.result)
        constant = op.attrs["dim"].constant
        if constant is not None:
            self.values[op.result.id] = folding.convert(constant, dtype)
        elif not dtype.is_float:
            self.values[op.result.id] = None

    def scalar(self, op: Op) -> None:
        if not all(v.id in self.values for v in op.operands):
            return
        known = [self.values[v.id] for v in op.operands]
        if op.kind == "select":
            self.values[op.result.id] = None
            return
        if op.kind in ("eq", "ne") and isinstance(op.operands[0].type, EnumType):
            self.values[op.result.id] = None
            return
        if op.kind != "cast" and op.kind not in _UNARY and op.kind not in _INTEGER_BINARY:
            return
        folded = None
        if all(k is not None for k in known):
            folded = fold(op, [k for k in known if k is not None])
        dtype, source = _dtype(op.result), _dtype(op.operands[0])
        integral = not dtype.is_float and not source.is_float
        comparison = dtype is DType.BOOL and op.kind != "cast"
        if folded is not None or integral or comparison:
            self.values[op.result.id] = folded

    def call(self, op: Op) -> None:
        callee = op.attrs["callee"]
        params = self.hosts.params.get(callee)
        if params is None:
            return
        for k, operand in enumerate(op.operands):
            if params[k] and operand.id not in self.values:
                params[k] = False
                self.changed = True
        for value, host in zip(op.results, self.hosts.results[callee], strict=True):
            if host:
                self.values[value.id] = None

    def branches(self, op: Op) -> None:
        for region in op.regions:
            self.region(region)
        if not self.hosts.eager:
            return
        for k, value in enumerate(op.results):
            known = all(region.results[k].id in self.values for region in op.regions)
            if known and self.hosts.may_be(value.type):
                self.values[value.id] = None

    def loop(self, op: Op) -> None:
        if not self.hosts.repeats(op):
            for region in op.regions:
                self.region(region)
            return
        operands = op.operands[2:] if op.kind == "for" else op.operands
        host = [self.hosts.may_be(v.type) and v.id in self.values for v in operands]
        body = op.regions[-1]
        while True:
            for region in op.regions:
                self.counter(op)
                skip = 1 if region is body and op.kind in ("for", "static_for") else 0
                for k, kept in enumerate(host):
                    if kept:
                        self.values[region.params[skip + k].id] = None
                    else:
                        self.values.pop(region.params[skip + k].id, None)
                self.region(region)
            after = [h and body.results[k].id in self.values for k, h in enumerate(host)]
            if after == host:
                break
            host = after
            self.forget(op)
        for k, kept in enumerate(host):
            if kept:
                self.values[op.results[k].id] = None

    def counter(self, op: Op) -> None:
        """A counting loop's index is a host number where the loop runs on the host."""
        if op.kind in ("for", "static_for") and self.hosts.repeats(op):
            self.values[op.regions[0].params[0].id] = None

    def forget(self, op: Op) -> None:
        """Drops what was concluded inside the loop, to conclude it again from less."""
        for region in op.regions:
            for inner in region.ops:
                for value in inner.results:
                    self.values.pop(value.id, None)
                self.forget(inner)
            for value in region.params:
                self.values.pop(value.id, None)


def fold(op: Op, known: Sequence[Number]) -> Number | None:
    """The value of a scalar operation on known operands, where it is specified."""
    dtype = _dtype(op.operands[0])
    if op.kind == "cast":
        return folding.convert(known[0], _dtype(op.result))
    if op.kind in _UNARY:
        return folding.unary(op.kind, known[0], dtype)
    return folding.binary(op.kind, known[0], known[1], dtype)


def _dtype(value: Value) -> DType:
    type_ = value.type
    if isinstance(type_, TensorType) and isinstance(type_.dtype, DType):
        return type_.dtype
    return DType.I64
