"""`linnet bench`: how fast a model runs here, on one backend or several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linnet.cli.options import NUMERICS, WEIGHT_FORMATS

if TYPE_CHECKING:
    from linnet.nest.bench import Outcome, Report

DTYPES = ("f32", "bf16", "f16")


@click.command("bench")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    help="Which to measure; several take turns. Default: the one that `run` takes.",
)
@click.option("--weights-format", type=click.Choice(WEIGHT_FORMATS), help="Of the native backend.")
@click.option("--dtype", type=click.Choice(DTYPES), help="Instead of the card's dtype.")
@NUMERICS
@click.option("--prompt-tokens", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--new-tokens", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--threads", type=click.IntRange(1, 1024), help="Default: the processors it may use.")
@click.option("--repeat", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--weights",
    type=click.Path(exists=True, path_type=Path),
    help="A file or folder instead of the card's weights.",
)
@click.option("--json", "as_json", is_flag=True, help="Every round's values, as JSON.")
@click.option("--cache-dir", type=click.Path(file_okay=False, path_type=Path), help="For files.")
@click.argument("model", metavar="MODEL")
def command(
    model: str,
    backends: tuple[str, ...],
    weights_format: str | None,
    dtype: str | None,
    numerics: str,
    prompt_tokens: int,
    new_tokens: int,
    threads: int | None,
    repeat: int,
    weights: Path | None,
    as_json: bool,
    cache_dir: Path | None,
) -> int:
    """Measure MODEL: an installed card, a folder (./x), or owner/name on the Hub.

    Shows the time to load, to the first token after a prompt, and from token to token; how fast
    that reads the weights beside how fast this machine reads memory; and the most memory used. The
    exit code is 1 when a backend could not be measured.
    """
    from linnet.nest.bench import Settings, bench_model

    settings = Settings(
        backends=tuple(dict.fromkeys(backends)),
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        repeat=repeat,
        threads=threads,
        dtype=dtype,
        weights_format=weights_format,
        numerics=numerics,
    )
    report = bench_model(model, settings, weights=weights, cache_dir=cache_dir)
    if as_json:
        from linnet.cli.output import show_json

        show_json(as_data(report))
    else:
        click.echo("\n".join(lines(report)))
    return 0 if all(outcome.measured for outcome in report.outcomes) else 1


def lines(report: Report) -> list[str]:
    """The report as a person reads it."""
    settings, reads = report.settings, report.reads
    form = settings.weights_format or report.dtype or "as stored"
    what = (
        f"{report.model}, weights {form}, batch 1, prompt of {settings.prompt_tokens} tokens, "
        f"{settings.new_tokens} more, {report.threads} threads, best of {settings.repeat}"
    )
    traffic = (
        f"a token reads {reads.weights / 1e6:.0f} MB of weights and {reads.caches / 1e6:.0f} MB of "
        f"caches; memory is read at {report.bandwidth / 1e9:.1f} GB/s"
    )
    titles = ("backend", "load", "start", "first token", "decode", "a token", "reads", "memory")
    rows = [titles, *(_row(outcome, report) for outcome in report.outcomes if outcome.measured)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(titles))]
    body = ["  ".join(_aligned(row, widths)).rstrip() for row in rows] if rows[1:] else []
    failed = [f"{o.backend}: {o.error}" for o in report.outcomes if not o.measured]
    return [what, traffic, "", *body, *failed]


def _row(outcome: Outcome, report: Report) -> tuple[str, ...]:
    token = min(outcome.decode)
    rate = report.reads.total / token
    peak = outcome.peak_memory
    return (
        outcome.backend,
        f"{outcome.load:.2f} s",
        f"{outcome.start:.2f} s",
        f"{min(outcome.first) * 1e3:.0f} ms",
        f"{1 / token:.1f} tokens/s",
        f"{token * 1e3:.2f} ms",
        f"{rate / 1e9:.1f} GB/s, {rate / report.bandwidth:.0%}",
        "" if peak is None else f"{peak / 1e6:.0f} MB",
    )


def _aligned(row: tuple[str, ...], widths: list[int]) -> list[str]:
    first, *rest = row
    return [first.ljust(widths[0]), *(t.rjust(w) for t, w in zip(rest, widths[1:], strict=True))]


def as_data(report: Report) -> dict[str, Any]:
    """The report as plain values; times in seconds, sizes in bytes."""
    from dataclasses import asdict

    return asdict(report)
