// A mutating driver of our own for the fuzz target, so that it runs under every compiler: good programs with a few
// words changed, and random calls.
#include <cstring>
#include <random>

#include "../fuzz/fuzz_program.cpp"
#include "check.hpp"
#include "programs.h"

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::stoi(argv[1]) : 1500;
    std::mt19937 random(20260);
    const std::vector<programs::Words> seeds{programs::tree(true, false), programs::tree(false, true), programs::letters(false),
                                             programs::letters(true)};
    for (int i = 0; i < rounds; ++i) {
        programs::Words words = seeds[random() % seeds.size()];
        for (unsigned n = random() % 4; n-- > 0;) {
            std::uint32_t& word = words[random() % words.size()];
            const auto any = static_cast<std::uint32_t>(random()), other = words[random() % words.size()];
            const std::uint32_t choices[] = {any, 0, 1, word + 1, word - 1, 0xffffffff, other};
            word = choices[random() % std::size(choices)];
        }
        if (random() % 8 == 0) words.resize(random() % words.size());
        std::vector<std::uint8_t> input(1 + random() % 120);
        for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
        input[0] = static_cast<std::uint8_t>(input.size() - 1);
        const std::size_t calls = input.size();
        input.resize(calls + words.size() * 4);
        std::memcpy(input.data() + calls, words.data(), words.size() * 4);
        CHECK(LLVMFuzzerTestOneInput(input.data(), input.size()) == 0);
    }
    return check::report();
}
