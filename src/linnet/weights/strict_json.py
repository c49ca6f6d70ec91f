"""JSON from strangers: size and depth limited, no key twice, no numbers beyond the standard."""

from __future__ import annotations

import json
from typing import Any


class JsonProblem(Exception):
    """What is wrong, as the end of a sentence ("... is not valid JSON")."""


def parse_json(data: bytes, limit: int) -> Any:
    """The value of a JSON text; raises `JsonProblem` and nothing else."""
    if len(data) > limit:
        raise JsonProblem(f"is larger than the limit of {limit} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonProblem(f"is not UTF-8 (byte {error.start})") from None
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except JsonProblem:
        raise
    except RecursionError:
        raise JsonProblem("is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise JsonProblem(f"is not valid JSON ({error.msg}, {where})") from None
    except ValueError:  # a number of thousands of digits
        raise JsonProblem("holds a number that is too long") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonProblem(f"has the key {key[:100]!a} twice")
            seen.add(key)
    return table


def _constant(name: str) -> Any:
    raise JsonProblem(f"holds {name}, which is no JSON")
