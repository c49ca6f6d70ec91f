// The kernels by C names, for tests and benchmarks through ctypes. `half` 0: f32, 1: bf16 data.
#include <cstdio>
#include <exception>
#include <new>

#include "linnet/kernels.h"

using namespace linnet;

namespace {
thread_local char last_error[256] = "";

template <class F>
auto* guarded(F&& make) {
    using Made = decltype(make());
    try {
        return new Made(make());
    } catch (const std::exception& e) {
        std::snprintf(last_error, sizeof last_error, "%s", e.what());
        return static_cast<Made*>(nullptr);
    }
}

const float* fp(const void* p) { return static_cast<const float*>(p); }
const bf16* hp(const void* p) { return static_cast<const bf16*>(p); }
float* fp(void* p) { return static_cast<float*>(p); }
bf16* hp(void* p) { return static_cast<bf16*>(p); }

PackedMatrix packed(int kind, int half, const void* w, int64_t n, int64_t k, int64_t group, int64_t stride) {
    switch (static_cast<WeightKind>(kind)) {
        case WeightKind::f32: return half ? pack_f32(hp(w), n, k, stride) : pack_f32(fp(w), n, k, stride);
        case WeightKind::bf16: return half ? pack_bf16(hp(w), n, k, stride) : pack_bf16(fp(w), n, k, stride);
        case WeightKind::int8: return half ? pack_int8(hp(w), n, k, stride) : pack_int8(fp(w), n, k, stride);
        case WeightKind::q8: return half ? pack_q8(hp(w), n, k, stride) : pack_q8(fp(w), n, k, stride);
        default: return half ? pack_q4(hp(w), n, k, group, stride) : pack_q4(fp(w), n, k, group, stride);
    }
}

PackedMatrix blocks(int kind, const void* w, int64_t n, int64_t k) {
    switch (static_cast<WeightKind>(kind)) {
        case WeightKind::q8: return pack_from_q8_0(w, n, k);
        case WeightKind::q4: return pack_from_q4_0(w, n, k);
        default: return pack_from_q4_1(w, n, k);
    }
}

template <class T>
void attend(const int64_t* n, const void* q, const void* k, const void* v, void* out, float scale,
            const int32_t* base, const uint8_t* mask, const float* sinks) {
    Attention<T> a;
    a.q = static_cast<const T*>(q);
    a.k = static_cast<const T*>(k);
    a.v = static_cast<const T*>(v);
    a.out = static_cast<T*>(out);
    a.batch = n[0], a.heads = n[1], a.kv_heads = n[2], a.queries = n[3], a.keys = n[4], a.width = n[5];
    a.scale = scale;
    a.dense();
    a.base = base;
    a.base_batch = n[6], a.base_query = n[7], a.causal = n[8] != 0, a.offset = n[9];
    if (n[10] != 0) {  // q and out laid out [batch, queries, heads, width]
        a.q_head = a.out_head = a.width;
        a.q_row = a.out_row = a.heads * a.width;
    }
    if (mask != nullptr) {
        attention_masked(a, mask, n[11], n[12], sinks);
    } else {
        attention_prefix(a);
    }
}

template <class T>
void attend_pages(const int64_t* n, const void* q, const void* k, const void* v, void* out, float scale,
                  const int32_t* table, const int32_t* rows, const int32_t* positions) {
    PagedAttention<T> a;
    a.q = static_cast<const T*>(q);
    a.k = static_cast<const T*>(k);
    a.v = static_cast<const T*>(v);
    a.out = static_cast<T*>(out);
    a.tokens = n[0], a.heads = n[1], a.kv_heads = n[2], a.places = n[3], a.width = n[4];
    a.pages = n[5], a.page_size = n[6];
    a.q_token = n[7], a.q_head = n[8], a.out_token = n[9], a.out_head = n[10];
    a.table = table, a.rows = rows, a.positions = positions;
    a.scale = scale;
    paged_attention(a);
}

// n: rows, k, experts, outputs, cols, shared. m null: w as it is. by null: each product by itself.
template <class T>
int64_t experts(const int64_t* n, const PackedMatrix* m, const void* w, const void* x, const int64_t* chosen,
                const void* by, void* y) {
    Chosen<T> a;
    a.x = static_cast<const T*>(x), a.chosen = chosen;
    a.rows = n[0], a.k = n[1], a.experts = n[2], a.outputs = n[3], a.cols = n[4], a.shared = n[5] != 0;
    const auto* plain = static_cast<const T*>(w);
    const auto* weights = static_cast<const T*>(by);
    auto* out = static_cast<T*>(y);
    if (weights != nullptr) {
        return m != nullptr ? combine_experts(*m, a, weights, out) : combine_experts(plain, a, weights, out);
    }
    return m != nullptr ? linear_experts(*m, a, out) : linear_experts(plain, a, out);
}

// n: batch, tokens, key_heads, heads, keys, width. p: q, k, v, decay, beta, start, out, after.
template <class T>
void delta(const int64_t* n, void* const* p, float scale, const int32_t* rows, const int32_t* segments) {
    DeltaRule<T> d;
    d.q = static_cast<const T*>(p[0]), d.k = static_cast<const T*>(p[1]), d.v = static_cast<const T*>(p[2]);
    d.decay = fp(p[3]), d.beta = fp(p[4]), d.start = fp(p[5]), d.out = fp(p[6]), d.after = fp(p[7]);
    d.batch = n[0], d.tokens = n[1], d.key_heads = n[2], d.heads = n[3], d.keys = n[4], d.width = n[5];
    d.scale = scale;
    if (segments != nullptr) return delta_rule_packed(d, rows, segments);
    delta_rule(d);
}

}  // namespace

extern "C" {

const char* linnet_k_error() { return last_error; }
int linnet_k_best_isa() { return static_cast<int>(best_isa()); }
int linnet_k_isa() { return static_cast<int>(isa()); }
int linnet_k_set_isa(int i) { return set_isa(static_cast<Isa>(i)) ? 1 : 0; }
const char* linnet_k_isa_name(int i) { return isa_name(static_cast<Isa>(i)); }
int linnet_k_threads() { return pool().threads(); }
// Threads stay as they are where there is no memory for more.
void linnet_k_set_threads(int n) {
    try {
        set_threads(n);
    } catch (const std::exception& e) {
        std::snprintf(last_error, sizeof last_error, "%s", e.what());
    }
}

// Adds 1 to y[i][0] and y[i][1] for each i, each in a task of its own: every task runs once.
void linnet_k_count(int64_t n, int32_t* y) {
    pool().run(n, [&](int64_t i) {
        pool().run(2, [&](int64_t j) { y[2 * i + j] += 1; });
    });
}

// n tasks of which one finds no memory: 1 where that reaches the caller.
int linnet_k_exhaust(int64_t n, int64_t at, int32_t* y) {
    try {
        pool().run(n, [&](int64_t i) {
            if (i == at) throw std::bad_alloc();
            y[i] += 1;
        });
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}

void linnet_k_convert(int what, const void* x, int64_t n, void* y) {
    switch (what) {
        case 0: return convert(hp(x), n, fp(y));
        case 1: return convert(fp(x), n, hp(y));
        case 2: return convert(static_cast<const f16*>(x), n, fp(y));
        default: return convert(fp(x), n, static_cast<f16*>(y));
    }
}

PackedMatrix* linnet_k_pack(int kind, int half, const void* w, int64_t n, int64_t k, int64_t group, int64_t stride) {
    return guarded([&] { return packed(kind, half, w, n, k, group, stride); });
}
PackedMatrix* linnet_k_pack_blocks(int kind, const void* w, int64_t n, int64_t k) {
    return guarded([&] { return blocks(kind, w, n, k); });
}
PackedMatrix* linnet_k_pack_joined(int kind, const void* const* parts, const int64_t* rows, const int32_t* half,
                                   const int32_t* block, int64_t count, int64_t k, int64_t group) {
    return guarded([&] {
        const auto all = std::make_unique<PackSource[]>(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = {parts[i], rows[i], half[i] != 0, block[i]};
        return pack_joined(static_cast<WeightKind>(kind), all.get(), count, k, group);
    });
}
PackedMatrix* linnet_k_part(const PackedMatrix* m, int64_t begin, int64_t end) {
    return guarded([&] { return m->part(begin, end); });
}
// blocks as in PackSource.
PackedMatrix* linnet_k_pack_experts(int kind, int half, int block, const void* w, int64_t experts, int64_t n, int64_t k,
                                    int64_t group) {
    return guarded([&] {
        const PackSource all{w, experts * n, half != 0, block};
        return pack_experts(static_cast<WeightKind>(kind), all, experts, k, group);
    });
}
void linnet_k_unpack_experts(const PackedMatrix* m, int64_t experts, int64_t n, float* y) {
    unpack_experts(*m, experts, n, y);
}
void linnet_k_free(PackedMatrix* m) { delete m; }
int64_t linnet_k_bytes(const PackedMatrix* m) { return m->bytes(); }
void linnet_k_rounded(PackedMatrix* m, int rounded) {
    m->set_activations(rounded ? Activations::rounded : Activations::exact);
}
void linnet_k_unpack(const PackedMatrix* m, int64_t begin, int64_t end, float* y) { unpack_rows(*m, begin, end, y); }

// form 0: f32, 1: bf16, 2: bf16 to f32.
void linnet_k_linear(const PackedMatrix* m, int form, const void* x, int64_t x_stride, int64_t rows, void* y,
                     int64_t y_stride, const void* bias) {
    if (form == 0) return linear_strided(*m, fp(x), x_stride, rows, fp(y), y_stride, fp(bias));
    if (form == 1) return linear_strided_bf16(*m, hp(x), x_stride, rows, hp(y), y_stride, hp(bias));
    linear_bf16_f32(*m, hp(x), rows, fp(y), fp(bias));
}
void linnet_k_linear_silu_mul(const PackedMatrix* m, int half, const void* x, int64_t rows, void* y) {
    if (half) return linear_silu_mul(*m, hp(x), rows, hp(y));
    linear_silu_mul(*m, fp(x), rows, fp(y));
}
void linnet_k_matmul(int half, const void* a, const void* b, void* c, const int64_t* n) {
    if (half) return matmul(hp(a), hp(b), hp(c), n[0], n[1], n[2], n[3], n[4] != 0, n[5], n[6]);
    matmul(fp(a), fp(b), fp(c), n[0], n[1], n[2], n[3], n[4] != 0, n[5], n[6]);
}

void linnet_k_attention(int half, const int64_t* n, const void* q, const void* k, const void* v, void* out,
                        float scale, const int32_t* base, const uint8_t* mask, const float* sinks) {
    if (half) return attend<bf16>(n, q, k, v, out, scale, base, mask, sinks);
    attend<float>(n, q, k, v, out, scale, base, mask, sinks);
}
void linnet_k_paged(int half, const int64_t* n, const void* q, const void* k, const void* v, void* out, float scale,
                    const int32_t* table, const int32_t* rows, const int32_t* positions) {
    if (half) return attend_pages<bf16>(n, q, k, v, out, scale, table, rows, positions);
    attend_pages<float>(n, q, k, v, out, scale, table, rows, positions);
}
int64_t linnet_k_check_pages(const int32_t* table, int64_t table_rows, int64_t pages, int64_t size, int64_t places,
                             const int32_t* rows, const int32_t* positions, int64_t tokens) {
    return check_pages(table, table_rows, pages, size, places, rows, positions, tokens);
}

void linnet_k_rms_norm(int half, const void* x, const void* w, float eps, int64_t rows, int64_t n, void* y) {
    if (half) return rms_norm(hp(x), hp(w), eps, rows, n, hp(y));
    rms_norm(fp(x), fp(w), eps, rows, n, fp(y));
}
void linnet_k_layer_norm(int half, const void* x, const void* w, const void* b, float eps, int64_t rows, int64_t n,
                         void* y) {
    if (half) return layer_norm(hp(x), hp(w), hp(b), eps, rows, n, hp(y));
    layer_norm(fp(x), fp(w), fp(b), eps, rows, n, fp(y));
}
void linnet_k_softmax(int half, const void* x, int64_t rows, int64_t n, void* y) {
    if (half) return softmax(hp(x), rows, n, hp(y));
    softmax(fp(x), rows, n, fp(y));
}
void linnet_k_argmax(int half, const void* x, int64_t rows, int64_t n, int32_t* y) {
    if (half) return argmax(hp(x), rows, n, y);
    argmax(fp(x), rows, n, y);
}
void linnet_k_rope(int half, const void* x, const void* c, const void* s, void* y, const int64_t* n) {
    if (half) return rope(hp(x), hp(c), hp(s), hp(y), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]);
    rope(fp(x), fp(c), fp(s), fp(y), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]);
}
// what 0: silu, 1: silu(x) * z, 2: gelu, 3: x + z, 4: exp (f32).
void linnet_k_map(int what, int half, const void* x, const void* z, int64_t n, void* y) {
    switch (what) {
        case 0: return half ? silu(hp(x), n, hp(y)) : silu(fp(x), n, fp(y));
        case 1: return half ? silu_mul(hp(x), hp(z), n, hp(y)) : silu_mul(fp(x), fp(z), n, fp(y));
        case 2: return half ? gelu_tanh(hp(x), n, hp(y)) : gelu_tanh(fp(x), n, fp(y));
        case 3: return half ? add(hp(x), hp(z), n, hp(y)) : add(fp(x), fp(z), n, fp(y));
        default: return exp(fp(x), n, fp(y));
    }
}
int64_t linnet_k_embedding(int half, const void* t, int64_t vocab, int64_t width, const int32_t* ids, int64_t count,
                           void* y) {
    return half ? embedding(hp(t), vocab, width, ids, count, hp(y)) : embedding(fp(t), vocab, width, ids, count, fp(y));
}
int64_t linnet_k_embedding_packed(const PackedMatrix* t, int half, const int32_t* ids, int64_t count, void* y) {
    return half ? embedding(*t, ids, count, hp(y)) : embedding(*t, ids, count, fp(y));
}
int32_t linnet_k_sample(const float* logits, int64_t n, float temperature, int32_t top_k, float top_p, float min_p,
                        double uniform) {
    return sample(logits, n, temperature, top_k, top_p, min_p, uniform);
}
int64_t linnet_k_experts(int half, const int64_t* n, const PackedMatrix* m, const void* w, const void* x,
                         const int64_t* chosen, const void* by, void* y) {
    return half ? experts<bf16>(n, m, w, x, chosen, by, y) : experts<float>(n, m, w, x, chosen, by, y);
}
void linnet_k_top_k(int half, const void* x, int64_t rows, int64_t n, int64_t k, int64_t* y) {
    if (half) return top_k(hp(x), rows, n, k, y);
    top_k(fp(x), rows, n, k, y);
}
// segments null: sequences side by side.
void linnet_k_delta(int half, const int64_t* n, void* const* p, float scale, const int32_t* rows,
                    const int32_t* segments) {
    if (half) return delta<bf16>(n, p, scale, rows, segments);
    delta<float>(n, p, scale, rows, segments);
}
uint64_t linnet_k_read(const void* data, int64_t bytes) { return read_memory(data, bytes); }
void* linnet_k_alloc(int64_t bytes) { return alloc_huge(static_cast<size_t>(bytes)); }
void linnet_k_release(void* data, int64_t bytes) { free_huge(data, static_cast<size_t>(bytes)); }

}  // extern "C"
