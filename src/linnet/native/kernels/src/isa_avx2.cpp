// AVX2 with FMA and F16C.
#include <cmath>
#include <cstring>
#include <limits>

#include "table.h"

#if LINNET_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace linnet {
namespace avx2 {

LN_INLINE float scalar_of(float x) { return x; }
LN_INLINE float scalar_of(bf16 x) { return to_float(x); }
#include "simd_avx2.h"
#include "body_rows.h"
#include "body_linear.h"
#include "body_attention.h"
#include "body_recurrent.h"

}  // namespace avx2
}  // namespace linnet

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace linnet {

void fill_avx2(Table& t) {
    avx2::fill_rows(t);
    avx2::fill_linear(t);
    avx2::fill_attention(t);
    avx2::fill_recurrent(t);
}

}  // namespace linnet
#endif
