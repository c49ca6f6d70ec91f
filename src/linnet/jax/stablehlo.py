"""An entry as a StableHLO module.

The module is what JAX lowers the generated program to: jaxlib's MLIR builds and verifies it. Each
argument and result of `main` says what it is in an attribute:

    linnet.parameter = "layers.0.mlp.up.weight"
    linnet.state     = "layers.0.attention.cache_k"     of an argument, and of the result after it
    linnet.input     = "tokens"

Shapes are static: every size of the entry has to be known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import jax

from linnet.backends.inputs import numpy_dtype
from linnet.backends.present import present_paths
from linnet.diagnostics import InternalError
from linnet.ir import Program
from linnet.jax.runtime.arrays import settings
from linnet.jax.runtime.code import EntryCode, Settings, compiled, execute, generate
from linnet.jax.runtime.tree import Trees
from linnet.passes import BindError, Binding, bind
from linnet.types import (
    DType,
    EnumType,
    GenericArg,
    OptionalType,
    StructType,
    TensorType,
    TupleType,
    Type,
)
from linnet.weights import manifest_of

PARAMETER, STATE, INPUT = "linnet.parameter", "linnet.state", "linnet.input"


def stablehlo(
    program: Program,
    block: str | None,
    entry: str,
    generics: Mapping[str, int | str] | None = None,
    *,
    sizes: Mapping[str, GenericArg] | None = None,
    numerics: str = "fast",
    present: Collection[str] = (),
) -> str:
    """The text of the StableHLO module of one entry. Optional parameters are absent unless their
    paths are in `present`."""
    binding = bind(program, block, generics or {})
    there = present_paths(manifest_of(binding), present)
    return str(build(binding, entry, sizes or {}, numerics, there))


def build(
    binding: Binding, entry: str, sizes: Mapping[str, GenericArg], numerics: str,
    present: frozenset[str],
) -> Any:  # fmt: skip
    """The MLIR module, verified. Raises `BindError` for a size of the entry that is not given."""
    function = binding.program.entries(binding.block)[entry]
    own = set(binding.generics)
    missing = [g.name for g in function.generics if g.name not in own and g.name not in sizes]
    if missing:
        raise BindError(
            *(f"StableHLO has static shapes: `{entry}` needs the generic `{n}`" for n in missing)
        )
    how = Settings(numerics, "cpu", whole=True, alone=True)
    title = str(binding.block or binding.program.root)
    code = generate(binding, entry, how, present, sizes, title)
    callee = code.callee
    with settings():
        loaded = execute(code, binding, entry)
        run = compiled(code, binding, loaded.namespace[callee.name], keep_unused=True)
        arguments, names = _arguments(binding, present, code, loaded.namespace)
        module = run.lower(*arguments).compiler_ir("stablehlo")
    results = list(names[STATE]) if callee.writes else []
    _name(module, names, results)
    if not module.operation.verify():
        raise InternalError("jax.stablehlo", f"the module of `{entry}` is not valid")
    return module


def _arguments(
    binding: Binding, present: frozenset[str], code: EntryCode, namespace: Mapping[str, Any]
) -> tuple[list[Any], dict[str, list[str]]]:
    """The entry's arguments as shapes, and the names of their arrays in order."""
    callee, structs = code.callee, code.generated.structs
    trees = Trees(binding)
    kinds: dict[str, TensorType] = {p.path: p.type for p in binding.params}
    kinds.update((s.path, s.type) for s in binding.states)
    names: dict[str, list[str]] = {PARAMETER: [], STATE: [], INPUT: []}
    arguments: list[Any] = []
    if callee.takes_block:
        there = {path: kind for path, kind in kinds.items() if path in present}
        shapes = {path: _abstract(kind) for path, kind in there.items()}
        arguments.append(trees.params(shapes.get))
        names[PARAMETER] = jax.tree.leaves(trees.params({path: path for path in there}.get))
    if callee.takes_state:
        arguments.append(trees.states(lambda path: _abstract(kinds[path])))
        names[STATE] = jax.tree.leaves(trees.states(lambda path: path))
    for param in callee.function.params:
        made = _shape(param.type, namespace, structs)
        arguments.append(made)
        count = len(jax.tree.leaves(made))
        names[INPUT] += [param.name] if count == 1 else [f"{param.name}.{k}" for k in range(count)]
    return arguments, names


def _abstract(type_: TensorType) -> Any:
    assert isinstance(type_.dtype, DType)
    shape = tuple(d.constant or 0 for d in type_.dims)
    return jax.ShapeDtypeStruct(shape, numpy_dtype(type_.dtype))


def _shape(type_: Type, namespace: Mapping[str, Any], structs: Mapping[str, str]) -> Any:
    match type_:
        case TensorType():
            return _abstract(type_)
        case TupleType(items):
            return tuple(_shape(t, namespace, structs) for t in items)
        case StructType(path=path, fields=fields):
            made = namespace[structs[path]]
            return made(*(_shape(t, namespace, structs) for _, t in fields))
        case OptionalType(inner):
            flag = jax.ShapeDtypeStruct((), numpy_dtype(DType.BOOL))
            return flag, _shape(inner, namespace, structs)
        case EnumType():
            return jax.ShapeDtypeStruct((), numpy_dtype(DType.I32))
        case _:
            raise InternalError("jax.stablehlo", f"{type_} is no input")


def _name(module: Any, names: Mapping[str, list[str]], states: list[str]) -> None:
    """Puts the names on `main`'s arguments, and on the last results, which are the states."""
    from jaxlib.mlir import ir

    with module.context:
        main = next(op for op in module.body.operations if _symbol(op) == "main")
        wanted = [(kind, name) for kind in (PARAMETER, STATE, INPUT) for name in names[kind]]
        given = [dict(_pairs(a)) for a in main.attributes["arg_attrs"]]
        if len(given) != len(wanted):
            raise InternalError("jax.stablehlo", f"{len(given)} arguments for {len(wanted)} names")
        for attrs, (kind, name) in zip(given, wanted, strict=True):
            attrs[kind] = ir.StringAttr.get(name)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in given])
        if states:
            out = [dict(_pairs(a)) for a in main.attributes["res_attrs"]]
            for attrs, path in zip(out[len(out) - len(states) :], states, strict=True):
                attrs[STATE] = ir.StringAttr.get(path)
            main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in out])


def _symbol(op: Any) -> str:
    return str(op.attributes["sym_name"]).strip('"')


def _pairs(attrs: Any) -> list[tuple[str, Any]]:
    return [(named.name, named.attr) for named in attrs]
