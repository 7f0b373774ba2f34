// Runs CUDA C++ kernels on the CPU, for tests only. A CUDA thread is a fiber, or with -DEMULATOR_THREADS a thread of the
// system, for ThreadSanitizer. The blocks of a grid run one after another; the threads of a block run from barrier to
// barrier, in forward, reverse or random order. Shared memory begins as NaN. An asynchronous copy lands as late as it
// may (when it is waited for), or in reverse order as early as it may (at once).
//
// Noticed: a barrier that some threads miss or reach on another line, a shuffle without the whole warp, shared memory or
// arguments of the wrong size, copies that are not aligned. Not emulated: tensor cores, clusters, barriers of the grid.
#pragma once
#include <math.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {  // of a grid; a block has one dimension here
    unsigned x = 1, y = 1;
};

namespace emulator {
enum Order { FORWARD, REVERSE, RANDOM };

struct Barrier {
    int arrived = 0, line = 0;
    uint64_t generation = 0;
#ifdef EMULATOR_THREADS  // a lock for each: a shared one would hide races from ThreadSanitizer
    std::unique_ptr<std::mutex> mutex{new std::mutex};
    std::unique_ptr<std::condition_variable> changed{new std::condition_variable};
#endif
};

struct Copy {
    void* to;
    const void* from;
};

struct Thread {
    dim3 index;
    int number = 0;
    unsigned exchanges = 0;
    bool done = false;
    std::vector<Copy> copies;
};

struct Warp {
    Barrier barrier;
    uint64_t slot[2][32];
};

struct Block {
    dim3 index, size, grid;
    char* shared = nullptr;
    int n = 0, exited = 0;
    Order order = FORWARD;
    Barrier barrier;
    std::vector<Warp> warps;
    std::vector<Thread> threads;
    std::string error;
};

inline Block* block;  // that runs now

#ifdef EMULATOR_THREADS
inline thread_local Thread* thread;
#else
inline Thread* thread;
#if defined(__x86_64__)
// Save the registers that a call keeps, swap the stacks. No system call, where swapcontext makes two.
extern "C" __attribute__((naked, noinline, weak)) void emulator_switch(void** from, void* to) {
    asm("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
        "movq %rsp, (%rdi); movq %rsi, %rsp;"
        "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
typedef void* Context;
inline void swap_to(Context* from, Context* to) { emulator_switch(from, *to); }
inline void prepare(Context* context, char* stack, size_t size, void (*body)()) {
    void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + size) & ~uintptr_t(63)) - 1;
    *--top = reinterpret_cast<void*>(body);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    *context = top;
}
#else
}  // namespace emulator
#include <ucontext.h>
namespace emulator {
typedef ucontext_t Context;
inline void swap_to(Context* from, Context* to) { swapcontext(from, to); }
inline void prepare(Context* context, char* stack, size_t size, void (*body)()) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = size;
    context->uc_link = nullptr;
    makecontext(context, body, 0);
}
#endif
inline Context scheduler;
inline std::vector<Context> contexts;
inline std::vector<int> order;  // in which the threads take their turns
inline int turn;
// The thread whose turn is next, or behind the last the scheduler: threads switch to each other without it.
inline Context* next() {
    while (++turn < block->n)
        if (!block->threads[order[turn]].done) {
            thread = &block->threads[order[turn]];
            return &contexts[thread->number];
        }
    return &scheduler;
}
inline void yield() {
    Context* mine = &contexts[thread->number];
    swap_to(mine, next());
}
#endif

inline void fail(const std::string& what) {
    if (block->error.empty()) block->error = what;
}

// Wait until `needed` threads have come to the barrier.
inline void arrive(Barrier& barrier, int needed, int line) {
#ifdef EMULATOR_THREADS
    std::unique_lock<std::mutex> lock(*barrier.mutex);
#endif
    if (barrier.arrived == 0) barrier.line = line;
    if (barrier.line != line) fail("barrier reached on lines " + std::to_string(barrier.line) + " and " + std::to_string(line));
    if (block->exited && needed == block->n) fail("barrier on line " + std::to_string(line) + " after a thread returned");
    if (++barrier.arrived >= needed) {
        barrier.arrived = 0;
        ++barrier.generation;
#ifdef EMULATOR_THREADS
        barrier.changed->notify_all();
#endif
        return;
    }
    const uint64_t mine = barrier.generation;
#ifdef EMULATOR_THREADS
    while (barrier.generation == mine)
        if (barrier.changed->wait_for(lock, std::chrono::seconds(20)) == std::cv_status::timeout)
            throw std::runtime_error("threads wait for ever on line " + std::to_string(line));
#else
    while (barrier.generation == mine) yield();
#endif
}

inline void barrier_of_block(int line) { arrive(block->barrier, block->n, line); }

// All values of the warp; two sets of slots, so that one barrier is enough.
inline uint64_t* gather(uint64_t value, int line) {
    Thread& me = *thread;
    Warp& warp = block->warps[me.number >> 5];
    uint64_t* slots = warp.slot[me.exchanges++ & 1];
    slots[me.number & 31] = value;
    arrive(warp.barrier, std::min(32, block->n - (me.number & ~31)), line);
    return slots;
}

template <class T>
inline T exchange(T value, int source, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = gather(bits, line)[source & 31];
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

inline void copy_16(void* to, const void* from) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) & 15) fail("16-byte copy that is not aligned");
    if (block->order == REVERSE) std::memcpy(to, from, 16);
    else thread->copies.push_back(Copy{to, from});
}
inline void wait_for_copies() {
    for (const Copy& copy : thread->copies) std::memcpy(copy.to, copy.from, 16);
    thread->copies.clear();
}

// ---------------------------------------------------------------------------------------------------------------------
// Launching

typedef void (*Call)(void* kernel, void** arguments);
struct Entry {
    Call call;
    void* kernel;
    std::vector<int> sizes;
};
inline std::map<std::string, Entry> table;
template <class... A, size_t... I>
void unpack(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*reinterpret_cast<std::remove_reference_t<A>*>(arguments[I])...);
}
template <class... A>
struct Caller {
    static void call(void* kernel, void** arguments) {
        unpack(reinterpret_cast<void (*)(A...)>(kernel), arguments, std::index_sequence_for<A...>{});
    }
};
template <class... A>
bool add(const char* name, void (*kernel)(A...)) {
    table[name] = Entry{&Caller<A...>::call, reinterpret_cast<void*>(kernel), {(int)sizeof(A)...}};
    return true;
}
#define EXPORT(kernel) static bool exported_##kernel = emulator::add(#kernel, kernel);

struct Job {
    Entry* entry;
    void** arguments;
    uint64_t random;
};
inline Job job;
inline void body() {
    try {
        job.entry->call(job.entry->kernel, job.arguments);
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

#ifdef EMULATOR_THREADS
// The threads of every block, which wait until the process ends: to make them anew for each would take most of the time.
// They begin and end under locks of their own, so that a thread that has ended is not ordered before one that begins late.
struct Crew {
    std::mutex beginning, ending;
    std::condition_variable begun, ended;
    uint64_t blocks = 0;
    int n = 0, at_work = 0;
};
inline Crew& crew = *new Crew;
inline void work(int i, uint64_t blocks) {
    for (;;) {
        {
            std::unique_lock<std::mutex> lock(crew.beginning);
            crew.begun.wait(lock, [&] { return crew.blocks > blocks; });
            ++blocks;
        }
        thread = &block->threads[i];
        body();
        std::lock_guard<std::mutex> lock(crew.ending);
        if (--crew.at_work == 0) crew.ended.notify_one();
    }
}
inline void run_block(Block& b) {
    {
        std::lock_guard<std::mutex> lock(crew.beginning);
        if (crew.n && b.n != crew.n) throw std::runtime_error("blocks of different sizes");
        for (; crew.n < b.n; ++crew.n) std::thread(work, crew.n, crew.blocks).detach();
        crew.at_work = b.n;
        ++crew.blocks;
    }
    crew.begun.notify_all();
    std::unique_lock<std::mutex> lock(crew.ending);
    crew.ended.wait(lock, [] { return crew.at_work == 0; });
}
#else
inline void fiber() {
    body();
    thread->done = true;
    ++block->exited;
    yield();
}
inline uint64_t progress(const Block& b) {
    uint64_t sum = b.barrier.generation;
    for (const Warp& warp : b.warps) sum += warp.barrier.generation;
    return sum;
}
inline void run_block(Block& b) {
    const size_t stack = 64 * 1024;
    static std::vector<std::unique_ptr<char[]>> stacks;
    while ((int)stacks.size() < b.n) stacks.emplace_back(new char[stack]);
    contexts.resize(b.n);
    order.resize(b.n);
    for (int i = 0; i < b.n; ++i) {
        order[i] = b.order == REVERSE ? b.n - 1 - i : i;
        prepare(&contexts[i], stacks[i].get(), stack, fiber);
    }
    uint64_t idle = 0;
    while (b.exited < b.n && b.error.empty()) {
        if (b.order == RANDOM)
            for (int i = b.n - 1; i > 0; --i) {
                job.random = job.random * 6364136223846793005ull + 1442695040888963407ull;
                std::swap(order[i], order[(job.random >> 33) % (i + 1)]);
            }
        const uint64_t before = progress(b);
        const int had_exited = b.exited;
        turn = -1;
        swap_to(&scheduler, next());
        idle = had_exited == b.exited && before == progress(b) ? idle + 1 : 0;
        if (idle > 1) fail("threads wait for ever on line " + std::to_string(b.barrier.line) + " or in a warp");
    }
}
#endif

inline void run_grid(const Entry& entry, dim3 grid, dim3 size, size_t shared_bytes, Order order) {
    const int n = size.x;
    if (n < 1 || n > 1024 || grid.y > 65535) throw std::runtime_error("a block or grid of this size cannot be");
    const uint64_t blocks = (uint64_t)grid.x * grid.y;
    for (uint64_t i = 0; i < blocks; ++i) {
        const uint64_t id = order == REVERSE ? blocks - 1 - i : i;
        Block b;
        b.index = dim3{(unsigned)(id % grid.x), (unsigned)(id / grid.x)};
        b.size = size;
        b.grid = grid;
        b.n = n;
        b.order = order;
        std::unique_ptr<char[]> shared(new char[shared_bytes + 1]);  // aligned to 16, as operator new is
        std::memset(shared.get(), 0xff, shared_bytes);
        b.shared = shared.get();
        b.warps.resize((n + 31) / 32);
        b.threads.resize(n);
        for (int t = 0; t < n; ++t) b.threads[t].number = b.threads[t].index.x = t;
        block = &b;
        run_block(b);
        if (!b.error.empty()) throw std::runtime_error("block " + std::to_string(b.index.x) + ": " + b.error);
    }
}

inline std::string last_error;
}  // namespace emulator

#define OFFERED extern "C" __attribute__((used, visibility("default")))
OFFERED inline const char* emulator_error() { return emulator::last_error.c_str(); }
OFFERED inline int emulator_arguments(const char* name) {
    auto found = emulator::table.find(name);
    return found == emulator::table.end() ? -1 : (int)found->second.sizes.size();
}
OFFERED inline int emulator_size(const char* name, int i) { return emulator::table[name].sizes[i]; }
OFFERED inline int emulator_launch(const char* name, const unsigned* grid, unsigned size, size_t shared_bytes,
                                   void** arguments, int order, uint64_t seed) {
    try {
        emulator::job = emulator::Job{&emulator::table.at(name), arguments, seed};
        emulator::run_grid(*emulator::job.entry, dim3{grid[0], grid[1]}, dim3{size}, shared_bytes,
                           (emulator::Order)order);
        return 0;
    } catch (const std::exception& error) {
        emulator::last_error = error.what();
        return 1;
    }
}

#define threadIdx (emulator::thread->index)
#define blockIdx (emulator::block->index)
#define blockDim (emulator::block->size)
#define gridDim (emulator::block->grid)
#define __shfl_xor_sync(mask, value, offset) \
    emulator::exchange(value, (emulator::thread->number & 31) ^ (offset), __LINE__)

inline void sincospif(float x, float* s, float* c) {
    *s = (float)sin(M_PI * (double)x);
    *c = (float)cos(M_PI * (double)x);
}
