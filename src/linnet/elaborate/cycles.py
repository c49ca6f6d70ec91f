"""Finding cycles in what names what: calls, and blocks inside blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linnet.diagnostics import Span


def cycles(graph: Mapping[str, Mapping[str, Span]]) -> Iterator[tuple[list[str], Span]]:
    """Every cycle that a depth-first walk closes, with the place of the edge that closes it.

    The stack is explicit, since chains may be longer than Python lets functions nest.
    """
    done: set[str] = set()
    for start in graph:
        if start in done:
            continue
        path = [start]
        place = {start: 0}
        pending = [iter(graph[start].items())]
        while pending:
            step = next(pending[-1], None)
            if step is None:
                pending.pop()
                node = path.pop()
                del place[node]
                done.add(node)
                continue
            target, span = step
            if target in place:
                yield path[place[target] :], span
            elif target in graph and target not in done:
                place[target] = len(path)
                path.append(target)
                pending.append(iter(graph[target].items()))


def short(name: str) -> str:
    """A name without its module."""
    return name.rpartition("::")[2]
