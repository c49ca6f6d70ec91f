// Products of bf16 with vdpbf16ps (two products a lane, added in f32). After simd_avx512.h and
// body_linear.h.

LN_INLINE __m512bh as_bh(I x) {
    __m512bh r;
    std::memcpy(&r, &x, sizeof r);
    return r;
}
LN_INLINE int32_t pair_at(const bf16* p) { int32_t r; std::memcpy(&r, p, 4); return r; }

// Near: weights are asked for into the first cache.
template <int M, bool Near>
struct Bf16Lines {
    static constexpr int kSums = M == 1 ? 4 : M < 4 ? 2 : 1;
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const uint8_t* lines = w.panel(panel);
        const bf16* xr = x.h + row * x.stride;
        const int64_t pairs = w.layout.inputs / 2;  // a multiple of 16
        F acc[M][kSums];
        for (int m = 0; m < M; ++m) for (int u = 0; u < kSums; ++u) acc[m][u] = zero();
        for (int64_t k = 0; k < pairs; k += kSums) {
            for (int u = 0; u < kSums; ++u) {
                const uint8_t* line = lines + (k + u) * kLine;
                if (Near) prefetch(line + kAhead); else prefetch_l2(line + kAhead);
                const __m512bh v = as_bh(load_i(line));
                for (int m = 0; m < M; ++m) {
                    const I b = set1_i(pair_at(xr + m * x.stride + 2 * (k + u)));
                    acc[m][u] = _mm512_dpbf16_ps(acc[m][u], v, as_bh(b));
                }
            }
        }
        for (int m = 0; m < M; ++m) {
            F s = acc[m][0];
            for (int u = 1; u < kSums; ++u) s = add(s, acc[m][u]);
            put(s, panel, row + m, out);
        }
    }
};

template <int M> struct Bf16Dot : Bf16Lines<M, false> {};
template <int M> struct Bf16Near : Bf16Lines<M, true> {};

// Scores of queries that are bf16 in memory: 32 products of a key in one instruction.
static void scores_dot(const float* q, int64_t rows, const bf16* k, const bf16* v, int64_t kv_row, int64_t keys,
                       int64_t width, float* s, int64_t s_row) {
    constexpr int64_t kMost = 256;
    if (width % kBlock != 0 || width > kMost) return scores(q, rows, k, v, kv_row, keys, width, s, s_row);
    for (int64_t r = 0; r < rows; ++r) {
        __m512bh x[kMost / kBlock];
        for (int64_t d = 0; d < width; d += kBlock) x[d / kBlock] = _mm512_cvtne2ps_pbh(load(q + r * width + d + 16), load(q + r * width + d));
        for (int64_t j = 0; j < keys; j += kStep) {
            const int64_t n = keys - j < kStep ? keys - j : kStep;
            const bf16* row[kStep];
            rows_of(k + j * kv_row, kv_row, n, row);
            if (r == 0) ask_rows(k + j * kv_row, v + j * kv_row, kv_row, n, width);
            F acc[kStep];
            for (F& a : acc) a = zero();
            for (int64_t d = 0; d < width; d += kBlock) {
                for (int i = 0; i < kStep; ++i) acc[i] = _mm512_dpbf16_ps(acc[i], as_bh(load_i(row[i] + d)), x[d / kBlock]);
            }
            store_n(s + r * s_row + j, sums16(acc), n);
        }
    }
}

template <int R, int P>
static void block_bf16(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                       int64_t k, float* y, int64_t y_stride, bool accumulate) {
    F acc[R][P];
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) acc[r][p] = accumulate ? load(y + r * y_stride + 16 * p) : zero();
    for (int64_t i = 0; i < k; i += 2) {
        __m512bh w[P];
        for (int p = 0; p < P; ++p) w[p] = as_bh(load_i(panels + p * panel_stride + i * kPanel));
        for (int r = 0; r < R; ++r) {
            const __m512bh v = as_bh(set1_i(pair_at(x + r * x_stride + i)));
            for (int p = 0; p < P; ++p) acc[r][p] = _mm512_dpbf16_ps(acc[r][p], v, w[p]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) store(y + r * y_stride + 16 * p, acc[r][p]);
}

template <int R, int P>
static void rows_bf16(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                      int64_t rows, int64_t k, float* y, int64_t y_stride, bool accumulate) {
    int64_t r = 0;
    for (; r + R <= rows; r += R) {
        block_bf16<R, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate);
    }
    if (R > 1 && r < rows) {
        rows_bf16<(R + 1) / 2, P>(panels, panel_stride, x + r * x_stride, x_stride, rows - r, k, y + r * y_stride, y_stride, accumulate);
    }
}

static void gemm_bf16(const bf16* panels, int64_t panel_stride, int64_t np, const bf16* x,
                      int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                      bool accumulate, const Soon&) {
    int64_t p = 0;
    for (; p + 2 <= np; p += 2) {
        rows_bf16<12, 2>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    }
    for (; p < np; ++p) {
        rows_bf16<12, 1>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    }
}


// AMD's first cache has room for as many requests under way as these need: of memory that gives 60 GB/s a
// Zen 4 read 51 so, and 42 through the second. Quantised weights, of more work a line, lose by it.
static void fill_bf16(Table& t, bool amd) {
    t.rounded[1] = amd ? thin<Bf16Near> : thin<Bf16Dot>;
    t.gemm_bf16 = gemm_bf16;
    t.scores_h = scores_dot;
    t.tiles = false;
    t.begin_tiles = t.end_tiles = [] {};
}
