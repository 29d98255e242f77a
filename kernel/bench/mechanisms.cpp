// What masks cost with some mechanisms of tuning.h off: for benchmarks/bench_mechanisms.py, which writes the input.
//
//   mechanisms FILE [NAME...]     NAME: a mechanism that is off
//
// FILE: 32-bit words. The length of a token block in words, its bytes, and its length in bytes; then for each case its
// number of program words, these, its number of texts, and for each text its number of tokens, and these.
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
    std::vector<std::uint64_t> compiles, firsts, steps;
    std::uint64_t digest = 0xcbf29ce484222325;
};

}  // namespace

// Callgrind counts what this calls (--toggle-collect).
extern "C" __attribute__((noinline)) void measured(const std::shared_ptr<const Vocabulary>& vocabulary, const std::vector<Case>& cases,
                                                   void* out) {
    Times& times = *static_cast<Times*>(out);
    Words row(vocabulary->words());
    for (const Case& one : cases) {
        std::uint64_t begin = now();
        const auto automaton = Automaton::compile(vocabulary, one.program);
        const std::uint64_t compiled = now() - begin;
        times.compiles.push_back(compiled);
        bool first = true;
        for (const Words& text : one.texts) {
            Matcher matcher(automaton);
            for (const std::uint32_t token : text) {
                begin = now();
                matcher.fill_mask(row);
                const std::uint64_t taken = now() - begin;
                if (first) times.firsts.push_back(compiled + taken);
                first = false;
                if (!(row[token / 32] >> token % 32 & 1)) break;
                const std::uint64_t middle = now();
                matcher.advance(token);
                times.steps.push_back(taken + now() - middle);
            }
        }
    }
}

namespace {

// After the measurement, so that it is not part of it.
void add_digest(const std::shared_ptr<const Vocabulary>& vocabulary, const std::vector<Case>& cases, Times& times) {
    Words row(vocabulary->words());
    for (const Case& one : cases) {
        Matcher matcher(Automaton::compile(vocabulary, one.program));
        if (one.texts.empty()) continue;
        for (const std::uint32_t token : one.texts[0]) {
            matcher.fill_mask(row);
            for (const std::uint32_t word : row) times.digest = (times.digest ^ word) * 0x100000001b3;
            if (!(row[token / 32] >> token % 32 & 1)) break;
            matcher.advance(token);
        }
    }
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

// Lines: a name, how many, mean, p50, p99, p99.9 and maximum in microseconds; then memory in bytes, and a digest of the masks.
int main(int argc, char** argv) {
    if (argc < 2) return 2;
    VocabularyLimits limits;
    for (int i = 2; i < argc; ++i) {
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
    const Words eos = input.list();
    std::vector<Case> cases;
    while (!input.done()) {
        Case& one = cases.emplace_back();
        one.program = input.list();
        for (std::uint32_t n = input.number(); n > 0; --n) one.texts.push_back(input.list());
    }
    const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(block), eos, Words{}, limits);
    Times times;
    measured(vocabulary, cases, &times);
    show("compile", times.compiles);
    show("first", times.firsts);
    show("step", times.steps);
    const auto store = vocabulary->store();
    std::printf("memory %zu\n", store->engine.used() + store->pool.bytes());
    if (!std::getenv("GUIDEWAY_NO_DIGEST")) add_digest(vocabulary, cases, times);
    std::printf("digest %016llx\n", static_cast<unsigned long long>(times.digest));
    return 0;
}
