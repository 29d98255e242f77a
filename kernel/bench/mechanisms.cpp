// What masks cost with some mechanisms of tuning.h off: for benchmarks/bench_mechanisms.py, which writes the input.
//
//   mechanisms FILE PASSES [NAME...]
//
// PASSES: each begins with an empty store; 0: one pass, without a digest. NAME: a mechanism that is off.
//
// FILE: 32-bit words, in lists that begin with their length. A token block and its length in bytes; the vocabulary's file;
// the tokens that end texts; then for each case its program, its number of texts, and the tokens of each text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"

using namespace guideway;

namespace {

using Words = std::vector<std::uint32_t>;

struct Case {
    Words program;
    std::vector<Words> texts;
};

class Input {
public:
    explicit Input(const char* path) {
        std::ifstream file(path, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        words_.resize(bytes.size() / 4);
        std::memcpy(words_.data(), bytes.data(), words_.size() * 4);
    }
    bool done() const { return at_ == words_.size(); }
    Words list() {
        const std::uint32_t count = words_.at(at_++);
        if (words_.size() - at_ < count) throw Error(ErrorKind::argument, "the input is cut off");
        at_ += count;
        return {words_.begin() + static_cast<std::ptrdiff_t>(at_ - count), words_.begin() + static_cast<std::ptrdiff_t>(at_)};
    }
    std::string block() {
        const Words words = list();
        std::string made(words.size() * 4, '\0');
        std::memcpy(made.data(), words.data(), made.size());
        made.resize(words_.at(at_++));
        return made;
    }
    std::uint32_t number() { return words_.at(at_++); }

private:
    Words words_;
    std::size_t at_ = 0;
};

// Nanoseconds of CPU time of this thread.
std::uint64_t now() {
#if defined(__unix__)
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
#endif
}

struct Times {
    std::vector<std::uint64_t> compiles, firsts, steps, warm;
    std::size_t memory = 0;
    std::uint64_t digest = 0xcbf29ce484222325;
    // Keeps the lesser of each time; a pass computes the same masks as the one before.
    void least(const Times& other) {
        const auto each = [](std::vector<std::uint64_t>& mine, const std::vector<std::uint64_t>& given) {
            if (mine.empty()) mine = given;
            for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::min(mine[i], given[i]);
        };
        each(compiles, other.compiles), each(firsts, other.firsts), each(steps, other.steps), each(warm, other.warm);
        memory = other.memory, digest = other.digest;
    }
};

}  // namespace

// Callgrind counts what these call (--toggle-collect), each by its name: noipa, or the compiler merges equal ones.
#define COUNTED extern "C" __attribute__((noipa))
COUNTED std::shared_ptr<const Automaton> count_compile(const std::shared_ptr<const Vocabulary>& vocabulary, const Words& program) {
    return Automaton::compile(vocabulary, program);
}
COUNTED void count_first(Matcher& matcher, Words& row) { matcher.fill_mask(row); }
COUNTED void count_cold(Matcher& matcher, Words& row) { matcher.fill_mask(row); }
COUNTED void count_warm(Matcher& matcher, Words& row) { matcher.fill_mask(row); }
COUNTED void count_step(Matcher& matcher, std::uint32_t token) { matcher.advance(token); }

namespace {

// All masks along the texts, then all once more. A text ends at the first token that a mask excludes, or at a limit.
void walk(const std::shared_ptr<const Automaton>& automaton, const Case& one, std::uint64_t compiled, Words& row, bool digest,
          Times& times) {
    bool first = true;
    for (const bool warm : {false, true})
        for (const Words& text : one.texts) {
            Matcher matcher(automaton);
            for (const std::uint32_t token : text) try {
                    const std::uint64_t begin = now();
                    if (warm) count_warm(matcher, row);
                    else if (first) count_first(matcher, row);
                    else count_cold(matcher, row);
                    const std::uint64_t taken = now() - begin;
                    if (first) times.firsts.push_back(compiled + taken);
                    first = false;
                    if (!warm && digest)
                        for (const std::uint32_t word : row) times.digest = (times.digest ^ word) * 0x100000001b3;
                    if (!(row[token / 32] >> token % 32 & 1)) break;
                    const std::uint64_t middle = now();
                    if (warm) matcher.advance(token);
                    else count_step(matcher, token);
                    (warm ? times.warm : times.steps).push_back(taken + now() - middle);
                } catch (const Error&) {
                    break;
                }
        }
}

Times measure(const std::shared_ptr<const Vocabulary>& vocabulary, const std::vector<Case>& cases, bool digest) {
    Times times;
    Words row(vocabulary->words());
    for (const Case& one : cases) try {
            const std::uint64_t begin = now();
            const auto automaton = count_compile(vocabulary, one.program);
            const std::uint64_t compiled = now() - begin;
            times.compiles.push_back(compiled);
            walk(automaton, one, compiled, row, digest, times);
        } catch (const Error&) {
            continue;  // a grammar without texts, or over a limit
        }
    const auto store = vocabulary->store();
    times.memory = store->engine.bytes() + store->pool.bytes();
    return times;
}

void show(const char* name, std::vector<std::uint64_t> times) {
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
        return static_cast<double>(times[std::min(times.size() - 1, static_cast<std::size_t>(part * static_cast<double>(times.size())))]) /
               1000;
    };
    double sum = 0;
    for (const std::uint64_t time : times) sum += static_cast<double>(time) / 1000;
    std::printf("%s %zu %.2f %.2f %.2f %.2f %.2f\n", name, times.size(), sum / static_cast<double>(times.size()), at(0.5), at(0.99),
                at(0.999), at(1));
}

}  // namespace

// Lines: a name, how many, mean, p50, p99, p99.9 and maximum in microseconds (of each time the least of all passes); then
// memory in bytes, and a digest of the masks.
int main(int argc, char** argv) {
    if (argc < 3) return 2;
    VocabularyLimits limits;
    for (int i = 3; i < argc; ++i) {
        bool known = false;
        for (const TuningSwitch& each : kTuningSwitches)
            if (each.name == argv[i]) {
                limits.tuning.*each.member = false;
                known = true;
            }
        if (!known) {
            std::fprintf(stderr, "no mechanism is named %s\n", argv[i]);
            return 2;
        }
    }
    Input input(argv[1]);
    const std::string block = input.block();
    const Words file = input.list(), eos = input.list();
    const auto table = std::make_shared<std::vector<std::uint64_t>>(file.size() / 2);
    std::memcpy(table->data(), file.data(), file.size() * 4);
    std::vector<Case> cases;
    while (!input.done()) {
        Case& one = cases.emplace_back();
        one.program = input.list();
        for (std::uint32_t n = input.number(); n > 0; --n) one.texts.push_back(input.list());
    }
    Times times;
    const int passes = std::atoi(argv[2]);
    for (int pass = 0; pass < std::max(passes, 1); ++pass) {
        const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(block), eos, Words{}, *table, table, limits);
        times.least(measure(vocabulary, cases, passes > 0));
    }
    show("compile", times.compiles);
    show("first", times.firsts);
    show("step", times.steps);
    show("warm", times.warm);
    std::printf("memory %zu\n", times.memory);
    std::printf("digest %016llx\n", static_cast<unsigned long long>(times.digest));
    return 0;
}
