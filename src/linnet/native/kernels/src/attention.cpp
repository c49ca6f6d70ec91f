// Attention over keys as far as they are filled: which way.
#include "attention.h"

namespace linnet {
namespace {

constexpr int64_t kFewQueries = 4;  // queries up to which keys aren't packed

template <class T>
void prefix(const Attention<T>& a) {
    if (nothing(a)) return;
    if (a.queries <= kFewQueries) {
        attend_few(a);
    } else {
        attend_many(a);
    }
}

}  // namespace

void attention_prefix(const Attention<float>& a) { prefix(a); }
void attention_prefix(const Attention<bf16>& a) { prefix(a); }

void attention_masked(const Attention<float>& a, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks) {
    if (!nothing(a)) attend_masked(a, mask, mask_batch, mask_query, sinks);
}

void attention_masked(const Attention<bf16>& a, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks) {
    if (!nothing(a)) attend_masked(a, mask, mask_batch, mask_query, sinks);
}

void paged_attention(const PagedAttention<float>& a) { attend_pages(a); }
void paged_attention(const PagedAttention<bf16>& a) { attend_pages(a); }

int64_t check_pages(const int32_t* table, int64_t table_rows, int64_t pages, int64_t page_size,
                    int64_t places, const int32_t* rows, const int32_t* positions, int64_t tokens) {
    for (int64_t i = 0; i < tokens; ++i) {
        const int64_t row = rows != nullptr ? rows[i] : i;
        if (row < 0 || row >= table_rows) return i;
        int64_t seen = int64_t{positions[i]} + 1;
        seen = seen > pages * page_size ? pages * page_size : seen;
        const int64_t used = seen <= 0 ? 0 : (seen + page_size - 1) / page_size;
        for (int64_t p = 0; p < used; ++p) {
            const int64_t page = table[row * pages + p];
            const int64_t last = p + 1 < used ? page_size : seen - p * page_size;
            if (page < 0 || page > places / page_size || page * page_size + last > places) return i;
        }
    }
    return -1;
}

}  // namespace linnet
