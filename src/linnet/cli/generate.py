"""`linnet run`: generate text, streamed as it comes."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.options import NUMERICS, WEIGHT_FORMATS

DTYPES = ("f32", "bf16", "f16")


@click.command("run")
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    help="For a temperature above 0; drawn and told when left out.",
)
@click.option("--backend", help="Default: native on a CPU with a C++ compiler, else torch.")
@click.option("--dtype", type=click.Choice(DTYPES), help="Instead of the card's dtype.")
@NUMERICS
@click.option("--device", default=None, help="Where to run, such as cpu or cuda.")
@click.option(
    "--weights-format",
    type=click.Choice(WEIGHT_FORMATS),
    help="How native holds linear weights; default: as the dtype.",
)
@click.option("--threads", type=click.IntRange(1, 1024), help="On native; default: all cores.")
@click.option(
    "--weights",
    type=click.Path(exists=True, path_type=Path),
    help="A file or folder instead of the card's weights.",
)
@click.option("--raw", is_flag=True, help="The prompt as it is, without the chat template.")
@click.option("--cache-dir", type=click.Path(file_okay=False, path_type=Path), help="For files.")
@click.argument("model", metavar="MODEL")
@click.argument("prompt", metavar="PROMPT")
def command(
    model: str,
    prompt: str,
    max_new_tokens: int,
    temperature: float,
    seed: int | None,
    backend: str | None,
    dtype: str | None,
    numerics: str,
    device: str | None,
    weights_format: str | None,
    threads: int | None,
    weights: Path | None,
    raw: bool,
    cache_dir: Path | None,
) -> int:
    """Answer PROMPT with MODEL: an installed card, a folder (./x), or owner/name on the Hub.

    Standard output holds the text alone; progress and the closing line go to standard error.
    Temperature 0 takes the best token each time.
    """
    from linnet import nest

    given = {"device": device, "weights_format": weights_format, "threads": threads}
    options = {name: value for name, value in given.items() if value is not None}
    return nest.run_model(
        model,
        prompt,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        seed=seed,
        backend=backend,
        dtype=dtype,
        raw=raw,
        weights=weights,
        numerics=numerics,
        cache_dir=cache_dir,
        **options,
    )
