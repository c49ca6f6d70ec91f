// The parts of attention, on a namespace's F. Included after simd_*.h and body_rows.h.

constexpr int64_t kStep = 16;  // keys at a time
// How far ahead of use keys are asked for into the core's second cache, and values into its first, in bytes.
constexpr int64_t kAheadKeys = 8192;
constexpr int64_t kAheadValues = 1024;

// Later keys, and the values of these: scores are arithmetic enough that both arrive meanwhile.
template <class T>
LN_INLINE void ask_rows(const T* k, const T* v, int64_t row, int64_t n, int64_t width) {
    const int64_t bytes = width * static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t d = 0; d < bytes; d += kLine) {
            prefetch_l2(reinterpret_cast<const char*>(k + i * row) + kAheadKeys + d);
            prefetch_l2(reinterpret_cast<const char*>(v + i * row) + d);
        }
    }
}

// The rows of keys [0, n), n >= 1; lanes past the last repeat it.
template <class T>
LN_INLINE void rows_of(const T* k, int64_t k_row, int64_t n, const T** row) {
    for (int64_t i = 0; i < kStep; ++i) row[i] = k + (i < n ? i : n - 1) * k_row;
}

// scores[r][j] = q[r] . k[j], for `keys` keys of which the last step may be short; v: what `mix` reads next.
template <class T>
static void scores(const float* q, int64_t rows, const T* k, const T* v, int64_t kv_row, int64_t keys,
                   int64_t width, float* s, int64_t s_row) {
    for (int64_t j = 0; j < keys; j += kStep) {
        const int64_t n = keys - j < kStep ? keys - j : kStep;
        const T* row[kStep];
        rows_of(k + j * kv_row, kv_row, n, row);
        ask_rows(k + j * kv_row, v + j * kv_row, kv_row, n, width);
        for (int64_t r = 0; r < rows; ++r) {
            F acc[16];
            for (int i = 0; i < 16; ++i) acc[i] = zero();
            const float* qr = q + r * width;
            int64_t d = 0;
            for (; d + 16 <= width; d += 16) {
                const F v = load(qr + d);
                for (int i = 0; i < 16; ++i) acc[i] = fma(load(row[i] + d), v, acc[i]);
            }
            if (d < width) {
                const F v = load_n(qr + d, width - d);
                for (int i = 0; i < 16; ++i) acc[i] = fma(load_n(row[i] + d, width - d), v, acc[i]);
            }
            store_n(s + r * s_row + j, sums16(acc), n);
        }
    }
}

// Columns [d, d + 16 C) of R rows' mix.
template <int C, int R, class T>
LN_INLINE void mix_columns(const float* p, int64_t p_row, const T* v, int64_t v_row, int64_t keys, float* out,
                           int64_t width) {
    F acc[R][C];
    for (int r = 0; r < R; ++r) for (int c = 0; c < C; ++c) acc[r][c] = load(out + r * width + 16 * c);
    for (int64_t j = 0; j < keys; ++j) {
        F x[C];
        for (int64_t b = 0; b < 16 * C * static_cast<int64_t>(sizeof(T)); b += kLine) {
            prefetch(reinterpret_cast<const char*>(v + j * v_row) + kAheadValues + b);
        }
        for (int c = 0; c < C; ++c) x[c] = load(v + j * v_row + 16 * c);
        for (int r = 0; r < R; ++r) {
            const F w = set1(p[r * p_row + j]);
            for (int c = 0; c < C; ++c) acc[r][c] = fma(w, x[c], acc[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) for (int c = 0; c < C; ++c) store(out + r * width + 16 * c, acc[r][c]);
}

template <int R, class T>
static void mix_rows(const float* p, int64_t p_row, const T* v, int64_t v_row, int64_t keys, int64_t width, float* out) {
    int64_t d = 0;
    for (; d + 64 <= width; d += 64) mix_columns<4, R>(p, p_row, v + d, v_row, keys, out + d, width);
    for (; d + 16 <= width; d += 16) mix_columns<1, R>(p, p_row, v + d, v_row, keys, out + d, width);
    if (d == width) return;
    for (int r = 0; r < R; ++r) {
        F acc = load_n(out + r * width + d, width - d);
        for (int64_t j = 0; j < keys; ++j) acc = fma(set1(p[r * p_row + j]), load_n(v + j * v_row + d, width - d), acc);
        store_n(out + r * width + d, acc, width - d);
    }
}

template <class T>
static void mix(const float* p, int64_t p_row, int64_t rows, const T* v, int64_t v_row,
                int64_t keys, int64_t width, float* out) {
    int64_t r = 0;
    for (; r + 3 <= rows; r += 3) mix_rows<3>(p + r * p_row, p_row, v, v_row, keys, width, out + r * width);
    if (rows - r == 2) return mix_rows<2>(p + r * p_row, p_row, v, v_row, keys, width, out + r * width);
    if (rows - r == 1) mix_rows<1>(p + r * p_row, p_row, v, v_row, keys, width, out + r * width);
}

// The largest of scale * s and `peak`; NaN where there is one.
LN_INLINE float scaled_peak(const float* s, int64_t n, float scale, float peak) {
    const F by = set1(scale);
    F a = set1(peak), b = a;
    bool nan = false;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const F u = mul(load(s + i), by), v = mul(load(s + i + 16), by);
        nan |= any_nan(u) || any_nan(v);
        a = max(u, a);
        b = max(v, b);
    }
    float top = largest(max(a, b));
    for (; i < n; ++i) {
        const float v = s[i] * scale;
        nan |= v != v;
        top = v > top ? v : top;
    }
    return nan ? std::numeric_limits<float>::quiet_NaN() : top;
}

// What sums under `peak` are multiplied with to be sums under `top`; takes note of both.
LN_INLINE float raise_peak(float top, float added, float* peak, float* total) {
    // The first block finds a peak of -infinity, and earlier sums that are zero.
    const float factor = *peak == top ? 1.0f : std::exp(*peak - top);
    *total = *total * factor + added;
    *peak = top;
    return factor;
}

// Scores that are all -infinity have no share yet: a later block may find a finite one.
LN_INLINE bool no_peak(float top) { return top == -std::numeric_limits<float>::infinity(); }

static float soften(float* s, int64_t n, float scale, float* peak, float* total) {
    const float top = scaled_peak(s, n, scale, *peak);
    if (no_peak(top)) {
        std::memset(s, 0, static_cast<size_t>(n) * 4);
        return 1.0f;
    }
    const F by = set1(scale), t = set1(top);
    F a = zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const F e = exp_of(sub(mul(load(s + i), by), t));
        store(s + i, e);
        a = add(a, e);
    }
    float added = sum(a);
    if (i < n) {
        store_n(s + i, exp_of(sub(mul(load_n(s + i, n - i), by), t)), n - i);
        for (; i < n; ++i) added += s[i];
    }
    return raise_peak(top, added, peak, total);
}

static float soften_h(const float* s, int64_t n, int64_t lines, float scale, float* peak, float* total, bf16* y,
                      int64_t cell_step) {
    float factor = 1.0f;
    const float top = n > 0 ? scaled_peak(s, n, scale, *peak) : 0.0f;
    if (no_peak(top)) n = 0;
    if (n > 0) {
        const F by = set1(scale), t = set1(top);
        F a = zero(), b = zero();
        int64_t i = 0;
        for (; i + kBlock <= n; i += kBlock, y += cell_step) {
            const F u = exp_of(sub(mul(load(s + i), by), t)), v = exp_of(sub(mul(load(s + i + 16), by), t));
            store(y, u);
            store(y + 16, v);
            a = add(a, u);
            b = add(b, v);
        }
        float added = sum(add(a, b));
        if (i < n) {
            alignas(64) float last[kBlock] = {};
            for (int64_t j = 0; i + j < n; j += 16) {
                const int64_t count = n - i - j < 16 ? n - i - j : 16;
                store_n(last + j, exp_of(sub(mul(load_n(s + i + j, count), by), t)), count);
            }
            for (int64_t j = 0; i + j < n; ++j) added += last[j];
            store(y, load(last));
            store(y + 16, load(last + 16));
            y += cell_step;
        }
        factor = raise_peak(top, added, peak, total);
    }
    for (int64_t i = round_up(n, kBlock); i < lines; i += kBlock, y += cell_step) {
        std::memset(static_cast<void*>(y), 0, kBlock * sizeof(bf16));
    }
    return factor;
}

static void scale_row(float* x, int64_t n, float by) {
    const F f = set1(by);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, mul(load(x + i), f));
    for (; i < n; ++i) x[i] *= by;
}

alignas(64) static const float kZeroLine[16] = {};

// One row's 16 inputs from d on as f32: where they are, or in `held`.
LN_INLINE const void* line_of(const float* row, int64_t n, float* held) {
    if (n >= 16) return row;
    store(held, load_n(row, n));
    return held;
}
LN_INLINE const void* line_of(const bf16* row, int64_t n, float* held) {
    store(held, n >= 16 ? load(row) : load_n(row, n));
    return held;
}

template <class T>
static void pack_keys(const T* k, int64_t k_row, int64_t keys, int64_t width, float* y) {
    alignas(64) float held[16][16], turned[256];
    for (int64_t j = 0; j < keys; j += kPanel, y += width * kPanel) {
        for (int64_t d = 0; d < width; d += 16) {
            const int64_t n = width - d;
            const void* rows[16];
            for (int64_t i = 0; i < kPanel; ++i) {
                rows[i] = j + i < keys ? line_of(k + (j + i) * k_row + d, n, held[i]) : kZeroLine;
            }
            if (n >= 16) {
                turn_cells(rows, y + d * kPanel);
            } else {
                turn_cells(rows, turned);
                std::memcpy(y + d * kPanel, turned, static_cast<size_t>(n) * kLine);
            }
        }
    }
}

template <class T>
static void pack_values(const T* v, int64_t v_row, int64_t keys, int64_t lines, int64_t width,
                        float* y) {
    for (int64_t d = 0; d < width; d += kPanel, y += lines * kPanel) {
        const int64_t n = width - d < kPanel ? width - d : kPanel;
        for (int64_t j = 0; j < lines; ++j) store(y + j * kPanel, j < keys ? load_n(v + j * v_row + d, n) : zero());
    }
}

// bf16 panels in pairs; `width` (keys) and `lines` (values) are padded to a multiple of 32 with zeros.
static void pack_keys_pairs(const bf16* k, int64_t k_row, int64_t keys, int64_t width, bf16* y) {
    const int64_t padded = round_up(width, kBlock);
    alignas(64) bf16 held[16][32];
    for (int64_t j = 0; j < keys; j += kPanel, y += padded * kPanel) {
        for (int64_t d = 0; d < padded; d += kBlock) {
            const int64_t n = width - d < kBlock ? width - d : kBlock;
            const void* rows[16];
            for (int64_t i = 0; i < kPanel; ++i) {
                const bf16* row = k + (j + i) * k_row + d;
                rows[i] = j + i < keys ? static_cast<const void*>(row) : kZeroLine;
                if (j + i < keys && n < kBlock) {
                    std::memset(static_cast<void*>(held[i]), 0, sizeof held[i]);
                    std::memcpy(static_cast<void*>(held[i]), row, static_cast<size_t>(n) * 2);
                    rows[i] = held[i];
                }
            }
            turn_cells(rows, y + d * kPanel);
        }
    }
}

static void pack_values_pairs(const bf16* v, int64_t v_row, int64_t keys, int64_t lines,
                              int64_t width, bf16* y) {
    for (int64_t d = 0; d < width; d += kPanel, y += lines * kPanel) {
        const int64_t n = width - d < kPanel ? width - d : kPanel;
        for (int64_t j = 0; j < lines; j += 2) {
            bf16* line = y + j * kPanel;
            const bf16* even = v + j * v_row + d;
            const bf16* odd = even + v_row;
            if (n == kPanel && j + 1 < keys) {
                interleave(even, odd, line);
                continue;
            }
            for (int64_t i = 0; i < kPanel; ++i) {
                line[2 * i] = i < n && j < keys ? even[i] : bf16{0};
                line[2 * i + 1] = i < n && j + 1 < keys ? odd[i] : bf16{0};
            }
        }
    }
}

static void fill_attention(Table& t) {
    t.scores_f = scores<float>;
    t.scores_h = scores<bf16>;
    t.mix_f = mix<float>;
    t.mix_h = mix<bf16>;
    t.soften = soften;
    t.soften_h = soften_h;
    t.scale_row = scale_row;
    t.pack_keys_f = pack_keys<float>;
    t.pack_keys_hf = pack_keys<bf16>;
    t.pack_values_f = pack_values<float>;
    t.pack_values_hf = pack_values<bf16>;
    t.pack_keys_h = pack_keys_pairs;
    t.pack_values_h = pack_values_pairs;
}
