// Which instruction sets this processor and kernel allow, and the table in use.
#include <atomic>
#include <cstdlib>

#include "table.h"

#if LINNET_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace linnet {
namespace {

constexpr int kIsas = 6;
const char* const kNames[kIsas] = {"portable",    "avx2",        "avx512",
                                   "avx512_vnni", "avx512_bf16", "amx"};

#if LINNET_X86

bool bit(uint32_t word, int n) { return (word >> n) & 1u; }

uint64_t enabled_state() {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
}

// The kernel hands out AMX state only to a process that asks.
bool tiles_allowed() {
#if defined(__linux__)
    constexpr long kRequestPermission = 0x1023;
    constexpr long kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

Isa detect() {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return Isa::portable;
    const bool xsave = bit(c, 27), fma = bit(c, 12), f16c = bit(c, 29);
    if (!xsave) return Isa::portable;
    const uint64_t state = enabled_state();
    uint32_t b7, c7, d7;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return Isa::portable;
    const uint32_t subleaves = a;
    if ((state & 0x6) != 0x6 || !fma || !f16c || !bit(b7, 5)) return Isa::portable;
    const bool wide = bit(b7, 16) && bit(b7, 17) && bit(b7, 30) && bit(b7, 31);
    if ((state & 0xe6) != 0xe6 || !wide) return Isa::avx2;
    if (!bit(c7, 11)) return Isa::avx512;
    uint32_t a71 = 0, unused1, unused2, unused3;
    if (subleaves >= 1) __get_cpuid_count(7, 1, &a71, &unused1, &unused2, &unused3);
    if (!bit(a71, 5)) return Isa::avx512_vnni;
    const bool tiles = bit(d7, 22) && bit(d7, 24);
    if (!tiles || (state & 0x60000) != 0x60000 || !tiles_allowed()) return Isa::avx512_bf16;
    return Isa::amx;
}

[[maybe_unused]] bool is_amd() {
    uint32_t a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx;
}

#else

Isa detect() { return Isa::portable; }

#endif

Table make(int level) {
    Table t{};
    fill_portable(t);
    (void)level;
    // A build for one processor leaves out what that never uses: each LINNET_WITHOUT_ is one file.
#if LINNET_X86
#if !defined(LINNET_WITHOUT_AVX2)
    if (level >= 1) fill_avx2(t);
#endif
#if !defined(LINNET_WITHOUT_AVX512)
    if (level >= 2) fill_avx512(t);
#endif
#if !defined(LINNET_WITHOUT_VNNI)
    if (level >= 3) fill_avx512_vnni(t);
#endif
#if !defined(LINNET_WITHOUT_BF16)
    if (level >= 4) fill_avx512_bf16(t, is_amd());
#endif
#if !defined(LINNET_WITHOUT_AMX)
    if (level >= 5) fill_amx(t);
#endif
#endif
    return t;
}

struct State {
    Isa best = detect();
    Table tables[kIsas];
    std::atomic<int> used{0};

    State() {
        for (int i = 0; i < kIsas; ++i) tables[i] = make(i);
        Isa wanted = best;
        const char* name = std::getenv("LINNET_ISA");
        if (name != nullptr && isa_from_name(name, &wanted) && wanted > best) wanted = best;
        used.store(static_cast<int>(wanted), std::memory_order_relaxed);
    }
};

State& state() {
    static State s;
    return s;
}

}  // namespace

Isa best_isa() { return state().best; }

Isa isa() { return static_cast<Isa>(state().used.load(std::memory_order_relaxed)); }

bool set_isa(Isa wanted) {
    State& s = state();
    if (wanted < Isa::portable || wanted > s.best) return false;
    s.used.store(static_cast<int>(wanted), std::memory_order_relaxed);
    return true;
}

const char* isa_name(Isa i) {
    const int at = static_cast<int>(i);
    return at >= 0 && at < kIsas ? kNames[at] : "unknown";
}

bool isa_from_name(const char* name, Isa* out) {
    for (int i = 0; i < kIsas; ++i) {
        if (std::strcmp(name, kNames[i]) == 0) {
            *out = static_cast<Isa>(i);
            return true;
        }
    }
    return false;
}

const Table& table() {
    State& s = state();
    return s.tables[s.used.load(std::memory_order_relaxed)];
}

}  // namespace linnet
