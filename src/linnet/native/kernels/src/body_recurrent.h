// The gated delta rule on a namespace's F. Included after simd_*.h and body_rows.h.

// n of 16 floats, which may be none or all; the others are zero.
template <class T>
LN_INLINE F load_part(const T* p, int64_t n) {
    return n >= 16 ? load(p) : n > 0 ? load_n(p, n) : zero();
}

LN_INLINE void store_part(float* p, F x, int64_t n) {
    if (n >= 16) {
        store(p, x);
    } else if (n > 0) {
        store_n(p, x, n);
    }
}

// P registers of columns. The memory's part stays in `work`, which fits a core's first cache, for all
// tokens; it is read twice and written once a token.
template <class T, int P>
static void delta_columns(const DeltaColumns& d) {
    constexpr int64_t kWide = 16 * P;
    float *m = d.work, *q = m + d.keys * kWide, *k = q + d.keys;
    for (int64_t c = 0; c < d.keys; ++c) {
        for (int p = 0; p < P; ++p) {
            const F x = d.start == nullptr ? zero() : load_part(d.start + c * d.row + 16 * p, d.columns - 16 * p);
            store(m + c * kWide + 16 * p, x);
        }
    }
    for (int64_t t = 0; t < d.tokens; ++t) {
        map1<Same, T, float>(static_cast<const T*>(d.q) + t * d.qk_token, d.keys, q);
        map1<Same, T, float>(static_cast<const T*>(d.k) + t * d.qk_token, d.keys, k);
        const T* v = static_cast<const T*>(d.v) + t * d.v_token;
        const F keep = set1(std::exp(d.decay[t * d.gate_token]));
        const F rate = set1(d.beta[t * d.gate_token]);
        F change[P], out[P];
        for (int p = 0; p < P; ++p) change[p] = out[p] = zero();
        for (int64_t c = 0; c < d.keys; ++c) {
            const F key = set1(k[c]);
            for (int p = 0; p < P; ++p) change[p] = fma(key, mul(keep, load(m + c * kWide + 16 * p)), change[p]);
        }
        for (int p = 0; p < P; ++p) change[p] = mul(rate, sub(load_part(v + 16 * p, d.columns - 16 * p), change[p]));
        for (int64_t c = 0; c < d.keys; ++c) {
            const F key = set1(k[c]), query = set1(q[c]);
            for (int p = 0; p < P; ++p) {
                float* at = m + c * kWide + 16 * p;
                const F x = fma(key, change[p], mul(keep, load(at)));
                store(at, x);
                out[p] = fma(query, x, out[p]);
            }
        }
        for (int p = 0; p < P; ++p) {
            store_part(d.out + t * d.v_token + 16 * p, mul(set1(d.scale), out[p]), d.columns - 16 * p);
        }
    }
    if (d.after == nullptr) return;
    for (int64_t c = 0; c < d.keys; ++c) {
        for (int p = 0; p < P; ++p) {
            store_part(d.after + c * d.row + 16 * p, load(m + c * kWide + 16 * p), d.columns - 16 * p);
        }
    }
}

template <class T>
static void delta(const DeltaColumns& d) {
    if (d.columns > 32) {
        delta_columns<T, 4>(d);
    } else if (d.columns > 16) {
        delta_columns<T, 2>(d);
    } else {
        delta_columns<T, 1>(d);
    }
}

static void fill_recurrent(Table& t) {
    t.delta_f = delta<float>;
    t.delta_h = delta<bf16>;
}
