// 16 floats and 16 integers in one AVX-512 register. Included inside a namespace under an AVX-512
// target. With LN_VNNI the dot products are vpdpbusd, else they are AVX2's on two halves. With LN_BF16
// floats are rounded to bf16 by the processor, which gives 0 for results below 2^-126.

constexpr int kThinRows = 8;
constexpr int kGemmRows = 12;
constexpr int kGemmPanels = 2;

using F = __m512;
using I = __m512i;

LN_INLINE __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
LN_INLINE F zero() { return _mm512_setzero_ps(); }
LN_INLINE F set1(float x) { return _mm512_set1_ps(x); }
LN_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
LN_INLINE void store(float* p, F x) { _mm512_storeu_ps(p, x); }
LN_INLINE F load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
LN_INLINE void store_n(float* p, F x, int64_t n) { _mm512_mask_storeu_ps(p, first(n), x); }
LN_INLINE F widen16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
LN_INLINE F load(const bf16* p) { return widen16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
LN_INLINE F load_n(const bf16* p, int64_t n) { return widen16(_mm256_maskz_loadu_epi16(first(n), p)); }
LN_INLINE I rounded16(F x) {
    const I u = _mm512_castps_si512(x);
    const I odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const I up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_srli_epi32(_mm512_mask_or_epi32(up, nan, u, _mm512_set1_epi32(0x400000)), 16);
}
#if defined(LN_BF16)
LN_INLINE __m256i narrow16(F x) {
    const __m256bh h = _mm512_cvtneps_pbh(x);
    __m256i r;
    std::memcpy(&r, &h, sizeof r);
    return r;
}
LN_INLINE void store_pairs(bf16* p, F a, F b) {
    const __m512i turn = _mm512_setr_epi32(0x00100000, 0x00110001, 0x00120002, 0x00130003, 0x00140004, 0x00150005,
                                           0x00160006, 0x00170007, 0x00180008, 0x00190009, 0x001a000a, 0x001b000b,
                                           0x001c000c, 0x001d000d, 0x001e000e, 0x001f000f);
    const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
    __m512i r;
    std::memcpy(&r, &both, sizeof r);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(turn, r));
}
LN_INLINE F round_bf16(F x) { return widen16(narrow16(x)); }
#else
LN_INLINE __m256i narrow16(F x) { return _mm512_cvtepi32_epi16(rounded16(x)); }
LN_INLINE void store_pairs(bf16* p, F a, F b) {
    _mm512_storeu_si512(p, _mm512_or_si512(rounded16(a), _mm512_slli_epi32(rounded16(b), 16)));
}
LN_INLINE F round_bf16(F x) { return _mm512_castsi512_ps(_mm512_slli_epi32(rounded16(x), 16)); }
#endif
LN_INLINE void store(bf16* p, F x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow16(x)); }
LN_INLINE void store_n(bf16* p, F x, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow16(x)); }
LN_INLINE F load_f16(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
LN_INLINE F add(F x, F y) { return _mm512_add_ps(x, y); }
LN_INLINE F sub(F x, F y) { return _mm512_sub_ps(x, y); }
LN_INLINE F mul(F x, F y) { return _mm512_mul_ps(x, y); }
LN_INLINE F div(F x, F y) { return _mm512_div_ps(x, y); }
LN_INLINE F fma(F x, F y, F z) { return _mm512_fmadd_ps(x, y, z); }
LN_INLINE F max(F x, F y) { return _mm512_max_ps(x, y); }
LN_INLINE F min(F x, F y) { return _mm512_min_ps(x, y); }
LN_INLINE F abs(F x) { return _mm512_abs_ps(x); }
LN_INLINE F neg(F x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f)); }
LN_INLINE __m256 upper(F x) { return _mm512_extractf32x8_ps(x, 1); }
LN_INLINE __m256 lower(F x) { return _mm512_castps512_ps256(x); }
LN_INLINE float sum(F x) {
    const __m256 s = _mm256_add_ps(lower(x), upper(x));
    __m128 r = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    r = _mm_add_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_add_ss(r, _mm_shuffle_ps(r, r, 1)));
}
LN_INLINE float largest(F x) {
    const __m256 s = _mm256_max_ps(lower(x), upper(x));
    __m128 r = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    r = _mm_max_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_max_ss(r, _mm_shuffle_ps(r, r, 1)));
}
LN_INLINE bool any_nan(F x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) != 0; }
LN_INLINE bool any_above(F x, F y) { return _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ) != 0; }
LN_INLINE F scale2(F x, F n) { return _mm512_scalef_ps(x, n); }
LN_INLINE F unless_below(F x, F low, F y) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), y); }
LN_INLINE F round_even(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// Four rounds of adding neighbours, each halving the number of registers.
LN_INLINE F sums16(const F* v) {
    F a[8], b[4], c[2];
    for (int i = 0; i < 8; ++i) a[i] = add(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; ++i) {
        const __m512d x = _mm512_castps_pd(a[2 * i]), y = _mm512_castps_pd(a[2 * i + 1]);
        b[i] = add(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
    }
    // b[i] holds rows 4i .. 4i + 3, partial sums in each of its quarters.
    for (int i = 0; i < 2; ++i) c[i] = add(_mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88), _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return add(_mm512_shuffle_f32x4(c[0], c[1], 0x88), _mm512_shuffle_f32x4(c[0], c[1], 0xdd));
}

LN_INLINE I load_i(const void* p) { return _mm512_loadu_si512(p); }
LN_INLINE I set1_i(int32_t x) { return _mm512_set1_epi32(x); }
LN_INLINE F to_f(I x) { return _mm512_cvtepi32_ps(x); }
LN_INLINE int32_t bytes4(const int8_t* p) { int32_t r; std::memcpy(&r, p, 4); return r; }
LN_INLINE F pair_low(I x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
LN_INLINE F pair_high(I x) { return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u)))); }
LN_INLINE F byte_of(I x, int j) {
    const I s = _mm512_xor_si512(x, _mm512_set1_epi32(static_cast<int32_t>(0x80808080u)));
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(s, static_cast<unsigned>(24 - 8 * j)), 24));
}
// vpermps looks at the lowest 4 bits of a lane: a table look-up instead of mask and conversion.
LN_INLINE F nibble_signed(I x, int j) {
    const F values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(x, static_cast<unsigned>(4 * j)), values);
}
LN_INLINE F nibble_plain(I x, int j) {
    const F values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(x, static_cast<unsigned>(4 * j)), values);
}

LN_INLINE I nibbles_low(I w) { return _mm512_and_si512(w, _mm512_set1_epi8(15)); }
LN_INLINE I nibbles_high(I w) { return _mm512_and_si512(_mm512_srli_epi32(w, 4), _mm512_set1_epi8(15)); }
LN_INLINE I start4(int32_t x_sum) { return _mm512_set1_epi32(-8 * x_sum); }
#if defined(LN_VNNI)
LN_INLINE I start8(int32_t x_sum) { return _mm512_set1_epi32(-128 * x_sum); }
LN_INLINE I dot8(I acc, I w, int32_t x) { return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x)); }
LN_INLINE I dot4(I acc, I w, int32_t x) { return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x)); }
#else
LN_INLINE I start8(int32_t) { return _mm512_setzero_si512(); }
LN_INLINE I dot8(I acc, I w, int32_t x) {
    const I q = _mm512_xor_si512(w, _mm512_set1_epi32(static_cast<int32_t>(0x80808080u)));
    const I v = _mm512_set1_epi32(x);
    const I signed_x = _mm512_mask_sub_epi8(v, _mm512_movepi8_mask(q), _mm512_setzero_si512(), v);
    const I pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(q), signed_x);
    return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
LN_INLINE I dot4(I acc, I w, int32_t x) {
    const I pairs = _mm512_maddubs_epi16(w, _mm512_set1_epi32(x));
    return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif
LN_INLINE void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }
LN_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
LN_INLINE void store_i8(int8_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
}
LN_INLINE int32_t sum_i8(const int8_t* p, int n) { int32_t s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }
// 16 rows of 16 cells of 4 bytes turned: cell i of line d of y is cell d of row i.
LN_INLINE void turn_cells(const void* const* rows, void* y) {
    __m512i a[16], b[16];
    for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(rows[i]);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        for (int j = 0; j < 2; ++j) {
            a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
    }
    // a[4 g + c]: column c of each quarter, rows 4 g .. 4 g + 3.
    for (int c = 0; c < 4; ++c) {
        const __m512i low = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x88), high = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x88);
        const __m512i low2 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xdd), high2 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xdd);
        auto* line = static_cast<char*>(y) + c * 64;
        _mm512_storeu_si512(line, _mm512_shuffle_i32x4(low, high, 0x88));
        _mm512_storeu_si512(line + 8 * 64, _mm512_shuffle_i32x4(low, high, 0xdd));
        _mm512_storeu_si512(line + 4 * 64, _mm512_shuffle_i32x4(low2, high2, 0x88));
        _mm512_storeu_si512(line + 12 * 64, _mm512_shuffle_i32x4(low2, high2, 0xdd));
    }
}
// 16 cells of (even, odd).
LN_INLINE void interleave(const bf16* even, const bf16* odd, bf16* y) {
    const __m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even)));
    const __m512i b = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd)));
    _mm512_storeu_si512(y, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
}
