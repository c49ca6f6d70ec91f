"""An op's own gradient, as a `jax.custom_vjp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.backends.emit.dtypes import inner_type, rank_of
from linnet.backends.expr import Expr
from linnet.diagnostics import InternalError
from linnet.ir import Grad, Param
from linnet.jax.emit.function import HANDLERS
from linnet.jax.emit.writer import Writer
from linnet.types import OptionalType, TensorType, Type

if TYPE_CHECKING:
    from linnet.jax.emit.module import Callee, ModuleWriter


def write_gradient(module: ModuleWriter, callee: Callee, lines: list[str]) -> list[list[str]]:
    """The op's function, `lines`, as one that JAX differentiates by its `grad` clause.

    Sizes passed as integers come last among the function's arguments and first in the backward
    one's, as `nondiff_argnums` has it.
    """
    grad = callee.function.grad
    if grad is None:
        raise InternalError("jax.emit", f"{callee.name} has no gradient", callee.function.span)
    count = len(callee.function.params)
    static = range(count, count + len(callee.size_names))
    how = f"@partial(jax.custom_vjp, nondiff_argnums={tuple(static)})"
    forward, backward = (module.names.fresh(f"{callee.name}_{w}") for w in ("forward", "backward"))
    local = module.names.inner()
    sizes = [local.fresh(name) for name in callee.size_names]
    names, result = [local.fresh(f"a{k}") for k in range(count)], local.fresh("result")
    passed = ", ".join([*names, *sizes])
    at = next(k for k, line in enumerate(lines) if line.startswith("def "))
    return [
        [*lines[:at], how if static else "@jax.custom_vjp", *lines[at:]],
        [
            f"def {forward}({passed}):",
            f"    {result} = {callee.name}({passed})",
            f"    return {result}, ({', '.join([*names, result])})",
        ],
        _backward(module, callee, grad, backward),
        [f"{callee.name}.defvjp({forward}, {backward})"],
    ]


def _backward(module: ModuleWriter, callee: Callee, grad: Grad, name: str) -> list[str]:
    function = callee.function
    w = Writer(module, function, grad.body)
    kept = w.names.fresh("kept")
    w.name_sizes()
    sizes = w.size_variables(callee.size_args)
    wanted = [*(p.name for p in function.params), grad.params[-2].name or "result"]
    wanted_slope = grad.params[-1].name or "slope"
    *names, slope = (
        w.bind(value, each, False)
        for value, each in zip(grad.params, [*wanted, wanted_slope], strict=True)
    )
    HANDLERS.write(w, grad.body)
    given = _gradients(w, callee, grad)
    w.flush(frozenset().union(*(e.names for e in given.values())))
    results = [given[p.name].text if p.name in given else "None" for p in function.params]
    ending = "," if len(results) == 1 else ""
    w.line(f"return ({', '.join(results)}{ending})")
    params = tuple(Param(n, v) for n, v in zip(wanted, grad.params, strict=False))
    return [
        f"def {name}({', '.join([*sizes, kept, slope])}):",
        f"    {', '.join(names)} = {kept}",
        *w.body_lines(params, names, given=sizes),
    ]


def _gradients(w: Writer, callee: Callee, grad: Grad) -> dict[str, Expr]:
    """The gradients of the function's float tensor parameters, by name.

    The clause gives one for each such parameter of the op as it is declared: an optional one that
    is known to be there is a parameter by itself here, and one known to be absent is none.
    """
    value = grad.body.results[0]
    declared = w.module.program.functions[callee.origin].params
    floats = [p for p in declared if _is_float(p.type)]
    own = {p.name: p.type for p in callee.function.params}
    there = [(k, p, own[p.name]) for k, p in enumerate(floats) if p.name in own]
    if not there:
        return {}
    held = [isinstance(p.type, OptionalType) and not isinstance(t, OptionalType)
            for _, p, t in there]  # fmt: skip
    if len(floats) == 1 and not held[0]:
        return {floats[0].name: w.component(value)}
    whole = w.settle(value, "gradients")
    found = {}
    for (place, param, kind), inside in zip(there, held, strict=True):
        part = f"{whole.text}[{place}]" if len(floats) > 1 else whole.text
        text = f"{part}[1]" if inside else part
        found[param.name] = Expr(text, rank=rank_of(kind), names=whole.names)
    return found


def _is_float(type_: Type) -> bool:
    inner = inner_type(type_)
    return isinstance(inner, TensorType) and bool(inner.shape) and inner.dtype.is_float
