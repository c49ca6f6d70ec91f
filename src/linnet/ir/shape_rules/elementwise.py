"""Rules of constants and of elementwise operations."""

from __future__ import annotations

from linnet.dims import Dim
from linnet.ir.shape_rules.case import Case, check_dtype, rule
from linnet.types import BOOL, DType, EnumType, TensorType, Type


@rule("const")
def _const(case: Case) -> tuple[Type, ...]:
    result, value = case.hinted_tensor, case.attrs["value"]
    if result.shape:
        raise case.fail(f"gives a scalar, not {result}")
    if isinstance(value, bool):
        check_dtype(case, result.dtype, "bool")
    elif isinstance(value, float):
        check_dtype(case, result.dtype, "float")
    elif isinstance(value, int):
        check_dtype(case, result.dtype, "numeric")
    else:
        raise case.fail(f"{value!r} is not a scalar")
    return (result,)


@rule("dim")
def _dim(case: Case) -> tuple[Type, ...]:
    result = case.hinted_tensor
    check_dtype(case, result.dtype, "numeric")
    if result.shape or not isinstance(case.attrs["dim"], Dim):
        raise case.fail("gives one dimension as a scalar")
    return (result,)


@rule("iota")
def _iota(case: Case) -> tuple[Type, ...]:
    result = case.hinted_tensor
    check_dtype(case, result.dtype)
    if len(result.shape) != 1:
        raise case.fail(f"gives one axis, not {result}")
    case.dims_at(result.shape, 0)
    return (result,)


@rule("cast")
def _cast(case: Case) -> tuple[Type, ...]:
    result, x = case.hinted_tensor, case.tensor(0)
    if not case.same_shape(result.shape, x.shape):
        raise case.fail(f"keeps the shape of {x}, not {result}")
    return (result,)


@rule(
    "neg", "not", "abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor"
)  # fmt: skip
def _unary(case: Case) -> tuple[Type, ...]:
    x = case.tensor(0)
    check_dtype(case, x.dtype)
    return (x,)


def _two_alike(case: Case, first: int = 0) -> TensorType:
    a, b = case.tensor(first), case.tensor(first + 1)
    if a.dtype != b.dtype or not case.same_shape(a.shape, b.shape):
        raise case.fail(f"takes operands of one type, not {a} and {b}")
    return a


@rule("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr")
def _binary(case: Case) -> tuple[Type, ...]:
    type_ = _two_alike(case)
    check_dtype(case, type_.dtype)
    return (type_,)


@rule("eq", "ne", "lt", "le", "gt", "ge")
def _compare(case: Case) -> tuple[Type, ...]:
    if case.kind in ("eq", "ne") and isinstance(case.operands[0], EnumType):
        if case.operands[0] != case.operands[1]:
            raise case.fail(f"takes one enum, not {case.operands[0]} and {case.operands[1]}")
        return (BOOL,)
    type_ = _two_alike(case)
    check_dtype(case, type_.dtype)
    return (type_.with_dtype(DType.BOOL),)


@rule("select")
def _select(case: Case) -> tuple[Type, ...]:
    condition, type_ = case.tensor(0), _two_alike(case, 1)
    if condition.dtype is not DType.BOOL or not case.same_shape(condition.shape, type_.shape):
        raise case.fail(f"takes a condition of the shape of {type_}, not {condition}")
    return (type_,)
