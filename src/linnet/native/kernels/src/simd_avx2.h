// 16 floats and 16 integers in two AVX2 registers. Included inside a namespace under an AVX2 target.

constexpr int kThinRows = 4;
constexpr int kGemmRows = 6;
constexpr int kGemmPanels = 1;

struct F {
    __m256 a, b;
};
struct I {
    __m256i a, b;
};

LN_INLINE F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LN_INLINE F set1(float x) { const __m256 v = _mm256_set1_ps(x); return {v, v}; }
LN_INLINE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LN_INLINE void store(float* p, F x) { _mm256_storeu_ps(p, x.a); _mm256_storeu_ps(p + 8, x.b); }
LN_INLINE F load_n(const float* p, int64_t n) {
    float t[16] = {};
    if (n > 0) std::memcpy(t, p, static_cast<size_t>(n) * 4);
    return load(t);
}
LN_INLINE void store_n(float* p, F x, int64_t n) {
    float t[16];
    store(t, x);
    if (n > 0) std::memcpy(p, t, static_cast<size_t>(n) * 4);
}
LN_INLINE __m256 widen8(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
LN_INLINE F load(const bf16* p) {
    const auto* q = reinterpret_cast<const __m128i*>(p);
    return {widen8(_mm_loadu_si128(q)), widen8(_mm_loadu_si128(q + 1))};
}
LN_INLINE F load_n(const bf16* p, int64_t n) {
    bf16 t[16] = {};
    if (n > 0) std::memcpy(t, p, static_cast<size_t>(n) * 2);
    return load(t);
}
// The upper 16 bits of each lane after rounding; NaN made quiet.
LN_INLINE __m256i rounded8(__m256 x) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, _mm256_castps_si256(nan)), 16);
}
LN_INLINE __m128i narrow8(__m256 x) {
    const __m256i r = rounded8(x);
    const __m256i packed = _mm256_packus_epi32(r, r);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
LN_INLINE void store(bf16* p, F x) {
    auto* q = reinterpret_cast<__m128i*>(p);
    _mm_storeu_si128(q, narrow8(x.a));
    _mm_storeu_si128(q + 1, narrow8(x.b));
}
LN_INLINE void store_n(bf16* p, F x, int64_t n) {
    bf16 t[16];
    store(t, x);
    if (n > 0) std::memcpy(p, t, static_cast<size_t>(n) * 2);
}
LN_INLINE void store_pairs(bf16* p, F a, F b) {
    auto* q = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(q, _mm256_or_si256(rounded8(a.a), _mm256_slli_epi32(rounded8(b.a), 16)));
    _mm256_storeu_si256(q + 1, _mm256_or_si256(rounded8(a.b), _mm256_slli_epi32(rounded8(b.b), 16)));
}
LN_INLINE F load_f16(const uint16_t* p) {
    const auto* q = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}
LN_INLINE F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
LN_INLINE F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
LN_INLINE F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
LN_INLINE F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
LN_INLINE F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
LN_INLINE F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
LN_INLINE F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
LN_INLINE F abs(F x) { const __m256 s = _mm256_set1_ps(-0.0f); return {_mm256_andnot_ps(s, x.a), _mm256_andnot_ps(s, x.b)}; }
LN_INLINE F neg(F x) { const __m256 s = _mm256_set1_ps(-0.0f); return {_mm256_xor_ps(s, x.a), _mm256_xor_ps(s, x.b)}; }
LN_INLINE F round_bf16(F x) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(rounded8(x.a), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(rounded8(x.b), 16))};
}
LN_INLINE float sum(F x) {
    const __m256 s = _mm256_add_ps(x.a, x.b);
    __m128 r = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    r = _mm_add_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_add_ss(r, _mm_shuffle_ps(r, r, 1)));
}
LN_INLINE float largest(F x) {
    const __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 r = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    r = _mm_max_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_max_ss(r, _mm_shuffle_ps(r, r, 1)));
}
LN_INLINE bool any_nan(F x) {
    const __m256 a = _mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), b = _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q);
    return _mm256_movemask_ps(_mm256_or_ps(a, b)) != 0;
}
LN_INLINE bool any_above(F x, F y) {
    const __m256 a = _mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), b = _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ);
    return _mm256_movemask_ps(_mm256_or_ps(a, b)) != 0;
}
LN_INLINE __m256 scale8(__m256 x, __m256 n) {
    const __m256i e = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(e, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i p = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i q = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(e, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(p)), _mm256_castsi256_ps(q));
}
LN_INLINE F scale2(F x, F n) { return {scale8(x.a, n.a), scale8(x.b, n.b)}; }
LN_INLINE F unless_below(F x, F low, F y) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, low.a, _CMP_LT_OQ), y.a),
            _mm256_andnot_ps(_mm256_cmp_ps(x.b, low.b, _CMP_LT_OQ), y.b)};
}
LN_INLINE F round_even(F x) {
    constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
LN_INLINE __m256 sums8(const F* v) {
    __m256 s[8];
    for (int i = 0; i < 8; ++i) s[i] = _mm256_add_ps(v[i].a, v[i].b);
    const __m256 t0 = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
    const __m256 t1 = _mm256_hadd_ps(_mm256_hadd_ps(s[4], s[5]), _mm256_hadd_ps(s[6], s[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(t0, t1, 0x20), _mm256_permute2f128_ps(t0, t1, 0x31));
}
LN_INLINE F sums16(const F* v) { return {sums8(v), sums8(v + 8)}; }

LN_INLINE I load_i(const void* p) {
    const auto* q = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
LN_INLINE I set1_i(int32_t x) { const __m256i v = _mm256_set1_epi32(x); return {v, v}; }
LN_INLINE F to_f(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
LN_INLINE int32_t bytes4(const int8_t* p) { int32_t r; std::memcpy(&r, p, 4); return r; }
LN_INLINE F pair_low(I x) { return {_mm256_castsi256_ps(_mm256_slli_epi32(x.a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(x.b, 16))}; }
LN_INLINE F pair_high(I x) {
    const __m256i m = _mm256_set1_epi32(static_cast<int32_t>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(x.a, m)), _mm256_castsi256_ps(_mm256_and_si256(x.b, m))};
}
LN_INLINE __m256 byte8(__m256i x, int j) {
    const __m256i s = _mm256_xor_si256(x, _mm256_set1_epi32(static_cast<int32_t>(0x80808080u)));
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(s, 24 - 8 * j), 24));
}
LN_INLINE F byte_of(I x, int j) { return {byte8(x.a, j), byte8(x.b, j)}; }
LN_INLINE __m256i nibble8(__m256i x, int j) { return _mm256_and_si256(_mm256_srli_epi32(x, 4 * j), _mm256_set1_epi32(15)); }
LN_INLINE F nibble_plain(I x, int j) { return {_mm256_cvtepi32_ps(nibble8(x.a, j)), _mm256_cvtepi32_ps(nibble8(x.b, j))}; }
LN_INLINE F nibble_signed(I x, int j) {
    const __m256i e = _mm256_set1_epi32(8);
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(nibble8(x.a, j), e)), _mm256_cvtepi32_ps(_mm256_sub_epi32(nibble8(x.b, j), e))};
}

// maddubs adds pairs in 16 bits: |q| <= 128 times |x| <= 127 twice stays below 2^15.
LN_INLINE I start8(int32_t) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
LN_INLINE I start4(int32_t x_sum) { return set1_i(-8 * x_sum); }
LN_INLINE __m256i dot8_half(__m256i acc, __m256i w, __m256i x) {
    const __m256i q = _mm256_xor_si256(w, _mm256_set1_epi32(static_cast<int32_t>(0x80808080u)));
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
LN_INLINE I dot8(I acc, I w, int32_t x) {
    const __m256i v = _mm256_set1_epi32(x);
    return {dot8_half(acc.a, w.a, v), dot8_half(acc.b, w.b, v)};
}
LN_INLINE I nibbles_low(I w) {
    const __m256i m = _mm256_set1_epi8(15);
    return {_mm256_and_si256(w.a, m), _mm256_and_si256(w.b, m)};
}
LN_INLINE I nibbles_high(I w) {
    const __m256i m = _mm256_set1_epi8(15);
    return {_mm256_and_si256(_mm256_srli_epi32(w.a, 4), m), _mm256_and_si256(_mm256_srli_epi32(w.b, 4), m)};
}
LN_INLINE I dot4(I acc, I w, int32_t x) {
    const __m256i v = _mm256_set1_epi32(x), one = _mm256_set1_epi16(1);
    return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(_mm256_maddubs_epi16(w.a, v), one)),
            _mm256_add_epi32(acc.b, _mm256_madd_epi16(_mm256_maddubs_epi16(w.b, v), one))};
}
LN_INLINE void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }
LN_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
LN_INLINE void store_i8(int8_t* p, F x) {
    const __m256i w = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    const __m256i ordered = _mm256_permute4x64_epi64(w, 0xd8);
    const __m128i b = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), b);
}
LN_INLINE int32_t sum_i8(const int8_t* p, int n) { int32_t s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }
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
