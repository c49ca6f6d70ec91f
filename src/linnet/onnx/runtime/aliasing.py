"""Which states a session may update in their own memory."""

from __future__ import annotations

import onnx_ir as ir

from linnet.onnx.emit.entry import Written

# Operators whose kernels accept an operand's memory as a result's: which, by the result's number.
IN_PLACE: dict[str, dict[int, int]] = {
    "ScatterND": {0: 0},
    "TensorScatter": {0: 0},
    "ScatterElements": {0: 0},
    "GroupQueryAttention": {1: 3, 2: 4},
}


def updated_in_place(written: Written) -> dict[str, bool]:
    """Of each state that an entry reads and replaces, whether it may be updated where it lies."""
    return {
        path: in_place(written.model.graph, given, after)
        for path, (given, after) in written.states.items()
        if given is not None and after is not None
    }


def in_place(graph: ir.Graph, given: str, after: str) -> bool:
    """Whether output `after` may lie in the memory of input `given`: what makes it has no use for
    the input or takes it in that memory, and whatever else reads the input comes before."""
    source = next(v for v in graph.inputs if v.name == given)
    result = next(v for v in graph.outputs if v.name == after)
    update = result.producer()
    if update is None:
        return False
    reads = [k for k, value in enumerate(update.inputs) if value is source]
    if reads and reads != [_taken(update, list(update.outputs).index(result))]:
        return False
    readers = [node for node in source.consumers() if node is not update]
    if any(node.graph is not graph for node in readers):
        return False
    return all(reader in _ancestors(update) for reader in readers)


def _taken(update: ir.Node, result: int) -> int | None:
    """The operand whose memory the result may be in. A `Loop` copies what it carries to its results
    when it ends."""
    if update.op_type == "Loop":
        return result + 2
    return IN_PLACE.get(update.op_type, {}).get(result)


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
