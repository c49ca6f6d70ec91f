// AVX-512 VNNI: products of bytes.
#include <cmath>
#include <cstring>
#include <limits>

#include "table.h"

#if LINNET_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

namespace linnet {
namespace avx512_vnni {

LN_INLINE float scalar_of(float x) { return x; }
LN_INLINE float scalar_of(bf16 x) { return to_float(x); }
#define LN_VNNI
#include "simd_avx512.h"
#undef LN_VNNI
#include "body_linear.h"

}  // namespace avx512_vnni
}  // namespace linnet

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace linnet {

void fill_avx512_vnni(Table& t) {
    Table own{};
    avx512_vnni::fill_linear(own);
    for (int kind = 2; kind < kKinds; ++kind) t.rounded[kind] = own.rounded[kind];
}

}  // namespace linnet
#endif
