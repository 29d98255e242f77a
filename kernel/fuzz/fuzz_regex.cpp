// Bytes build a regular expression on a stack, more bytes walk it: its masks must agree with its steps.
#include "../tests/programs.h"
#include "fuzz.h"

namespace {

using programs::Words;

// The expression that `data` spells, and where it ended: a byte per operation, operands on the stack.
std::uint32_t build(programs::Writer& w, const std::uint8_t* data, std::size_t size, std::size_t& at) {
    std::vector<std::uint32_t> stack{w.literal("a")};
    auto pop = [&] {
        const std::uint32_t top = stack.back();
        if (stack.size() > 1) stack.pop_back();
        return top;
    };
    for (at = 0; at < size && data[at] != 0xff && at < 64; ++at) {
        const std::uint32_t low = data[at] / 16, high = at + 1 < size ? data[at + 1] % 8u : 0u;
        switch (data[at] % 16) {
            case 0: case 1: stack.push_back(w.literal(std::string(1, static_cast<char>('a' + low % 4)))); break;
            case 2: stack.push_back(w.chars({'a', 'a' + low % 4})); break;
            case 3: stack.push_back(w.chars({0, 0xd7ff, 0xe000, 0x10ffff})); break;
            case 4: stack.push_back(w.chars({0xe9, 0xe9 + low * 300})); break;
            case 5: stack.push_back(w.literal(low % 2 ? "" : "abc")); break;
            case 6: case 7: { const auto b = pop(), a = pop(); stack.push_back(w.concat({a, b})); break; }
            case 8: case 9: { const auto b = pop(), a = pop(); stack.push_back(w.either({a, b})); break; }
            case 10: { const auto b = pop(), a = pop(); stack.push_back(w.both({a, b})); break; }
            case 11: stack.push_back(w.without(pop())); break;
            case 12: stack.push_back(w.repeat(pop(), 0, 0xffffffff)); break;
            case 13: stack.push_back(w.repeat(pop(), low % 3, low % 3 + high)); break;
            case 14: stack.push_back(w.repeat(pop(), 0, low * 5)); break;
            default: stack.push_back(w.repeat(pop(), 1, 0xffffffff)); break;
        }
    }
    std::uint32_t made = pop();
    if (at < size && data[at] == 0xff && ++at < size && data[at] % 3) made = w.quoted(made);
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto vocabulary = fuzz::vocabulary();
    if (size > 512) return 0;
    programs::Writer w;
    std::size_t at = 0;
    const std::uint32_t expr = build(w, data, size, at);
    w.node({0, expr});
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
