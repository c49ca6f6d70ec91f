"""An op's own gradient, as a `jax.custom_vjp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.backends.expr import Expr
from linnet.diagnostics import InternalError
from linnet.dims import Symbol
from linnet.ir import Grad, Param
from linnet.jax.emit.aggregates import whole_rank
from linnet.jax.emit.function import (
    bind_param,
    shown_sizes,
    size_lines,
    size_name,
    write_region,
)
from linnet.jax.emit.writer import Writer
from linnet.types import OptionalType, TensorType, Type

if TYPE_CHECKING:
    from linnet.jax.emit.module import Callee, ModuleWriter


def write_gradient(module: ModuleWriter, callee: Callee, lines: list[str]) -> list[str]:
    """The op's function as one that JAX differentiates by its `grad` clause.

    Sizes passed as integers come last among the function's arguments and first in the backward
    one's, as `nondiff_argnums` has it.
    """
    grad = callee.function.grad
    if grad is None:
        raise InternalError("jax.emit", f"{callee.name} has no gradient", callee.function.span)
    count = len(callee.function.params)
    static = range(count, count + len(callee.size_names))
    how = (
        f"@partial(jax.custom_vjp, nondiff_argnums={tuple(static)})"
        if static
        else ("@jax.custom_vjp")
    )
    forward, backward = f"{callee.name}_forward", f"{callee.name}_backward"
    names = [f"a{k}" for k in range(count)]
    passed = ", ".join([*names, *callee.size_names])
    at = next(k for k, line in enumerate(lines) if line.startswith("def "))
    return [
        *lines[:at], how, *lines[at:], "", "",
        f"def {forward}({passed}):",
        f"    result = {callee.name}({passed})",
        f"    return result, ({', '.join([*names, 'result'])})", "", "",
        *_backward(module, callee, grad, backward), "", "",
        f"{callee.name}.defvjp({forward}, {backward})",
    ]  # fmt: skip


def _backward(module: ModuleWriter, callee: Callee, grad: Grad, name: str) -> list[str]:
    function = callee.function
    w = Writer(module, name, function)
    w.count(grad.body)
    kept = w.names.fresh("kept")
    for generic in function.generics:
        if isinstance(generic.var, Symbol):
            w.size_names[generic.var] = w.names.fresh(generic.name)
    sizes = [size_name(w, function, k) for k in callee.size_args]
    wanted = [*(p.name for p in function.params), grad.params[-2].name or "result"]
    names = [w.names.fresh(n) for n in wanted]
    slope = w.names.fresh(grad.params[-1].name or "slope")
    for value, each in zip(grad.params, [*names, slope], strict=True):
        bind_param(w, value, each, False)
    write_region(w, grad.body)
    given = _gradients(w, callee, grad)
    w.flush(frozenset().union(*(e.names for e in given)))
    texts = iter(e.text for e in given)
    results = [next(texts) if _is_float(p.type) else "None" for p in function.params]
    ending = "," if len(results) == 1 else ""
    w.line(f"return ({', '.join(results)}{ending})")
    params = tuple(Param(n, v) for n, v in zip(wanted, grad.params, strict=False))
    shown = {s: at for s, at in shown_sizes(params).items() if w.size_names[s] not in sizes}
    return [
        f"def {name}({', '.join([*sizes, kept, slope])}):",
        f"    {', '.join(names)} = {kept}",
        *size_lines(w, params, names, shown),
        *w.lines,
    ]


def _gradients(w: Writer, callee: Callee, grad: Grad) -> list[Expr]:
    """The gradients of the float tensor parameters, in order."""
    value = grad.body.results[0]
    count = sum(_is_float(p.type) for p in callee.function.params)
    if count == 1:
        return [w.component(value)]
    whole = w.settle(value, "gradients")
    kinds = [p.type for p in callee.function.params if _is_float(p.type)]
    return [
        Expr(f"{whole.text}[{k}]", rank=whole_rank(kind), names=whole.names)
        for k, kind in enumerate(kinds)
    ]


def _is_float(type_: Type) -> bool:
    inner = type_.inner if isinstance(type_, OptionalType) else type_
    return isinstance(inner, TensorType) and bool(inner.shape) and inner.dtype.is_float
