"""Bindings: which tensor of a checkpoint each parameter is read from.

A bindings file is a JSON object from parameter path to tensor name. A path segment may be a
placeholder, `"layers.{i}.mlp.up.weight": "model.layers.{i}.mlp.up_proj.weight"`, which stands for
every index the bound program has there; several may nest. In the tensor's name a placeholder may
be a sum, for checkpoints that number layers through: `{4g+i}`. A line for one path wins over a
template.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.weights.errors import fail, fail_all, problem, quoted
from linnet.weights.manifest import Manifest
from linnet.weights.strict_json import JsonProblem, parse_json

FILE_LIMIT = 16 << 20
ENTRY_LIMIT = 1_000_000
NAME_LIMIT = 1024
_LISTED = 20
_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|0|[1-9][0-9]{0,8}|\{[a-z]\}", re.ASCII)
_HOLE = re.compile(r"\{([^{}]*)\}")
_TERM = r"(?:[1-9][0-9]{0,5}[a-z]?|[a-z])"
_SUM = re.compile(rf"{_TERM}(?:\+{_TERM}){{0,7}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bindings:
    """Parameter path (or template) to tensor name (or template), each line checked by itself."""

    entries: Mapping[str, str] = field(default_factory=dict)
    label: str = "the bindings"

    def expand(self, manifest: Manifest) -> tuple[dict[str, str], list[Diagnostic]]:
        """`(tensor name by parameter path, problems)` for one bound program.

        Lines for array elements the program doesn't have are left out without a word; lines for
        paths it cannot have are problems (E5006).
        """
        return _Expansion(self, manifest).run()


def read_bindings(source: str | Path | Mapping[str, str] | Bindings) -> Bindings:
    """Bindings from a JSON file or a mapping. Raises `WeightError` (E5002, E5005)."""
    if isinstance(source, Bindings):
        return source
    if isinstance(source, Mapping):
        return _checked(dict(source), "the bindings")
    if not isinstance(source, str | Path):
        fail("E5005", f"the bindings are a file or a mapping, not a {type(source).__name__}")
    path = Path(source)
    label = quoted(path.name)
    try:
        with open(path, "rb") as file:
            value = parse_json(file.read(FILE_LIMIT + 1), FILE_LIMIT)
    except JsonProblem as error:
        fail("E5005", f"the bindings file {label} {error}")
    except OSError as error:
        fail("E5002", f"cannot read the bindings file {quoted(str(path))}: {error.strerror}")
    if not isinstance(value, dict):
        fail("E5005", f"the bindings file {label} is no JSON object from paths to tensor names")
    return _checked(value, label)


def _checked(entries: dict[Any, Any], label: str) -> Bindings:
    if len(entries) > ENTRY_LIMIT:
        fail("E5005", f"{label} has {len(entries)} lines, past the limit of {ENTRY_LIMIT}")
    problems = []
    for path, tensor in entries.items():
        what = _line_problem(path, tensor)
        if what is not None:
            problems.append(problem("E5005", f"{label}: {what}"))
    fail_all(problems[:_LISTED])
    return Bindings(entries, label)


def _line_problem(path: object, tensor: object) -> str | None:
    if not isinstance(path, str) or not isinstance(tensor, str):
        return f"{quoted(str(path))} is not bound to a tensor name"
    if len(path) > NAME_LIMIT or not 0 < len(tensor) <= NAME_LIMIT:
        return f"{quoted(path)} or its tensor name is empty or longer than {NAME_LIMIT}"
    if not all(_SEGMENT.fullmatch(part) for part in path.split(".")):
        return f"{quoted(path)} is no parameter path (a placeholder is one letter, `{{i}}`)"
    holes = set(_HOLE.findall(path))
    extra = [hole for hole in _HOLE.findall(tensor) if not _is_sum(hole, holes)]
    if holes and extra:
        return f"{quoted(tensor)} uses {{{extra[0][:20]}}}, which {quoted(path)} does not have"
    return None


class _Expansion:
    def __init__(self, bindings: Bindings, manifest: Manifest) -> None:
        self.bindings, self.manifest = bindings, manifest
        self.paths = {p.path for p in manifest.params}
        self.bound: dict[str, str] = {}
        self.origin: dict[str, str] = {}  # path -> the template that bound it
        self.problems: list[Diagnostic] = []
        self.by_shape: dict[str, list[str]] = {}
        for path in self.paths:
            self.by_shape.setdefault(_shape_of(path), []).append(path)

    def run(self) -> tuple[dict[str, str], list[Diagnostic]]:
        templates = []
        for path, tensor in self.bindings.entries.items():
            if "{" in path:
                templates.append((path, tensor))
            elif path in self.paths:
                self.bound[path] = tensor
            elif not self._past_the_end(path):
                self._unknown(path)
        lines = set(self.bound)
        for path, tensor in templates:
            self._template(path, tensor, lines)
        return self.bound, self.problems

    def _template(self, template: str, tensor: str, lines: set[str]) -> None:
        parts = template.split(".")
        found = False
        for path in self.by_shape.get(_shape_of(template), ()):
            values = _match(parts, path.split("."))
            if values is None:
                continue
            found = True
            if path in lines:
                continue
            if path in self.origin:
                both = f"{quoted(self.origin[path])} and {quoted(template)}"
                what = f"{self.bindings.label}: {both} both bind {quoted(path)}"
                self.problems.append(problem("E5005", what))
                continue
            self.origin[path] = template
            self.bound[path] = _filled(tensor, values)
        if not found and not self._past_the_end(template):
            self._unknown(template)

    def _past_the_end(self, path: str) -> bool:
        """Whether the path lies in an array element that the bound program doesn't have."""
        parts = path.split(".")
        for n in range(1, len(parts)):
            arrays = self.manifest.arrays
            if parts[n].isdecimal():
                length = arrays.get(".".join(parts[:n]))
                if length is not None and int(parts[n]) >= length:
                    return True
            elif parts[n].startswith("{"):
                known = [a for a in arrays if _match(parts[:n], a.split(".")) is not None]
                if known and all(arrays[a] == 0 for a in known):
                    return True
        return False

    def _unknown(self, path: str) -> None:
        plain = {_with_holes(p) if "{" in path else p for p in self.paths}
        near = difflib.get_close_matches(path, sorted(plain)[:5000], n=1)
        help = f"did you mean {quoted(near[0])}?" if near else None
        what = f"{self.bindings.label}: the model has no parameter {quoted(path)}"
        self.problems.append(problem("E5006", what, help=help))


def _shape_of(path: str) -> str:
    """A path with every index and placeholder made the same, to look templates up by."""
    return ".".join("#" if p.isdecimal() or p[0] == "{" else p for p in path.split("."))


def _with_holes(path: str) -> str:
    names = iter("ijklmnopq")
    return ".".join(f"{{{next(names)}}}" if p.isdecimal() else p for p in path.split("."))


def _match(template: list[str], path: list[str]) -> dict[str, str] | None:
    if len(template) != len(path):
        return None
    values: dict[str, str] = {}
    for want, have in zip(template, path, strict=True):
        if want[0] != "{":
            if want != have:
                return None
        elif not have.isdecimal() or values.setdefault(want[1:-1], have) != have:
            return None
    return values


def _is_sum(hole: str, known: set[str]) -> bool:
    """Whether a placeholder of a tensor's name adds up numbers and the path's placeholders."""
    return bool(_SUM.fullmatch(hole)) and set(re.findall("[a-z]", hole)) <= known


def _filled(tensor: str, values: dict[str, str]) -> str:
    def worked_out(hole: re.Match[str]) -> str:
        return str(sum(_term(term, values) for term in hole.group(1).split("+")))

    return _HOLE.sub(worked_out, tensor)


def _term(term: str, values: dict[str, str]) -> int:
    if term.isdecimal():
        return int(term)
    return int(term[:-1] or 1) * int(values[term[-1]])
