// Writing to caches.
#pragma once

#include <cstring>

#include "linnet/errors.h"

namespace linnet::gen {

// --- cache writes: positions outside the axis are not written --------------------------------------

// value [rows, heads, count, width] to positions at .. of cache [rows, heads, places, width], row r to
// row `row(r)` (outside 0 .. cache_rows: nowhere), from position `at(r)` on.
template <class T, class Row, class At>
LINNET_INLINE void write_cache(T* cache, const T* value, int64_t cache_rows, int64_t heads,
                               int64_t places, int64_t rows, int64_t count, int64_t width, Row row,
                               At at) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t to = row(r);
    if (to < 0 || to >= cache_rows) continue;
    const int64_t start = at(r);
    const int64_t first = start < 0 ? -start : 0;
    const int64_t last = places - start < count ? places - start : count;
    if (first >= last) continue;
    for (int64_t h = 0; h < heads; ++h)
      std::memcpy(cache + ((to * heads + h) * places + start + first) * width,
                  value + ((r * heads + h) * count + first) * width,
                  static_cast<size_t>((last - first) * width) * sizeof(T));
  }
}

// Token p of value [heads, tokens, width] to row rows[p], position at[p].
template <class T>
LINNET_INLINE void write_tokens(T* cache, const T* value, int64_t cache_rows, int64_t heads,
                                int64_t places, int64_t tokens, int64_t width, const int32_t* rows,
                                const int32_t* at) {
  for (int64_t p = 0; p < tokens; ++p) {
    if (rows[p] < 0 || rows[p] >= cache_rows || at[p] < 0 || at[p] >= places) continue;
    for (int64_t h = 0; h < heads; ++h)
      std::memcpy(cache + ((rows[p] * heads + h) * places + at[p]) * width,
                  value + (h * tokens + p) * width, static_cast<size_t>(width) * sizeof(T));
  }
}

}  // namespace linnet::gen
