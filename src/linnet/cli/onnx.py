"""`linnet onnx`: the ONNX model of one entry, as text or as a file."""

from __future__ import annotations

from pathlib import Path

import click

from linnet.cli.options import BIND, NUMERICS, PRESENT, ROOT, SOURCE, parse_bindings


@click.command()
@click.option("--entry", required=True, metavar="E", help="The entry to export.")
@BIND
@ROOT
@NUMERICS
@click.option("--opset", type=int, default=24, show_default=True, help="From 20 on.")
@click.option("-o", "--output", metavar="PATH", type=click.Path(dir_okay=False, path_type=Path),
              help="Write a model file instead of printing text.")  # fmt: skip
@click.option("--weights", metavar="PATH", type=click.Path(exists=True, path_type=Path),
              help="Weights to put into the file.")  # fmt: skip
@PRESENT
@click.argument("file", metavar="FILE", type=SOURCE)
def command(
    file: Path, entry: str, bindings: tuple[str, ...], root: str | None, numerics: str, opset: int,
    output: Path | None, weights: Path | None, present: tuple[str, ...],
) -> None:  # fmt: skip
    """Print the ONNX model of one entry of FILE, or write it to a file.

    FILE may also be a package's folder, a model folder or an installed card's name; the card then
    gives the generics that --bind leaves out. Dimensions of the entry itself stay symbolic when
    they are left out. Without --weights parameters are inputs of the model, by their paths.
    """
    if weights is not None and output is None:
        raise click.UsageError("--weights needs --output: a model with weights is no text")
    if weights is not None and present:
        raise click.UsageError("--weights says which parameters are there: leave --present out")
    values = parse_bindings(bindings)
    from linnet.cli.target import read_target
    from linnet.onnx import export_model, generate_text
    from linnet.onnx.saving import check_place
    from linnet.passes import bind

    if output is not None:
        check_place(output, [file, weights])
    target = read_target(file, root, entry, values, present)
    bound = bind(target.program, target.block, target.generics)
    if output is None:
        text = generate_text(
            bound, entry, sizes=target.sizes, opset=opset, numerics=numerics, present=target.present
        )
        click.echo(text)
        return
    lines = target.bindings or file / "bindings.json"
    export_model(
        bound, output, entry=entry, sizes=target.sizes, weights=weights, opset=opset,
        bindings=lines if weights is not None and lines.is_file() else None, numerics=numerics,
        present=target.present,
    )  # fmt: skip
