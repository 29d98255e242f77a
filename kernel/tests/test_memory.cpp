// An allocation fails, each in turn: the call throws std::bad_alloc, has changed nothing that is observable, and succeeds when it is
// repeated.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

namespace {

// Number of allocations before one fails; negative: none fails.
thread_local long left = -1;
thread_local bool failed = false;

void* allocate(std::size_t bytes) {
    if (left == 0) {
        failed = true;
        left = -1;  // only once: error handling may allocate
        throw std::bad_alloc();
    }
    if (left > 0) --left;
    void* const made = std::malloc(bytes ? bytes : 1);
    if (!made) throw std::bad_alloc();
    return made;
}

void* allocate_or_null(std::size_t bytes) noexcept {
    try {
        return allocate(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// The pointer of malloc is stored before the aligned address: some platforms lack std::aligned_alloc.
void* allocate_aligned(std::size_t bytes, std::align_val_t alignment) {
    const auto step = static_cast<std::uintptr_t>(alignment);
    void* const whole = allocate(bytes + step + sizeof(void*));
    const std::uintptr_t place = (reinterpret_cast<std::uintptr_t>(whole) + sizeof(void*) + step - 1) / step * step;
    reinterpret_cast<void**>(place)[-1] = whole;
    return reinterpret_cast<void*>(place);
}

void free_aligned(void* place) noexcept {
    if (place) std::free(static_cast<void**>(place)[-1]);
}

}  // namespace

#if defined(__GNUC__)
// The compiler compares the `free` of an inlined operator with a call of the other operator, which calls `malloc`.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate_aligned(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocate_aligned(bytes, alignment); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void operator delete(void* place) noexcept { std::free(place); }
void operator delete[](void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }
void operator delete[](void* place, std::size_t) noexcept { std::free(place); }
void operator delete(void* place, const std::nothrow_t&) noexcept { std::free(place); }
void operator delete[](void* place, const std::nothrow_t&) noexcept { std::free(place); }
void operator delete(void* place, std::align_val_t) noexcept { free_aligned(place); }
void operator delete[](void* place, std::align_val_t) noexcept { free_aligned(place); }
void operator delete(void* place, std::size_t, std::align_val_t) noexcept { free_aligned(place); }
void operator delete[](void* place, std::size_t, std::align_val_t) noexcept { free_aligned(place); }

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;
std::size_t failures = 0;

// Repeats the call until no allocation fails; each time, a later one fails.
template <class F>
auto persist(F&& call) {
    for (long allowed = 0;; allowed += 1 + allowed / 8) {
        left = allowed;
        failed = false;
        struct Reset {
            ~Reset() { left = -1; }
        } const reset;
        try {
            return call();
        } catch (const std::bad_alloc&) {
            CHECK(failed);
            ++failures;
        }
    }
}

std::shared_ptr<const Vocabulary> vocabulary(std::size_t memo_bytes) {
    VocabularyLimits limits;
    limits.memo_bytes = memo_bytes;
    return std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                        std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

// The same masks, states and completions as without failures.
void walk(const programs::Words& program, unsigned seed) {
    const auto small = vocabulary(seed % 2 ? 64 << 20 : 1 << 16);
    Matcher expected(Automaton::compile(vocabulary(64 << 20), program));
    Matcher matcher(persist([&] { return Automaton::compile(small, program); }));
    const std::uint32_t size = small->size();
    Row row(small->words()), other(row.size());
    for (unsigned step = 0; step < 8 && !expected.is_finished(); ++step) {
        expected.fill_mask(row);
        persist([&] { matcher.fill_mask(other); });
        CHECK(row == other);
        CHECK(persist([&] { return matcher.tokens_to_finish(); }) == expected.tokens_to_finish());
        CHECK(persist([&] { return matcher.forced_bytes(); }) == expected.forced_bytes());
        CHECK(expected.fill_mask_within(row, 12) == persist([&] { return matcher.fill_mask_within(other, 12); }));
        CHECK(row == other);
        expected.fill_mask(row);
        std::uint32_t token = (seed + step) * 7919 % size;
        while (!(row[token / 32] >> token % 32 & 1)) token = (token + 1) % size;
        expected.advance(token);
        persist([&] { matcher.advance(token); });
        CHECK(matcher.position() == expected.position());
    }
    if (!expected.is_finished()) CHECK(persist([&] { return matcher.completion(); }) == expected.completion());
}

// Other automata of a store in which compiling failed.
void after_failed_compiles() {
    const auto small = vocabulary(1 << 20);
    const std::vector<programs::Words> all = programs::all();
    for (long allowed = 3; allowed < 3000; allowed += 1 + allowed / 3)
        for (const programs::Words& program : all) {
            left = allowed;
            try {
                Automaton::compile(small, program);
            } catch (const std::bad_alloc&) {
                ++failures;
            }
            left = -1;
        }
    for (const programs::Words& program : all) {
        Matcher matcher(Automaton::compile(small, program)), expected(Automaton::compile(vocabulary(64 << 20), program));
        Row row(small->words()), other(row.size());
        matcher.fill_mask(row);
        expected.fill_mask(other);
        CHECK(row == other);
        CHECK(matcher.completion() == expected.completion());
    }
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    unsigned seed = 0;
    for (const programs::Words& program : programs::all()) RUN(walk(program, seed++));
    for (unsigned kind = 0; kind < programs::kCounted; ++kind) RUN(walk(programs::counted(kind), kind));
    RUN(after_failed_compiles());
    CHECK(failures > 1000);
    return check::report();
}
