"""Which states a session may update in their own memory."""

from __future__ import annotations

import onnx_ir as ir

# Operators whose kernels accept their first operand's memory as the result's.
IN_PLACE = frozenset({"ScatterND", "TensorScatter", "ScatterElements"})


def in_place(graph: ir.Graph, given: str, after: str) -> bool:
    """Whether output `after` may lie in the memory of input `given`: one update makes it from the
    input, and whatever else reads the input the update waits for."""
    source = next(v for v in graph.inputs if v.name == given)
    result = next(v for v in graph.outputs if v.name == after)
    update = result.producer()
    if update is None or update.op_type not in IN_PLACE or update.inputs[0] is not source:
        return False
    if sum(1 for value in update.inputs if value is source) > 1:
        return False
    readers = [node for node in source.consumers() if node is not update]
    if any(node.graph is not graph for node in readers):
        return False
    return all(reader in _ancestors(update) for reader in readers)


def _ancestors(node: ir.Node) -> set[ir.Node]:
    """Every node that has to run before `node`."""
    found: set[ir.Node] = set()
    waiting = [node]
    while waiting:
        for before in waiting.pop().predecessors():
            if before not in found:
                found.add(before)
                waiting.append(before)
    return found
