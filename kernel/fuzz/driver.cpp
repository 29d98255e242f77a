// Drives a fuzz target without libFuzzer: mutates seeds, and keeps inputs that reach new code (GCC's
// -fsanitize-coverage=trace-pc; without it, only the seeds are mutated).
//
//   fuzz_regex [seconds or rounds, as "20s" or "5000"] [seed]     fuzz_regex FILE...  runs those inputs
//   fuzz_regex keep FILE [seconds or rounds] [seed]     then writes a corpus: few inputs that reach what all of them reach
//
// Each target first runs its corpus (corpus/*.hex), if there is one: one input a line, in hexadecimal.
//
// The same seed runs the same inputs. An input that ends the process is written to the file fuzz-crash and, for logs, printed in
// hexadecimal.
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace {

std::array<bool, 1 << 16> reached;
bool found = false;
std::string running;

void keep_crash() {
    std::ofstream("fuzz-crash", std::ios::binary) << running;
    std::fprintf(stderr, "input:");
    for (const char c : running) std::fprintf(stderr, "%02x", static_cast<unsigned char>(c));
    std::fprintf(stderr, "\n");
}

}  // namespace

// The hook of the sanitizers, if they are linked.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*)());

// Called by every block of instrumented code.
extern "C" void __sanitizer_cov_trace_pc() {
    // Relative to an address in the program, so that its load address does not change which inputs are kept.
    const auto at = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<std::uintptr_t>(&keep_crash);
    bool& seen = reached[(at ^ at >> 16) & (reached.size() - 1)];
    if (!seen) seen = found = true;
}

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) { return random() % (limit ? limit : 1); }

std::string mutated(std::string text, const std::vector<std::string>& pool, Random& random) {
    for (std::size_t n = 1 + below(random, 6); n-- > 0;) {
        const std::size_t at = below(random, text.size());
        const std::string& other = pool[below(random, pool.size())];
        static constexpr std::uint8_t kOdd[] = {0, 1, 7, 8, 16, 32, 127, 128, 254, 255};
        switch (text.empty() ? 1 : below(random, 8)) {
            case 0: text[at] = static_cast<char>(random()); break;
            case 1: text.insert(at, 1, static_cast<char>(random())); break;
            case 2: text.erase(at, 1 + below(random, 4)); break;
            case 3: text[at] = static_cast<char>(kOdd[below(random, std::size(kOdd))]); break;
            case 4: text[at] = static_cast<char>(text[at] + (random() % 2 ? 1 : -1)); break;
            case 5: text = text.substr(0, at) + other.substr(below(random, other.size())); break;
            case 6: text.insert(at, other.substr(below(random, other.size()), 8)); break;
            default: {  // a 32-bit word of a program
                const std::size_t word = at / 4 * 4 + (text.size() % 4);
                const std::uint32_t words[] = {0, 1, 2, 0xffffffff, 0x7fffffff, static_cast<std::uint32_t>(random())};
                if (word + 4 <= text.size()) std::memcpy(text.data() + word, &words[below(random, std::size(words))], 4);
            }
        }
    }
    return text;
}

std::vector<std::string> corpus() {
    std::vector<std::string> made;
#ifdef GUIDEWAY_CORPUS
    std::ifstream file(GUIDEWAY_CORPUS);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        std::string& input = made.emplace_back();
        for (std::size_t i = 0; i + 1 < line.size(); i += 2) input.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
#endif
    return made;
}

void run(const std::string& text) {
    running = text;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

// Writes the shortest inputs first, without those that reach no new code.
void write_corpus(std::vector<std::string> pool, const char* path) {
    std::stable_sort(pool.begin(), pool.end(), [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    reached.fill(false);
    std::ofstream file(path);
    for (const std::string& input : pool) {
        if (input.size() > 400) continue;
        found = false;
        run(input);
        if (!found) continue;
        for (const char c : input) file << "0123456789abcdef"[static_cast<std::uint8_t>(c) >> 4] << "0123456789abcdef"[c & 15];
        file << '\n';
    }
}

}  // namespace

int main(int argc, char** argv) {
    const char* const kept = argc > 2 && std::string(argv[1]) == "keep" ? argv[2] : nullptr;
    if (kept) argc -= 2, argv += 2;
    const std::string first = argc > 1 ? argv[1] : "3000";
    if (first.find_first_not_of("0123456789s") != std::string::npos) {
        for (int i = 1; i < argc; ++i) {
            std::ifstream file(argv[i], std::ios::binary);
            run({std::istreambuf_iterator<char>(file), {}});
        }
        return 0;
    }
    std::signal(SIGABRT, [](int) { keep_crash(); });
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_crash);
    const bool timed = first.back() == 's';
    const unsigned long amount = std::stoul(first);
    Random random(argc > 2 ? static_cast<unsigned>(std::stoul(argv[2])) : 1);
    std::vector<std::string> pool = fuzz_seeds();
    for (std::string& input : corpus()) pool.push_back(std::move(input));
    for (const std::string& seed : pool) run(seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(amount);
    unsigned long rounds = 0;
    for (; timed ? std::chrono::steady_clock::now() < end : rounds < amount; ++rounds) {
        const std::string text = mutated(pool[below(random, pool.size())], pool, random);
        found = false;
        run(text);
        if (found && pool.size() < 20'000) pool.push_back(text);
    }
    if (kept) write_corpus(pool, kept);
    std::cout << rounds << " inputs, " << pool.size() << " kept\n";
    return 0;
}
