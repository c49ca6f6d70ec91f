// Linnet's kernels for CPUs: what generated code and the runtime call.
//
// General contracts, unless a function says otherwise:
//  * Tensors are dense, row major, last axis contiguous. Strides are counted in elements.
//  * Pointers may have any alignment their type allows. Inputs and outputs don't overlap, except that
//    element-by-element functions (silu, silu_mul, add, rope, rms_norm, layer_norm, softmax) may
//    write over their input.
//  * A count of zero is allowed everywhere; pointers to what is then empty may be null. A result that
//    has elements is always written: a sum of nothing is 0.
//  * Sums are kept in f32 (never in bf16). NaN and infinity go through as IEEE says.
//  * Functions split their work over `pool()` where there is enough of it. Called from inside a task
//    of the pool they run on the calling thread. Results don't depend on the number of threads.
//  * Every function that works on tensors may throw std::bad_alloc; only those that say so throw
//    std::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace linnet {

// --- numbers ------------------------------------------------------------------------------------

struct bf16 {
    uint16_t bits;
};

struct f16 {
    uint16_t bits;
};

inline float to_float(bf16 x) {
    const uint32_t wide = static_cast<uint32_t>(x.bits) << 16;
    float y;
    std::memcpy(&y, &wide, sizeof y);
    return y;
}

// Rounds to nearest, ties to even; NaN stays NaN.
inline bf16 to_bf16(float x) {
    uint32_t u;
    std::memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<uint16_t>((u >> 16) | 0x40u)};
    return bf16{static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

float to_float(f16 x);
f16 to_f16(float x);  // nearest, ties to even; overflow to infinity

// Whole arrays (split over the pool when large).
void convert(const bf16* x, int64_t n, float* y);
void convert(const float* x, int64_t n, bf16* y);
void convert(const f16* x, int64_t n, float* y);
void convert(const float* x, int64_t n, f16* y);

// --- instruction sets ---------------------------------------------------------------------------

// Each holds everything before it. `portable` is plain C++.
enum class Isa : int32_t {
    portable = 0,
    avx2 = 1,         // AVX2, FMA, F16C
    avx512 = 2,       // F, BW, DQ, VL
    avx512_vnni = 3,  // + int8 dot products
    avx512_bf16 = 4,  // + bf16 dot products
    amx = 5,          // + AMX tiles, bf16 and int8
};

Isa best_isa();      // the most this processor and kernel allow
Isa isa();           // what is used now: the best, or what LINNET_ISA names, or what was set
bool set_isa(Isa);   // false (and no change) when this machine lacks it; not while kernels run
const char* isa_name(Isa);
bool isa_from_name(const char* name, Isa* out);

// --- threads ------------------------------------------------------------------------------------

class Pool {
public:
    int threads() const;

    // Runs body(i) once for every i in [0, n) and returns when all are done. Thread t starts on the
    // t-th of `threads()` equal, contiguous parts; a thread that is done helps the others, so that a
    // thread the system holds back costs little. Make tasks of 5 us or more. Called from inside a
    // task: all of it on the calling thread. Called by several threads at once: one after another.
    // What a task throws, the first of them, is thrown again here; tasks that had not begun are left out.
    template <class F>
    void run(int64_t n, F&& body) {
        using Body = std::remove_reference_t<F>;
        run_tasks(n, [](void* f, int64_t i) { (*static_cast<Body*>(f))(i); },
                  const_cast<void*>(static_cast<const void*>(&body)));
    }

    // body(begin, end) over [0, n) in runs of at least `grain` (the last may be shorter), at most
    // `a_thread` runs for each thread.
    template <class F>
    void ranges(int64_t n, int64_t grain, F&& body, int64_t a_thread = 4) {
        if (n <= 0) return;
        if (grain < 1) grain = 1;
        const int64_t most = static_cast<int64_t>(threads()) * a_thread;
        int64_t parts = (n + grain - 1) / grain;
        if (parts > most) parts = most;
        if (parts <= 1) {
            body(static_cast<int64_t>(0), n);
            return;
        }
        const int64_t step = (n + parts - 1) / parts;
        run((n + step - 1) / step, [&](int64_t i) {
            const int64_t begin = i * step;
            body(begin, n < begin + step ? n : begin + step);
        });
    }

    // Memory that a later job reads, a part of it on each thread as in `run`. Threads that wait ask for the
    // beginning of theirs meanwhile. A hint: nothing is read, and the memory may be gone by then.
    void soon(const void* at, int64_t bytes);

    void run_tasks(int64_t n, void (*call)(void*, int64_t), void* body);

    void resize(int threads);  // see set_threads

    struct Impl;
    explicit Pool(Impl* impl) : impl_(impl) {}

private:
    Impl* impl_;
};

// The pool of this process, made on first use with `default_threads()`.
Pool& pool();
// At least 1; 0 means default_threads(). Fewer where the system starts no more: `Pool::threads()` says
// how many there are. Not from inside a task.
void set_threads(int threads);
// LINNET_THREADS, else the physical cores among the processors this process may use.
int default_threads();

// --- packed weights -----------------------------------------------------------------------------

// `w` of `y = x w^T`: `rows` outputs (N) by `cols` inputs (K), laid out once so that a product reads
// it from front to back. The layout is the same for every instruction set.
enum class WeightKind : int32_t {
    f32 = 0,
    bf16 = 1,
    int8 = 2,  // -127..127, an f32 scale a row
    q8 = 3,    // int8 with an f16 scale for each 32 inputs (GGUF Q8_0)
    q4 = 4,    // 0..15 less 8, an f16 scale for each group of 32 or 64 inputs (GGUF Q4_0: 32)
    q4_1 = 5,  // 0..15, an f16 scale and an f16 offset for each 32 inputs (GGUF Q4_1)
};

// What products with int8, q8, q4 and q4_1 weights may do with x.
enum class Activations : int32_t {
    exact = 0,  // x as it is, products in f32
    // Few rows: x rounded to int8 with a scale for each 32 inputs, products in integers. Many rows:
    // x and w rounded to bf16. Faster; relative error about 0.5 % of a row's size.
    rounded = 1,
};

class PackedMatrix {
public:
    PackedMatrix() = default;
    PackedMatrix(PackedMatrix&&) noexcept = default;
    PackedMatrix& operator=(PackedMatrix&&) noexcept = default;

    WeightKind kind() const { return kind_; }
    int64_t rows() const { return rows_; }
    int64_t cols() const { return cols_; }
    int64_t group() const { return group_; }  // inputs a scale; cols() for int8, 0 for f32 and bf16
    int64_t bytes() const { return bytes_; }  // what one product reads
    Activations activations() const { return activations_; }
    void set_activations(Activations a) { activations_ = a; }
    bool empty() const { return data_ == nullptr; }
    // Rows [begin, end) in the same memory, which stays alive with either; begin: a multiple of 16.
    PackedMatrix part(int64_t begin, int64_t end) const;

    // The layout, for the kernels (see src/layout.h).
    const uint8_t* data() const { return data_; }

private:
    friend struct PackedMatrixMaker;
    WeightKind kind_ = WeightKind::f32;
    Activations activations_ = Activations::rounded;
    int64_t rows_ = 0, cols_ = 0, group_ = 0, bytes_ = 0;
    uint8_t* data_ = nullptr;     // in `hold_`
    std::shared_ptr<void> hold_;  // a region of huge pages shared by several matrices
};

// w: [rows, cols], row stride `stride` (0: cols). Copied; `w` isn't needed afterwards.
// All throw std::bad_alloc, and std::invalid_argument for negative or absurd sizes, and for finite weights
// so large that a group's scale passes f16 (q8: 8.3e6, q4: 5.2e5). NaN and infinity become NaN.
// Each pair of (source, kind) exists as a function of its own:
PackedMatrix pack_f32(const float* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_f32(const bf16* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_bf16(const bf16* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_bf16(const float* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_int8(const float* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_int8(const bf16* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_q8(const float* w, int64_t rows, int64_t cols, int64_t stride = 0);
PackedMatrix pack_q8(const bf16* w, int64_t rows, int64_t cols, int64_t stride = 0);
// group: 32 or 64. The scale of each group is the one of a few that gives the least squared error.
PackedMatrix pack_q4(const float* w, int64_t rows, int64_t cols, int64_t group = 32,
                     int64_t stride = 0);
PackedMatrix pack_q4(const bf16* w, int64_t rows, int64_t cols, int64_t group = 32,
                     int64_t stride = 0);
// GGUF blocks as they lie in the file: rows * (cols / 32) blocks of 34, 18 or 20 bytes; cols is a
// multiple of 32. Only reordered: no value changes.
PackedMatrix pack_from_q8_0(const void* blocks, int64_t rows, int64_t cols);
PackedMatrix pack_from_q4_0(const void* blocks, int64_t rows, int64_t cols);
PackedMatrix pack_from_q4_1(const void* blocks, int64_t rows, int64_t cols);
// Several matrices over the same inputs as one, rows one below the other: joined projections.
struct PackSource {
    const void* data;
    int64_t rows;
    bool is_bf16 = false;  // else f32
    int blocks = 0;  // 1: GGUF Q8_0, 2: Q4_0, 3: Q4_1; reordered where all parts are and `kind` is theirs
};
PackedMatrix pack_joined(WeightKind kind, const PackSource* parts, int64_t count, int64_t cols,
                         int64_t group = 32);

// Rows [begin, end) as floats: y [end - begin, cols].
void unpack_rows(const PackedMatrix& w, int64_t begin, int64_t end, float* y);

// --- products -----------------------------------------------------------------------------------

// y [rows, N] = x [rows, K] w^T + bias [N] (null: none), accumulated in f32, any kind of weight.
// One to a few rows read w once at memory speed, many rows go through blocks.
void linear(const PackedMatrix& w, const float* x, int64_t rows, float* y,
            const float* bias = nullptr);
// bf16 in and out, rounded once after the bias.
void linear_bf16(const PackedMatrix& w, const bf16* x, int64_t rows, bf16* y,
                 const bf16* bias = nullptr);
// bf16 in, f32 out (a head whose logits are wanted in f32).
void linear_bf16_f32(const PackedMatrix& w, const bf16* x, int64_t rows, float* y,
                     const float* bias = nullptr);
// y [rows, N / 2] = silu(x g^T) * (x u^T), where the rows of w are those of g, then those of u, as many of
// each and a multiple of 16. In f32, rounded once. Throws std::invalid_argument for other rows.
void linear_silu_mul(const PackedMatrix& w, const float* x, int64_t rows, float* y);
void linear_silu_mul(const PackedMatrix& w, const bf16* x, int64_t rows, bf16* y);
// The same with row strides for x and y (0: K and N).
void linear_strided(const PackedMatrix& w, const float* x, int64_t x_stride, int64_t rows, float* y,
                    int64_t y_stride, const float* bias);
void linear_strided_bf16(const PackedMatrix& w, const bf16* x, int64_t x_stride, int64_t rows,
                         bf16* y, int64_t y_stride, const bf16* bias);

// c [batch, m, n] = a [batch, m, k] b, unpacked, f32 sums; b is [batch, k, n], or [batch, n, k] when
// `b_transposed`. Batch strides in elements (0: the same matrix each time).
void matmul(const float* a, const float* b, float* c, int64_t batch, int64_t m, int64_t n,
            int64_t k, bool b_transposed, int64_t a_batch, int64_t b_batch);
void matmul(const bf16* a, const bf16* b, bf16* c, int64_t batch, int64_t m, int64_t n, int64_t k,
            bool b_transposed, int64_t a_batch, int64_t b_batch);

// --- attention ----------------------------------------------------------------------------------

// softmax(scale * q k^T) v over keys 0 ..= last(b, i), in f32, for T float or bf16; query head h uses
// key/value head h / (heads / kv_heads). Reads k and v only as far as the largest bound.
//   last(b, i) = (base ? base[b * base_batch + i * base_query] : 0) + (causal ? i : 0) + offset,
// cut to keys - 1. So: causal over as many keys as queries: base null, causal, offset 0; a decode
// step at `pos`: base &pos with strides 0; a prompt from `pos`: the same and causal; each sequence its
// own: base_batch 1; each query its own: base_query 1; no mask: base null, offset keys - 1.
// A query with last < 0 gets the plain mean of all `keys` values (what the library's body gives), zeros
// where there are no keys.
template <class T>
struct Attention {
    const T* q = nullptr;  // [batch, heads, queries, width]
    const T* k = nullptr;  // [batch, kv_heads, keys, width]
    const T* v = nullptr;  // [batch, kv_heads, keys, width]
    T* out = nullptr;      // [batch, heads, queries, width]
    int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 0, width = 0;
    float scale = 1.0f;
    // Strides of batch, head and row; `dense()` sets them for the shapes above.
    int64_t q_batch = 0, q_head = 0, q_row = 0;
    int64_t kv_batch = 0, kv_head = 0, kv_row = 0;
    int64_t out_batch = 0, out_head = 0, out_row = 0;
    const int32_t* base = nullptr;
    int64_t base_batch = 0, base_query = 0;
    bool causal = false;
    int64_t offset = 0;

    void dense() {
        q_row = out_row = kv_row = width;
        q_head = out_head = queries * width;
        q_batch = out_batch = heads * q_head;
        kv_head = keys * width;
        kv_batch = kv_heads * kv_head;
    }
};
void attention_prefix(const Attention<float>&);
void attention_prefix(const Attention<bf16>&);

// The same under any mask (mask[b * mask_batch + i * mask_query + key] != 0: seen); base, causal and
// offset are not looked at. A query that sees no key gets the mean of all values, zeros where there are
// none. sinks: null, or [heads], one logit that joins each softmax and is dropped (a query that sees no
// key then gets 0).
void attention_masked(const Attention<float>&, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks = nullptr);
void attention_masked(const Attention<bf16>&, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks = nullptr);

// Tokens over keys that lie in pages of a pool: token t belongs to row r = rows ? rows[t] : t and sees
// that row's positions 0 ..= positions[t] (cut to pages * page_size - 1; below 0: the value at place
// 0); position s lies at place table[r * pages + s / page_size] * page_size + s % page_size. Without
// pages or places all results are zeros.
// The caller has checked with `check_pages`.
template <class T>
struct PagedAttention {
    const T* q = nullptr;  // token t, head h at t * q_token + h * q_head
    const T* k = nullptr;  // [kv_heads, places, width]
    const T* v = nullptr;
    T* out = nullptr;  // like q, with out_token and out_head
    int64_t tokens = 0, heads = 1, kv_heads = 1, places = 0, width = 0;
    int64_t pages = 0, page_size = 1;
    const int32_t* table = nullptr;      // [table_rows, pages]
    const int32_t* rows = nullptr;       // [tokens] or null
    const int32_t* positions = nullptr;  // [tokens]
    float scale = 1.0f;
    int64_t q_token = 0, q_head = 0, out_token = 0, out_head = 0;
};
void paged_attention(const PagedAttention<float>&);
void paged_attention(const PagedAttention<bf16>&);
// -1, or the first token whose row, or a page it sees, is out of range.
int64_t check_pages(const int32_t* table, int64_t table_rows, int64_t pages, int64_t page_size,
                    int64_t places, const int32_t* rows, const int32_t* positions, int64_t tokens);

// --- row by row ---------------------------------------------------------------------------------

// x, y: [rows, n] of T. In f32; as the library's bodies: the unit is rounded to T, the product with the
// weight to T, the sum with the bias (may be null) to T.
void rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t n, float* y);
void rms_norm(const bf16* x, const bf16* weight, float eps, int64_t rows, int64_t n, bf16* y);
void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t rows,
                int64_t n, float* y);
void layer_norm(const bf16* x, const bf16* weight, const bf16* bias, float eps, int64_t rows,
                int64_t n, bf16* y);
void softmax(const float* x, int64_t rows, int64_t n, float* y);
void softmax(const bf16* x, int64_t rows, int64_t n, bf16* y);
// The first of the largest; a NaN counts as larger than all numbers. n >= 1.
void argmax(const float* x, int64_t rows, int64_t n, int32_t* y);
void argmax(const bf16* x, int64_t rows, int64_t n, int32_t* y);

// Half-split rotation of x [batch, heads, seq, width] (strides of batch, head and row), in T
// throughout: y = x * cos + quarter_turn(x) * sin. cos, sin at b * t_batch + s * t_row; t_batch 0 for
// tables shared by all sequences. y has strides of its own, or with y_row 0 those of x.
void rope(const float* x, const float* cos, const float* sin, float* y, int64_t batch, int64_t heads,
          int64_t seq, int64_t width, int64_t x_batch, int64_t x_head, int64_t x_row, int64_t t_batch,
          int64_t t_row, int64_t y_batch = 0, int64_t y_head = 0, int64_t y_row = 0);
void rope(const bf16* x, const bf16* cos, const bf16* sin, bf16* y, int64_t batch, int64_t heads,
          int64_t seq, int64_t width, int64_t x_batch, int64_t x_head, int64_t x_row, int64_t t_batch,
          int64_t t_row, int64_t y_batch = 0, int64_t y_head = 0, int64_t y_row = 0);

// --- element by element -------------------------------------------------------------------------

void silu(const float* x, int64_t n, float* y);
void silu(const bf16* x, int64_t n, bf16* y);
// silu(gate) rounded to T, times up, rounded to T.
void silu_mul(const float* gate, const float* up, int64_t n, float* y);
void silu_mul(const bf16* gate, const bf16* up, int64_t n, bf16* y);
void gelu_tanh(const float* x, int64_t n, float* y);
void gelu_tanh(const bf16* x, int64_t n, bf16* y);
void add(const float* a, const float* b, int64_t n, float* y);
void add(const bf16* a, const bf16* b, int64_t n, bf16* y);
// Within 2 units in the last place; results below 2^-126 may be 0.
void exp(const float* x, int64_t n, float* y);

// --- look-ups and sampling ----------------------------------------------------------------------

// y [count, width]: row ids[i] of table [vocab, width]. Returns -1, or the first i whose id is out of
// range; then nothing is written.
int64_t embedding(const float* table, int64_t vocab, int64_t width, const int32_t* ids,
                  int64_t count, float* y);
int64_t embedding(const bf16* table, int64_t vocab, int64_t width, const int32_t* ids,
                  int64_t count, bf16* y);
// From a packed matrix, so that a head that shares its table is held once.
int64_t embedding(const PackedMatrix& table, const int32_t* ids, int64_t count, float* y);
int64_t embedding(const PackedMatrix& table, const int32_t* ids, int64_t count, bf16* y);

// One token from logits [n], n >= 1: logits / temperature, the `top_k` largest (0: all), then the
// fewest whose probability reaches `top_p` (1: all), then those of at least `min_p` times the largest
// (0: all), and among these, most likely first, equal ones by place, where `uniform` in [0, 1) falls.
// temperature <= 0: argmax. Throws std::bad_alloc.
int32_t sample(const float* logits, int64_t n, float temperature, int32_t top_k, float top_p,
               float min_p, double uniform);

// --- experts ------------------------------------------------------------------------------------

// Rows by the matrices of the experts chosen for each: x [rows, k, cols], or [rows, cols] where
// `shared`, chosen [rows, k] of 0 .. experts - 1, each expert a matrix [outputs, cols].
template <class T>
struct Chosen {
    const T* x = nullptr;
    const int64_t* chosen = nullptr;
    int64_t rows = 0, k = 0;
    int64_t experts = 0, outputs = 0, cols = 0;
    bool shared = false;
};

// All experts' matrices [experts, outputs, cols] as one packed matrix, each from a row that is a
// multiple of 16 on. `all.rows` is experts * outputs. Throws as `pack_joined`.
PackedMatrix pack_experts(WeightKind kind, const PackSource& all, int64_t experts, int64_t cols,
                          int64_t group = 32);
// From `pack_experts`, expert after expert: y [experts * outputs, cols].
void unpack_experts(const PackedMatrix& w, int64_t experts, int64_t outputs, float* y);

// y [rows, k, outputs], and y [rows, outputs] = sum over k of weights [rows, k] times the product,
// accumulated in f32 and rounded once. Reads the chosen experts' weights alone, each once for all of
// its rows. Returns -1, or the first place of `chosen` that is out of range; then nothing is written.
int64_t linear_experts(const PackedMatrix& w, const Chosen<float>&, float* y);
int64_t linear_experts(const PackedMatrix& w, const Chosen<bf16>&, bf16* y);
int64_t combine_experts(const PackedMatrix& w, const Chosen<float>&, const float* weights, float* y);
int64_t combine_experts(const PackedMatrix& w, const Chosen<bf16>&, const bf16* weights, bf16* y);
// The same with w [experts, outputs, cols] as it is.
int64_t linear_experts(const float* w, const Chosen<float>&, float* y);
int64_t linear_experts(const bf16* w, const Chosen<bf16>&, bf16* y);
int64_t combine_experts(const float* w, const Chosen<float>&, const float* weights, float* y);
int64_t combine_experts(const bf16* w, const Chosen<bf16>&, const bf16* weights, bf16* y);

// y [rows, k]: the places of the k largest of each row of x [rows, n], largest first, the lower place
// first among equals; NaN counts as larger than all numbers. 0 <= k <= n.
void top_k(const float* x, int64_t rows, int64_t n, int64_t k, int64_t* y);
void top_k(const bf16* x, int64_t rows, int64_t n, int64_t k, int64_t* y);

// --- the gated delta rule -----------------------------------------------------------------------

// For each token, and each head h with query and key of head h / (heads / key_heads), all in f32:
//   memory = exp(decay) memory;  memory += k (x) beta (v - k . memory);  out = scale (q . memory)
// `after` may be `start` itself.
template <class T>
struct DeltaRule {
    const T* q = nullptr;          // [batch, tokens, key_heads, keys]
    const T* k = nullptr;          // like q
    const T* v = nullptr;          // [batch, tokens, heads, width]
    const float* decay = nullptr;  // [batch, tokens, heads]
    const float* beta = nullptr;   // like decay
    const float* start = nullptr;  // [batch, heads, keys, width]
    float* out = nullptr;          // [batch, tokens, heads, width]
    float* after = nullptr;        // like start
    int64_t batch = 1, tokens = 1, key_heads = 1, heads = 1, keys = 0, width = 0;
    float scale = 1.0f;
};
void delta_rule(const DeltaRule<float>&);
void delta_rule(const DeltaRule<bf16>&);
// Sequences end to end in one line of `tokens` (batch is the rows of `start` and `after`): a run of
// equal `segments` is one sequence. It continues the row that its first token names and leaves its memory
// in the one that its last token names, nothing where there is no such row; of runs that end in one row
// the last counts. A row in which no run ends stays as it is. Where `after` is `start` itself, no run
// ends in a row that another continues.
void delta_rule_packed(const DeltaRule<float>&, const int32_t* rows, const int32_t* segments);
void delta_rule_packed(const DeltaRule<bf16>&, const int32_t* rows, const int32_t* segments);

// --- measuring ----------------------------------------------------------------------------------

// Reads `bytes` from `data` once on all threads and returns a sum, to compare with.
uint64_t read_memory(const void* data, int64_t bytes);
// Anonymous memory on huge pages where the system gives them; free with free_huge. May return null.
void* alloc_huge(size_t bytes);
void free_huge(void* data, size_t bytes);

}  // namespace linnet
