// Dtypes: 16-bit floats with their roundings, memory to register and back, conversions.
#pragma once

#include <cmath>
#include <cstring>

#include "linnet/errors.h"
#include "linnet/kernels.h"

namespace linnet::gen {

// --- 16-bit floats -------------------------------------------------------------------------------

template <class To, class From>
LINNET_INLINE To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "one size");
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

using linnet::bf16;
using linnet::f16;

LINNET_INLINE float widen(bf16 x) { return bits_as<float>(static_cast<uint32_t>(x.bits) << 16); }

LINNET_INLINE uint16_t bf16_bits(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((x != x ? bits | 0x400000u : rounded) >> 16);
}

LINNET_INLINE float widen(f16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t rest = x.bits & 0x7FFFu;
  if (rest >= 0x7C00u) return bits_as<float>(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
  if (rest >= 0x400u) return bits_as<float>(sign | ((rest << 13) + 0x38000000u));
  const float small = static_cast<float>(rest) * 0x1p-24f;
  return sign ? -small : small;
}

LINNET_INLINE uint16_t f16_bits(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t rest = bits & 0x7FFFFFFFu;
  if (rest > 0x7F800000u)
    return static_cast<uint16_t>(sign | 0x7E00u | (rest >> 13 & 0x3FFu));
  if (rest >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds past 65504
  if (rest < 0x38800000u) {  // below the smallest normal number: a count of 2^-24
    const float scaled = bits_as<float>(rest) + 0.5f;  // the addition rounds to even
    return static_cast<uint16_t>(sign | (bits_as<uint32_t>(scaled) - 0x3F000000u));
  }
  const uint32_t odd = rest >> 13 & 1u;
  return static_cast<uint16_t>(sign | (rest - 0x38000000u + 0xFFFu + odd) >> 13);
}

// A float rounded to a dtype and held as a float.
LINNET_INLINE float to_bf16(float x) {
  return bits_as<float>(static_cast<uint32_t>(bf16_bits(x)) << 16);
}
LINNET_INLINE float to_f16(float x) { return widen(f16{f16_bits(x)}); }

// A double to float rounding to odd, so that rounding again rounds once.
LINNET_INLINE float to_odd(double x) {
  const float near = static_cast<float>(x);
  if (static_cast<double>(near) == x || !(std::fabs(x) <= std::numeric_limits<double>::max()))
    return near;
  uint32_t bits = bits_as<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(x)) bits -= 1;
  return bits_as<float>(bits | 1u);
}
LINNET_INLINE float to_bf16(double x) { return to_bf16(to_odd(x)); }
LINNET_INLINE float to_f16(double x) { return to_f16(to_odd(x)); }

// --- memory to register and back -----------------------------------------------------------------

template <class T>
LINNET_INLINE T load(T x) {
  return x;
}
LINNET_INLINE float load(bf16 x) { return widen(x); }
LINNET_INLINE float load(f16 x) { return widen(x); }

struct boolean {
  uint8_t byte;
};
LINNET_INLINE bool load(boolean x) { return x.byte != 0; }

template <class T>
LINNET_INLINE T store(T x) {
  return x;
}
template <class T>
LINNET_INLINE T stored(float x);
template <>
LINNET_INLINE bf16 stored<bf16>(float x) {
  return bf16{bf16_bits(x)};
}
template <>
LINNET_INLINE f16 stored<f16>(float x) {
  return f16{f16_bits(x)};
}
LINNET_INLINE boolean truth(bool x) { return boolean{static_cast<uint8_t>(x)}; }

// --- conversions ---------------------------------------------------------------------------------

// Float to integer: toward zero, what lies outside becomes the nearest value, NaN 0.
template <class T, class F>
LINNET_INLINE T to_integer(F value) {
  const double x = static_cast<double>(value);
  constexpr double past =
      static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1)) * 2.0;
  if (x != x) return 0;
  if (x >= past) return std::numeric_limits<T>::max();
  if (std::is_signed_v<T> ? x <= -past : x <= 0.0)
    return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

// Integer to integer wraps.
template <class T, class F>
LINNET_INLINE T wrapped(F x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

// 64-bit integers to 16-bit floats: what is cut off is kept as one odd bit.
template <class I>
LINNET_INLINE double odd_double(I x) {
  if (std::fabs(static_cast<double>(x)) < 9007199254740992.0) return static_cast<double>(x);
  const I low = static_cast<I>(x & I{0xFFF});
  const I high = static_cast<I>(x - low);
  return static_cast<double>(low ? static_cast<I>(high | I{0x1000}) : high);
}

}  // namespace linnet::gen
