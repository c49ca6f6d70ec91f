"""What the weight formats cost: perplexity and logits on a text, ours beside other engines'.

    python bench/perplexity.py --work DIR --peers-python PATH [--engines NAME...]

`DIR` holds the files that `python -m bench.peers prepare` makes. The text is cut into windows, each
read from an empty cache, and every token of a window but its first is scored. Ours must lose at
most 1 % at 8 bits, and at 4 bits no more than llama.cpp's Q4_0: the exit code is 1 when one does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.peers.__main__ import RESULTS, TEXT, text_tokens
from bench.peers.contenders import CONTENDERS
from bench.peers.process import Engine, EngineError
from bench.peers.runners import Settings
from bench.peers.runners.linnet import LinnetRunner
from bench.peers.runners.scores import losses

OURS = (
    "native/f32", "native/bf16", "native/int8", "native-f32/int8", "native/int4",
    "native-f32/int4", "native-Q4_1/int4", "native-Q4_0/int4",
)  # fmt: skip
PEERS = (
    "transformers/f32", "transformers/bf16", "llama.cpp/f32", "llama.cpp/bf16", "llama.cpp/int8",
    "llama.cpp/int4", "llama.cpp-Q4_1/int4", "openvino/int8", "openvino/int4",
    "onnxruntime-genai/int4",
)  # fmt: skip
EXACT, EIGHT, FOUR, PEER_FOUR = "native/f32", "native/int8", "native/int4", "llama.cpp/int4"


@dataclass(frozen=True, slots=True)
class Score:
    """A mean negative log likelihood; of ours also how far logits are from f32's: the root of the
    mean square, over the spread of the f32 logits."""

    loss: float
    logits: float | None = None

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)


def main() -> int:
    options = parser().parse_args()
    tokens = text_tokens(options.work, options.text)
    windows = [tokens[k : k + options.window] for k in range(0, len(tokens), options.window)]
    windows = [window for window in windows if len(window) > 1]
    store = options.results / "perplexity.json"
    scores = read(store)
    chosen = options.engines or [*OURS, *PEERS]
    own = [name for name in OURS if name in chosen]
    if own:
        scores |= own_scores(own, options.work, windows, options.threads)
    for name in (name for name in PEERS if name in chosen):
        try:
            scores[name] = peer_score(name, options, windows)
        except (EngineError, ValueError) as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
    scores = {name: scores[name] for name in (*OURS, *PEERS) if name in scores}
    if EXACT not in scores:
        print(f"`{EXACT}` has to be scored first", file=sys.stderr)
        return 1
    lines = report(scores, len(tokens), len(windows))
    print("\n".join(lines))
    options.results.mkdir(parents=True, exist_ok=True)
    store.write_text(json.dumps({n: asdict(s) for n, s in scores.items()}, indent=1) + "\n")
    page = options.results / "perplexity.md"
    page.write_text("# Perplexity\n\n" + "\n".join(lines) + "\n", "utf-8")
    broken = bounds(scores)
    print("\n".join(broken), file=sys.stderr)
    return 1 if broken else 0


def read(store: Path) -> dict[str, Score]:
    """The scores so far: a new one of an engine takes the place of its old one."""
    if not store.exists():
        return {}
    return {name: Score(**score) for name, score in json.loads(store.read_text("utf-8")).items()}


def own_scores(
    names: Sequence[str], files: Path, windows: Sequence[Sequence[int]], threads: int
) -> dict[str, Score]:
    """Ours in this process, one after another; f32 first, to which the others' logits are held."""
    exact: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    found: dict[str, Score] = {}
    positions = max(map(len, windows))
    for name in (EXACT, *(name for name in names if name != EXACT)):
        contender = CONTENDERS[name]
        options = dict(contender.options)
        runner = LinnetRunner(Settings(files, contender.precision, threads, positions, options))
        total, square = 0.0, 0.0
        for k, window in enumerate(windows):
            logits = runner.logits(window)
            if name == EXACT:
                exact.append(logits)
            total += sum(losses(logits, window))
            square += float(np.square(logits - exact[k], dtype=np.float64).sum())
        size = sum(logits.size for logits in exact)
        spread = math.sqrt(sum(float(np.var(x, dtype=np.float64)) * x.size for x in exact) / size)
        error = None if name == EXACT else math.sqrt(square / size) / spread
        found[name] = Score(total / count(windows), error)
    return found


def peer_score(name: str, options: argparse.Namespace, windows: Sequence[Sequence[int]]) -> Score:
    contender = CONTENDERS[name]
    python = Path(sys.executable) if contender.home == "own" else options.peers_python
    if python is None:
        raise ValueError("it needs --peers-python (or LINNET_BENCH_PEERS)")
    longest = max(map(len, windows))
    with Engine(contender, python, options.work, options.threads, longest + 8) as engine:
        return Score(sum(sum(engine.score(w)) for w in windows) / count(windows))


def count(windows: Sequence[Sequence[int]]) -> int:
    """How many tokens are scored."""
    return sum(len(window) - 1 for window in windows)


def report(scores: dict[str, Score], tokens: int, windows: int) -> list[str]:
    """A Markdown table."""
    exact = scores[EXACT].perplexity
    lines = [
        f"SmolLM2-135M-Instruct on a text of {tokens} tokens in {windows} windows.",
        "",
        "| engine | perplexity | against f32 | logits' error |",
        "| --- | --- | --- | --- |",
    ]
    for name, score in scores.items():
        error = "" if score.logits is None else f"{score.logits:.2%}"
        loss = score.perplexity / exact - 1
        lines.append(f"| {name} | {score.perplexity:.4f} | {loss:+.2%} | {error} |")
    return lines


def bounds(scores: dict[str, Score]) -> list[str]:
    """What is past its bound, a line each."""
    broken = []
    if abs(scores[EIGHT].perplexity / scores[EXACT].perplexity - 1) > 0.01:
        broken.append("8 bits lose more than 1 %")
    if PEER_FOUR in scores and scores[FOUR].perplexity > scores[PEER_FOUR].perplexity:
        broken.append("4 bits lose more than llama.cpp's Q4_0")
    return broken


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    home = os.environ.get("LINNET_BENCH_PEERS")
    made.add_argument("--work", type=Path, required=True, help="folder of the engines' files")
    made.add_argument("--peers-python", type=Path, default=Path(home) if home else None)
    made.add_argument("--text", type=Path, default=TEXT)
    made.add_argument("--window", type=int, default=512)
    made.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    made.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    made.add_argument(
        "--engines", nargs="+", choices=[*OURS, *PEERS], metavar="NAME",
        help="score these anew and keep the others' scores",
    )  # fmt: skip
    return made


if __name__ == "__main__":
    sys.exit(main())
