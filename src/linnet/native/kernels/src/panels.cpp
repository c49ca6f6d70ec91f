#include "panels.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "table.h"

namespace linnet {
namespace {

f16 half_at(const char* p) {
    f16 h;
    std::memcpy(&h, p, 2);
    return h;
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

// A scale of finite weights; throws where f16 has none so large.
f16 scale_of(float scale, const float* x, int64_t n) {
    const f16 s = to_f16(scale);
    if (std::isfinite(to_float(s))) return s;
    char text[160];
    std::snprintf(text, sizeof text,
                  "a group of weights reaches %g, more than a scale in f16 holds; f32, bf16 and int8 hold it",
                  static_cast<double>(peak_of(x, n)));
    throw std::invalid_argument(text);
}

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
            const f16 s = finite ? scale_of(peak_of(group, 32) / 127.0f, group, 32) : to_f16(kNan);
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
            f16 s = to_f16(kNan);
            if (finite) {
                s = scale_of(best_scale(part, group, q), part, group);
            } else {
                for (float& v : q) v = 0.0f;
            }
            scales[g * kPanel + i] = s;
            for (int64_t k = 0; k < group; k += 8) {
                for (int64_t j = k; j < k + 4; ++j) {
                    put_nibbles(panel + l.data, i, g * group + j, static_cast<int>(q[j]) + 8,
                                static_cast<int>(q[j + 4]) + 8);
                }
            }
        }
    }
}

}  // namespace

int64_t block_bytes(Source source) {
    return source == Source::q8_0 ? 34 : source == Source::q4_0 ? 18 : 20;
}

WeightKind kind_of(Source blocks) {
    return blocks == Source::q8_0 ? WeightKind::q8 : blocks == Source::q4_0 ? WeightKind::q4 : WeightKind::q4_1;
}

bool is_blocks(Source s) { return s == Source::q8_0 || s == Source::q4_0 || s == Source::q4_1; }

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

void write_panel(WeightKind kind, const float* x, int64_t group, const Layout& l, uint8_t* panel) {
    switch (kind) {
        case WeightKind::f32: return write_f32(x, l.inputs, panel);
        case WeightKind::bf16: return write_bf16(x, l.inputs, panel);
        case WeightKind::int8: return write_int8(x, l.inputs, l, panel);
        case WeightKind::q8: return write_q8(x, l.inputs, l, panel);
        case WeightKind::q4: return write_q4(x, l.inputs, group, l, panel);
        case WeightKind::q4_1: return;
    }
}

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

}  // namespace linnet
