// Weights laid out once (see layout.h), quantised where asked.
#include <stdexcept>

#include "memory.h"
#include "panels.h"
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
            write_panel(kind, x, group, l, data + p * l.bytes);
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
