"""The oracle: runs functions in NumPy, operation by operation, with every rounding they have.

Generic functions run as they are: generic arguments are worked out for each call. What single
operations mean stands in `linnet.ir.semantics`; here are control flow, calls, members and state.
No pass is used, so that passes and backends can be tested against it.

    ev = Evaluator(program, root="m::Model", generics={"H": 8}, params={"w.weight": array})
    logits = ev.run("m::Model.forward", [tokens])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linnet.diagnostics import InternalError
from linnet.dims import DimError
from linnet.ir.boundary import from_outside, to_outside
from linnet.ir.control import CONTROL
from linnet.ir.core import (
    NONE_DEFAULT,
    Block,
    Function,
    GenericVar,
    Op,
    Program,
    Region,
    SubVar,
    Value,
)
from linnet.ir.instances import Place, root_place
from linnet.ir.matching import bind_generics
from linnet.ir.renumber import substitute_attrs
from linnet.ir.semantics import SEMANTICS, Call, EvaluationError, Tensor
from linnet.types import GenericArg, Subst, TensorType

NativeMeaning = Callable[[Call], Any]


@dataclass(slots=True)
class Plan:
    """A function with its generics bound: each operation's concrete form, made when first met."""

    function: Function
    subst: Subst
    ops: dict[Op, Call] = field(default_factory=dict)  # without operands

    def concrete(self, op: Op) -> Call:
        call = self.ops.get(op)
        if call is None:
            types = tuple(self.subst.type(v.type) for v in op.results)
            inputs = tuple(self.subst.type(v.type) for v in op.operands)
            attrs = substitute_attrs(op, self.subst)
            call = self.ops[op] = Call(op.kind, (), attrs, types, inputs, op.span)
        return call


@dataclass(slots=True)
class Frame:
    """One call in progress."""

    evaluator: Evaluator
    plan: Plan
    receiver: Place | None
    values: dict[Value, Any]
    subs: dict[SubVar, Place] = field(default_factory=dict)

    def region(self, region: Region, args: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Runs a region with `args` for its parameters; gives its results."""
        self.values.update(zip(region.params, args, strict=True))
        for op in region.ops:
            results = self.evaluator.step(self, op)
            self.values.update(zip(op.results, results, strict=True))
        return tuple(self.values[value] for value in region.results)


class Evaluator:
    """Runs functions of a program, or of any mapping of functions and blocks.

    `root` names the block whose entries are run, `generics` its arguments. `params` are by path;
    an optional parameter or child block is there when the mapping has its path, or one below it.
    `state` is kept between runs and starts at zero; what a run that fails had written is undone.
    `natives` gives native operations their meaning by kernel.
    """

    def __init__(
        self,
        functions: Program | Mapping[str, Function],
        blocks: Mapping[str, Block] | None = None,
        *,
        root: str | None = None,
        generics: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        state: MutableMapping[str, Any] | None = None,
        natives: Mapping[str, NativeMeaning] | None = None,
        loop_limit: int = 1_000_000,
    ) -> None:
        if isinstance(functions, Program):
            blocks = functions.blocks if blocks is None else blocks
            functions = functions.functions
        self.functions: Mapping[str, Function] = functions
        self.blocks: Mapping[str, Block] = blocks or {}
        self.root = None if root is None else root_place(self.blocks, root, generics or {})
        self.params = dict(params or {})
        self.state: MutableMapping[str, Any] = {} if state is None else state
        self.natives = dict(natives or {})
        self.loop_limit = loop_limit
        self._plans: dict[tuple[str, tuple[GenericArg, ...]], Plan] = {}

    def run(
        self,
        name: str,
        inputs: Sequence[Any] | Mapping[str, Any] = (),
        generics: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs a function on arrays and Python numbers; its result in the same terms.

        Generics of the function that its inputs' shapes do not show are given by name.
        """
        function = self._function(name)
        values = self._inputs(function, inputs)
        args = self._args(function, values, generics or {})
        plan = self.plan(name, args)
        self._check_where(plan)
        self._check_inputs(plan, values)
        before = dict(self.state)
        try:
            with np.errstate(all="ignore"):
                result = self.call(plan, values, self.root if function.block else None)
        except BaseException as error:
            self.state.clear()
            self.state.update(before)
            if isinstance(error, RecursionError):
                raise EvaluationError(f"`{name}` calls too deep") from error
            raise
        return to_outside(function.body.results[0].type, result) if function.body.results else None

    def gradient(
        self,
        name: str,
        inputs: Sequence[Any],
        result: Any,
        gradient: Any,
        generics: Mapping[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Runs an op's `grad` clause on its inputs, its result and the result's gradient."""
        function = self._function(name)
        if function.grad is None:
            raise EvaluationError(f"`{name}` has no gradient")
        values = self._inputs(function, inputs)
        plan = self.plan(name, self._args(function, values, generics or {}))
        last = [
            from_outside(param.type, value)
            for param, value in zip(function.grad.params[-2:], (result, gradient), strict=True)
        ]
        given = dict(zip(function.grad.params, [*values, *last], strict=True))
        frame = Frame(self, plan, None, given)
        with np.errstate(all="ignore"):
            results = frame.region(function.grad.body, self._body_args(function.grad.body, frame))
        types = [value.type for value in function.grad.body.results]
        return tuple(to_outside(t, v) for t, v in zip(types, results, strict=True))

    # --- calls -----------------------------------------------------------------------------------

    def plan(self, name: str, args: tuple[GenericArg, ...]) -> Plan:
        """The function with its generics bound; one for each set of arguments."""
        key = (name, args)
        if key not in self._plans:
            function = self._function(name)
            pairs: dict[GenericVar, GenericArg] = {
                g.var: arg for g, arg in zip(function.generics, args, strict=True)
            }
            self._plans[key] = Plan(function, Subst.of(pairs))
        return self._plans[key]

    def call(self, plan: Plan, args: Sequence[Any], receiver: Place | None) -> Any:
        """The value that the function returns; None when it returns nothing."""
        function = plan.function
        values = {p.value: arg for p, arg in zip(function.params, args, strict=True)}
        frame = Frame(self, plan, receiver, values)
        results = frame.region(function.body, self._body_args(function.body, frame))
        return results[0] if results else None

    @staticmethod
    def _body_args(body: Region, frame: Frame) -> tuple[Any, ...]:
        # A body may list the function's parameters again as its own.
        return tuple(frame.values[param] for param in body.params)

    def step(self, frame: Frame, op: Op) -> tuple[Any, ...]:
        """Runs one operation; gives its results."""
        control = CONTROL.get(op.kind)
        try:
            if control is not None:
                return control(frame, op)
            concrete = frame.plan.concrete(op)
            operands = tuple(frame.values[value] for value in op.operands)
            call = Call(op.kind, operands, concrete.attrs, concrete.types, concrete.inputs, op.span)
            return (_checked(call, SEMANTICS[op.kind](call)),)
        except (MemoryError, OverflowError, DimError, ValueError) as error:
            # Tensors past what NumPy can hold, and divisions by a size of 0.
            raise EvaluationError(f"`{op.kind}` failed: {error}", op.span) from error

    def native(self, call: Call) -> Any:
        kernel = str(call.attrs["kernel"])
        if kernel not in self.natives:
            raise EvaluationError(f"the native `{kernel}` has no meaning here", call.span)
        return self.natives[kernel](call)

    # --- what a caller gives --------------------------------------------------------------------

    def _function(self, name: str) -> Function:
        function = self.functions.get(name)
        if function is None:
            raise EvaluationError(f"there is no function `{name}`")
        if function.broken:
            raise EvaluationError(f"`{name}` holds an error")
        return function

    @staticmethod
    def _inputs(function: Function, given: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        names = [param.name for param in function.params]
        if not isinstance(given, Mapping):
            if len(given) > len(names):
                raise EvaluationError(f"`{function.name}` takes {len(names)} inputs")
            given = dict(zip(names, given, strict=False))
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise EvaluationError(f"`{function.name}` has no parameter `{unknown[0]}`")
        values: list[Any] = []
        for param in function.params:
            if param.name in given:
                value = given[param.name]
            elif param.default is None:
                raise EvaluationError(f"`{function.name}` does not get its `{param.name}`")
            else:
                value = None if param.default == NONE_DEFAULT else param.default
            values.append(from_outside(param.type, value))
        return values

    def _args(
        self, function: Function, values: Sequence[Any], generics: Mapping[str, Any]
    ) -> tuple[GenericArg, ...]:
        outer = self.root.args if self.root is not None and function.block else {}
        return bind_generics(function, values, generics, outer)

    @staticmethod
    def _check_where(plan: Plan) -> None:
        for relation in plan.function.where:
            try:
                holds = plan.subst.relation(relation).evaluate({})
            except DimError:
                holds = False
            if not holds:
                raise EvaluationError(f"`{relation}` does not hold", plan.function.span)

    @staticmethod
    def _check_inputs(plan: Plan, values: Sequence[Any]) -> None:
        for param, value in zip(plan.function.params, values, strict=True):
            type_ = plan.subst.type(param.type)
            if isinstance(type_, TensorType):
                wanted = Tensor.of(type_)
                if value.shape != wanted.shape or value.dtype != wanted.numpy:
                    raise EvaluationError(
                        f"`{param.name}` is {value.dtype}{list(value.shape)}, not {type_}"
                    )


def _checked(call: Call, result: Any) -> Any:
    """The result, which has to be what its type says: the oracle looks at itself."""
    (type_,) = call.types
    if not isinstance(type_, TensorType):
        return result
    wanted, array = Tensor.of(type_), np.asarray(result)
    if array.shape != wanted.shape or array.dtype != wanted.numpy:
        raise InternalError(
            "ir.evaluate",
            f"`{call.kind}` gave {array.dtype}{list(array.shape)} for {type_}",
            call.span,
        )
    return array
