// Any words as a program, and any bytes as calls of its matcher: errors are fine, anything else is not.
#include <cstdint>
#include <cstring>

#include "fuzz_vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace guideway;
    static const auto vocabulary = fuzz::vocabulary();
    if (size < 2 || size > 4096) return 0;
    const std::size_t calls = std::min<std::size_t>(data[0], size - 1);
    std::vector<std::uint32_t> words((size - 1 - calls) / 4);
    if (!words.empty()) std::memcpy(words.data(), data + 1 + calls, words.size() * 4);
    try {
        Matcher matcher(Automaton::compile(vocabulary, words));
        fuzz::call(matcher, data + 1, calls);
    } catch (const Error&) {
        return 0;
    }
    return 0;
}
