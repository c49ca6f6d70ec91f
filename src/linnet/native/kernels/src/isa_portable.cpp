// Plain C++ for every processor.
#include <cmath>
#include <cstring>
#include <limits>

#include "table.h"

namespace linnet {
namespace portable {

LN_INLINE float scalar_of(float x) { return x; }
LN_INLINE float scalar_of(bf16 x) { return to_float(x); }
#include "simd_portable.h"
#include "body_rows.h"
#include "body_linear.h"
#include "body_attention.h"
#include "body_recurrent.h"

}  // namespace portable

void fill_portable(Table& t) {
    portable::fill_rows(t);
    portable::fill_linear(t);
    portable::fill_attention(t);
    portable::fill_recurrent(t);
}

}  // namespace linnet
