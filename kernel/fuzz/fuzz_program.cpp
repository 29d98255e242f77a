// Arbitrary words as a program, and a few calls of its matcher. Input: the number of bytes of calls, these bytes, the program.
#include "../tests/programs.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto vocabulary = fuzz::vocabulary();
    if (size < 2 || size > 4096) return 0;
    const std::size_t calls = std::min<std::size_t>(data[0], size - 1);
    std::vector<std::uint32_t> words((size - 1 - calls) / 4);
    if (!words.empty()) std::memcpy(words.data(), data + 1 + calls, words.size() * 4);
    try {
        guideway::Matcher matcher(guideway::Automaton::compile(vocabulary, words));
        fuzz::drive(matcher, data + 1, calls);
    } catch (const guideway::Error&) {
        return 0;
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds;
    const std::string calls = "\x0c\x06\x10\x07\x7b\x06\x10\x07\x22\x01\x20\x06\x20";
    for (const auto& words : programs::all()) seeds.push_back(calls + fuzz::bytes_of(words));
    return seeds;
}
