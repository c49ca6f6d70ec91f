// The meaning of scalar operations. Nothing here has undefined behaviour, whatever the operands.
#pragma once

#include <cmath>

#include "linnet/numbers.h"

namespace linnet::gen {

// --- arithmetic ----------------------------------------------------------------------------------

template <class T>
using wide_unsigned = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

template <class T>
LINNET_INLINE wide_unsigned<T> unsigned_of(T x) {
  return static_cast<wide_unsigned<T>>(x);
}

template <class T>
LINNET_INLINE T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(unsigned_of(a) + unsigned_of(b));
  else
    return a + b;
}
template <class T>
LINNET_INLINE T sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(unsigned_of(a) - unsigned_of(b));
  else
    return a - b;
}
template <class T>
LINNET_INLINE T mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(unsigned_of(a) * unsigned_of(b));
  else
    return a * b;
}
template <class T>
LINNET_INLINE T neg(T x) {
  return sub<T>(T{0}, x);
}
template <class T>
LINNET_INLINE T absolute(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return x < 0 ? neg<T>(x) : x;
  else
    return x;
}

template <class T>
LINNET_INLINE T divide(T a, T b, const char* where) {
  if (b == 0) fail("an integer is divided by zero", where);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return neg<T>(a);  // the smallest integer wraps
  return static_cast<T>(a / b);
}
template <class T>
LINNET_INLINE T rest(T a, T b, const char* where) {
  if (b == 0) fail("an integer is divided by zero", where);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

// NaN if either is.
template <class T>
LINNET_INLINE T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (a < b || a != a) ? a : b;
  else
    return a < b ? a : b;
}
template <class T>
LINNET_INLINE T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (a > b || a != a) ? a : b;
  else
    return a > b ? a : b;
}

// A count below 0, at or past the width shifts everything out.
template <class T>
LINNET_INLINE T shift_left(T x, T count) {
  constexpr int width = static_cast<int>(sizeof(T) * 8);
  if (count < 0 || static_cast<std::make_unsigned_t<T>>(count) >= width) return 0;
  return static_cast<T>(unsigned_of(x) << static_cast<int>(count));
}
template <class T>
LINNET_INLINE T shift_right(T x, T count) {
  constexpr int width = static_cast<int>(sizeof(T) * 8);
  if (count < 0 || static_cast<std::make_unsigned_t<T>>(count) >= width)
    return x < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(x >> static_cast<int>(count));
}

// --- functions: worked out in double and rounded once ----------------------------------------------

LINNET_INLINE double exact_rsqrt(double x) { return 1.0 / std::sqrt(x); }

// --- fast functions: single precision, without calls, so that loops over them vectorise -----------

// e^x to about 1 unit in the last place.
LINNET_INLINE float fast_exp(float x) {
  const float bounded = x < -104.0f || x != x ? -104.0f : (x > 89.0f ? 89.0f : x);
  const float turns = bounded * 1.44269504f;
  const float whole = std::nearbyint(turns);
  const float r = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const int32_t power = static_cast<int32_t>(whole);
  const int32_t half = power >> 1;  // two steps, so that neither leaves the range of exponents
  const float a = bits_as<float>((half + 127) << 23);
  const float b = bits_as<float>((power - half + 127) << 23);
  const float result = p * a * b;
  return x != x ? x : result;
}

LINNET_INLINE float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }
LINNET_INLINE float fast_silu(float x) { return x / (1.0f + fast_exp(-x)); }
LINNET_INLINE float fast_gelu(float x) {
  return x / (1.0f + fast_exp(-1.5957691216f * (x + 0.044715f * x * x * x)));
}
LINNET_INLINE float fast_tanh(float x) { return 1.0f - 2.0f / (1.0f + fast_exp(2.0f * x)); }

}  // namespace linnet::gen
