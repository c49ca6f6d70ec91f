"""A chat template: a stranger's small program, rendered in a sandbox with limits.

Jinja's immutable sandbox keeps it from Python's internals and from changing what it is given.
`Limits` (in `sandbox.py`) bounds steps and the size of every string it builds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linnet.nest.errors import fail

TEMPLATE_LIMIT = 256 << 10


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The template's text and the two tokens it may write."""

    text: str
    begin_token: str = ""
    end_token: str = ""

    def render(
        self, messages: Sequence[Mapping[str, str]], variables: Mapping[str, Any] | None = None
    ) -> str:
        """The conversation as the model was trained to see it, up to where its answer starts.

        `messages` have `role` and `content`; `variables` are further names the template may use.
        Raises `NestError` (E5025) when the template fails or goes past a limit.
        """
        from linnet.nest.text.sandbox import TemplateProblem, render_template

        if len(self.text) > TEMPLATE_LIMIT:
            fail("E5025", f"the chat template is larger than the limit of {TEMPLATE_LIMIT}")
        names = {
            "messages": [dict(message) for message in messages],
            "add_generation_prompt": True,
            "bos_token": self.begin_token,
            "eos_token": self.end_token,
            **(variables or {}),
        }
        try:
            return render_template(self.text, names)
        except TemplateProblem as problem:
            fail("E5025", f"the model's chat template {problem}", help="try without it (--raw)")
