// Products of many rows in f32, packed weights widened for them, and x rounded to int8.

// R rows by P panels in registers.
template <int R, int P>
static void block_f32(const float* panels, int64_t panel_stride, const float* x, int64_t x_stride,
                      int64_t k, float* y, int64_t y_stride, bool accumulate) {
    F acc[R][P];
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) acc[r][p] = accumulate ? load(y + r * y_stride + 16 * p) : zero();
    for (int64_t i = 0; i < k; ++i) {
        F w[P];
        for (int p = 0; p < P; ++p) w[p] = load(panels + p * panel_stride + i * kPanel);
        for (int r = 0; r < R; ++r) {
            const F v = set1(x[r * x_stride + i]);
            for (int p = 0; p < P; ++p) acc[r][p] = fma(v, w[p], acc[r][p]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) store(y + r * y_stride + 16 * p, acc[r][p]);
}

template <int R, int P>
static void rows_f32(const float* panels, int64_t panel_stride, const float* x, int64_t x_stride,
                     int64_t rows, int64_t k, float* y, int64_t y_stride, bool accumulate) {
    int64_t r = 0;
    for (; r + R <= rows; r += R) {
        block_f32<R, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate);
    }
    if (R > 1 && r < rows) {
        rows_f32<(R + 1) / 2, P>(panels, panel_stride, x + r * x_stride, x_stride, rows - r, k, y + r * y_stride, y_stride, accumulate);
    }
}

static void gemm_f32(const float* panels, int64_t panel_stride, int64_t np, const float* x,
                     int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                     bool accumulate) {
    int64_t p = 0;
    for (; p + kGemmPanels <= np; p += kGemmPanels) {
        rows_f32<kGemmRows, kGemmPanels>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    }
    for (; p < np; ++p) {
        rows_f32<kGemmRows, 1>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    }
}

// Input `at` (of the 8 or 4 in a line) as floats; lines of q4 and q4_1 hold 8.
LN_INLINE F weight_of(WeightKind kind, I line, int at) {
    switch (kind) {
        case WeightKind::int8:
        case WeightKind::q8:
            return byte_of(line, at);
        case WeightKind::q4:
            return nibble_signed(line, 2 * (at % 4) + at / 4);
        default:
            return nibble_plain(line, 2 * (at % 4) + at / 4);
    }
}

// Calls to(input, F) for each padded input of a quantised panel, in order.
template <WeightKind Kind, class To>
LN_INLINE void each_input(const Panels& w, int64_t panel, To& to) {
    constexpr bool kNibbles = Kind == WeightKind::q4 || Kind == WeightKind::q4_1;
    constexpr int kInputs = kNibbles ? 8 : 4;
    const uint8_t* base = w.panel(panel);
    const uint8_t* lines = base + w.layout.data;
    F s = Kind == WeightKind::int8 ? load(reinterpret_cast<const float*>(base)) : zero();
    F o = zero();
    int64_t left = 0, group = 0;  // inputs of the group that are to come
    for (int64_t k = 0; k < w.layout.inputs; k += kInputs, left -= kInputs) {
        if (Kind != WeightKind::int8 && left == 0) {
            s = scales_of(base, 0, group);
            if (Kind == WeightKind::q4_1) o = scales_of(base, w.layout.offsets, group);
            left = w.group;
            ++group;
        }
        const I v = load_i(lines + k / kInputs * kLine);
        for (int j = 0; j < kInputs; ++j) to.put(k + j, fma(weight_of(Kind, v, j), s, o));
    }
}

struct ToF32 {
    float* y;
    inline __attribute__((always_inline)) void put(int64_t k, F v) { store(y + k * kPanel, v); }
};

struct ToBf16 {
    bf16* y;
    F even;
    inline __attribute__((always_inline)) void put(int64_t k, F v) {
        if (k % 2 == 0) {
            even = v;
        } else {
            store_pairs(y + k / 2 * 32, even, v);
        }
    }
};

template <class To>
LN_INLINE void expand_quantised(const Panels& w, int64_t panel, To& to) {
    switch (w.kind) {
        case WeightKind::int8: each_input<WeightKind::int8>(w, panel, to); break;
        case WeightKind::q8: each_input<WeightKind::q8>(w, panel, to); break;
        case WeightKind::q4: each_input<WeightKind::q4>(w, panel, to); break;
        default: each_input<WeightKind::q4_1>(w, panel, to); break;
    }
}

static void expand_f32(const Panels& w, int64_t panel, float* y) {
    const uint8_t* base = w.panel(panel);
    if (w.kind == WeightKind::f32) {
        std::memcpy(y, base, static_cast<size_t>(w.layout.bytes));
    } else if (w.kind == WeightKind::bf16) {
        for (int64_t k = 0; k < w.layout.inputs; k += 2) {
            const I v = load_i(base + k / 2 * kLine);
            store(y + k * kPanel, pair_low(v));
            store(y + (k + 1) * kPanel, pair_high(v));
        }
    } else {
        ToF32 to{y};
        expand_quantised(w, panel, to);
    }
}

static void expand_bf16(const Panels& w, int64_t panel, bf16* y) {
    if (w.kind == WeightKind::bf16) {
        std::memcpy(y, w.panel(panel), static_cast<size_t>(w.layout.bytes));
        return;
    }
    ToBf16 to{y, zero()};
    if (w.kind == WeightKind::f32) {
        const auto* lines = reinterpret_cast<const float*>(w.panel(panel));
        for (int64_t k = 0; k < w.layout.inputs; ++k) to.put(k, load(lines + k * kPanel));
        for (int64_t k = w.layout.inputs; k < round_up(w.layout.inputs, kBlock); ++k) to.put(k, zero());
    } else {
        expand_quantised(w, panel, to);
    }
}

template <class T>
static void copy_block(const float* y, int64_t y_stride, int64_t rows, int64_t count, T* out, int64_t stride) {
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < count; c += kPanel) store(out + r * stride + c, load(y + r * y_stride + c));
    }
}

static void finish(const float* y, int64_t y_stride, int64_t rows, int64_t column, int64_t count,
                   const Out& out, int64_t first_row) {
    const int64_t at = first_row * out.stride + column;
    if (out.bias == nullptr && column + count <= out.n) {
        if (out.y_bf16) return copy_block(y, y_stride, rows, count, static_cast<bf16*>(out.y) + at, out.stride);
        return copy_block(y, y_stride, rows, count, static_cast<float*>(out.y) + at, out.stride);
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < count; c += kPanel) {
            put(load(y + r * y_stride + c), (column + c) / kPanel, first_row + r, out);
        }
    }
}

static void quantize(const float* x, int64_t n, int8_t* q, float* scale, int32_t* sums) {
    for (int64_t b = 0; b < n / kBlock; ++b) {
        const F low = load(x + b * kBlock), high = load(x + b * kBlock + 16);
        const float peak = largest(max(abs(low), abs(high)));
        // A block with infinities or NaN cannot be rounded to integers: its scale carries NaN on.
        const bool finite = !any_nan(sub(low, low)) && !any_nan(sub(high, high));
        const float s = peak / 127.0f;
        const float by = finite && s > 1e-37f ? 1.0f / s : 0.0f;
        const F keep = set1(by);
        store_i8(q + b * kBlock, finite ? mul(low, keep) : zero());
        store_i8(q + b * kBlock + 16, finite ? mul(high, keep) : zero());
        scale[b] = finite ? s : std::numeric_limits<float>::quiet_NaN();
        sums[b] = sum_i8(q + b * kBlock, static_cast<int>(kBlock));
    }
}
