// Element by element and row by row, on a namespace's F. Included after a simd_*.h.

// Rounds to what memory of type T would hold.
template <class T> LN_INLINE F rounded_to(F x);
template <> F rounded_to<float>(F x) { return x; }
template <> F rounded_to<bf16>(F x) { return round_bf16(x); }

// exp(x): x = n ln 2 + r, a polynomial in r, scaled by 2^n. Above 88.72 infinity, below -88 zero, NaN
// stays.
LN_INLINE F exp_of(F x) {
    const F high = set1(88.8f), low = set1(-88.0f);
    const F c = max(low, min(high, x));
    const F n = round_even(mul(c, set1(1.44269504088896341f)));
    F r = fma(n, set1(-0.693145751953125f), c);
    r = fma(n, set1(-1.42860682030941723e-6f), r);
    F p = set1(1.9875691500e-4f);
    p = fma(p, r, set1(1.3981999507e-3f));
    p = fma(p, r, set1(8.3334519073e-3f));
    p = fma(p, r, set1(4.1665795894e-2f));
    p = fma(p, r, set1(1.6666665459e-1f));
    p = fma(p, r, set1(5.0000001201e-1f));
    p = fma(p, mul(r, r), r);
    return unless_below(x, low, scale2(add(p, set1(1.0f)), n));
}

LN_INLINE F silu_of(F x) { return div(x, add(set1(1.0f), exp_of(neg(x)))); }

// x / 2 (1 + tanh(u)) = x / (1 + exp(-2 u)).
LN_INLINE F gelu_of(F x) {
    const F cube = mul(mul(x, x), x);
    const F u = mul(set1(-2.0f * 0.7978845608028654f), fma(set1(0.044715f), cube, x));
    return div(x, add(set1(1.0f), exp_of(u)));
}

struct Silu { LN_INLINE F of(F x) { return silu_of(x); } };
struct Gelu { LN_INLINE F of(F x) { return gelu_of(x); } };
struct Exp { LN_INLINE F of(F x) { return exp_of(x); } };
struct Same { LN_INLINE F of(F x) { return x; } };

template <class Op, class X, class Y>
static void map1(const X* x, int64_t n, Y* y) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) store(y + i, Op::of(load(x + i)));
    if (i < n) store_n(y + i, Op::of(load_n(x + i, n - i)), n - i);
}

template <class T>
struct SiluMul { LN_INLINE F of(F a, F b) { return mul(rounded_to<T>(silu_of(a)), b); } };
struct Add { LN_INLINE F of(F a, F b) { return add(a, b); } };

template <class Op, class T, class Y = T>
static void map2(const T* a, const T* b, int64_t n, Y* y) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) store(y + i, Op::of(load(a + i), load(b + i)));
    if (i < n) store_n(y + i, Op::of(load_n(a + i, n - i), load_n(b + i, n - i)), n - i);
}

template <class T>
static void rms_norm_rows(const T* x, const T* weight, float eps, int64_t rows, int64_t n, T* y) {
    for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
        F s[4] = {zero(), zero(), zero(), zero()};
        int64_t i = 0;
        for (; i + 64 <= n; i += 64) {
            for (int j = 0; j < 4; ++j) {
                const F v = load(x + i + 16 * j);
                s[j] = fma(v, v, s[j]);
            }
        }
        for (; i + 16 <= n; i += 16) {
            const F v = load(x + i);
            s[0] = fma(v, v, s[0]);
        }
        if (i < n) {
            const F v = load_n(x + i, n - i);
            s[1] = fma(v, v, s[1]);
        }
        const float total = sum(add(add(s[0], s[1]), add(s[2], s[3])));
        const F unit = set1(1.0f / std::sqrt(total / static_cast<float>(n) + eps));
        for (i = 0; i + 16 <= n; i += 16) {
            store(y + i, mul(rounded_to<T>(mul(load(x + i), unit)), load(weight + i)));
        }
        if (i < n) {
            const F v = rounded_to<T>(mul(load_n(x + i, n - i), unit));
            store_n(y + i, mul(v, load_n(weight + i, n - i)), n - i);
        }
    }
}

template <class T>
LN_INLINE float sum_of(const T* x, int64_t n) {
    F a = zero(), b = zero();
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a = add(a, load(x + i));
        b = add(b, load(x + i + 16));
    }
    for (; i + 16 <= n; i += 16) a = add(a, load(x + i));
    if (i < n) b = add(b, load_n(x + i, n - i));
    return sum(add(a, b));
}

// sum (x - mean)^2; the padding of the last lanes is taken out again.
template <class T>
LN_INLINE float spread_of(const T* x, int64_t n, float mean) {
    const F m = set1(mean);
    F a = zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const F v = sub(load(x + i), m);
        a = fma(v, v, a);
    }
    float s = sum(a);
    for (; i < n; ++i) {
        const float v = scalar_of(x[i]) - mean;
        s += v * v;
    }
    return s;
}

template <class T>
LN_INLINE F normed(F x, F mean, F unit, F weight, bool has_bias, F bias) {
    const F v = mul(rounded_to<T>(mul(sub(x, mean), unit)), weight);
    return has_bias ? add(rounded_to<T>(v), bias) : v;
}

template <class T>
static void layer_norm_rows(const T* x, const T* weight, const T* bias, float eps, int64_t rows,
                            int64_t n, T* y) {
    const bool has = bias != nullptr;
    for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
        const float mean = sum_of(x, n) / static_cast<float>(n);
        const float variance = spread_of(x, n, mean) / static_cast<float>(n);
        const F m = set1(mean), unit = set1(1.0f / std::sqrt(variance + eps));
        int64_t i = 0;
        for (; i + 16 <= n; i += 16) {
            const F b = has ? load(bias + i) : zero();
            store(y + i, normed<T>(load(x + i), m, unit, load(weight + i), has, b));
        }
        if (i < n) {
            const int64_t k = n - i;
            const F b = has ? load_n(bias + i, k) : zero();
            store_n(y + i, normed<T>(load_n(x + i, k), m, unit, load_n(weight + i, k), has, b), k);
        }
    }
}

// The largest of x [n], n >= 1; NaN where there is one.
template <class T>
LN_INLINE float peak_of(const T* x, int64_t n) {
    F m = set1(scalar_of(x[0]));
    bool nan = false;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const F v = load(x + i);
        nan |= any_nan(v);
        m = max(v, m);
    }
    float peak = largest(m);
    for (; i < n; ++i) {
        const float v = scalar_of(x[i]);
        nan |= v != v;
        peak = v > peak ? v : peak;
    }
    return nan ? std::numeric_limits<float>::quiet_NaN() : peak;
}

template <class T>
static void softmax_rows(const T* x, int64_t rows, int64_t n, T* y) {
    if (n == 0) return;
    for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
        const float peak = peak_of(x, n);
        const F p = set1(peak);
        F a = zero();
        int64_t i = 0;
        for (; i + 16 <= n; i += 16) a = add(a, exp_of(sub(load(x + i), p)));
        float total = sum(a);
        float last[16];
        if (i < n) {
            store(last, exp_of(sub(load_n(x + i, n - i), p)));
            for (int64_t j = 0; j < n - i; ++j) total += last[j];
        }
        const F t = set1(total);
        for (i = 0; i + 16 <= n; i += 16) store(y + i, div(exp_of(sub(load(x + i), p)), t));
        if (i < n) store_n(y + i, div(load(last), t), n - i);
    }
}

// The first of the largest; the first NaN where there is one.
template <class T>
static int64_t argmax_of(const T* x, int64_t n) {
    int64_t best = 0;
    float peak = scalar_of(x[0]);
    if (peak != peak) return 0;
    F p = set1(peak);
    for (int64_t i = 0; i < n; i += 16) {
        const int64_t count = n - i < 16 ? n - i : 16;
        if (count == 16) {
            const F v = load(x + i);
            if (!any_above(v, p) && !any_nan(v)) continue;
        }
        for (int64_t j = i; j < i + count; ++j) {
            const float v = scalar_of(x[j]);
            if (v != v) return j;
            if (v > peak) {
                peak = v;
                best = j;
            }
        }
        p = set1(peak);
    }
    return best;
}

template <class T>
static void rope_row(const T* x, const T* cos, const T* sin, int64_t width, T* y) {
    const int64_t half = width / 2;
    for (int64_t i = 0; i < half; i += 16) {
        const int64_t n = half - i < 16 ? half - i : 16;
        const F a = load_n(x + i, n), b = load_n(x + half + i, n);
        const F ca = load_n(cos + i, n), cb = load_n(cos + half + i, n);
        const F sa = load_n(sin + i, n), sb = load_n(sin + half + i, n);
        const F low = sub(rounded_to<T>(mul(a, ca)), rounded_to<T>(mul(b, sa)));
        const F high = add(rounded_to<T>(mul(b, cb)), rounded_to<T>(mul(a, sb)));
        store_n(y + i, low, n);
        store_n(y + half + i, high, n);
    }
}

static uint64_t read_all(const void* data, int64_t bytes) {
    const auto* p = static_cast<const float*>(data);
    F a[8];
    for (F& f : a) f = zero();
    for (int64_t i = 0; i + 128 <= bytes / 4; i += 128) {
        for (int j = 0; j < 8; ++j) {
            prefetch_l2(p + i + 16 * j + 2048);  // as fast as any of 1 to 16 KiB, in either cache
            a[j] = add(a[j], load(p + i + 16 * j));
        }
    }
    for (int j = 1; j < 8; ++j) a[0] = add(a[0], a[j]);
    float s = sum(a[0]);
    uint32_t u;
    std::memcpy(&u, &s, 4);
    return u;
}

static void fill_rows(Table& t) {
    t.widen = map1<Same, bf16, float>;
    t.narrow = map1<Same, float, bf16>;
    t.rms_norm_f = rms_norm_rows<float>;
    t.rms_norm_h = rms_norm_rows<bf16>;
    t.layer_norm_f = layer_norm_rows<float>;
    t.layer_norm_h = layer_norm_rows<bf16>;
    t.softmax_f = softmax_rows<float>;
    t.softmax_h = softmax_rows<bf16>;
    t.argmax_f = argmax_of<float>;
    t.argmax_h = argmax_of<bf16>;
    t.rope_f = rope_row<float>;
    t.rope_h = rope_row<bf16>;
    t.silu_f = map1<Silu, float, float>;
    t.silu_h = map1<Silu, bf16, bf16>;
    t.silu_mul_f = map2<SiluMul<float>, float>;
    t.silu_mul_h = map2<SiluMul<bf16>, bf16>;
    t.silu_mul_fh = map2<SiluMul<float>, float, bf16>;
    t.gelu_f = map1<Gelu, float, float>;
    t.gelu_h = map1<Gelu, bf16, bf16>;
    t.add_f = map2<Add, float>;
    t.add_h = map2<Add, bf16>;
    t.exp_f = map1<Exp, float, float>;
    t.read = read_all;
}
