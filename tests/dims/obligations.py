"""What model code asks of the prover: each true obligation beside a near miss that is not true.

A row reads: given these relations, this must be proved, and that must not be. `miss_given`
replaces the given relations for the near miss where a missing declaration is the point. Every row
is also checked by brute force: the obligation holds at all small assignments that satisfy what is
given, and the near miss fails at one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Obligation:
    what: str
    given: str
    proved: str
    miss: str
    miss_given: str | None = None


row = Obligation

ATTENTION = (
    "Shards > 0, Heads % Shards == 0, KvHeads % Shards == 0, KvHeads / Shards > 0, "
    "(Heads / Shards) % (KvHeads / Shards) == 0, Heads > 0, KvHeads > 0, "
    "Heads % KvHeads == 0, HeadDim % 2 == 0"
)
DELTA = (
    "KeyHeads > 0, KeyDim > 0, ValueHeads % KeyHeads == 0, "
    "Conv == 2 * KeyHeads * KeyDim + ValueHeads * ValueDim, Width > 1, Batch > 0"
)

OBLIGATIONS = (
    # -- arithmetic: one normal form ------------------------------------------------------------
    row("order of factors", "", "B * S * Heads * D == D * Heads * S * B", "B * S * D == B * S * S"),
    row("distribution", "", "(A + B) * C == A * C + B * C", "(A + B) * C == A * C + B"),
    row(
        "square of a sum",
        "",
        "(A + B) * (A + B) == A * A + 2 * A * B + B * B",
        "(A + B) * (A + B) == A * A + B * B",
    ),
    row("cancelled terms", "", "P + Batch - P == Batch", "P + Batch - P == P"),
    row("doubling", "", "2 * Inner == Inner + Inner", "2 * Inner == Inner + 1"),
    # -- the seed's attention: head splits over shards -------------------------------------------
    row(
        "all shards make the whole",
        ATTENTION,
        "Heads / Shards * Shards == Heads",
        "Heads / Shards * Shards == Heads",
        "Shards > 0",
    ),
    row(
        "inside a larger product",
        ATTENTION,
        "B * S * (Heads / Shards) * HeadDim * Shards == B * S * Heads * HeadDim",
        "B * S * (Heads / Shards) * HeadDim * Shards == B * S * Heads",
    ),
    row("divisor of the grouped heads", ATTENTION, "KvHeads / Shards > 0", "KvHeads / Shards > 1"),
    row(
        "groups of nested quotients",
        ATTENTION,
        "(Heads / Shards) % (KvHeads / Shards) == 0",
        "(KvHeads / Shards) % (Heads / Shards) == 0",
    ),
    row(
        "the same group size with and without shards",
        ATTENTION,
        "Heads / KvHeads == Heads / Shards / (KvHeads / Shards)",
        "Heads / KvHeads == Heads / Shards",
    ),
    row(
        "queries regroup by key heads",
        ATTENTION,
        "KvHeads / Shards * (Heads / Shards / (KvHeads / Shards)) == Heads / Shards",
        "KvHeads / Shards * (Heads / Shards / (KvHeads / Shards)) == Heads",
    ),
    row(
        "implied divisibility over shards",
        "Shards > 0, Heads % Shards == 0, KvHeads % Shards == 0, KvHeads > 0, Heads % KvHeads == 0",
        "(Heads / Shards) % (KvHeads / Shards) == 0",
        "(Heads / Shards) % KvHeads == 0",
    ),
    row(
        "implied positivity of a quotient",
        "Shards > 0, KvHeads % Shards == 0, KvHeads > 0",
        "KvHeads / Shards > 0",
        "KvHeads / Shards > 0",
        "Shards > 0, KvHeads > 0",
    ),
    row(
        "quotient of positive by its divisor",
        "Heads > 0, KvHeads > 0, Heads % KvHeads == 0",
        "Heads / KvHeads >= 1",
        "Heads / KvHeads >= 2",
    ),
    row("more query heads than key heads", ATTENTION, "KvHeads <= Heads", "KvHeads < Heads"),
    row(
        "a shard has no more than all",
        ATTENTION,
        "Heads / Shards <= Heads",
        "Heads / Shards < Heads",
    ),
    row(
        "split and merged projection width",
        ATTENTION,
        "1 * (P + Batch) * (Heads / Shards * HeadDim) == "
        "1 * (P + Batch) * (Heads / Shards) * HeadDim",
        "1 * (P + Batch) * (Heads / Shards * HeadDim) == 1 * P * (Heads / Shards) * HeadDim",
    ),
    # -- rotary halves and quarters -------------------------------------------------------------
    row(
        "two halves",
        "HeadDim % 2 == 0",
        "HeadDim / 2 + HeadDim / 2 == HeadDim",
        "HeadDim / 2 + HeadDim / 2 == HeadDim",
        "",
    ),
    row("the second half's length", "D % 2 == 0", "D - D / 2 == D / 2", "D - D / 2 == D / 2", ""),
    row("a half is in range", "", "D / 2 <= D", "D / 2 < D"),
    row(
        "a quarter is in range",
        "(HeadDim / 4) % 2 == 0",
        "HeadDim / 4 <= HeadDim",
        "HeadDim / 4 >= 1",
    ),
    row("the rest after a quarter", "", "HeadDim - HeadDim / 4 >= 0", "HeadDim - HeadDim / 4 >= 1"),
    row(
        "a quarter and the rest",
        "",
        "HeadDim / 4 + (HeadDim - HeadDim / 4) == HeadDim",
        "HeadDim / 4 + HeadDim / 4 == HeadDim",
    ),
    row(
        "half of a quarter",
        "(HeadDim / 4) % 2 == 0",
        "HeadDim / 4 / 2 * 2 == HeadDim / 4",
        "HeadDim / 4 / 2 * 2 == HeadDim / 4",
        "HeadDim % 2 == 0",
    ),
    row("divided twice", "", "HeadDim / 4 / 2 == HeadDim / 8", "HeadDim / 4 / 2 == HeadDim / 6"),
    row("a multiple of 8 is even", "D % 8 == 0", "D % 2 == 0", "D % 8 == 0", "D % 2 == 0"),
    row("2 and 3 make 6", "D % 2 == 0, D % 3 == 0", "D % 6 == 0", "D % 12 == 0"),
    row(
        "even elements of an even axis",
        "D % 2 == 0",
        "(D + 1) / 2 == D / 2",
        "(D + 1) / 2 == D / 2",
        "",
    ),
    row("even and odd elements", "", "(D + 1) / 2 + D / 2 == D", "D / 2 + D / 2 == D"),
    # -- slices ---------------------------------------------------------------------------------
    row("last position", "S > 0", "S - 1 >= 0", "S - 1 >= 0", ""),
    row("last position is in range", "S > 0", "S - 1 < S", "S < S"),
    row("prefix of a join", "P >= 0", "P <= P + Batch", "P + Batch <= P"),
    row("suffix of a join", "", "P + Batch - P == Batch", "P + Batch - 1 == P"),
    row("the first window of two", "", "HeadDim <= 2 * HeadDim", "2 * HeadDim <= HeadDim"),
    row(
        "length of the second window",
        "",
        "2 * ExpertInner - ExpertInner == ExpertInner",
        "2 * ExpertInner - ExpertInner == 2 * ExpertInner",
    ),
    row("rows after the outputs", "", "S + KeyDim - S == KeyDim", "S + KeyDim - S == S"),
    row(
        "strided length is not negative",
        "Step > 0, Start <= Stop",
        "(Stop - Start + Step - 1) / Step >= 0",
        "(Stop - Start + Step - 1) / Step >= 1",
    ),
    row(
        "strided length by a constant",
        "Start <= Stop",
        "(Stop - Start + 1) / 2 >= 0",
        "(Stop - Start + 1) / 2 >= 0",
        "",
    ),
    row(
        "strided length fits",
        "Step > 0, Start <= Stop, Stop <= N",
        "(Stop - Start + Step - 1) / Step <= N",
        "(Stop - Start + Step - 1) / Step <= Stop - Step",
    ),
    row("step 1", "", "(N - 0 + 1 - 1) / 1 == N", "(N - 0 + 1) / 1 == N"),
    row("chain of bounds", "A <= B, B <= C", "A <= C", "C <= A"),
    row("longer chain", "A <= B, B < C, C <= D", "A + 1 <= D", "A + 2 <= D"),
    row("sum of bounds", "A <= B, C <= D", "A + C <= B + D", "A + D <= B + C"),
    row("product of bounds", "A <= B, C <= D", "A * C <= B * D", "A * D <= B * C"),
    row("bound below a quotient", "N <= MaxSeq / 2", "2 * N <= MaxSeq", "2 * N + 1 <= MaxSeq"),
    row("span written at an offset", "Start + N <= MaxSeq", "Start <= MaxSeq", "Start < MaxSeq"),
    row("window of a window", "A <= B, B <= N", "B - A <= N", "N - A <= B - A"),
    # -- the seed's linear attention ------------------------------------------------------------
    row("history length", DELTA, "Width - 1 >= 1", "Width - 1 >= 2"),
    row("history and one more", DELTA, "Width - 1 + 1 == Width", "Width - 1 + 1 == Width + 1"),
    row("window without its first", DELTA, "1 <= Width", "3 <= Width"),
    row(
        "queries within the convolution",
        DELTA,
        "KeyHeads * KeyDim <= Conv",
        "3 * KeyHeads * KeyDim <= Conv",
    ),
    row(
        "keys after the queries",
        DELTA,
        "KeyHeads * KeyDim <= 2 * KeyHeads * KeyDim",
        "2 * KeyHeads * KeyDim <= KeyHeads * KeyDim",
    ),
    row(
        "keys within the convolution",
        DELTA,
        "2 * KeyHeads * KeyDim <= Conv",
        "2 * KeyHeads * KeyDim < Conv",
    ),
    row(
        "values are the rest",
        DELTA,
        "Conv - 2 * KeyHeads * KeyDim == ValueHeads * ValueDim",
        "Conv - KeyHeads * KeyDim == ValueHeads * ValueDim",
    ),
    row(
        "a reshape of the rest",
        DELTA,
        "B * S * (Conv - 2 * KeyHeads * KeyDim) == B * S * ValueHeads * ValueDim",
        "B * S * Conv == B * S * ValueHeads * ValueDim",
    ),
    row(
        "element count of the history",
        DELTA,
        "Batch * 1 * (Width - 1) * Conv == Batch * (Width - 1) * Conv",
        "Batch * Width * Conv == Batch * (Width - 1) * Conv",
    ),
    row("something is convolved", DELTA, "Conv >= 2", "Conv >= 3"),
    row(
        "value heads by key heads",
        DELTA,
        "ValueHeads / KeyHeads * KeyHeads == ValueHeads",
        "KeyHeads / ValueHeads * ValueHeads == KeyHeads",
    ),
    # -- the other layers of the seeds and the library -------------------------------------------
    row(
        "vocabulary over shards",
        "Shards > 0, Vocab % Shards == 0",
        "Shards * (Vocab / Shards) == Vocab",
        "Shards * (Vocab / Shards) == Vocab",
        "Shards > 0",
    ),
    row(
        "logits of all rows",
        "Shards > 0, Vocab % Shards == 0",
        "B * S * (Shards * (Vocab / Shards)) == B * S * Vocab",
        "B * S * (Shards * (Vocab / Shards)) == B * Vocab",
    ),
    row(
        "experts' gate and up",
        "",
        "ExpertInner + ExpertInner == 2 * ExpertInner",
        "ExpertInner + ExpertInner == ExpertInner * ExpertInner",
    ),
    row("gated delta's output rows", "S > 0", "0 <= S + KeyDim - S", "1 <= S + KeyDim - S"),
    row("one token's output row", "", "1 <= 1 + KeyDim", "2 <= 1 + KeyDim"),
    row("causal offset", "Q <= K", "K - Q >= 0", "Q - K >= 0"),
    row(
        "pages of a pool",
        "Size > 0, MaxSeq % Size == 0",
        "MaxSeq / Size * Size == MaxSeq",
        "MaxSeq / Size * Size == MaxSeq",
        "Size > 0",
    ),
    row("place in a page", "Size > 0", "P % Size < Size", "P % Size < Size - 1"),
    row(
        "page and place",
        "Size > 0",
        "P / Size * Size + P % Size == P",
        "P / Size * Size + P % Size == P + P % Size",
    ),
    row(
        "a page starts before its place", "Size > 0", "P / Size * Size <= P", "P / Size * Size < P"
    ),
    row(
        "heads repeated",
        "Hk > 0, H % Hk == 0",
        "B * Hk * (H / Hk) * S * D == B * H * S * D",
        "B * Hk * (H / Hk) * S * D == B * Hk * S * D",
    ),
    row("a step for every row besides", "Batch > 0", "P + Batch >= 1", "P >= 1"),
    # -- ordinary model code: padding, patches, strides, windows ---------------------------------
    row(
        "padded vocabulary is enough",
        "",
        "(Vocab + 63) / 64 * 64 >= Vocab",
        "(Vocab + 62) / 64 * 64 >= Vocab",
    ),
    row(
        "padding is less than a block",
        "",
        "(Vocab + 63) / 64 * 64 - Vocab < 64",
        "(Vocab + 63) / 64 * 64 - Vocab < 63",
    ),
    row(
        "padded to any multiple",
        "Multiple > 0",
        "(N + Multiple - 1) / Multiple * Multiple >= N",
        "(N + Multiple - 2) / Multiple * Multiple >= N",
    ),
    row(
        "padded length is a multiple",
        "Multiple > 0",
        "(N + Multiple - 1) / Multiple * Multiple % Multiple == 0",
        "(N + Multiple - 1) % Multiple == 0",
    ),
    row(
        "padding a multiple adds nothing",
        "Vocab % 64 == 0",
        "(Vocab + 63) / 64 * 64 == Vocab",
        "(Vocab + 64) / 64 * 64 == Vocab",
    ),
    row(
        "patches of an image",
        "Patch > 0, Height % Patch == 0, Width % Patch == 0",
        "Height / Patch * (Width / Patch) * (Patch * Patch) == Height * Width",
        "Height / Patch * (Width / Patch) * Patch == Height * Width",
    ),
    row(
        "patches with channels",
        "P > 0, H % P == 0, W % P == 0",
        "B * C * (H / P) * P * (W / P) * P == B * C * H * W",
        "B * C * (H / P) * P * (W / P) * P == B * C * H * W",
        "P > 0, H % P == 0",
    ),
    row("patches and a class token", "P > 0, N == H / P * (W / P) + 1", "N >= 1", "N >= 2"),
    row(
        "convolution keeps the size",
        "",
        "(N + 2 * 1 - 3) / 1 + 1 == N",
        "(N + 2 * 1 - 2) / 1 + 1 == N",
    ),
    row(
        "convolution halves an even size",
        "N % 2 == 0",
        "(N + 2 * 1 - 4) / 2 + 1 == N / 2",
        "(N + 2 * 1 - 2) / 2 + 1 == N / 2",
    ),
    row(
        "odd kernel, same padding",
        "K % 2 == 1",
        "N + 2 * (K / 2) - K + 1 == N",
        "N + 2 * (K / 2) - K + 1 == N",
        "K % 2 == 0",
    ),
    row(
        "convolution output is positive",
        "Stride > 0, K <= N + 2 * Pad",
        "(N + 2 * Pad - K) / Stride + 1 >= 1",
        "(N + 2 * Pad - K) / Stride >= 1",
    ),
    row(
        "a window stays inside",
        "Stride > 0, K <= N",
        "(N - K) / Stride * Stride + K <= N",
        "(N - K) / Stride * Stride + K < N",
    ),
    row(
        "windows of an image",
        "Window > 0, Side % Window == 0",
        "B * (Side / Window) * Window * (Side / Window) * Window * C == B * (Side * Side) * C",
        "B * (Side / Window) * Window * (Side / Window) * C == B * (Side * Side) * C",
    ),
    row(
        "shifted window", "Window > 0, Shift == Window / 2", "Shift < Window", "Shift < Window / 2"
    ),
    row("pooling by two", "N >= 2", "(N - 2) / 2 + 1 == N / 2", "(N - 2) / 2 + 1 == (N + 1) / 2"),
    row(
        "chunks of a sequence",
        "Chunk > 0, S % Chunk == 0",
        "B * (S / Chunk) * Chunk * H == B * S * H",
        "B * (S / Chunk) * H == B * S * H",
    ),
    row(
        "groups of channels",
        "G > 0, C % G == 0",
        "G * (C / G) * H * W == C * H * W",
        "G * (C / G) * H * W == G * H * W",
    ),
    row(
        "width by declared heads",
        "H == Heads * HeadDim",
        "B * S * H == B * S * Heads * HeadDim",
        "B * S * H == B * S * Heads",
    ),
    row(
        "head width by division",
        "Heads > 0, H % Heads == 0",
        "Heads * (H / Heads) == H",
        "Heads * (H / Heads) == H",
        "Heads > 0",
    ),
    row(
        "an equality either way round",
        "Heads * HeadDim == H, Heads > 0",
        "H / Heads == HeadDim",
        "H / Heads == Heads",
    ),
    row("equal products", "B * S == M * N", "B * S * H == M * N * H", "B * S * H == M * H"),
    row("packed bytes", "In % 2 == 0", "In / 2 * 2 == In", "In / 2 * 2 == In", "In % 3 == 0"),
    row(
        "groups of a quantised row",
        "Group > 0, In % Group == 0, Group % 2 == 0",
        "In / Group * (Group / 2) == In / 2",
        "In / Group * (Group / 2) == In",
    ),
    row(
        "a quantised row is even",
        "Group > 0, In % Group == 0, Group % 2 == 0",
        "In % 2 == 0",
        "In % 4 == 0",
    ),
    row(
        "transposed convolution",
        "Stride > 0, N >= 1",
        "(N - 1) * Stride + K >= K",
        "(N - 1) * Stride + K >= N",
        "Stride >= 0, N >= 1",
    ),
    row("relative positions", "S > 0", "2 * S - 1 >= S", "2 * S - 1 > S"),
    row("multiscale pyramid", "N % 4 == 0", "N / 2 / 2 * 4 == N", "N / 2 / 2 * 2 == N"),
    # -- min and max ----------------------------------------------------------------------------
    row("min is in range", "", "min(N, MaxSeq) <= MaxSeq", "max(N, MaxSeq) <= MaxSeq"),
    row("min decided by a bound", "N <= MaxSeq", "min(N, MaxSeq) == N", "min(N, MaxSeq) == MaxSeq"),
    row("max of positives", "A > 0", "max(A, B) >= 1", "min(A, B) >= 1"),
    row(
        "min and max together",
        "",
        "min(A, B) + max(A, B) == A + B",
        "min(A, B) + max(A, B) == A + A",
    ),
    row("clipped difference", "", "max(A - B, 0) >= 0", "A - B >= 0"),
    row("clipped difference fits", "", "max(A - B, 0) <= A", "max(A - B, 1) <= A"),
    row("shorter of three", "", "min(A, min(B, C)) <= B", "min(A, max(B, C)) <= B"),
    row("a declared minimum", "N == min(A, B)", "N <= A", "A <= N"),
    row("bounded by a minimum", "N <= min(A, B)", "2 * N <= A + B", "2 * N < A + B"),
    row("min scales", "", "2 * min(A, B) == min(2 * A, 2 * B)", "2 * min(A, B) == min(2 * A, B)"),
    # -- signs ----------------------------------------------------------------------------------
    row("products are not negative", "", "A * B * C >= 0", "A * B * C >= 1"),
    row("products of positives", "A > 0, B > 0", "A * B >= 1", "A * B >= 2"),
    row("a factor of a positive product", "A * B > 0", "A > 0", "A > 1"),
    row("a positive factor grows", "Heads > 0", "D <= Heads * D", "D < Heads * D"),
    row(
        "difference of a product", "Width > 1", "(Width - 1) * Conv >= 0", "(Width - 2) * D >= Conv"
    ),
    row("not zero is positive", "N != 0", "N >= 1", "N >= 2"),
    row("not equal and not more", "A <= B, A != B", "A < B", "A + 1 < B"),
    row("equal from two bounds", "A <= B, B <= A", "A * C == B * C", "A * C == B"),
    row(
        "a large number",
        "N >= 1000000000000000",
        "N * 4096 > 4000000000000000000",
        "N * 4096 > 5000000000000000000",
    ),
)
