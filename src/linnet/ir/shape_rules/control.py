"""Rules of control flow and calls: what goes into regions and comes out of them."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.dims import Dim
from linnet.ir.core import Ref, Region, SubVar
from linnet.ir.shape_rules.case import Case, check_dtype, rule
from linnet.types import BOOL, I64, EnumType, OptionalType, TensorType, Type


def _results(region: Region) -> tuple[Type, ...]:
    return tuple(value.type for value in region.results)


def _check_types(case: Case, what: str, given: Sequence[Type], wanted: Sequence[Type]) -> None:
    if len(given) != len(wanted) or not all(map(case.same_type, given, wanted)):
        shown = [f"({', '.join(map(str, types))})" for types in (given, wanted)]
        raise case.fail(f"{what} are {shown[0]}, not {shown[1]}")


def _check_params(case: Case, region: Region, wanted: Sequence[Type]) -> None:
    _check_types(case, "a region's parameters", [v.type for v in region.params], wanted)


def _branches(case: Case) -> tuple[Type, ...]:
    """The types that every region gives."""
    if not case.regions:
        raise case.fail("has no regions")
    first = _results(case.regions[0])
    for other in case.regions[1:]:
        _check_types(case, "a branch's results", _results(other), first)
    return first


@rule("if")
def _if(case: Case) -> tuple[Type, ...]:
    _check_types(case, "the conditions", case.operands, (BOOL,))
    for region in case.regions:
        _check_params(case, region, ())
    return _branches(case)


@rule("match_optional")
def _match_optional(case: Case) -> tuple[Type, ...]:
    subject = case.operands[0]
    if not isinstance(subject, OptionalType):
        raise case.fail(f"takes an optional, not {subject}")
    _check_params(case, case.regions[0], (subject.inner,))
    _check_params(case, case.regions[1], ())
    return _branches(case)


@rule("match_enum")
def _match_enum(case: Case) -> tuple[Type, ...]:
    subject, cases = case.operands[0], case.attrs["cases"]
    if not isinstance(subject, EnumType):
        raise case.fail(f"takes an enum, not {subject}")
    if len(cases) != len(case.regions):
        raise case.fail(f"has {len(case.regions)} regions for {len(cases)} sets of cases")
    named = sorted(number for group in cases for number in group)
    if named != list(range(len(subject.cases))):
        raise case.fail(f"the cases {named} are not each of {subject}'s once")
    for region in case.regions:
        _check_params(case, region, ())
    return _branches(case)


@rule("match_sub")
def _match_sub(case: Case) -> tuple[Type, ...]:
    case.check_ref("ref")
    for region in case.regions:
        _check_params(case, region, ())
    return _branches(case)


@rule("while")
def _while(case: Case) -> tuple[Type, ...]:
    condition, step = case.regions
    _check_params(case, condition, case.operands)
    _check_types(case, "the condition's results", _results(condition), (BOOL,))
    _check_params(case, step, case.operands)
    _check_types(case, "the loop's results", _results(step), case.operands)
    return case.operands


@rule("for")
def _for(case: Case) -> tuple[Type, ...]:
    if len(case.operands) < 2:
        raise case.fail("takes the first and the past-the-last number")
    first, carried, yields = case.tensor(0), case.operands[2:], case.attrs["yields"]
    check_dtype(case, first.dtype, "integer")
    _check_types(case, "the bounds", case.operands[:2], (first.with_shape(()),) * 2)
    (step,) = case.regions
    _check_params(case, step, (first, *carried))
    given = _results(step)
    _check_types(case, "the carried results", given[: len(carried)], carried)
    if not isinstance(yields, int) or yields < 0 or len(given) != len(carried) + yields:
        raise case.fail(f"gives {len(given)} values for {len(carried)} carried, yields {yields}")
    if not yields:
        return carried
    if len(case.hint) != len(given):
        raise case.fail("the types of the stacked values have to be given")
    stacks = zip(case.hint[len(carried) :], given[len(carried) :], strict=True)
    return (*carried, *(_stacked(case, stack, item) for stack, item in stacks))


def _stacked(case: Case, stack: Type, item: Type) -> Type:
    """The hinted type of one value's stack; only its first extent is the hint's own."""
    if not isinstance(item, TensorType) or not isinstance(stack, TensorType) or not stack.shape:
        raise case.fail(f"{stack} does not stack {item}")
    case.dims_at(stack.shape, 0)
    if not case.same_type(stack.with_shape(stack.shape[1:]), item):
        raise case.fail(f"{stack} does not stack {item}")
    return stack


@rule("static_for")
def _static_for(case: Case) -> tuple[Type, ...]:
    if not (isinstance(case.attrs["start"], Dim) and isinstance(case.attrs["stop"], Dim)):
        raise case.fail("`start` and `stop` are dimensions")
    _check_params(case, case.regions[0], (I64, *case.operands))
    _check_types(case, "the loop's results", _results(case.regions[0]), case.operands)
    return case.operands


@rule("for_subs")
def _for_subs(case: Case) -> tuple[Type, ...]:
    case.check_ref("array")
    if not isinstance(case.attrs["var"], SubVar):
        raise case.fail("`var` names no block")
    _check_params(case, case.regions[0], case.operands)
    _check_types(case, "the loop's results", _results(case.regions[0]), case.operands)
    return case.operands


@rule("call")
def _call(case: Case) -> tuple[Type, ...]:
    receiver = case.attrs["receiver"]
    if receiver is not None and not isinstance(receiver, Ref):
        raise case.fail(f"`receiver` is {receiver!r}, not a reference")
    return case.hint


@rule("native")
def _native(case: Case) -> tuple[Type, ...]:
    return case.hint
