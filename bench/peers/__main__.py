"""The command: prepare files, measure, write the table and the plot."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bench.peers import files
from bench.peers.contenders import CONTENDERS, GROUPS
from bench.peers.measure import Plan, measure_group, summary
from bench.peers.render import render
from bench.peers.results import append

HERE = Path(__file__).parent
TEXT = HERE.parent / "text.txt"
RESULTS = HERE.parent / "results"


def main() -> int:
    options = parser().parse_args()
    work: Path = options.work
    if "prepare" in options.steps:
        for problem in files.prepare(work, options.peers_python):
            print(f"warning: {problem}", file=sys.stderr)
    record_file = options.results / "peers.json"
    failed = 0
    if "measure" in options.steps:
        failed = measure(options, record_file)
    if "render" in options.steps:
        render(record_file, options.results)
    return 1 if failed else 0


def measure(options: argparse.Namespace, record_file: Path) -> int:
    """Every chosen run; the number of engines that could not be measured."""
    plan = Plan(
        files=options.work,
        own_python=Path(sys.executable),
        peers_python=options.peers_python,
        prompt=tuple(text_tokens(options.work)[: options.prompt_tokens]),
        new_tokens=options.new_tokens,
        threads=options.threads,
        rounds=options.rounds,
    )
    failed: list[str] = []

    def complain(name: str, why: str) -> None:
        failed.append(name)
        print(f"left out: {why if name in why else f'{name}: {why}'}", file=sys.stderr, flush=True)

    runs = [options.engines] if options.engines else [GROUPS[name].names for name in options.groups]
    for names in runs:
        record = measure_group(plan, names, complain)
        if record is not None:
            append(record_file, record)
            print("\n".join(summary(record)), flush=True)
    return len(failed)


def text_tokens(work: Path, text: Path = TEXT) -> list[int]:
    """The tokens of the repository's text, as the model's own tokenizer makes them."""
    from linnet.nest.text import text_from_gguf

    return text_from_gguf(work / "gguf" / "F32.gguf").encode(text.read_text("utf-8"))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m bench.peers", description=str(__doc__))
    home = os.environ.get("LINNET_BENCH_PEERS")
    made.add_argument(
        "steps", nargs="*", default=["prepare", "measure", "render"],
        help="of prepare, measure and render (default: all)",
    )  # fmt: skip
    made.add_argument(
        "--peers-python", type=Path, default=Path(home) if home else None,
        help="the Python of the peers' environment (default: $LINNET_BENCH_PEERS)",
    )  # fmt: skip
    made.add_argument("--work", type=Path, required=True, help="folder for the engines' files")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument(
        "--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS),
        help="the runs to make (default: all)",
    )  # fmt: skip
    made.add_argument(
        "--engines", type=engine_names, metavar="OURS,PEER,...",
        help=f"one run of these instead; of {', '.join(CONTENDERS)}",
    )  # fmt: skip
    made.add_argument("--rounds", type=int, default=4)
    made.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    made.add_argument("--prompt-tokens", type=int, default=512)
    made.add_argument("--new-tokens", type=int, default=64)
    return made


def engine_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown or len(set(names)) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not two or more of {', '.join(CONTENDERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
