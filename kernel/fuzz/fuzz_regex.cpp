// Bytes build a regular expression on a stack, more bytes walk it: its masks must agree with its steps.
#include "expressions.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto vocabulary = fuzz::vocabulary();
    if (size > 512) return 0;
    programs::Writer w;
    fuzz::Expressions expressions(w);
    std::size_t at = 0;
    const std::uint32_t root = fuzz::expression(expressions, data, size, at);
    w.node({0, fuzz::spelled(w, root, data, size, at).expr});
    try {
        guideway::Matcher matcher(guideway::Automaton::compile(vocabulary, w.program(0)));
        fuzz::consistent(matcher);
        for (int steps = 0; at < size && steps < 12; ++at, ++steps)
            if (fuzz::takes(matcher, 1 + data[at] % vocabulary->size())) fuzz::consistent(matcher);
    } catch (const guideway::Error&) {
        return 0;
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    using namespace std::string_literals;
    return {"\x00\x02\x06\x0c\xff\x00ab\"abc"s, "\x02\x1d\x33\x08\xff\x01\"aab\""s, "\x03\x0c\x10\x06\x22\x0a\x0b\x0a\xff\x00zzab"s,
            "\x44\x0c\x20\x08\xfe\xff\x01\"\xc3\xa9"s,
            "\x20\x10\x08\xfe\xed\xcb\x7e\x7b"s};  // ~((~([bc]{0,75}){2,5}){0,35}): for minutes, before work was counted
}
