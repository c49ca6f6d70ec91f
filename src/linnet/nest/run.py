"""`linnet run`: a prompt in, an answer streamed to stdout, everything else on stderr."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from linnet.diagnostics.escape import escape_text
from linnet.nest.backend import (
    NATIVE,
    NATIVE_OPTIONS,
    Choice,
    default_backend,
    first_line,
    other_backend,
)
from linnet.nest.card import Card
from linnet.nest.errors import fail
from linnet.nest.fetch import fetch_text_files, fetch_weights
from linnet.nest.find import find_card
from linnet.nest.generate import Generator, Sampling, generate
from linnet.nest.loader import find_loader, load, one_or_all
from linnet.nest.progress import Progress
from linnet.nest.text import TextModel, text_from_folder, text_from_gguf

INTERRUPTED = 130
COMPILED = frozenset({"native", "jax", "jax_source", "jax_model"})
"""Backends that compile code for each size of the caches."""
COMPILING = "compiling the model for this processor, which is kept for later runs"
COMPILING_ONCE = (
    "compiling the model for this processor, for this run alone, as the cache folder cannot be used"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run made: tokens, seconds for the prompt and for the rest, why it ended."""

    tokens: int
    prompt_tokens: int
    first: float
    rest: float
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Tokens per second after the first, whose time is the prompt's."""
        return (self.tokens - 1) / self.rest if self.tokens > 1 and self.rest > 0 else 0.0


def run_model(
    model: str | Path | Card,
    prompt: str,
    *,
    max_new_tokens: int = 512,
    temperature: float = 0.0,
    seed: int | None = None,
    backend: str | None = None,
    dtype: str | None = None,
    raw: bool = False,
    weights: str | Path | None = None,
    generics: Mapping[str, int | str] | None = None,
    cache_dir: str | Path | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    **options: Any,
) -> int:
    """Generate text from a card's model; the exit code (0, or 130 after Ctrl-C).

    `dtype` sets the card's generic `T`. A seed is drawn and told when sampling without one. When
    no backend is named, `default_backend` chooses, and another is told on stderr where native
    cannot be used.
    """
    out, progress = out or sys.stdout, Progress(err)
    if max_new_tokens < 1:
        fail("E5026", f"at least one new token is needed, not {max_new_tokens}")
    sampling = Sampling(temperature, secrets.randbits(32) if seed is None else seed)
    card = find_card(model, cache_dir, progress)
    bound = {**card.generics, **(generics or {})}
    if dtype is not None:
        bound["T"] = dtype
        options.setdefault("cast_dtype", True)
    choice = _choose(backend, bound, options)  # before weights are fetched
    try:
        files = [Path(weights)] if weights else fetch_weights(card, cache_dir, progress)
        text = load_text(card, files, progress)
        ids = encode(text, prompt, raw)
        room, capped = _room(bound, len(ids), max_new_tokens)
        started = perf_counter()
        reading = {"weights": one_or_all(files), "cache_dir": cache_dir, "progress": progress}
        sizes = {**bound, "Batch": 1}
        loaded = _loaded(card, choice, backend is None, sizes, len(ids) + room, reading | options)
        progress.say(f"loaded in {perf_counter() - started:.1f} s")
    except KeyboardInterrupt:
        progress.say("interrupted")
        return INTERRUPTED
    answer = stream(loaded, text, ids, room, sampling, out)
    _report(progress, answer, sampling, seed is None)
    if capped and answer.tokens == room and not answer.interrupted:
        limit = len(ids) + room
        progress.say(f"note: the answer ended because it reached the model's {limit} positions")
    return INTERRUPTED if answer.interrupted else 0


def _choose(backend: str | None, generics: Mapping[str, int | str], options: Any) -> Choice:
    """The backend named, or the default one."""
    if backend is None:
        choice = default_backend(str(generics.get("T", "")) or None, **options)
    else:
        choice = Choice(backend)
        if backend != NATIVE:
            for name in sorted(NATIVE_OPTIONS & set(options)):
                fail("E5027", f"only the native backend has the option {name}")
    find_loader(choice.backend)
    return choice


def _loaded(
    card: Card,
    choice: Choice,
    may_change: bool,
    generics: Mapping[str, int | str],
    needed: int,
    options: dict[str, Any],
) -> Any:
    """The model, ready to run; on another backend where the native one turns out to fail and
    nobody asked for it."""
    progress: Progress = options["progress"]
    if choice.note is not None:
        progress.say(choice.note)
    bound = {**generics, "MaxSeq": _positions(choice.backend, generics, needed)}
    if choice.backend != NATIVE:
        return load(card, choice.backend, generics=bound, **options)
    from linnet.native import NativeError

    try:
        loaded = load(card, choice.backend, generics=bound, **options)
        loaded.prepare("prefill", "decode", note=lambda: progress.say(_compiling()))
    except NativeError as error:
        if not may_change:
            raise
        other = other_backend(first_line(error), options)
        return _loaded(card, other, False, generics, needed, options)
    return loaded


def _compiling() -> str:
    from linnet.native.toolchain.store import cache_folder, private_folder

    folder = cache_folder()
    if private_folder(folder) is not None and os.access(folder, os.W_OK):
        return COMPILING
    where = escape_text(str(folder), 300)
    return f"{COMPILING_ONCE} (`{where}`; LINNET_CACHE names another)"


def load_text(card: Card, files: list[Path], progress: Progress) -> TextModel:
    """The text side of a model: from its GGUF file, or from the files beside its weights."""
    if len(files) == 1 and files[0].suffix.lower() == ".gguf":
        return text_from_gguf(files[0])
    if len(files) == 1 and files[0].is_dir():
        return text_from_folder(files[0])
    folder = fetch_text_files(card, files, progress)
    return text_from_folder(folder if folder is not None else card.folder)


def encode(text: TextModel, prompt: str, raw: bool) -> list[int]:
    """The prompt's ids, through the chat template of a chat model unless `raw`."""
    if raw or text.chat is None:
        ids = text.encode(prompt)
    else:
        ids = text.encode_chat([{"role": "user", "content": prompt}])
    if not ids:
        fail("E5026", "the prompt is empty")
    return ids


def _room(generics: Mapping[str, int | str], prompt: int, wanted: int) -> tuple[int, bool]:
    """How many tokens the answer may have, and whether the card's `MaxSeq` cut that down."""
    limit = generics.get("MaxSeq")
    if not isinstance(limit, int):
        return wanted, False
    if prompt >= limit:
        fail(
            "E5026",
            f"the prompt has {prompt} tokens, and the model has {limit} positions for it and an "
            "answer",
            help="shorten the prompt",
        )
    return min(wanted, limit - prompt), wanted > limit - prompt


def _positions(backend: str, generics: Mapping[str, int | str], needed: int) -> int:
    """`MaxSeq` for so many positions. Compiled code is kept for each value, so that there it is one
    of few; memory of a cache that is not used costs nothing."""
    limit = generics.get("MaxSeq")
    if backend not in COMPILED:
        return needed
    rounded = -(-needed // 1024) * 1024
    return min(rounded, limit) if isinstance(limit, int) else rounded


def stream(
    model: Generator, text: TextModel, ids: list[int], room: int, sampling: Sampling, out: TextIO
) -> Answer:
    """Write the answer as it comes; Ctrl-C ends it and keeps what was written."""
    detokenizer = text.detokenizer()
    count = 0
    interrupted = False
    started = first = perf_counter()
    try:
        for token in generate(model, ids, room, text.end_tokens, sampling):
            if count == 0:
                first = perf_counter()
            count += 1
            piece = detokenizer.add(token)
            if piece:
                out.write(piece)
                out.flush()
    except KeyboardInterrupt:
        interrupted = True
    ended = perf_counter()
    if count == 0:
        first = ended
    out.write(detokenizer.end() + "\n")
    out.flush()
    return Answer(count, len(ids), first - started, ended - first, interrupted)


def _report(progress: Progress, answer: Answer, sampling: Sampling, drawn: bool) -> None:
    if answer.interrupted:
        progress.say("interrupted")
    if sampling.temperature > 0 and drawn:
        progress.say(f"seed {sampling.seed}")
    count = f"{answer.tokens} token{'s' * (answer.tokens != 1)}"
    rate = f", {answer.rate:.1f} tokens per second" if answer.rate else ""
    progress.say(f"{count}{rate} (prompt of {answer.prompt_tokens} tokens in {answer.first:.2f} s)")
