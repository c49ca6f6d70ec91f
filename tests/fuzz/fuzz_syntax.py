"""Mutations of real sources through the parser and the formatter.

For the full count: `python tests/fuzz/fuzz_syntax.py --count 20000 --seed 1`. A mutation
must raise nothing, take no more than five times the unmutated file's time for its length, and give
at most 100 diagnostics. One that is still a valid program must format to a text that parses to the
same tree, formats to itself, and does not depend on the white space it came from.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))

from linnet.diagnostics.span import SourceFile  # noqa: E402
from linnet.syntax import format_module, parse_module, same_tree, tokens  # noqa: E402

MAX_DIAGNOSTICS = 100
# Below this many seconds a measured time is noise.
NOISE = 0.05
DEEP = (
    *("(", "[", "{", "f(", "x[", "a + ", "-", "!", "some(", "if a { ", "else if a { b } ", "/*"),
    *("A<", "(a, ", "sum[i] ", "while a {", "block A {", "a.", "a < ", "let (", "x[a:"),
    "match a { _ => ",
)
COMMENTS = (
    *(" // note\n", "\n// own\n", " /* inline */ ", "\n/* own */\n", " /* a\n   b */ "),
    *("\n\n// apart\n\n", "\n/// doc\n", " /* one */ /* two */ ", " /* one */ // two\n"),
)


def sources() -> list[str]:
    """Every `.linnet` text at hand: the repository's, and the published packages' if they are."""
    places = [ROOT / "src", ROOT / "models", ROOT / "tests", ROOT.parent / "shared" / "seeds"]
    found = [path for place in places if place.is_dir() for path in place.rglob("*.linnet")]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(found)]
    return [*(text for text in texts if len(text) < 100_000), SAMPLE]


def pieces(text: str) -> list[tuple[str, int, int]]:
    """Tokens and comments in order, as `(kind, start, end)`; the kind of a comment is its place."""
    result: list[tuple[str, int, int]] = []
    for token in tokens(SourceFile("fuzz", text))[0]:
        result += [(note.place, note.span.start, note.span.end) for note in token.comments]
        result.append((token.kind, token.span.start, token.span.end))
    return result


# --- mutations ---


def flip_bytes(rng: random.Random, text: str, others: list[str]) -> str:
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data.decode("utf-8", errors="replace")


def delete_tokens(rng: random.Random, text: str, others: list[str]) -> str:
    parts = pieces(text)
    first = rng.randrange(len(parts))
    last = min(len(parts) - 1, first + rng.choice((0, 0, 0, 1, 2, 9)))
    return text[: parts[first][1]] + text[parts[last][2] :]


def duplicate_tokens(rng: random.Random, text: str, others: list[str]) -> str:
    parts = pieces(text)
    first = rng.randrange(len(parts))
    last = min(len(parts) - 1, first + rng.choice((0, 0, 1, 3, 30)))
    chunk = text[parts[first][1] : parts[last][2]]
    at = parts[rng.choice((last, rng.randrange(len(parts))))][2]
    return text[:at] + " " + chunk + " " + text[at:]


def swap_tokens(rng: random.Random, text: str, others: list[str]) -> str:
    parts = pieces(text)
    if len(parts) < 2:
        return text
    (_, a, b), (_, c, d) = sorted(rng.sample(parts, 2), key=lambda part: part[1])
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def splice(rng: random.Random, text: str, others: list[str]) -> str:
    other = rng.choice(others)
    at, start = rng.randrange(len(text) + 1), rng.randrange(len(other) + 1)
    return text[:at] + other[start : start + rng.randint(1, 400)] + text[at:]


def nest(rng: random.Random, text: str, others: list[str]) -> str:
    parts = pieces(text)
    at = rng.choice(parts)[2]
    return text[:at] + " " + rng.choice(DEEP) * rng.choice((3, 60, 200, 3000)) + " " + text[at:]


def comment(rng: random.Random, text: str, others: list[str]) -> str:
    for _ in range(rng.randint(1, 3)):
        _, start, end = rng.choice(pieces(text))
        at = rng.choice((start, end))
        text = text[:at] + rng.choice(COMMENTS) + text[at:]
    return text


def commas(rng: random.Random, text: str, others: list[str]) -> str:
    """A comma before a closing bracket, which is often allowed."""
    closers = [start for kind, start, _ in pieces(text) if kind in (")", "]", ">", "{")]
    if not closers:
        return text
    at = rng.choice(closers)
    return text[:at] + "," + text[at:]


def parenthesize(rng: random.Random, text: str, others: list[str]) -> str:
    words = [part for part in pieces(text) if part[0] in ("name", "int", "float")]
    if not words:
        return text
    _, start, end = rng.choice(words)
    return text[:start] + "(" + text[start:end] + ")" + text[end:]


def rename(rng: random.Random, text: str, others: list[str]) -> str:
    """A much longer or shorter name, which moves where lines break."""
    words = [part for part in pieces(text) if part[0] == "name"]
    if not words:
        return text
    _, start, end = rng.choice(words)
    return text[:start] + "n" * rng.choice((1, 20, 45, 90, 120)) + text[end:]


MUTATIONS: tuple[Callable[[random.Random, str, list[str]], str], ...] = (
    flip_bytes,
    delete_tokens,
    duplicate_tokens,
    swap_tokens,
    splice,
    nest,
    comment,
    comment,
    commas,
    parenthesize,
    rename,
)


def shuffle(rng: random.Random, text: str) -> str:
    """Other white space of the same meaning: between two tokens anything, blank lines kept as
    blank lines, and next to a comment whether a line ends there."""
    parts = pieces(text)
    out: list[str] = []
    at = 0
    before = "start"
    for kind, start, end in parts:
        out.append(_gap(rng, text[at:start], before, kind))
        out.append(text[start:end])
        at, before = end, kind
    return "".join(out)


def _gap(rng: random.Random, gap: str, before: str, after: str) -> str:
    lines = gap.count("\n")
    places = ("own", "trailing", "inline")
    if lines > 1:
        return "\n" + rng.choice(("\n", "  \n", "\n\t\n")) + " " * rng.randint(0, 9)
    if before in places or after in places:
        if lines:
            return rng.choice(("\n", "\n    ", "\r\n\t"))
        return rng.choice((" ", "   ")) if gap else ""
    if after == "eof" or before == "start":
        return gap
    closed = before in ("(", ")", "[", "]", "{", "}", ",") or after in (")", "]", "}", ",")
    choices = ["\n", " ", "  ", "\n      ", "\t", "\r\n"]
    return rng.choice([*choices, "", ""] if closed or not gap else choices)


# --- checks ---


def measure(text: str) -> float:
    start = time.process_time()
    file = SourceFile("fuzz", text)
    parse_module(file)
    format_module(file)
    return time.process_time() - start


def check(text: str, seconds_a_character: float, rng: random.Random) -> tuple[str | None, bool]:
    """`(what is wrong or None, whether the text is a valid program)`."""
    limit = 5 * max(NOISE, seconds_a_character * len(text))
    start = time.process_time()
    file = SourceFile("fuzz", text)
    module, diagnostics = parse_module(file)
    formatted, problems = format_module(file)
    if time.process_time() - start > limit and min(measure(text) for _ in range(3)) > limit:
        return f"takes over {limit:.2f} s", False
    if len(diagnostics) > MAX_DIAGNOSTICS:
        return f"{len(diagnostics)} diagnostics", False
    if diagnostics:
        same = formatted is None and problems == diagnostics
        return (None if same else "the formatter reports other problems"), False
    if formatted is None:
        return "the formatter refuses a valid program", True
    again = SourceFile("formatted", formatted)
    if not same_tree(module, parse_module(again)[0]):
        return "formatting changes the program", True
    if format_module(again)[0] != formatted:
        return "formatting twice differs", True
    if format_module(SourceFile("shuffled", shuffle(rng, text)))[0] != formatted:
        return "the format depends on white space", True
    return None, True


def run(count: int, seed: int) -> tuple[list[tuple[str, str]], int]:
    """`count` mutations: the failures with their texts, and how many were valid programs."""
    rng = random.Random(seed)
    texts = sources()
    total = sum(len(text) for text in texts)
    rate = sum(min(measure(text), measure(text)) for text in texts) / total
    # Long files more rarely: they take most of the time and are much alike.
    weights = [len(text) ** -0.5 for text in texts]
    failures: list[tuple[str, str]] = []
    valid = 0
    for _ in range(count):
        text = rng.choices(texts, weights)[0]
        names = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            mutation = rng.choice(MUTATIONS)
            names.append(mutation.__name__)
            text = mutation(rng, text, texts)
        try:
            wrong, fine = check(text, rate, rng)
        except Exception as error:
            wrong, fine = f"{type(error).__name__}: {error}", False
        valid += fine
        if wrong is not None:
            failures.append((f"{wrong} ({', '.join(names)})", text))
    return failures, valid


SAMPLE = """\
/// Everything the grammar has, in one file.
module sample.all
use crate.other
use std.nn.linear::Linear
use std.nn.norm::{rms_norm, layer_norm as ln}

const N: i64 = 0xff // trailing
pub const EPS = 1.5e-6
type Pair<T: Float = bf16> = (Tensor[N, 2 * N; T], T?)
struct Both<*S: Shape, T: DType> { left: Tensor[*S; T], right: Tensor[*S, 4; T]? }
pub enum Kind { Small, Large }

/** A block
 * with a doc comment. */
pub block Whole<H: Dim, *S: Shape, T: Float = f32, N: Dim = 2 * 4>
where
    H % 2 == 0, // even
    N > 0
{
    param weight: Tensor[H, N; T]
    param bias: Tensor[H; T]? = none
    buffer table: Tensor[H; i32]
    state seen: Tensor[1, H; T]
    sub parts: [Linear<H, (H / 2) * 2, T>; N]
    sub maybe: Linear<H, H, T> = none
    const Half = H / 2

    pub fn forward<B: Dim>(x: Tensor[B, H; T], flag: bool = true) -> (Tensor[B, H; T], bool)
    where B > 0 {
        let y[b, h] = sum<f32>[n] cast<f32>(x[b, h]) * cast<f32>(weight[h, n]) / 2.0
        let shifted = match bias { some(v) => y + v, none => y }
        let chosen = if flag && !(N < 3) || H >= 9 { shifted } else if flag { y } else { -y }
        var total: Tensor[B, H; T] = cast<T>(chosen)
        static for part in parts { total = part.forward(total) }
        static for i in 0..N { total = total + cast<T>(i) }
        while flag & (1 < 2) { total = total * 2.0 - -1.0 }
        let all_steps = for t in 0..N { let z = total yield z }
        for i in 0..4 { seen = total }
        let (a, (b, _)) = (total, (x[..., 0::2], x[:, 1:H, ::2]))
        let m = max[*s, h] x[*s, h]
        let k = match kind { Kind.Small => 1 Kind.Large => 2, _ => 3 }
        let s = reshape(x, [*S, H], axis = -1)
        return (total, all<bool>[b] (k == 3))
    }
    entry nothing() { return }
}

op scaled<T: Float>(x: T) -> T { return x } grad(y, dy) { return dy * 2.0 }
fn compare(a: i64, b: i64) -> bool {
    return f(a < b, b > a) | f<a, (b)>(a) ^ g<[2, 3], (f32, i8)>()
}
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=3, help="how many failures to print in full")
    chosen = options.parse_args()
    failures, valid = run(chosen.count, chosen.seed)
    for message, text in failures[: chosen.show]:
        print(f"--- {message}\n{text}\n")
    print(f"{chosen.count} mutations, {valid} valid programs, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
