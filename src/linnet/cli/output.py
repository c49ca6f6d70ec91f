"""What commands share in showing results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable

import click

from linnet.diagnostics import Diagnostic, render_text


def wants_color(err: bool) -> bool:
    """Whether the stream is a terminal whose owner has not asked for plain text."""
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def show_diagnostics(diagnostics: Iterable[Diagnostic], *, err: bool = False) -> None:
    """Print diagnostics as text; nothing when there are none."""
    color = wants_color(err)
    click.echo(render_text(diagnostics, color=color), nl=False, err=err, color=color)


def show_json(value: object) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2))
