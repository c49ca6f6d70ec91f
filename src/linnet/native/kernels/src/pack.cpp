// Weights laid out once (see layout.h), quantised where asked.
#include <cmath>
#include <new>
#include <stdexcept>
#include <utility>

#include "memory.h"
#include "table.h"

namespace linnet {

struct PackedMatrixMaker {
    static PackedMatrix make(WeightKind kind, int64_t rows, int64_t cols, int64_t group) {
        constexpr int64_t kMost = int64_t{1} << 40;
        if (rows < 0 || cols < 0 || (cols > 0 && rows > kMost / cols)) {
            throw std::invalid_argument("a weight matrix of this size cannot be packed");
        }
        if (group != 32 && !(group == 64 && kind == WeightKind::q4)) {
            throw std::invalid_argument("weights are quantised in groups of 32 or, at 4 bits, 64 inputs");
        }
        PackedMatrix m;
        m.kind_ = kind;
        m.rows_ = rows;
        m.cols_ = cols;
        const bool plain = kind == WeightKind::f32 || kind == WeightKind::bf16;
        m.group_ = plain ? 0 : kind == WeightKind::int8 ? cols : group;
        m.bytes_ = panel_count(rows) * layout_of(kind, cols, m.group_).bytes;
        if (m.bytes_ > 0) m.data_ = weight_memory(m.bytes_, &m.hold_);
        return m;
    }
    static uint8_t* data(PackedMatrix& m) { return m.data_; }
};

namespace {

enum class Source { f32, bf16, q8_0, q4_0, q4_1 };

// Where row `r` of a matrix, or of several one below the other, lies.
struct Rows {
    struct Part {
        const char* data;
        int64_t first, rows, stride;  // stride in bytes
        Source source;
    };
    const Part* parts;
    int64_t count;

    const char* at(int64_t r, Source* source) const {
        int64_t p = 0;
        while (r >= parts[p].first + parts[p].rows) ++p;
        *source = parts[p].source;
        return parts[p].data + (r - parts[p].first) * parts[p].stride;
    }
};

f16 half_at(const char* p) {
    f16 h;
    std::memcpy(&h, p, 2);
    return h;
}

// A GGUF row as floats.
void read_blocks(Source source, const char* row, int64_t cols, float* y) {
    const bool offsets = source == Source::q4_1;
    const int64_t head = offsets ? 4 : 2, bytes = head + (source == Source::q8_0 ? 32 : 16);
    for (int64_t k = 0; k < cols; k += 32, row += bytes, y += 32) {
        const float scale = to_float(half_at(row));
        if (source == Source::q8_0) {
            const auto* q = reinterpret_cast<const int8_t*>(row + head);
            for (int64_t i = 0; i < 32; ++i) y[i] = scale * static_cast<float>(q[i]);
            continue;
        }
        const float offset = offsets ? to_float(half_at(row + 2)) : -8.0f * scale;
        const auto* q = reinterpret_cast<const uint8_t*>(row + head);
        for (int64_t i = 0; i < 16; ++i) {
            y[i] = scale * static_cast<float>(q[i] & 15) + offset;
            y[16 + i] = scale * static_cast<float>(q[i] >> 4) + offset;
        }
    }
}

// 16 rows as floats [16, inputs], padding zero.
void read_floats(const Rows& rows, int64_t first, int64_t total, int64_t cols, int64_t inputs,
                 float* y) {
    const Table& t = table();
    for (int64_t i = 0; i < kPanel; ++i, y += inputs) {
        if (first + i >= total) {
            std::memset(y, 0, static_cast<size_t>(inputs) * 4);
            continue;
        }
        Source source;
        const char* row = rows.at(first + i, &source);
        if (source == Source::bf16) {
            t.widen(reinterpret_cast<const bf16*>(row), cols, y);
        } else if (source != Source::f32) {
            read_blocks(source, row, cols, y);
        } else {
            std::memcpy(y, row, static_cast<size_t>(cols) * 4);
        }
        for (int64_t k = cols; k < inputs; ++k) y[k] = 0.0f;
    }
}

void write_f32(const float* x, int64_t inputs, uint8_t* panel) {
    auto* y = reinterpret_cast<float*>(panel);
    for (int64_t k = 0; k < inputs; ++k) {
        for (int64_t i = 0; i < kPanel; ++i) y[k * kPanel + i] = x[i * inputs + k];
    }
}

void write_bf16(const float* x, int64_t inputs, uint8_t* panel) {
    auto* y = reinterpret_cast<bf16*>(panel);
    for (int64_t k = 0; k < inputs; k += 2) {
        for (int64_t i = 0; i < kPanel; ++i) {
            y[k * kPanel + 2 * i] = to_bf16(x[i * inputs + k]);
            y[k * kPanel + 2 * i + 1] = to_bf16(x[i * inputs + k + 1]);
        }
    }
}

float nearest(float x) {
    // Rounds |x| < 2^22 to an integer, ties to even.
    const float t = x + 12582912.0f;
    return t - 12582912.0f;
}

float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

float peak_of(const float* x, int64_t n) {
    float peak = 0.0f;
    for (int64_t k = 0; k < n; ++k) {
        const float a = std::fabs(x[k]);
        peak = a > peak ? a : peak;
    }
    return peak;
}

// A weight that is no number has no integer: its whole group is carried as NaN by the scale.
bool all_finite(const float* x, int64_t n) {
    float s = 0.0f;
    for (int64_t k = 0; k < n; ++k) s += x[k] * 0.0f;
    return s == 0.0f;
}

const float kNan = std::nanf("");

void put_byte(uint8_t* data, int64_t i, int64_t k, int q) {
    data[k / 4 * kLine + i * 4 + k % 4] = static_cast<uint8_t>(q + 128);
}

// Two inputs of a cell's byte: k % 8 < 4.
void put_nibbles(uint8_t* data, int64_t i, int64_t k, int low, int high) {
    data[k / 8 * kLine + i * 4 + k % 4] = static_cast<uint8_t>(low | (high << 4));
}

void write_bytes(const float* x, int64_t n, float scale, int64_t i, int64_t first, uint8_t* data) {
    const float by = scale > 0.0f ? 1.0f / scale : 0.0f;
    const bool usable = by <= 3e38f;  // false for NaN and infinity
    for (int64_t k = 0; k < n; ++k) {
        const float q = usable ? clamp(nearest(clamp(x[k] * by, -128.0f, 128.0f)), -127.0f, 127.0f) : 0.0f;
        put_byte(data, i, first + k, static_cast<int>(q));
    }
}

void write_int8(const float* x, int64_t inputs, const Layout& l, uint8_t* panel) {
    auto* scales = reinterpret_cast<float*>(panel);
    for (int64_t i = 0; i < kPanel; ++i) {
        const float* row = x + i * inputs;
        const bool finite = all_finite(row, inputs);
        const float s = peak_of(row, inputs) / 127.0f;
        scales[i] = finite ? s : kNan;
        write_bytes(row, inputs, finite ? s : 0.0f, i, 0, panel + l.data);
    }
}

void write_q8(const float* x, int64_t inputs, const Layout& l, uint8_t* panel) {
    auto* scales = reinterpret_cast<f16*>(panel);
    for (int64_t i = 0; i < kPanel; ++i) {
        for (int64_t g = 0; g < l.groups; ++g) {
            const float* group = x + i * inputs + g * 32;
            const bool finite = all_finite(group, 32);
            const f16 s = to_f16(finite ? peak_of(group, 32) / 127.0f : kNan);
            scales[g * kPanel + i] = s;
            write_bytes(group, 32, finite ? to_float(s) : 0.0f, i, g * 32, panel + l.data);
        }
    }
}

// Integers 0..15 (less 8) of x under scale s, and their squared error.
float try_scale(const float* x, int64_t n, float s, float* q) {
    const float by = s != 0.0f ? 1.0f / s : 0.0f;
    float error = 0.0f;
    for (int64_t k = 0; k < n; ++k) {
        const float v = clamp(nearest(clamp(x[k] * by, -9.0f, 8.0f)), -8.0f, 7.0f);
        const float e = v * s - x[k];
        error += e * e;
        q[k] = v;
    }
    return error;
}

// The largest value goes to -8 or a little inside, whichever of a few gives the least error; then
// the scale that suits those integers best is tried.
float best_scale(const float* x, int64_t n, float* q) {
    float top = 0.0f;
    for (int64_t k = 0; k < n; ++k) top = std::fabs(x[k]) > std::fabs(top) ? x[k] : top;
    constexpr float kSteps[] = {-8.0f, -7.6f, -7.2f, -6.8f, 7.4f};
    float tried[64];
    float best = to_float(to_f16(top / kSteps[0]));
    float error = try_scale(x, n, best, q);
    const auto attempt = [&](float s) {
        const float rounded = to_float(to_f16(s));
        const float e = try_scale(x, n, rounded, tried);
        if (!(e < error)) return;
        error = e;
        best = rounded;
        std::memcpy(q, tried, static_cast<size_t>(n) * 4);
    };
    for (int i = 1; i < 5; ++i) attempt(top / kSteps[i]);
    float xq = 0.0f, qq = 0.0f;
    for (int64_t k = 0; k < n; ++k) {
        xq += x[k] * q[k];
        qq += q[k] * q[k];
    }
    if (qq > 0.0f) attempt(xq / qq);
    return best;
}

void write_q4(const float* x, int64_t inputs, int64_t group, const Layout& l, uint8_t* panel) {
    auto* scales = reinterpret_cast<f16*>(panel);
    float q[64];
    for (int64_t i = 0; i < kPanel; ++i) {
        for (int64_t g = 0; g < l.groups; ++g) {
            const float* part = x + i * inputs + g * group;
            const bool finite = all_finite(part, group);
            float s = kNan;
            if (finite) {
                s = best_scale(part, group, q);
            } else {
                for (float& v : q) v = 0.0f;
            }
            scales[g * kPanel + i] = to_f16(s);
            for (int64_t k = 0; k < group; k += 8) {
                for (int64_t j = k; j < k + 4; ++j) {
                    put_nibbles(panel + l.data, i, g * group + j, static_cast<int>(q[j]) + 8,
                                static_cast<int>(q[j + 4]) + 8);
                }
            }
        }
    }
}

// One GGUF block into place. A padded row is written from a null block.
void write_block(Source source, const char* block, int64_t i, int64_t g, const Layout& l,
                 uint8_t* panel) {
    const int64_t at = (g * kPanel + i) * 2;
    const f16 none{0};
    const f16 scale = block == nullptr ? none : half_at(block);
    std::memcpy(panel + at, &scale, 2);
    uint8_t* data = panel + l.data;
    if (source == Source::q8_0) {
        for (int64_t k = 0; k < 32; ++k) {
            int8_t q = 0;
            if (block != nullptr) std::memcpy(&q, block + 2 + k, 1);
            put_byte(data, i, g * 32 + k, q);
        }
        return;
    }
    const bool offsets = source == Source::q4_1;
    if (offsets) {
        const f16 offset = block == nullptr ? none : half_at(block + 2);
        std::memcpy(panel + l.offsets + at, &offset, 2);
    }
    const char* bytes = block == nullptr ? nullptr : block + (offsets ? 4 : 2);
    const auto nibble = [&](int64_t k) {
        if (bytes == nullptr) return 0;
        const auto b = static_cast<uint8_t>(bytes[k % 16]);
        return k < 16 ? b & 15 : b >> 4;
    };
    for (int64_t k = 0; k < 32; k += 8) {
        for (int64_t j = k; j < k + 4; ++j) put_nibbles(data, i, g * 32 + j, nibble(j), nibble(j + 4));
    }
}

int64_t block_bytes(Source source) {
    return source == Source::q8_0 ? 34 : source == Source::q4_0 ? 18 : 20;
}

WeightKind kind_of(Source blocks) {
    return blocks == Source::q8_0 ? WeightKind::q8 : blocks == Source::q4_0 ? WeightKind::q4 : WeightKind::q4_1;
}

bool is_blocks(Source s) { return s == Source::q8_0 || s == Source::q4_0 || s == Source::q4_1; }

void write_blocks(const Rows& rows, int64_t first, int64_t total, const Layout& l, Source kind,
                  uint8_t* panel) {
    for (int64_t i = 0; i < kPanel; ++i) {
        Source source = kind;
        const char* row = first + i < total ? rows.at(first + i, &source) : nullptr;
        for (int64_t g = 0; g < l.groups; ++g) {
            const char* block = row == nullptr ? nullptr : row + g * block_bytes(kind);
            write_block(kind, block, i, g, l, panel);
        }
    }
}

PackedMatrix pack(WeightKind kind, const Rows& rows, int64_t total, int64_t cols, int64_t group) {
    PackedMatrix m = PackedMatrixMaker::make(kind, total, cols, group);
    if (m.empty()) return m;
    const Layout l = layout_of(kind, cols, m.group());
    uint8_t* data = PackedMatrixMaker::data(m);
    const Source first_source = rows.parts[0].source;
    bool whole = is_blocks(first_source) && kind == kind_of(first_source);
    for (int64_t p = 0; p < rows.count; ++p) whole = whole && rows.parts[p].source == first_source;
    if (whole) {
        pool().ranges(panel_count(total), 4, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p) {
                write_blocks(rows, p * kPanel, total, l, first_source, data + p * l.bytes);
            }
        });
        return m;
    }
    // Each part of the work has its own rows of `floats`; all of it is taken before the work starts.
    const int64_t parts = pool().threads() * int64_t{4};
    Scratch scratch;
    float* floats = scratch.take<float>(parts * kPanel * l.inputs);
    const int64_t panels = panel_count(total);
    pool().run(parts, [&](int64_t part) {
        float* x = floats + part * kPanel * l.inputs;
        for (int64_t p = panels * part / parts; p < panels * (part + 1) / parts; ++p) {
            read_floats(rows, p * kPanel, total, cols, l.inputs, x);
            uint8_t* panel = data + p * l.bytes;
            switch (kind) {
                case WeightKind::f32: write_f32(x, l.inputs, panel); break;
                case WeightKind::bf16: write_bf16(x, l.inputs, panel); break;
                case WeightKind::int8: write_int8(x, l.inputs, l, panel); break;
                case WeightKind::q8: write_q8(x, l.inputs, l, panel); break;
                case WeightKind::q4: write_q4(x, l.inputs, group, l, panel); break;
                case WeightKind::q4_1: break;  // only from blocks
            }
        }
    });
    return m;
}

template <class T>
constexpr Source kSource = Source::f32;
template <>
constexpr Source kSource<bf16> = Source::bf16;

template <class T>
PackedMatrix pack_one(WeightKind kind, const T* w, int64_t rows, int64_t cols, int64_t group,
                      int64_t stride) {
    const int64_t step = stride == 0 ? cols : stride;
    const Rows::Part part{reinterpret_cast<const char*>(w), 0, rows,
                          step * static_cast<int64_t>(sizeof(T)), kSource<T>};
    return pack(kind, {&part, 1}, rows, cols, group);
}

PackedMatrix pack_gguf(WeightKind kind, Source source, const void* blocks, int64_t rows,
                       int64_t cols) {
    if (cols % 32 != 0) throw std::invalid_argument("GGUF blocks hold 32 inputs each");
    const Rows::Part part{static_cast<const char*>(blocks), 0, rows, cols / 32 * block_bytes(source),
                          source};
    return pack(kind, {&part, 1}, rows, cols, 32);
}

}  // namespace

PackedMatrix pack_f32(const float* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::f32, w, rows, cols, 32, stride);
}
PackedMatrix pack_f32(const bf16* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::f32, w, rows, cols, 32, stride);
}
PackedMatrix pack_bf16(const bf16* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::bf16, w, rows, cols, 32, stride);
}
PackedMatrix pack_bf16(const float* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::bf16, w, rows, cols, 32, stride);
}
PackedMatrix pack_int8(const float* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::int8, w, rows, cols, 32, stride);
}
PackedMatrix pack_int8(const bf16* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::int8, w, rows, cols, 32, stride);
}
PackedMatrix pack_q8(const float* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::q8, w, rows, cols, 32, stride);
}
PackedMatrix pack_q8(const bf16* w, int64_t rows, int64_t cols, int64_t stride) {
    return pack_one(WeightKind::q8, w, rows, cols, 32, stride);
}
PackedMatrix pack_q4(const float* w, int64_t rows, int64_t cols, int64_t group, int64_t stride) {
    return pack_one(WeightKind::q4, w, rows, cols, group, stride);
}
PackedMatrix pack_q4(const bf16* w, int64_t rows, int64_t cols, int64_t group, int64_t stride) {
    return pack_one(WeightKind::q4, w, rows, cols, group, stride);
}
PackedMatrix pack_from_q8_0(const void* blocks, int64_t rows, int64_t cols) {
    return pack_gguf(WeightKind::q8, Source::q8_0, blocks, rows, cols);
}
PackedMatrix pack_from_q4_0(const void* blocks, int64_t rows, int64_t cols) {
    return pack_gguf(WeightKind::q4, Source::q4_0, blocks, rows, cols);
}
PackedMatrix pack_from_q4_1(const void* blocks, int64_t rows, int64_t cols) {
    return pack_gguf(WeightKind::q4_1, Source::q4_1, blocks, rows, cols);
}

PackedMatrix pack_joined(WeightKind kind, const PackSource* parts, int64_t count, int64_t cols,
                         int64_t group) {
    if (count < 1) throw std::invalid_argument("a joined matrix has at least one part");
    const auto laid = std::make_unique<Rows::Part[]>(static_cast<size_t>(count));
    int64_t total = 0;
    for (int64_t i = 0; i < count; ++i) {
        const PackSource& s = parts[i];
        if (s.rows < 0 || s.rows > (int64_t{1} << 40)) throw std::invalid_argument("a part has no such size");
        Source source = s.is_bf16 ? Source::bf16 : Source::f32;
        int64_t step = cols * (s.is_bf16 ? 2 : 4);
        if (s.blocks != 0) {
            source = s.blocks == 1 ? Source::q8_0 : s.blocks == 2 ? Source::q4_0 : Source::q4_1;
            if (cols % 32 != 0) throw std::invalid_argument("GGUF blocks hold 32 inputs each");
            step = cols / 32 * block_bytes(source);
        }
        if (kind == WeightKind::q4_1 && source != Source::q4_1) {
            throw std::invalid_argument("weights of 4 bits with an offset are made from such blocks alone");
        }
        laid[static_cast<size_t>(i)] = {static_cast<const char*>(s.data), total, s.rows, step, source};
        total += s.rows;
    }
    return pack(kind, {laid.get(), count}, total, cols, group);
}

PackedMatrix PackedMatrix::part(int64_t begin, int64_t end) const {
    PackedMatrix m;
    m.kind_ = kind_;
    m.activations_ = activations_;
    m.rows_ = end - begin;
    m.cols_ = cols_;
    m.group_ = group_;
    const int64_t panel = layout_of(kind_, cols_, group_).bytes;
    m.bytes_ = panel_count(m.rows_) * panel;
    m.data_ = data_ == nullptr ? nullptr : data_ + begin / kPanel * panel;
    m.hold_ = hold_;
    return m;
}

void unpack_rows(const PackedMatrix& w, int64_t begin, int64_t end, float* y) {
    if (begin >= end || w.cols() == 0) return;
    const Panels v = panels_of(w);
    Scratch scratch;
    float* lines = scratch.take<float>(v.layout.inputs * kPanel);
    int64_t held = -1;
    for (int64_t r = begin; r < end; ++r, y += w.cols()) {
        if (r / kPanel != held) {
            held = r / kPanel;
            table().expand_f32(v, held, lines);
        }
        for (int64_t k = 0; k < w.cols(); ++k) y[k] = lines[k * kPanel + r % kPanel];
    }
}

}  // namespace linnet
