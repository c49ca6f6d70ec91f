"""The kernel library, built once for a session, and its C names on NumPy arrays."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from linnet.native import kernels as sources

BF16 = ml_dtypes.bfloat16
Array = np.ndarray[Any, Any]
KINDS = {"f32": 0, "bf16": 1, "int8": 2, "q8": 3, "q4": 4, "q4_1": 5}
ISAS = ("portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx")


def build(out: Path, extra: Sequence[str] = ()) -> None:
    """Compiles the library with its C names into `out`."""
    compiler = os.environ.get("CXX", "g++")
    work = Path(tempfile.mkdtemp())

    def compile_one(source: Path) -> Path:
        target = work / f"{source.stem}.o"
        command = [compiler, *sources.FLAGS, *extra, f"-I{sources.INCLUDE}", "-c", str(source)]
        subprocess.run([*command, "-o", str(target)], check=True, capture_output=True)
        return target

    try:
        with ThreadPoolExecutor(2) as pool:
            objects = list(pool.map(compile_one, (*sources.SOURCES, sources.C_NAMES)))
        made = work / "made.so"
        links = [*sources.LINK_FLAGS, *extra, *map(str, objects)]
        subprocess.run([compiler, *links, "-o", str(made)], check=True, capture_output=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)
    finally:
        shutil.rmtree(work)


def digest(extra: Sequence[str] = ()) -> str:
    h = hashlib.sha256(repr((sources.FLAGS, sources.LINK_FLAGS, extra)).encode())
    for path in (*sources.SOURCES, sources.C_NAMES, sources.HEADER, *sources.INTERNAL):
        h.update(path.read_bytes())
    return h.hexdigest()[:16]


def library(extra: Sequence[str] = ()) -> Path:
    """The library's path; compiled unless these sources have been before."""
    folder = Path(tempfile.gettempdir()) / f"linnet-test-kernels-{os.getuid()}"
    out = folder / digest(extra) / "libkernels.so"
    if not out.exists():
        build(out, extra)
    return out


def dtype_flag(x: Array) -> int:
    return int(x.dtype == BF16)


def address(x: Array | None) -> ctypes.c_void_p:
    if x is None:
        return ctypes.c_void_p()
    return ctypes.c_void_p(x.ctypes.data)


def numbers(*values: int) -> Any:
    return (ctypes.c_int64 * len(values))(*(int(v) for v in values))


class Packed:
    """A packed matrix; freed with the object."""

    def __init__(self, lib: Any, handle: int | None, rows: int, cols: int) -> None:
        if not handle:
            raise ValueError(lib.linnet_k_error().decode())
        self.lib, self.handle, self.rows, self.cols = lib, ctypes.c_void_p(handle), rows, cols

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.lib.linnet_k_free(self.handle)

    @property
    def bytes(self) -> int:
        return int(self.lib.linnet_k_bytes(self.handle))

    def rounded(self, on: bool) -> Packed:
        self.lib.linnet_k_rounded(self.handle, int(on))
        return self

    def unpack(self) -> Array:
        y = np.full((self.rows, self.cols), np.nan, np.float32)
        self.lib.linnet_k_unpack(self.handle, i64(0), i64(self.rows), address(y))
        return y

    def __call__(self, x: Array, bias: Array | None = None, *, wide: bool = False) -> Array:
        form = 0 if x.dtype == np.float32 else 2 if wide else 1
        y = np.full((len(x), self.rows), 77, np.float32 if form != 1 else BF16)
        self.lib.linnet_k_linear(
            self.handle, form, address(x), i64(0), i64(len(x)), address(y), i64(0), address(bias)
        )
        return y

    def gated(self, x: Array) -> Array:
        y = np.full((len(x), self.rows // 2), 77, x.dtype)
        self.lib.linnet_k_linear_silu_mul(
            self.handle, dtype_flag(x), address(x), i64(len(x)), address(y)
        )
        return y


def i64(x: int) -> ctypes.c_int64:
    return ctypes.c_int64(int(x))


def f32(x: float) -> ctypes.c_float:
    return ctypes.c_float(float(x))


class Kernels:
    """The C names on arrays."""

    def __init__(self, path: Path) -> None:
        self.lib = ctypes.CDLL(str(path))
        for name in ("pack", "pack_blocks", "pack_joined", "pack_experts", "alloc"):
            getattr(self.lib, f"linnet_k_{name}").restype = ctypes.c_void_p
        for name in ("bytes", "check_pages", "embedding", "embedding_packed", "experts"):
            getattr(self.lib, f"linnet_k_{name}").restype = ctypes.c_int64
        for name in ("error", "isa_name"):
            getattr(self.lib, f"linnet_k_{name}").restype = ctypes.c_char_p
        self.lib.linnet_k_read.restype = ctypes.c_uint64

    def pack(self, kind: str, w: Array, group: int = 32) -> Packed:
        n, k = w.shape
        handle = self.lib.linnet_k_pack(
            KINDS[kind], dtype_flag(w), address(w), i64(n), i64(k), i64(group), i64(0)
        )
        return Packed(self.lib, handle, n, k)

    def pack_blocks(self, kind: str, blocks: Array, n: int, k: int) -> Packed:
        handle = self.lib.linnet_k_pack_blocks(KINDS[kind], address(blocks), i64(n), i64(k))
        return Packed(self.lib, handle, n, k)

    def pack_joined(self, kind: str, parts: Sequence[Array], block: int = 0, k: int = 0) -> Packed:
        cols = k or parts[0].shape[1]
        handle = self.lib.linnet_k_pack_joined(
            KINDS[kind],
            (ctypes.c_void_p * len(parts))(*(p.ctypes.data for p in parts)),
            numbers(*(len(p) for p in parts)),
            (ctypes.c_int32 * len(parts))(*(dtype_flag(p) for p in parts)),
            (ctypes.c_int32 * len(parts))(*(block for _ in parts)),
            i64(len(parts)),
            i64(cols),
            i64(32),
        )
        return Packed(self.lib, handle, sum(len(p) for p in parts), cols)

    def matmul(self, a: Array, b: Array, *, transposed: bool) -> Array:
        batch, m, k = a.shape
        n = b.shape[1] if transposed else b.shape[2]
        c = np.full((batch, m, n), 77, a.dtype)
        b_step = 0 if len(b) == 1 else n * k
        sizes = numbers(batch, m, n, k, transposed, m * k, b_step)
        self.lib.linnet_k_matmul(dtype_flag(a), address(a), address(b), address(c), sizes)
        return c

    def attention(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        scale: float = 0.3,
        base: Array | None = None,
        base_strides: tuple[int, int] = (0, 0),
        causal: bool = False,
        offset: int = 0,
        mask: Array | None = None,
        sinks: Array | None = None,
        heads_inside: bool = False,
    ) -> Array:
        batch, heads, queries, width = q.shape
        x = np.ascontiguousarray(q.transpose(0, 2, 1, 3)) if heads_inside else q
        y = np.full(x.shape, 77, q.dtype)
        mask_strides = (0, 0) if mask is None else (mask.shape[1] * mask.shape[2], mask.shape[2])
        if mask is not None and len(mask) == 1:
            mask_strides = (0, mask_strides[1])
        sizes = numbers(
            batch, heads, k.shape[1], queries, k.shape[2], width, *base_strides, causal, offset,
            heads_inside, *mask_strides,
        )  # fmt: skip
        self.lib.linnet_k_attention(
            dtype_flag(q), sizes, address(x), address(k), address(v), address(y), f32(scale),
            address(base), address(mask), address(sinks),
        )  # fmt: skip
        return np.ascontiguousarray(y.transpose(0, 2, 1, 3)) if heads_inside else y

    def paged(
        self, q: Array, k: Array, v: Array, table: Array, positions: Array, size: int,
        rows: Array | None = None, scale: float = 0.3,
    ) -> Array:  # fmt: skip
        tokens, heads, width = q.shape
        y = np.full(q.shape, 77, q.dtype)
        sizes = numbers(
            tokens, heads, k.shape[0], k.shape[1], width, table.shape[1], size,
            heads * width, width, heads * width, width,
        )  # fmt: skip
        self.lib.linnet_k_paged(
            dtype_flag(q), sizes, address(q), address(k), address(v), address(y), f32(scale),
            address(table), address(rows), address(positions),
        )  # fmt: skip
        return y

    def check_pages(
        self, table: Array, size: int, places: int, positions: Array, rows: Array | None = None
    ) -> int:
        return int(
            self.lib.linnet_k_check_pages(
                address(table),
                i64(len(table)),
                i64(table.shape[1]),
                i64(size),
                i64(places),
                address(rows),
                address(positions),
                i64(len(positions)),
            )
        )

    def rms_norm(self, x: Array, w: Array, eps: float) -> Array:
        y = np.full_like(x, 77)
        args = (f32(eps), i64(len(x)), i64(x.shape[1]), address(y))
        self.lib.linnet_k_rms_norm(dtype_flag(x), address(x), address(w), *args)
        return y

    def layer_norm(self, x: Array, w: Array, b: Array | None, eps: float) -> Array:
        y = np.full_like(x, 77)
        args = (f32(eps), i64(len(x)), i64(x.shape[1]), address(y))
        self.lib.linnet_k_layer_norm(dtype_flag(x), address(x), address(w), address(b), *args)
        return y

    def softmax(self, x: Array) -> Array:
        y = np.full_like(x, 77)
        sizes = (i64(len(x)), i64(x.shape[1]))
        self.lib.linnet_k_softmax(dtype_flag(x), address(x), *sizes, address(y))
        return y

    def argmax(self, x: Array) -> Array:
        y = np.full(len(x), 77, np.int32)
        sizes = (i64(len(x)), i64(x.shape[1]))
        self.lib.linnet_k_argmax(dtype_flag(x), address(x), *sizes, address(y))
        return y

    def rope(self, x: Array, cos: Array, sin: Array, *, by_row: bool) -> Array:
        b, h, s, d = x.shape
        y = np.full_like(x, 77)
        sizes = numbers(b, h, s, d, h * s * d, s * d, d, s * d if by_row else 0, d)
        self.lib.linnet_k_rope(
            dtype_flag(x), address(x), address(cos), address(sin), address(y), sizes
        )
        return y

    def map(self, what: str, x: Array, z: Array | None = None) -> Array:
        code = {"silu": 0, "silu_mul": 1, "gelu": 2, "add": 3, "exp": 4}[what]
        y = np.full(x.shape, 77, x.dtype)
        self.lib.linnet_k_map(code, dtype_flag(x), address(x), address(z), i64(x.size), address(y))
        return y

    def convert(self, x: Array, to: Any) -> Array:
        what = {(BF16, np.float32): 0, (np.float32, BF16): 1, (np.float16, np.float32): 2}.get(
            (x.dtype.type, to), 3
        )
        y = np.full(x.shape, 77, to)
        self.lib.linnet_k_convert(what, address(x), i64(x.size), address(y))
        return y

    def embedding(self, table: Array | Packed, ids: Array, dtype: Any = np.float32) -> Any:
        """The rows, or the place of the first id out of range."""
        if isinstance(table, Packed):
            y = np.full((len(ids), table.cols), 77, dtype)
            bad = self.lib.linnet_k_embedding_packed(
                table.handle, dtype_flag(y), address(ids), i64(len(ids)), address(y)
            )
        else:
            y = np.full((len(ids), table.shape[1]), 77, table.dtype)
            sizes = (i64(len(table)), i64(table.shape[1]))
            bad = self.lib.linnet_k_embedding(
                dtype_flag(table), address(table), *sizes, address(ids), i64(len(ids)), address(y)
            )
        if bad >= 0:
            assert (y == 77).all()
            return int(bad)
        return y

    def pack_experts(self, kind: str, w: Array) -> Packed:
        """[experts, outputs, cols]; to be given to `experts` alone."""
        count, n, k = w.shape
        handle = self.lib.linnet_k_pack_experts(
            KINDS[kind], dtype_flag(w), 0, address(w), i64(count), i64(n), i64(k), i64(32)
        )
        return Packed(self.lib, handle, count * n, k)

    def experts(
        self, w: Array, x: Array, chosen: Array, by: Array | None = None,
        packed: Packed | None = None,
    ) -> Any:  # fmt: skip
        """Products with w [experts, outputs, cols] or its packed form; returns as `embedding`."""
        rows, k = chosen.shape
        y = np.full((rows, w.shape[1]) if by is not None else (rows, k, w.shape[1]), 77, x.dtype)
        bad = self.lib.linnet_k_experts(
            dtype_flag(x), numbers(rows, k, *w.shape, x.ndim == 2), packed and packed.handle,
            address(w), address(x), address(chosen), address(by), address(y),
        )  # fmt: skip
        if bad >= 0:
            assert (y == 77).all()
            return int(bad)
        return y

    def top_k(self, x: Array, k: int) -> Array:
        y = np.full((len(x), k), 77, np.int64)
        sizes = (i64(len(x)), i64(x.shape[1]), i64(k))
        self.lib.linnet_k_top_k(dtype_flag(x), address(x), *sizes, address(y))
        return y

    def delta(
        self, q: Array, k: Array, v: Array, decay: Array, beta: Array, start: Array,
        rows: Array | None = None, segments: Array | None = None, scale: float = 0.3,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Outputs and memories of [batch, tokens, ...]; with segments of a line [tokens, ...]."""
        batch, heads, keys, width = start.shape
        out, after = np.full(v.shape, 77, np.float32), np.full_like(start, 77)
        sizes = numbers(batch, q.shape[-3], q.shape[-2], heads, keys, width)
        given = (q, k, v, decay, beta, start, out, after)
        self.lib.linnet_k_delta(
            dtype_flag(q), sizes, (ctypes.c_void_p * 8)(*(x.ctypes.data for x in given)),
            f32(scale), address(rows), address(segments),
        )  # fmt: skip
        return out, after

    def sample(
        self, logits: Array, temperature: float, top_k: int = 0, top_p: float = 1.0,
        min_p: float = 0.0, uniform: float = 0.5,
    ) -> int:  # fmt: skip
        return int(
            self.lib.linnet_k_sample(
                address(logits),
                i64(logits.size),
                f32(temperature),
                top_k,
                f32(top_p),
                f32(min_p),
                ctypes.c_double(uniform),
            )
        )


@pytest.fixture(scope="session")
def loaded() -> Kernels:
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C++ compiler {compiler}")
    ready = os.environ.get("LINNET_TEST_KERNELS")
    return Kernels(Path(ready) if ready else library())


@pytest.fixture(params=range(len(ISAS)), ids=ISAS)
def kernels(request: pytest.FixtureRequest, loaded: Kernels) -> Iterator[Kernels]:
    """The library with each instruction set forced in turn."""
    if not loaded.lib.linnet_k_set_isa(request.param):
        pytest.skip(f"this machine has no {ISAS[request.param]}")
    yield loaded
    loaded.lib.linnet_k_set_isa(loaded.lib.linnet_k_best_isa())
