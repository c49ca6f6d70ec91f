// 16 floats and 16 integers in plain C++. Included inside a namespace; no include guard on purpose.

constexpr int kThinRows = 4;
constexpr int kGemmRows = 4;
constexpr int kGemmPanels = 1;

struct F {
    float v[16];
};
struct I {
    int32_t v[16];
};

#define LN_EACH for (int i = 0; i < 16; ++i)

LN_INLINE F zero() { return F{}; }
LN_INLINE F set1(float x) { F r; LN_EACH r.v[i] = x; return r; }
LN_INLINE F load(const float* p) { F r; std::memcpy(r.v, p, 64); return r; }
LN_INLINE void store(float* p, F x) { std::memcpy(p, x.v, 64); }
LN_INLINE F load_n(const float* p, int64_t n) { F r{}; for (int64_t i = 0; i < n; ++i) r.v[i] = p[i]; return r; }
LN_INLINE void store_n(float* p, F x, int64_t n) { for (int64_t i = 0; i < n; ++i) p[i] = x.v[i]; }
LN_INLINE F load(const bf16* p) { F r; LN_EACH r.v[i] = to_float(p[i]); return r; }
LN_INLINE F load_n(const bf16* p, int64_t n) { F r{}; for (int64_t i = 0; i < n; ++i) r.v[i] = to_float(p[i]); return r; }
LN_INLINE void store(bf16* p, F x) { LN_EACH p[i] = to_bf16(x.v[i]); }
LN_INLINE void store_n(bf16* p, F x, int64_t n) { for (int64_t i = 0; i < n; ++i) p[i] = to_bf16(x.v[i]); }
// a[0], b[0], a[1], b[1], ...
LN_INLINE void store_pairs(bf16* p, F a, F b) { LN_EACH { p[2 * i] = to_bf16(a.v[i]); p[2 * i + 1] = to_bf16(b.v[i]); } }
LN_INLINE F load_f16(const uint16_t* p) { F r; LN_EACH r.v[i] = to_float(f16{p[i]}); return r; }
LN_INLINE F add(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] + b.v[i]; return r; }
LN_INLINE F sub(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] - b.v[i]; return r; }
LN_INLINE F mul(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] * b.v[i]; return r; }
LN_INLINE F div(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] / b.v[i]; return r; }
LN_INLINE F fma(F a, F b, F c) { F r; LN_EACH r.v[i] = a.v[i] * b.v[i] + c.v[i]; return r; }
// NaN in b stays, NaN in a doesn't.
LN_INLINE F max(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i]; return r; }
LN_INLINE F min(F a, F b) { F r; LN_EACH r.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i]; return r; }
LN_INLINE F abs(F a) { F r; LN_EACH r.v[i] = a.v[i] < 0 ? -a.v[i] : a.v[i]; return r; }
LN_INLINE F neg(F a) { F r; LN_EACH r.v[i] = -a.v[i]; return r; }
LN_INLINE F round_bf16(F a) { F r; LN_EACH r.v[i] = to_float(to_bf16(a.v[i])); return r; }
LN_INLINE float sum(F a) {
    float s[8];
    for (int i = 0; i < 8; ++i) s[i] = a.v[i] + a.v[i + 8];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
LN_INLINE float largest(F a) { float m = a.v[0]; LN_EACH m = a.v[i] > m ? a.v[i] : m; return m; }
LN_INLINE bool any_nan(F a) { bool r = false; LN_EACH r |= a.v[i] != a.v[i]; return r; }
LN_INLINE bool any_above(F a, F b) { bool r = false; LN_EACH r |= a.v[i] > b.v[i]; return r; }
// x * 2^round(n) for x near 1; n within -127 .. 128 (2^-127 and below: 0).
LN_INLINE F scale2(F x, F n) {
    F r;
    LN_EACH {
        const int32_t e = static_cast<int32_t>(n.v[i]);
        const int32_t half = e / 2;
        const uint32_t a = static_cast<uint32_t>(half + 127) << 23;
        const uint32_t b = static_cast<uint32_t>(e - half + 127) << 23;
        float fa, fb;
        std::memcpy(&fa, &a, 4);
        std::memcpy(&fb, &b, 4);
        r.v[i] = x.v[i] * fa * fb;
    }
    return r;
}
// y, but 0 where x is below `low` (NaN is not).
LN_INLINE F unless_below(F x, F low, F y) { F r; LN_EACH r.v[i] = x.v[i] < low.v[i] ? 0.0f : y.v[i]; return r; }
LN_INLINE F round_even(F x) {
    // Adding and taking away 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer.
    F r;
    LN_EACH { const float t = x.v[i] + 12582912.0f; r.v[i] = t - 12582912.0f; }
    return r;
}
// v[j] summed over its lanes, as lane j.
LN_INLINE F sums16(const F* v) { F r; LN_EACH r.v[i] = sum(v[i]); return r; }

LN_INLINE I load_i(const void* p) { I r; std::memcpy(r.v, p, 64); return r; }
LN_INLINE I set1_i(int32_t x) { I r; LN_EACH r.v[i] = x; return r; }
LN_INLINE F to_f(I a) { F r; LN_EACH r.v[i] = static_cast<float>(a.v[i]); return r; }
LN_INLINE int32_t bytes4(const int8_t* p) { int32_t r; std::memcpy(&r, p, 4); return r; }
// Lanes of bf16 pairs: the lower and the upper one as floats.
LN_INLINE F pair_low(I a) {
    F r;
    LN_EACH { const uint32_t u = static_cast<uint32_t>(a.v[i]) << 16; std::memcpy(&r.v[i], &u, 4); }
    return r;
}
LN_INLINE F pair_high(I a) {
    F r;
    LN_EACH { const uint32_t u = static_cast<uint32_t>(a.v[i]) & 0xffff0000u; std::memcpy(&r.v[i], &u, 4); }
    return r;
}
// Byte j less 128, nibble j less 8, nibble j, as floats.
LN_INLINE F byte_of(I a, int j) { F r; LN_EACH r.v[i] = static_cast<float>(static_cast<int32_t>((static_cast<uint32_t>(a.v[i]) >> (8 * j)) & 255u) - 128); return r; }
LN_INLINE F nibble_signed(I a, int j) { F r; LN_EACH r.v[i] = static_cast<float>(static_cast<int32_t>((static_cast<uint32_t>(a.v[i]) >> (4 * j)) & 15u) - 8); return r; }
LN_INLINE F nibble_plain(I a, int j) { F r; LN_EACH r.v[i] = static_cast<float>((static_cast<uint32_t>(a.v[i]) >> (4 * j)) & 15u); return r; }

// Integer dot products of 4 bytes a lane: weights q + 128 (dot8) or 0..15 (dot4) with x.
// start8 and start4 are what the sums begin with, given the sum of x over the block.
LN_INLINE I start8(int32_t) { return I{}; }
LN_INLINE I start4(int32_t x_sum) { return set1_i(-8 * x_sum); }
LN_INLINE I dot8(I acc, I w, int32_t x) {
    LN_EACH for (int b = 0; b < 4; ++b) {
        const int32_t q = static_cast<int32_t>((static_cast<uint32_t>(w.v[i]) >> (8 * b)) & 255u) - 128;
        const auto xb = static_cast<int8_t>((static_cast<uint32_t>(x) >> (8 * b)) & 255u);
        acc.v[i] += q * xb;
    }
    return acc;
}
LN_INLINE I nibbles_low(I w) { LN_EACH w.v[i] &= 0x0f0f0f0f; return w; }
LN_INLINE I nibbles_high(I w) { LN_EACH w.v[i] = static_cast<int32_t>((static_cast<uint32_t>(w.v[i]) >> 4) & 0x0f0f0f0fu); return w; }
LN_INLINE I dot4(I acc, I w, int32_t x) {
    LN_EACH for (int b = 0; b < 4; ++b) {
        const auto q = static_cast<int32_t>((static_cast<uint32_t>(w.v[i]) >> (8 * b)) & 255u);
        const auto xb = static_cast<int8_t>((static_cast<uint32_t>(x) >> (8 * b)) & 255u);
        acc.v[i] += q * xb;
    }
    return acc;
}
LN_INLINE void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }
LN_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
// Rounded to nearest, |x| <= 127.5, as bytes.
LN_INLINE void store_i8(int8_t* p, F x) { const F r = round_even(x); LN_EACH p[i] = static_cast<int8_t>(r.v[i]); }
LN_INLINE int32_t sum_i8(const int8_t* p, int n) { int32_t s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }

#undef LN_EACH
// 16 rows of 16 cells of 4 bytes turned: cell i of line d of y is cell d of row i.
LN_INLINE void turn_cells(const void* const* rows, void* y) {
    for (int i = 0; i < 16; ++i) {
        for (int d = 0; d < 16; ++d) std::memcpy(static_cast<char*>(y) + (d * 16 + i) * 4, static_cast<const char*>(rows[i]) + d * 4, 4);
    }
}
// 16 cells of (even, odd).
LN_INLINE void interleave(const bf16* even, const bf16* odd, bf16* y) {
    for (int i = 0; i < 16; ++i) {
        y[2 * i] = even[i];
        y[2 * i + 1] = odd[i];
    }
}
