// The stack usage of recursive functions: expressions of the maximum depth of a program, in a thread with 512 KB.
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

// ThreadSanitizer needs larger stacks for its own data.
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define MEASURES_STACK 1
#include <pthread.h>
#endif

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

// Alternatives, intersections, differences, repetitions and concatenations around each other, as deep as the kernel accepts.
programs::Words nested(unsigned kind, unsigned levels) {
    programs::Writer w;
    std::uint32_t made = w.repeat(w.chars({'a', 'c'}), 1, 9);
    for (unsigned level = 0; level < levels; ++level) {
        const std::uint32_t tail = w.repeat(w.chars({'a', 'b' + level % 9}), 0, 3 + level % 5);
        switch (kind == 3 ? level % 3 : kind) {
            case 0: made = w.both({w.concat({made, tail}), w.repeat(w.chars({'a', 'z'}), 0, 0xffffffff)}); break;
            case 1: made = w.repeat(w.either({w.concat({made, tail}), w.literal("b")}), 0, 2); break;
            default: made = w.without(w.concat({made, tail}));
        }
    }
    w.node({0, made});
    return w.program(0);
}

// The deepest program that the kernel accepts, compiled and walked.
unsigned walk_deepest(unsigned kind) {
    for (const unsigned levels : {400u, 300u, 200u, 120u, 60u, 20u, 8u, 3u}) {
        VocabularyLimits limits;
        limits.max_work = 20'000'000;
        const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())),
                                                             std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{}, limits);
        try {
            Matcher matcher(Automaton::compile(vocabulary, nested(kind, levels)));
            std::vector<std::uint32_t> row(vocabulary->words());
            for (const char c : std::string("aab")) {
                matcher.fill_mask(row);
                const std::uint32_t token = 1u + static_cast<std::uint8_t>(c);
                if (row[token / 32] >> token % 32 & 1) matcher.advance(token);
            }
            return levels;
        } catch (const Error& error) {
            if (error.kind != ErrorKind::limit) throw;
        }
    }
    return 0;
}

#if defined(MEASURES_STACK)
constexpr std::size_t kStack = 512 << 10;

struct Job {
    unsigned kind, levels = 0;
    bool overflowed = false;
};

void* run(void* given) {
    Job& job = *static_cast<Job*>(given);
    try {
        job.levels = walk_deepest(job.kind);
    } catch (const std::exception&) {
        job.overflowed = true;
    }
    return nullptr;
}

// The number of bytes of the stack that were written.
void test_stack(unsigned kind) {
    constexpr unsigned char kPaint = 0xa5;
    std::vector<unsigned char> memory(kStack + 4096, kPaint);
    void* const begin = memory.data() + (4096 - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096);
    pthread_attr_t attributes;
    pthread_t thread;
    Job job{kind};
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, begin, kStack) == 0);
    CHECK(pthread_create(&thread, &attributes, run, &job) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    const auto* const bytes = static_cast<const unsigned char*>(begin);
    std::size_t untouched = 0;
    while (untouched < kStack && bytes[untouched] == kPaint) ++untouched;
    std::printf("kind %u: %u levels, %zu KB of stack\n", kind, job.levels, (kStack - untouched) >> 10);
    CHECK(!job.overflowed);
    CHECK(job.levels > 0);
#if !defined(__SANITIZE_ADDRESS__)
    CHECK(kStack - untouched < kStack / 2);
#endif
}
#else
void test_stack(unsigned kind) { CHECK(walk_deepest(kind) > 0); }  // the stack is not measured
#endif

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    for (unsigned kind = 0; kind < 4; ++kind) RUN(test_stack(kind));
    return check::report();
}
