// A pool of threads for short parallel loops.
//
// One job at a time. Its state is one word: epoch, an open bit, and how many workers are inside.
// A worker enters a job by raising the count while the bit is set; the caller closes the job when no
// task is left and waits for those inside. A worker that wakes too late finds the job closed, so a
// thread that the system holds back delays nobody unless it is in the middle of a task. In a forked
// child, where no worker exists, the caller simply does everything.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "table.h"

namespace linnet {
namespace {

void pause_cpu() {
#if LINNET_X86
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// About 50 us of waiting for the next job before a worker sleeps (a pause takes 15 to 60 ns).
constexpr int kSpins = 1500;

thread_local bool inside_task = false;

struct alignas(64) Part {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
};

// What a waiting thread asks for at most: a part of what a core's own cache holds.
constexpr int64_t kSoonBytes = 512 << 10;

// A thread's share of the memory that is read soon, asked for a few lines at a time.
class Ahead {
public:
    void follow(uintptr_t at, int64_t bytes, size_t own, size_t threads) {
        if (at == whole_) return;
        whole_ = at;
        const int64_t share = bytes / static_cast<int64_t>(threads);
        next_ = at + static_cast<uintptr_t>(share) * own;
        end_ = next_ + static_cast<uintptr_t>(share < kSoonBytes ? share : kSoonBytes);
    }

    // False when there is nothing left to ask for.
    bool ask() {
        if (next_ >= end_) return false;
        for (int i = 0; i < 4; ++i, next_ += 64) __builtin_prefetch(reinterpret_cast<const void*>(next_), 0, 2);
        return true;
    }

private:
    uintptr_t whole_ = 0, next_ = 0, end_ = 0;
};

constexpr uint64_t kOpen = uint64_t{1} << 16;
constexpr uint64_t kEpoch = uint64_t{1} << 17;
constexpr uint64_t kInside = kOpen - 1;

}  // namespace

struct Pool::Impl {
    explicit Impl(int threads) : parts(static_cast<size_t>(threads)) { start(); }
    ~Impl() { stop(); }

    // A worker for each part but the first. Where the system gives no more threads, three quarters of
    // those that it gave and no more parts than that: the rest of the process needs room, too.
    void start() noexcept {
        while (!start_all()) {
            const size_t fewer = workers.size() - (workers.size() + 3) / 4 + 1;
            stop();
            while (parts.size() > fewer) parts.pop_back();
        }
        count.store(static_cast<int>(parts.size()), std::memory_order_relaxed);
    }

    bool start_all() {
        try {
            workers.reserve(parts.size() - 1);
            for (size_t i = 1; i < parts.size(); ++i) {
                workers.emplace_back([this, i] { work(i); });
            }
        } catch (const std::exception&) {  // std::system_error, std::bad_alloc
            return false;
        }
        return true;
    }

    void stop() {
        {
            const std::lock_guard<std::mutex> guard(sleep_lock);
            stopping.store(true);
        }
        wake.notify_all();
        for (std::thread& t : workers) t.join();
        workers.clear();
        stopping.store(false);
    }

    void resize(int threads) {
        const std::lock_guard<std::mutex> guard(run_lock);
        if (static_cast<size_t>(threads) == parts.size()) return;
        std::vector<Part> fresh(static_cast<size_t>(threads));
        stop();
        parts.swap(fresh);
        start();
    }

    // Tasks of part `own`, then of the others, until none is left. What a task throws is kept for the
    // caller, and no further task begins.
    void drain(size_t own) {
        try {
            work_off(own);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(error_lock);
            if (error == nullptr) error = std::current_exception();
            for (Part& part : parts) part.next.store(part.end, std::memory_order_relaxed);
        }
    }

    void work_off(size_t own) {
        const size_t n = parts.size();
        for (size_t step = 0; step < n; ++step) {
            Part& part = parts[own + step < n ? own + step : own + step - n];
            while (part.next.load(std::memory_order_relaxed) < part.end) {
                const int64_t i = part.next.fetch_add(1, std::memory_order_relaxed);
                if (i >= part.end) break;
                call(body, i);
            }
        }
    }

    void run(int64_t n, void (*f)(void*, int64_t), void* data) {
        const std::lock_guard<std::mutex> guard(run_lock);
        const auto threads = static_cast<int64_t>(parts.size());
        for (int64_t t = 0; t < threads; ++t) {
            Part& part = parts[static_cast<size_t>(t)];
            part.next.store(n / threads * t + n % threads * t / threads, std::memory_order_relaxed);
            part.end = n / threads * (t + 1) + n % threads * (t + 1) / threads;
        }
        call = f;
        body = data;
        const uint64_t epoch = state.load(std::memory_order_relaxed) & ~(kEpoch - 1);
        state.store((epoch + kEpoch) | kOpen, std::memory_order_seq_cst);
        if (sleepers.load(std::memory_order_seq_cst) > 0) {
            { const std::lock_guard<std::mutex> sleeping(sleep_lock); }
            wake.notify_all();
        }
        inside_task = true;
        drain(0);
        inside_task = false;
        state.fetch_and(~kOpen, std::memory_order_acq_rel);
        follow(own_ahead, 0);
        for (int spins = 0; (state.load(std::memory_order_acquire) & kInside) != 0; ++spins) {
            if (spins < kSpins) {
                if (!own_ahead.ask()) pause_cpu();
            } else {
                std::this_thread::yield();
            }
        }
        if (error != nullptr) std::rethrow_exception(std::exchange(error, nullptr));
    }

    void follow(Ahead& ahead, size_t own) const {
        ahead.follow(soon_at.load(std::memory_order_relaxed), soon_bytes.load(std::memory_order_relaxed), own,
                     parts.size());
    }

    bool enter(uint64_t seen) {
        while ((seen & kOpen) != 0) {
            if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
        }
        return false;
    }

    void work(size_t own) {
        inside_task = true;
        uint64_t done = 0;  // the epoch this worker has last been in
        Ahead ahead;
        while (!stopping.load(std::memory_order_relaxed)) {
            follow(ahead, own);
            const uint64_t seen = await(done, ahead);
            if (stopping.load(std::memory_order_relaxed)) return;
            done = seen & ~(kEpoch - 1);
            // The job may have become another one meanwhile: it is entered all the same.
            if (!enter(state.load(std::memory_order_acquire))) continue;
            done = state.load(std::memory_order_relaxed) & ~(kEpoch - 1);
            drain(own);
            state.fetch_sub(1, std::memory_order_acq_rel);
        }
    }

    // The state once it shows another epoch than `done`; or anything when stopping.
    uint64_t await(uint64_t done, Ahead& ahead) {
        uint64_t seen = 0;
        const auto fresh = [&] {
            seen = state.load(std::memory_order_seq_cst);
            return (seen & ~(kEpoch - 1)) != done && (seen & kOpen) != 0;
        };
        for (int i = 0; i < kSpins; ++i) {
            if (fresh() || stopping.load(std::memory_order_relaxed)) return seen;
            if (!ahead.ask()) pause_cpu();
        }
        std::unique_lock<std::mutex> lock(sleep_lock);
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        while (!fresh() && !stopping.load(std::memory_order_relaxed)) wake.wait(lock);
        sleepers.fetch_sub(1, std::memory_order_relaxed);
        return seen;
    }

    std::vector<Part> parts;
    std::vector<std::thread> workers;
    std::mutex run_lock, sleep_lock, error_lock;
    std::exception_ptr error;
    std::condition_variable wake;
    alignas(64) std::atomic<uint64_t> state{0};
    alignas(64) std::atomic<int> sleepers{0};
    std::atomic<uintptr_t> soon_at{0};  // see Pool::soon
    std::atomic<int64_t> soon_bytes{0};
    Ahead own_ahead;  // the caller's
    std::atomic<int> count{1};  // parts.size(), for those who hold no lock
    std::atomic<bool> stopping{false};
    void (*call)(void*, int64_t) = nullptr;
    void* body = nullptr;
};

int Pool::threads() const { return impl_->count.load(std::memory_order_relaxed); }

void Pool::run_tasks(int64_t n, void (*call)(void*, int64_t), void* body) {
    if (n <= 0) return;
    if (n == 1 || inside_task || threads() == 1) {
        for (int64_t i = 0; i < n; ++i) call(body, i);
        return;
    }
    impl_->run(n, call, body);
}

void Pool::soon(const void* at, int64_t bytes) {
    if (inside_task) return;
    impl_->soon_at.store(reinterpret_cast<uintptr_t>(at), std::memory_order_relaxed);
    impl_->soon_bytes.store(bytes, std::memory_order_relaxed);
}

namespace {

constexpr int kMostThreads = 1024;

int limited(int threads) {
    if (threads < 1) return 1;
    return threads > kMostThreads ? kMostThreads : threads;
}

int number_in(const char* path) {
    std::FILE* f = std::fopen(path, "r");
    if (f == nullptr) return -1;
    int value = -1;
    if (std::fscanf(f, "%d", &value) != 1) value = -1;
    std::fclose(f);
    return value;
}

// Cores, not hardware threads, among the processors this process may use.
int physical_cores() {
#if defined(__linux__)
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
    std::set<std::pair<int, int>> cores;
    int unknown = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        const int core = number_in((base + "core_id").c_str());
        const int package = number_in((base + "physical_package_id").c_str());
        if (core < 0) {
            ++unknown;
        } else {
            cores.insert({package, core});
        }
    }
    return static_cast<int>(cores.size()) + unknown;
#else
    return static_cast<int>(std::thread::hardware_concurrency());
#endif
}

std::mutex making;
std::atomic<Pool*> the_pool{nullptr};

// A forked child has no workers: it makes a pool of its own (the old one is left alone).
void forget_pool() { the_pool.store(nullptr, std::memory_order_relaxed); }

}  // namespace

int default_threads() {
    const char* wanted = std::getenv("LINNET_THREADS");
    if (wanted != nullptr && *wanted != '\0') {
        const long n = std::strtol(wanted, nullptr, 10);
        if (n > 0) return limited(n > kMostThreads ? kMostThreads : static_cast<int>(n));
    }
    return limited(physical_cores());
}

Pool& pool() {
    Pool* p = the_pool.load(std::memory_order_acquire);
    if (p != nullptr) return *p;
    const std::lock_guard<std::mutex> guard(making);
    p = the_pool.load(std::memory_order_acquire);
    if (p == nullptr) {
        static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
        (void)registered;
        // Never deleted: workers sleep until the process ends.
        p = new Pool(new Pool::Impl(default_threads()));
        the_pool.store(p, std::memory_order_release);
    }
    return *p;
}

void set_threads(int threads) {
    const int n = threads <= 0 ? default_threads() : limited(threads);
    pool().resize(n);
}

void Pool::resize(int threads) { impl_->resize(threads); }

}  // namespace linnet
