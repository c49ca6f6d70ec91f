// Failures of generated code, and sizes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <type_traits>

#define LINNET_INLINE inline __attribute__((always_inline))

namespace linnet::gen {

// --- errors --------------------------------------------------------------------------------------

// A program without meaning on its inputs: caught where the entry returns.
struct Failure {
  char message[256];
};

[[noreturn]] __attribute__((cold, noinline)) inline void fail_index(int64_t index, int64_t extent,
                                                                    const char* where) {
  Failure failure;
  std::snprintf(failure.message, sizeof failure.message,
                "index %lld is outside an axis of extent %lld at %s",
                static_cast<long long>(index), static_cast<long long>(extent), where);
  throw failure;
}

[[noreturn]] __attribute__((cold, noinline)) inline void fail(const char* what, const char* where) {
  Failure failure;
  std::snprintf(failure.message, sizeof failure.message, "%s at %s", what, where);
  throw failure;
}

// `index`, which lies on an axis of `extent`.
LINNET_INLINE int64_t at(int64_t index, int64_t extent, const char* where) {
  if (__builtin_expect(static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent), 0))
    fail_index(index, extent, where);
  return index;
}

// --- sizes ---------------------------------------------------------------------------------------

// The product of sizes; past what memory can hold it is an allocation that fails.
template <class... Sizes>
LINNET_INLINE int64_t product(Sizes... sizes) {
  int64_t total = 1;
  bool over = false;
  const int64_t all[] = {static_cast<int64_t>(sizes)...};
  for (int64_t size : all) over |= __builtin_mul_overflow(total, size, &total);
  if (over) throw std::bad_alloc();
  return total;
}

LINNET_INLINE int64_t floor_div(int64_t a, int64_t b, const char* where) {
  if (b <= 0) fail("a size is divided by zero", where);
  const int64_t quotient = a / b;
  return quotient - (a % b < 0);
}

LINNET_INLINE int64_t floor_mod(int64_t a, int64_t b, const char* where) {
  if (b <= 0) fail("a size is divided by zero", where);
  const int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

LINNET_INLINE int64_t least(int64_t a, int64_t b) { return b < a ? b : a; }
LINNET_INLINE int64_t most(int64_t a, int64_t b) { return b > a ? b : a; }

template <class T>
LINNET_INLINE T size_as(int64_t size, const char* where) {
  if constexpr (std::is_integral_v<T>) {
    const bool fits = size >= 0 ? static_cast<uint64_t>(size) <=
                                      static_cast<uint64_t>(std::numeric_limits<T>::max())
                                : std::is_signed_v<T> &&
                                      size >= static_cast<int64_t>(std::numeric_limits<T>::min());
    if (!fits) fail("a size does not fit its dtype", where);
  }
  return static_cast<T>(size);
}

}  // namespace linnet::gen
