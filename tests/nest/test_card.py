"""Cards: what is read, what is refused, and how one is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linnet import nest
from linnet.nest import Card, NestError
from linnet.nest.find import find_card
from linnet.packages.resources import models_root
from linnet.weights import read_bindings

GOOD = """
[model]
name = "toy"
summary = "A toy."
license = "MIT"
family = "toy"
[source]
path = "src/lib.linnet"
root = "Model"
[generics]
H = 4
T = "f32"
[check]
B = 1
[weights]
files = ["m.safetensors"]
bindings = "bindings.json"
"""


def card_of(tmp_path: Path, text: str, fetched: bool = False) -> Card:
    folder = tmp_path / "toy"
    folder.mkdir(exist_ok=True)
    (folder / "nest.toml").write_text(text)
    return Card.read(folder, fetched)


def test_reads_a_card(tmp_path: Path) -> None:
    card = card_of(tmp_path, GOOD)
    assert card.name == card.title == "toy" and card.generics == {"H": 4, "T": "f32"}
    assert card.source.root == "Model" and card.source.entry is None
    assert card.weights is not None and card.weights.files == ("m.safetensors",)
    assert card.source_path == tmp_path / "toy" / "src" / "lib.linnet"
    assert card.bindings_path == tmp_path / "toy" / "bindings.json"


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("[model]", "[modle]", "no table of a card"),
        ('name = "toy"', "", "has no name"),
        ('name = "toy"', 'name = "../x"', "is made of"),
        ('name = "toy"', "name = 3", "no text"),
        ('path = "src/lib.linnet"', 'path = "src/lib.py"', "no .linnet file"),
        ('path = "src/lib.linnet"', 'path = "/lib.linnet"', "no relative path"),
        ('path = "src/lib.linnet"', 'path = "../../x/lib.linnet"', "leads out"),
        ('path = "src/lib.linnet"', 'path = "..\\\\lib.linnet"', "no relative path"),
        ('root = "Model"', 'root = "Mo del"', "is no name"),
        ("H = 4", "H = -4", "neither a size"),
        ("H = 4", "H = true", "neither a size"),
        ("H = 4", "H = 4.0", "neither a size"),
        ("H = 4", f"H = {1 << 64}", "neither a size"),
        ("B = 1", 'B = "x"', "no size"),
        ('["m.safetensors"]', '["../m.safetensors"]', "no plain file path"),
        ('["m.safetensors"]', "[]", "names no files"),
        ('["m.safetensors"]', "[3]", "no short text"),
        ('bindings = "bindings.json"', 'bindings = "../../b.json"', "leads out"),
        ("[weights]", '[weights]\nrepo = "a/b/c"', "not a repository"),
        ("[weights]", '[weights]\npypi = "--index-url==1"', "not a wheel"),
        ("[weights]", '[weights]\npypi = "x==1"', "needs sha256"),
        ("[weights]", '[weights]\nsha256 = "abc"', "64 hexadecimal"),
        ("[weights]", '[weights]\nsha256 = ["a", "b"]', "one entry for each file"),
        ("[weights]", '[weights]\ngguf = "m.gguf"', "both files and gguf"),
        ("[weights]", '[weights]\nmagnet = "x"', "has no key"),
        ("[weights]", "x = [" + "[" * 900 + "]" * 900 + "]\n[weights]", "too deeply"),
        ("[weights]", "[weights", "not valid TOML"),
    ],
)
def test_refuses(tmp_path: Path, old: str, new: str, part: str) -> None:
    with pytest.raises(NestError) as caught:
        card_of(tmp_path, GOOD.replace(old, new, 1))
    assert part in str(caught.value)
    assert {d.code for d in caught.value.diagnostics} == {"E5020"}


def test_all_problems_are_told(tmp_path: Path) -> None:
    text = GOOD.replace("H = 4", "H = -4").replace('root = "Model"', 'root = "1"')
    with pytest.raises(NestError) as caught:
        card_of(tmp_path, text)
    assert len(caught.value.diagnostics) == 2
    spans = [d.span for d in caught.value.diagnostics]
    assert [s.text for s in spans if s is not None] == ["root", "H"]


def test_a_fetched_card_stays_in_its_folder(tmp_path: Path) -> None:
    text = GOOD.replace('"src/lib.linnet"', '"../other/lib.linnet"')
    assert card_of(tmp_path, text).source.path == "../other/lib.linnet"
    with pytest.raises(NestError, match="leads out of the fetched card"):
        card_of(tmp_path, text, fetched=True)
    (tmp_path / "toy" / "src").symlink_to(tmp_path)
    with pytest.raises(NestError, match="leads out of the fetched card"):
        card_of(tmp_path, GOOD, fetched=True)


def test_huge_and_missing_cards(tmp_path: Path) -> None:
    with pytest.raises(NestError):
        card_of(tmp_path, GOOD + "#" * (300 << 10))
    with pytest.raises(NestError, match="does not exist"):
        Card.read(tmp_path / "nothing")


def test_finding_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card_of(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert find_card("./toy").name == "toy"
    assert find_card(str(tmp_path / "toy")).name == "toy"
    assert find_card(Path("toy")).name == "toy"
    with pytest.raises(NestError) as caught:
        find_card("toy")  # a plain name is an installed card, even beside a folder of that name
    assert caught.value.diagnostics[0].help == "the folder of that name is given as ./toy"
    for name in ("qwen3-8", "./nothing", "a/b/c", "x\0/y", "..", ""):
        with pytest.raises(NestError):
            find_card(name)


def test_installed_cards_agree_with_each_other() -> None:
    cards = {card.name: card for card in nest.list()}
    assert {"qwen3-0.6b", "qwen3-8b", "smollm2-135m-instruct"} <= set(cards)
    for name, card in cards.items():
        assert card.folder == models_root() / name
        assert (card.folder / "README.md").is_file()
        assert card.bindings_path is not None
        entries = read_bindings(card.bindings_path).entries
        assert json.loads(card.bindings_path.read_text()) == dict(entries)
    small, large = cards["qwen3-0.6b"], cards["qwen3-8b"]
    assert small.source_path.resolve() == large.source_path.resolve()
