"""Rules of tuples, structs, optionals, enums and of a block's members."""

from __future__ import annotations

from linnet.ir.shape_rules.case import Case, rule
from linnet.types import EnumType, OptionalType, StructType, TupleType, Type


@rule("tuple")
def _tuple(case: Case) -> tuple[Type, ...]:
    return (TupleType(case.operands),)


@rule("tuple_get")
def _tuple_get(case: Case) -> tuple[Type, ...]:
    whole = case.operands[0]
    if not isinstance(whole, TupleType):
        raise case.fail(f"takes a tuple, not {whole}")
    return (whole.items[case.axis(case.attrs["index"], len(whole.items))],)


@rule("struct")
def _struct(case: Case) -> tuple[Type, ...]:
    result = case.hinted
    if not isinstance(result, StructType):
        raise case.fail(f"gives a struct, not {result}")
    if len(result.fields) != len(case.operands):
        raise case.fail(f"{result} has {len(result.fields)} fields")
    for (name, wanted), given in zip(result.fields, case.operands, strict=True):
        if not case.same_type(wanted, given):
            raise case.fail(f"field `{name}` is {wanted}, not {given}")
    return (result,)


@rule("struct_get")
def _struct_get(case: Case) -> tuple[Type, ...]:
    whole, name = case.operands[0], case.attrs["field"]
    field = whole.field(name) if isinstance(whole, StructType) else None
    if field is None:
        raise case.fail(f"{whole} has no field `{name}`")
    return (field,)


@rule("some")
def _some(case: Case) -> tuple[Type, ...]:
    return (OptionalType(case.operands[0]),)


@rule("none")
def _none(case: Case) -> tuple[Type, ...]:
    if not isinstance(case.hinted, OptionalType):
        raise case.fail(f"gives an optional, not {case.hinted}")
    return (case.hinted,)


@rule("enum")
def _enum(case: Case) -> tuple[Type, ...]:
    result = case.hinted
    if not isinstance(result, EnumType):
        raise case.fail(f"gives an enum, not {result}")
    case.axis(case.attrs["case"], len(result.cases))
    return (result,)


@rule("param", "state_read")
def _member(case: Case) -> tuple[Type, ...]:
    case.check_ref("ref")
    return (case.hinted,)


@rule("state_write")
def _state_write(case: Case) -> tuple[Type, ...]:
    case.check_ref("ref")
    case.tensor(0)
    return ()
