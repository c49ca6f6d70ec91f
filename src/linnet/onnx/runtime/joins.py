"""Products of one input by several weights as one product, where the input has few rows.

Reading a weight is then all the work, and one large matrix is read faster than several small ones.
With many rows the pieces would have to be copied out of the joint result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from linnet.onnx.emit.entry import Written
from linnet.onnx.emit.finish import FEW, ROWS


def join_products(
    written: Written, join: Callable[[Sequence[str]], bool]
) -> dict[str, tuple[str, ...]]:
    """Joins what `join` agrees to of the main graph's products with weights that are inputs; gives
    the paths that every weight input of the model stands for."""
    graph: ir.Graph = written.model.graph
    paths = {name: path for path, name in written.params.items()}
    bound = {name: (path,) for name, path in paths.items()}
    joints: dict[tuple[str, ...], _Joint] = {}
    for group in list(_groups(graph, paths)):
        weights = [node.inputs[1] for node in group if node.inputs[1] is not None]
        members = tuple(paths[_name(weight)] for weight in weights)
        if join(members):
            if members not in joints:
                joints[members] = joint = _joint(graph, weights)
                bound[_name(joint.weight)] = members
            _replace(graph, group, joints[members])
    return bound


def _groups(graph: ir.Graph, paths: dict[str, str]) -> Iterable[list[ir.Node]]:
    """Products of one value by different weights of one width."""
    found: dict[tuple[object, ...], list[ir.Node]] = {}
    for node in graph:
        if node.op_type != "Gemm" or len(node.inputs) != 2:
            continue
        x, weight = node.inputs
        rows = node.meta.get(ROWS)
        if weight is None or _name(weight) not in paths or rows is None or rows > FEW:
            continue
        if node.attributes["transB"].as_int() == 1 and weight.shape is not None:
            key = (id(x), weight.shape[1], weight.dtype)
            found.setdefault(key, []).append(node)
    return (group for group in found.values() if len(group) > 1)


@dataclass(frozen=True, slots=True)
class _Joint:
    """A joint weight's input, and the list of its parts' rows."""

    weight: ir.Value
    sizes: ir.Value


def _joint(graph: ir.Graph, weights: Sequence[ir.Value]) -> _Joint:
    shapes = [[int(d) for d in w.shape] for w in weights if w.shape is not None]  # type: ignore[call-overload]
    rows = [shape[0] for shape in shapes]
    name = " + ".join(map(_name, weights))
    weight = ir.Value(name=name, type=weights[0].type, shape=ir.Shape((sum(rows), shapes[0][1])))
    graph.inputs.append(weight)
    sizes = ir.Value(
        name=f"{name}/sizes", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape((len(rows),)),
        const_value=ir.tensor(np.array(rows, np.int64)),
    )  # fmt: skip
    graph.register_initializer(sizes)
    return _Joint(weight, sizes)


def _replace(graph: ir.Graph, group: list[ir.Node], joint: _Joint) -> None:
    """One product and a `Split` in place of the group."""
    first = group[0]
    product = ir.node(
        first.op_type, [first.inputs[0], joint.weight], domain=first.domain,
        attributes={k: a.value for k, a in first.attributes.items()}, name=f"{first.name}/joined",
    )  # fmt: skip
    product.outputs[0].name = f"{first.name}/joined/product"
    parts = [ir.Value(name=_name(n.outputs[0]), type=n.outputs[0].type) for n in group]
    split = ir.node(
        "Split", [product.outputs[0], joint.sizes], attributes={"axis": -1}, outputs=parts,
        name=f"{first.name}/split",
    )  # fmt: skip
    for made in (product, split):
        made.metadata_props.update(first.metadata_props)
    graph.insert_before(first, [product, split])
    for node, part in zip(group, parts, strict=True):
        ir.convenience.replace_all_uses_with(node.outputs[0], part, replace_graph_outputs=True)
    graph.remove(group, safe=True)


def _name(value: ir.Value | None) -> str:
    return "" if value is None else value.name or ""
