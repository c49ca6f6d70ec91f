// Products of few rows with packed weights as they lie: each panel is read once for all rows.

// How far ahead of use weights are asked for, into the second cache: the first has room for too few requests
// under way. The best of 4 to 24 KiB, and a tenth faster than 1 KiB ahead into the first, as measured.
constexpr int64_t kAhead = 12288;

LN_INLINE void put(F acc, int64_t panel, int64_t row, const Out& out) {
    const int64_t first_column = panel * kPanel;
    const int64_t left = out.n - first_column;
    const int64_t n = left < kPanel ? left : kPanel;
    if (out.bias != nullptr) {
        const F b = out.bias_bf16 ? load_n(static_cast<const bf16*>(out.bias) + first_column, n)
                                  : load_n(static_cast<const float*>(out.bias) + first_column, n);
        acc = add(acc, b);
    }
    const int64_t at = row * out.stride + first_column;
    if (out.y_bf16) {
        store_n(static_cast<bf16*>(out.y) + at, acc, n);
    } else {
        store_n(static_cast<float*>(out.y) + at, acc, n);
    }
}

// Each M: rows of x at once. One row alone keeps several sums, as an FMA takes 4 cycles.
template <int M>
struct F32 {
    static constexpr int kSums = M == 1 ? 8 : M < 4 ? 2 : 1;
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const auto* lines = reinterpret_cast<const float*>(w.panel(panel));
        const float* xr = x.f + row * x.stride;
        const int64_t n = w.layout.inputs;
        F acc[M][kSums];
        for (int m = 0; m < M; ++m) for (int u = 0; u < kSums; ++u) acc[m][u] = zero();
        int64_t k = 0;
        for (; k + kSums <= n; k += kSums) {
            for (int u = 0; u < kSums; ++u) {
                const float* line = lines + (k + u) * kPanel;
                prefetch_l2(reinterpret_cast<const char*>(line) + kAhead);
                const F v = load(line);
                for (int m = 0; m < M; ++m) acc[m][u] = fma(v, set1(xr[m * x.stride + k + u]), acc[m][u]);
            }
        }
        for (; k < n; ++k) {
            const F v = load(lines + k * kPanel);
            for (int m = 0; m < M; ++m) acc[m][0] = fma(v, set1(xr[m * x.stride + k]), acc[m][0]);
        }
        for (int m = 0; m < M; ++m) {
            F s = acc[m][0];
            for (int u = 1; u < kSums; ++u) s = add(s, acc[m][u]);
            put(s, panel, row + m, out);
        }
    }
};

template <int M>
struct Bf16 {
    static constexpr int kSums = M == 1 ? 2 : 1;  // of lines; each has two, low and high
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const auto* lines = w.panel(panel);
        const float* xr = x.f + row * x.stride;
        const int64_t pairs = w.layout.inputs / 2;  // a multiple of 16
        F acc[M][2 * kSums];
        for (int m = 0; m < M; ++m) for (int u = 0; u < 2 * kSums; ++u) acc[m][u] = zero();
        for (int64_t k = 0; k < pairs; k += kSums) {
            for (int u = 0; u < kSums; ++u) {
                const uint8_t* line = lines + (k + u) * kLine;
                prefetch_l2(line + kAhead);
                const I v = load_i(line);
                const F low = pair_low(v), high = pair_high(v);
                for (int m = 0; m < M; ++m) {
                    const float* at = xr + m * x.stride + 2 * (k + u);
                    acc[m][2 * u] = fma(low, set1(at[0]), acc[m][2 * u]);
                    acc[m][2 * u + 1] = fma(high, set1(at[1]), acc[m][2 * u + 1]);
                }
            }
        }
        for (int m = 0; m < M; ++m) {
            F s = add(acc[m][0], acc[m][1]);
            for (int u = 2; u < 2 * kSums; ++u) s = add(s, acc[m][u]);
            put(s, panel, row + m, out);
        }
    }
};

// The scales of group g.
LN_INLINE F scales_of(const uint8_t* panel, int64_t at, int64_t g) {
    return load_f16(reinterpret_cast<const uint16_t*>(panel + at) + g * kPanel);
}

// 4-byte lines of int8 (per row or group) with x as it is.
template <int M>
struct BytesExact {
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const uint8_t* base = w.panel(panel);
        const uint8_t* lines = base + w.layout.data;
        const float* xr = x.f + row * x.stride;
        const bool grouped = w.kind == WeightKind::q8;
        F acc[M];
        for (int m = 0; m < M; ++m) acc[m] = zero();
        for (int64_t g = 0; g < w.layout.inputs / kBlock; ++g) {
            F part[M];
            for (int m = 0; m < M; ++m) part[m] = zero();
            for (int l = 0; l < 8; ++l) {
                const uint8_t* line = lines + (g * 8 + l) * kLine;
                prefetch_l2(line + kAhead);
                const I v = load_i(line);
                for (int j = 0; j < 4; ++j) {
                    const F q = byte_of(v, j);
                    for (int m = 0; m < M; ++m) part[m] = fma(q, set1(xr[m * x.stride + g * kBlock + 4 * l + j]), part[m]);
                }
            }
            if (grouped) {
                const F s = scales_of(base, 0, g);
                for (int m = 0; m < M; ++m) acc[m] = fma(part[m], s, acc[m]);
            } else {
                for (int m = 0; m < M; ++m) acc[m] = add(acc[m], part[m]);
            }
        }
        const F s = grouped ? set1(1.0f) : load(reinterpret_cast<const float*>(base));
        for (int m = 0; m < M; ++m) put(mul(acc[m], s), panel, row + m, out);
    }
};

template <int M, bool Offsets>
struct NibblesExact {
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const uint8_t* base = w.panel(panel);
        const uint8_t* lines = base + w.layout.data;
        const float* xr = x.f + row * x.stride;
        const int64_t lines_a_group = w.group / 8;
        F acc[M];
        for (int m = 0; m < M; ++m) acc[m] = zero();
        for (int64_t g = 0; g < w.layout.groups; ++g) {
            F part[M], plain[M];
            for (int m = 0; m < M; ++m) part[m] = plain[m] = zero();
            for (int64_t l = g * lines_a_group; l < (g + 1) * lines_a_group; ++l) {
                prefetch_l2(lines + l * kLine + kAhead);
                const I v = load_i(lines + l * kLine);
                const float* at = xr + l * 8;
                for (int j = 0; j < 8; ++j) {
                    // Nibble j of a cell: byte j / 2, below (input j / 2) or above (4 + j / 2).
                    const int input = j / 2 + 4 * (j % 2);
                    const F q = Offsets ? nibble_plain(v, j) : nibble_signed(v, j);
                    for (int m = 0; m < M; ++m) {
                        const F xv = set1(at[m * x.stride + input]);
                        part[m] = fma(q, xv, part[m]);
                        if (Offsets) plain[m] = add(plain[m], xv);
                    }
                }
            }
            const F s = scales_of(base, 0, g);
            for (int m = 0; m < M; ++m) {
                acc[m] = fma(part[m], s, acc[m]);
                if (Offsets) acc[m] = fma(plain[m], scales_of(base, w.layout.offsets, g), acc[m]);
            }
        }
        for (int m = 0; m < M; ++m) put(acc[m], panel, row + m, out);
    }
};
template <int M> struct Q4Exact : NibblesExact<M, false> {};
template <int M> struct Q41Exact : NibblesExact<M, true> {};

// int8 x int8 in blocks of 32 inputs; integers are exact, each block is scaled in f32.
template <int M>
struct BytesRounded {
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const uint8_t* base = w.panel(panel);
        const uint8_t* lines = base + w.layout.data;
        const bool grouped = w.kind == WeightKind::q8;
        const int64_t blocks = x.stride / kBlock;
        F acc[M];
        for (int m = 0; m < M; ++m) acc[m] = zero();
        for (int64_t g = 0; g < w.layout.inputs / kBlock; ++g) {
            I part[M];
            for (int m = 0; m < M; ++m) part[m] = start8(x.sum[(row + m) * blocks + g]);
            for (int l = 0; l < 8; ++l) {
                const uint8_t* line = lines + (g * 8 + l) * kLine;
                prefetch_l2(line + kAhead);
                const I v = load_i(line);
                for (int m = 0; m < M; ++m) part[m] = dot8(part[m], v, bytes4(x.q + (row + m) * x.stride + g * kBlock + 4 * l));
            }
            for (int m = 0; m < M; ++m) {
                F s = set1(x.scale[(row + m) * blocks + g]);
                if (grouped) s = mul(s, scales_of(base, 0, g));
                acc[m] = fma(to_f(part[m]), s, acc[m]);
            }
        }
        const F s = grouped ? set1(1.0f) : load(reinterpret_cast<const float*>(base));
        for (int m = 0; m < M; ++m) put(mul(acc[m], s), panel, row + m, out);
    }
};

template <int M, bool Offsets>
struct NibblesRounded {
    static void run(const Panels& w, const Input& x, int64_t panel, int64_t row, const Out& out) {
        const uint8_t* base = w.panel(panel);
        const uint8_t* lines = base + w.layout.data;
        const int64_t blocks = x.stride / kBlock;
        const int64_t a_group = w.group / kBlock;
        F acc[M];
        for (int m = 0; m < M; ++m) acc[m] = zero();
        for (int64_t g = 0; g < w.layout.inputs / kBlock; ++g) {
            I part[M];
            for (int m = 0; m < M; ++m) part[m] = start4(Offsets ? 0 : x.sum[(row + m) * blocks + g]);
            for (int l = 0; l < 4; ++l) {
                const uint8_t* line = lines + (g * 4 + l) * kLine;
                prefetch_l2(line + kAhead);
                const I v = load_i(line);
                const I low = nibbles_low(v), high = nibbles_high(v);
                for (int m = 0; m < M; ++m) {
                    const int8_t* at = x.q + (row + m) * x.stride + g * kBlock + 8 * l;
                    part[m] = dot4(part[m], low, bytes4(at));
                    part[m] = dot4(part[m], high, bytes4(at + 4));
                }
            }
            const F s = scales_of(base, 0, g / a_group);
            for (int m = 0; m < M; ++m) {
                const float xs = x.scale[(row + m) * blocks + g];
                acc[m] = fma(to_f(part[m]), mul(s, set1(xs)), acc[m]);
                if (Offsets) {
                    const float total = xs * static_cast<float>(x.sum[(row + m) * blocks + g]);
                    acc[m] = fma(scales_of(base, w.layout.offsets, g / a_group), set1(total), acc[m]);
                }
            }
        }
        for (int m = 0; m < M; ++m) put(acc[m], panel, row + m, out);
    }
};
template <int M> struct Q4Rounded : NibblesRounded<M, false> {};
template <int M> struct Q41Rounded : NibblesRounded<M, true> {};

// All rows against each panel, so that a panel comes from memory once.
template <template <int> class Kernel>
static void thin(const Panels& w, const Input& x, int64_t begin, int64_t end, const Out& out) {
    for (int64_t p = begin; p < end; ++p) {
        int64_t row = 0;
        while (row < x.rows) {
            const int64_t left = x.rows - row;
            if (kThinRows >= 8 && left >= 8) {
                Kernel<kThinRows >= 8 ? 8 : 1>::run(w, x, p, row, out);
                row += 8;
            } else if (left >= 4) {
                Kernel<4>::run(w, x, p, row, out);
                row += 4;
            } else if (left == 3) {
                Kernel<3>::run(w, x, p, row, out);
                row += 3;
            } else if (left == 2) {
                Kernel<2>::run(w, x, p, row, out);
                row += 2;
            } else {
                Kernel<1>::run(w, x, p, row, out);
                row += 1;
            }
        }
    }
}
