"""Files from the Hugging Face Hub: weights in the Hub's own cache, cards copied into ours."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NoReturn

from linnet.nest.cache import cache_root, cached_folder
from linnet.nest.card import CARD_NAME, Card, WeightSpec
from linnet.nest.errors import GIVE_WEIGHTS, fail, quoted
from linnet.nest.progress import Progress

CARD_PATTERNS = [CARD_NAME, "linnet.toml", "bindings.json", "README.md", "*.linnet"]
CARD_FILE_LIMIT = 16 << 20
CARD_COUNT_LIMIT = 1000


def fetch_hub_files(
    spec: WeightSpec,
    files: tuple[str, ...],
    progress: Progress,
    optional: bool = False,
) -> list[Path]:
    """Files of the card's repository at its revision; `optional` leaves missing ones out."""
    assert spec.repo is not None  # the caller chose this way by it
    found = []
    for file in files:
        path = _file(spec.repo, spec.revision, file, progress, optional)
        if path is not None:
            found.append(path)
    return found


def _file(
    repo: str, revision: str | None, file: str, progress: Progress, optional: bool
) -> Path | None:
    hub = _hub(progress)
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    def get(offline: bool) -> Path:
        got = hub.hf_hub_download(repo, file, revision=revision, local_files_only=offline)
        return Path(got)

    try:
        return get(offline=True)
    except LocalEntryNotFoundError:
        pass
    except EntryNotFoundError:
        if optional:
            return None
    if not optional:
        progress.say(f"fetching {repo}/{file}")
    try:
        return get(offline=False)
    except LocalEntryNotFoundError as error:  # no network
        if optional:
            return None
        _failed(repo, file, error)
    except EntryNotFoundError:
        if optional:
            return None
        fail("E5022", f"the repository {quoted(repo)} has no file {quoted(file)}")
    except Exception as error:  # network, permissions, disk: all are told in one sentence
        _failed(repo, file, error)


def _failed(repo: str, file: str, error: Exception) -> NoReturn:
    fail(
        "E5022",
        f"{quoted(file)} of {quoted(repo)} could not be fetched",
        notes=(quoted(str(error).strip().splitlines()[0] if str(error).strip() else "", 300),),
        help=f"check the network, or {GIVE_WEIGHTS}",
    )


def _hub(progress: Progress) -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.utils as bars
    except ImportError:
        fail(
            "E5022",
            "fetching from the Hugging Face Hub needs huggingface_hub, which is not installed",
            help="pip install 'linnet[run]'",
        )
    switch = "enable_progress_bars" if progress.terminal else "disable_progress_bars"
    getattr(bars, switch)()
    return huggingface_hub


def fetch_card(repo: str, cache_dir: str | Path | None, progress: Progress) -> Card:
    """The card of a Hub repository, as plain files of our own.

    The Hub's cache is made of links, behind which a package's files would not lie together. The
    latest revision is asked for; without a network the last one that was fetched serves.
    """
    home = cache_root(cache_dir) / "cards" / repo.replace("/", "--")
    hub = _hub(progress)
    try:
        sha = str(hub.HfApi().model_info(repo).sha)
    except Exception as error:
        latest = _latest(home)
        if latest is None:
            _failed(repo, CARD_NAME, error)
        return Card.read(latest, fetched=True)

    def make(folder: Path) -> None:
        progress.say(f"fetching the card of {repo}")
        try:
            got = hub.snapshot_download(repo, revision=sha, allow_patterns=CARD_PATTERNS)
        except Exception as error:
            _failed(repo, CARD_NAME, error)
        copy_card(Path(got), folder)

    return Card.read(cached_folder(home / sha, make), fetched=True)


def copy_card(source: Path, target: Path) -> None:
    """Copy a card's text files out of a folder of links, within limits."""
    if not (source / CARD_NAME).is_file():
        fail("E5021", f"the repository has no {CARD_NAME}, so it is no model card")
    files = sorted(path for path in source.rglob("*") if path.is_file() and _of_card(path))
    if len(files) > CARD_COUNT_LIMIT:
        fail("E5023", f"the card has more than {CARD_COUNT_LIMIT} files")
    for path in files:
        if path.stat().st_size > CARD_FILE_LIMIT:
            fail("E5023", f"{quoted(path.name)} of the card is larger than {CARD_FILE_LIMIT} bytes")
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def _latest(home: Path) -> Path | None:
    folders = [p for p in home.glob("[0-9a-f]*") if (p / CARD_NAME).is_file()]
    return max(folders, key=lambda p: p.stat().st_mtime, default=None)


def _of_card(path: Path) -> bool:
    return path.suffix == ".linnet" or path.name in CARD_PATTERNS
