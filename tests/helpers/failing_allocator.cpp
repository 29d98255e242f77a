// A library for LD_PRELOAD whose operators `new` fail at call number `fail_at` of the thread that armed it, or at each call
// from there on. It counts the blocks that are in use, so that a test sees leaks.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local long left = 0;  // calls until the failure; 0: unarmed
thread_local bool all = false;
std::atomic<long> blocks = 0, calls = 0, failures = 0;

void* taken(std::size_t size, std::size_t alignment) {
    calls.fetch_add(1, std::memory_order_relaxed);
    if (left > 0 && --left == 0) {
        if (all) left = 1;
        failures.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    void* made = nullptr;
    if (alignment <= alignof(std::max_align_t)) made = std::malloc(size ? size : 1);
    else if (posix_memalign(&made, alignment, size ? size : 1) != 0) made = nullptr;
    if (made) blocks.fetch_add(1, std::memory_order_relaxed);
    return made;
}

void* taken_or_throw(std::size_t size, std::size_t alignment) {
    void* const made = taken(size, alignment);
    if (!made) throw std::bad_alloc();
    return made;
}

void given(void* block) {
    if (block) blocks.fetch_sub(1, std::memory_order_relaxed);
    std::free(block);
}

}  // namespace

extern "C" {
void failing_allocator_arm(long at, int from_there_on) {
    left = at;
    all = from_there_on != 0;
}
long failing_allocator_blocks() { return blocks.load(); }
long failing_allocator_calls() { return calls.load(); }
long failing_allocator_failures() { return failures.load(); }
}

void* operator new(std::size_t size) { return taken_or_throw(size, 1); }
void* operator new[](std::size_t size) { return taken_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t at) { return taken_or_throw(size, static_cast<std::size_t>(at)); }
void* operator new[](std::size_t size, std::align_val_t at) { return taken_or_throw(size, static_cast<std::size_t>(at)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return taken(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return taken(size, 1); }
void operator delete(void* block) noexcept { given(block); }
void operator delete[](void* block) noexcept { given(block); }
void operator delete(void* block, std::size_t) noexcept { given(block); }
void operator delete[](void* block, std::size_t) noexcept { given(block); }
void operator delete(void* block, std::align_val_t) noexcept { given(block); }
void operator delete[](void* block, std::align_val_t) noexcept { given(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { given(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { given(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { given(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { given(block); }
