"""Jinja's immutable sandbox with a budget of steps and a limit on every string.

The sandbox alone would let a template loop for ever or double a string until memory runs out. Steps
are counted by a trace function on the rendering thread; strings are measured wherever a
template can make one longer: `~`, `+`, `*`, output, filters, and the few methods left to it.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Any

from jinja2 import TemplateError, nodes, pass_environment
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

STEP_LIMIT = 1_000_000
TEXT_LIMIT = 8 << 20
NODE_LIMIT = 50_000

_METHODS = frozenset(
    "split rsplit strip lstrip rstrip startswith endswith upper lower title capitalize find rfind "
    "index count splitlines isdigit isalpha isalnum isspace islower isupper removeprefix "
    "removesuffix partition rpartition replace join".split()
)
_FILTERS = frozenset(
    "abs capitalize count d default dictsort e escape first float int items join last length list "
    "lower map max min reject rejectattr replace reverse round safe select selectattr sort string "
    "sum title trim unique upper groupby tojson".split()
)


_CONTAINERS = (list, tuple, dict)


class TemplateProblem(Exception):
    """What happened, as the end of a sentence about the template."""


def render_template(text: str, names: Mapping[str, Any]) -> str:
    """Render a template; raises `TemplateProblem` and nothing else."""
    try:
        with _steps(STEP_LIMIT):
            template = _Environment().from_string(text)
            return _collected(template.generate(**names))
    except TemplateProblem:
        raise
    except TemplateError as error:
        raise TemplateProblem(f"failed: {str(error)[:200]}") from None
    except (MemoryError, RecursionError):
        raise TemplateProblem("asks for too much memory or is nested too deeply") from None
    except Exception as error:
        raise TemplateProblem(f"failed: {type(error).__name__}: {str(error)[:200]}") from None


def _collected(pieces: Iterator[str]) -> str:
    out: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        _measure(size)
        out.append(piece)
    return "".join(out)


def _measure(size: int) -> None:
    if size > TEXT_LIMIT:
        raise TemplateProblem(f"builds a text past the limit of {TEXT_LIMIT} characters")


@contextmanager
def _steps(limit: int) -> Iterator[None]:
    left = limit

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise TemplateProblem(f"runs for more than {limit} steps")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


class _Generator(CodeGenerator):
    """Python for a template, with `~` and every list, tuple and table it writes measured."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 (the name Jinja looks up)
        self.write("environment.measured_join((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802 (the name Jinja looks up)
        self._bounded(super().visit_List, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802 (the name Jinja looks up)
        if node.ctx == "load":
            self._bounded(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802 (the name Jinja looks up)
        self._bounded(super().visit_Dict, node, frame)

    def _bounded(self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame) -> None:
        self.write("environment.bounded(")
        visit(node, frame)
        self.write(")")


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "%", "**", "//"})
    code_generator_class = _Generator

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols"],
            cache_size=0,
            finalize=_text,
        )
        self.filters = {k: _guarded(f) for k, f in self.filters.items() if k in _FILTERS}
        self.filters |= {
            "tojson": _tojson,
            "replace": _replace,
            "string": _text,
            "join": pass_environment(_join),
        }
        self.globals = {
            "range": self.globals["range"],
            "dict": dict,
            "namespace": self.globals["namespace"],
            "raise_exception": _raise,
            "strftime_now": _now,
        }

    def measured_join(self, parts: tuple[Any, ...]) -> str:
        return _joined(parts)

    def bounded(self, value: Any) -> Any:
        return _bounded(value)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        match operator:
            case "*":
                _measure(_size(left) * _size(right))
            case "+":
                _measure(_size(left, 1) + _size(right, 1))
            case "**":
                raise SecurityError("powers are not allowed in a chat template")
            case "%" if isinstance(left, str):
                raise SecurityError("`%` formatting is not allowed in a chat template")
        return _bounded(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, (str, bytes)) and attr not in _METHODS:
            return False
        return bool(super().is_safe_attribute(obj, attr, value))

    def wrap_str_format(self, value: Any) -> None:
        """No formatting at all: a width of ten digits is a text of ten gigabytes."""

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, str) and name == "replace" and len(args) >= 2:
            return _replace(owner, *args)
        if isinstance(owner, str) and name == "join" and args:
            return _joined(args[0], owner)
        return _bounded(super().call(context, obj, *args, **kwargs))


def _bounded(value: Any) -> Any:
    """The value, unless it unfolds to too many parts.

    A list that holds another twice, and so on, is small in memory and endless to print or compare.
    """
    if isinstance(value, _CONTAINERS):
        left = NODE_LIMIT
        stack = [value]
        while stack:
            part = stack.pop()
            children = part.values() if isinstance(part, dict) else part
            left -= len(children)
            if left < 0:
                raise TemplateProblem(f"builds a list of more than {NODE_LIMIT} parts")
            stack += [child for child in children if isinstance(child, _CONTAINERS)]
    return value


def _text(value: Any) -> str:
    """`str(value)` of something that isn't too long for it."""
    text = value if isinstance(value, str) else str(_bounded(value))
    _measure(len(text))
    return text


def _joined(items: Any, separator: str = "") -> str:
    texts = []
    size = 0
    for item in items:
        texts.append(_text(item))
        size += len(texts[-1]) + len(separator)
        _measure(size)
    return separator.join(texts)


def _join(environment: Any, value: Any, d: str = "", attribute: Any = None) -> str:
    if attribute is not None:
        value = (environment.getitem(item, attribute) for item in value)
    return _joined(value, str(d))


def _size(value: Any, scalar: int | None = None) -> int:
    if isinstance(value, (str, bytes, list, tuple)):
        return len(value)
    if scalar is not None:
        return scalar
    return abs(value) if isinstance(value, int) else 1


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose result is measured; its marks (who gets the environment) stay."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return _bounded(function(*args, **kwargs))

    return guarded


def _replace(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = _text(text), _text(old), _text(new)
    _measure(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return str(text).replace(old, new, -1 if count is None else count)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As the models' own training code has it: plain JSON, nothing escaped for HTML."""
    if indent is not None and not 0 <= indent <= 16:
        raise SecurityError("an indent past 16 is not allowed in a chat template")
    return json.dumps(
        _bounded(value),
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise(message: str) -> None:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    return datetime.now().strftime(str(form)[:100])
