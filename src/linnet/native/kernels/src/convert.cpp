// f16 in plain C++, and arrays from one number format to another.
#include "table.h"

namespace linnet {

float to_float(f16 x) {
    const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
    const uint32_t exponent = (x.bits >> 10) & 31u, fraction = x.bits & 0x3ffu;
    uint32_t u;
    if (exponent == 31) {
        u = sign | 0x7f800000u | (fraction << 13);
    } else if (exponent != 0) {
        u = sign | ((exponent + 112u) << 23) | (fraction << 13);
    } else {
        // Subnormal: fraction * 2^-24, exact in f32.
        const float y = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return sign != 0 ? -y : y;
    }
    float y;
    std::memcpy(&y, &u, 4);
    return y;
}

f16 to_f16(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return f16{static_cast<uint16_t>(sign | 0x7e00u)};
    if (u >= 0x477ff000u) return f16{static_cast<uint16_t>(sign | 0x7c00u)};  // 65520 and above
    if (u >= 0x38800000u) {
        const uint32_t rounded = u + 0xfffu + ((u >> 13) & 1u);
        return f16{static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
    }
    // Below 2^-14: adding 0.5 leaves a multiple of 2^-24 in the last bits, rounded to even.
    float y;
    std::memcpy(&y, &u, 4);
    y += 0.5f;
    std::memcpy(&u, &y, 4);
    return f16{static_cast<uint16_t>(sign | (u - 0x3f000000u))};
}

namespace {
constexpr int64_t kGrain = 1 << 15;
}

void convert(const bf16* x, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().widen(x + b, e - b, y + b); });
}

void convert(const float* x, int64_t n, bf16* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().narrow(x + b, e - b, y + b); });
}

void convert(const f16* x, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) y[i] = to_float(x[i]);
    });
}

void convert(const float* x, int64_t n, f16* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) y[i] = to_f16(x[i]);
    });
}

}  // namespace linnet
