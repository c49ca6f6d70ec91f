// The parts of attention, on a namespace's F. Included after simd_*.h and body_rows.h.

constexpr int64_t kStep = 16;  // keys at a time

// scores[r][j] = q[r] . k[j], for `keys` keys of which the last step may be short.
template <class T>
static void scores(const float* q, int64_t rows, const T* k, int64_t k_row, int64_t keys,
                   int64_t width, float* s, int64_t s_row) {
    for (int64_t j = 0; j < keys; j += kStep) {
        const int64_t n = keys - j < kStep ? keys - j : kStep;
        const T* row[16];
        // Lanes past the last key repeat it; their results are not stored.
        for (int64_t i = 0; i < kStep; ++i) row[i] = k + (j + (i < n ? i : n - 1)) * k_row;
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

// Columns [d, d + 16 C) of one row's mix.
template <int C, class T>
LN_INLINE void mix_columns(const float* p, const T* v, int64_t v_row, int64_t keys, float* out) {
    F acc[C];
    for (int c = 0; c < C; ++c) acc[c] = load(out + 16 * c);
    for (int64_t j = 0; j < keys; ++j) {
        const F w = set1(p[j]);
        for (int c = 0; c < C; ++c) acc[c] = fma(w, load(v + j * v_row + 16 * c), acc[c]);
    }
    for (int c = 0; c < C; ++c) store(out + 16 * c, acc[c]);
}

template <class T>
static void mix(const float* p, int64_t p_row, int64_t rows, const T* v, int64_t v_row,
                int64_t keys, int64_t width, float* out) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* pr = p + r * p_row;
        float* o = out + r * width;
        int64_t d = 0;
        for (; d + 64 <= width; d += 64) mix_columns<4>(pr, v + d, v_row, keys, o + d);
        for (; d + 16 <= width; d += 16) mix_columns<1>(pr, v + d, v_row, keys, o + d);
        if (d < width) {
            F acc = load_n(o + d, width - d);
            for (int64_t j = 0; j < keys; ++j) acc = fma(set1(pr[j]), load_n(v + j * v_row + d, width - d), acc);
            store_n(o + d, acc, width - d);
        }
    }
}

static float soften(float* s, int64_t n, float scale, float* peak, float* total) {
    const F by = set1(scale);
    F m = set1(*peak);
    int64_t i = 0;
    bool nan = false;
    for (; i + 16 <= n; i += 16) {
        const F v = mul(load(s + i), by);
        nan |= any_nan(v);
        store(s + i, v);
        m = max(v, m);
    }
    float top = largest(m);
    for (; i < n; ++i) {
        s[i] *= scale;
        nan |= s[i] != s[i];
        top = s[i] > top ? s[i] : top;
    }
    if (nan) top = std::numeric_limits<float>::quiet_NaN();
    const F t = set1(top);
    F a = zero();
    for (i = 0; i + 16 <= n; i += 16) {
        const F e = exp_of(sub(load(s + i), t));
        store(s + i, e);
        a = add(a, e);
    }
    float add_up = sum(a);
    if (i < n) {
        store_n(s + i, exp_of(sub(load_n(s + i, n - i), t)), n - i);
        for (; i < n; ++i) add_up += s[i];
    }
    // The first block finds a peak of -infinity, and earlier sums that are zero.
    const float factor = *peak == top ? 1.0f : std::exp(*peak - top);
    *total = *total * factor + add_up;
    *peak = top;
    return factor;
}

static void scale_row(float* x, int64_t n, float by) {
    const F f = set1(by);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, mul(load(x + i), f));
    for (; i < n; ++i) x[i] *= by;
}

// 16 rows of 16 turned: y[d][i] = x[i][d].
LN_INLINE void turn(const float (*x)[16], float* y) {
    for (int d = 0; d < 16; ++d) for (int i = 0; i < 16; ++i) y[d * 16 + i] = x[i][d];
}

template <class T>
static void pack_keys(const T* k, int64_t k_row, int64_t keys, int64_t width, float* y) {
    alignas(64) float block[16][16];
    for (int64_t j = 0; j < keys; j += kPanel, y += width * kPanel) {
        for (int64_t d = 0; d < width; d += 16) {
            const int64_t n = width - d < 16 ? width - d : 16;
            for (int64_t i = 0; i < kPanel; ++i) {
                store(block[i], j + i < keys ? load_n(k + (j + i) * k_row + d, n) : zero());
            }
            if (n == 16) {
                turn(block, y + d * kPanel);
            } else {
                for (int64_t e = 0; e < n; ++e) for (int64_t i = 0; i < kPanel; ++i) y[(d + e) * kPanel + i] = block[i][e];
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
    for (int64_t j = 0; j < keys; j += kPanel, y += padded * kPanel) {
        for (int64_t i = 0; i < kPanel; ++i) {
            bf16* cell = y + 2 * i;
            if (j + i >= keys) {
                for (int64_t d = 0; d < padded; d += 2) cell[d * 16] = cell[d * 16 + 1] = bf16{0};
                continue;
            }
            const bf16* row = k + (j + i) * k_row;
            int64_t d = 0;
            for (; d + 2 <= width; d += 2) std::memcpy(cell + d * 16, row + d, 4);
            if (d < width) {
                cell[d * 16] = row[d];
                cell[d * 16 + 1] = bf16{0};
                d += 2;
            }
            for (; d < padded; d += 2) cell[d * 16] = cell[d * 16 + 1] = bf16{0};
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
                for (int64_t i = 0; i < kPanel; ++i) {
                    line[2 * i] = even[i];
                    line[2 * i + 1] = odd[i];
                }
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
    t.scale_row = scale_row;
    t.pack_keys_f = pack_keys<float>;
    t.pack_keys_hf = pack_keys<bf16>;
    t.pack_values_f = pack_values<float>;
    t.pack_values_hf = pack_values<bf16>;
    t.pack_keys_h = pack_keys_pairs;
    t.pack_values_h = pack_values_pairs;
}
