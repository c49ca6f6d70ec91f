// AVX-512 BF16: products of bf16, and everything that rounds to it.
#include <cmath>
#include <cstring>
#include <limits>

#include "table.h"

#if LINNET_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
#endif

namespace linnet {
namespace avx512_bf16 {

LN_INLINE float scalar_of(float x) { return x; }
LN_INLINE float scalar_of(bf16 x) { return to_float(x); }
#define LN_VNNI
#define LN_BF16
#include "simd_avx512.h"
#undef LN_BF16
#undef LN_VNNI
#include "body_rows.h"
#include "body_linear.h"
#include "body_attention.h"
#include "body_recurrent.h"
#include "body_bf16.h"

// Conversions keep what is below 2^-126, which the processor's own rounding doesn't.
static void narrow_all(const float* x, int64_t n, bf16* y) {
    for (int64_t i = 0; i < n; i += 16) {
        const int64_t count = n - i < 16 ? n - i : 16;
        const __m256i h = _mm512_cvtepi32_epi16(rounded16(load_n(x + i, count)));
        _mm256_mask_storeu_epi16(y + i, first(count), h);
    }
}

}  // namespace avx512_bf16
}  // namespace linnet

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace linnet {

void fill_avx512_bf16(Table& t, bool amd) {
    avx512_bf16::fill_rows(t);
    avx512_bf16::fill_linear(t);
    avx512_bf16::fill_attention(t);
    avx512_bf16::fill_recurrent(t);
    avx512_bf16::fill_bf16(t, amd);
    t.narrow = avx512_bf16::narrow_all;
}

}  // namespace linnet
#endif
