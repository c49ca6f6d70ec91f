"""What is left to do once a graph is written: nodes without readers go, and ONNX Runtime's own
operators take pairs of nodes together."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from linnet.onnx.emit.graph import MICROSOFT

SAME = "linnet.same"  # in a node's `meta`: its operands and its result have one shape


def drop_unused(graph: ir.Graph) -> None:
    """Takes out every node of the graph, and of those inside it, whose results nothing reads."""
    for node in reversed(list(graph)):
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            for inner in _inner(node):
                drop_unused(inner)
        else:
            for inner in _inner(node):
                _clear(inner)
            graph.remove(node, safe=True)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del graph.initializers[name]


def _clear(graph: ir.Graph) -> None:
    """Takes out every node, so that nothing outside is read from here any more."""
    for node in reversed(list(graph)):
        for inner in _inner(node):
            _clear(inner)
        for k in range(len(node.inputs)):
            node.replace_input_with(k, None)


def _inner(node: ir.Node) -> Iterator[ir.Graph]:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()


def add_into_norms(graph: ir.Graph) -> None:
    """A sum that is normalised becomes one `SkipSimplifiedLayerNormalization`, which gives both."""
    for norm in list(graph):
        if norm.op_type != "RMSNormalization" or not norm.meta.get(SAME):
            continue
        total, weight = norm.inputs
        added = None if total is None else total.producer()
        if added is None or added.op_type != "Add" or not added.meta.get(SAME):
            continue
        if added.graph is not norm.graph:
            continue
        _join(graph, added, norm, weight)


def _join(graph: ir.Graph, added: ir.Node, norm: ir.Node, weight: ir.Value | None) -> None:
    (total,), (unit,) = added.outputs, norm.outputs
    empty = [ir.Value(name=""), ir.Value(name="")]
    made = [ir.Value(name=v.name, type=v.type, shape=v.shape) for v in (unit, total)]
    node = ir.node(
        "SkipSimplifiedLayerNormalization", [*added.inputs, weight],
        attributes={"epsilon": norm.attributes["epsilon"].as_float()}, domain=MICROSOFT,
        outputs=[made[0], *empty, made[1]], name=norm.name,
    )  # fmt: skip
    node.metadata_props.update(norm.metadata_props)
    graph.insert_before(norm, node)
    for old, new in ((unit, made[0]), (total, made[1])):
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    graph.remove([norm, added], safe=True)
