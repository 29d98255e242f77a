// Bytes build a regular expression; which texts it accepts must agree with a reference matcher that shares no code with the
// kernel. Texts: short ones over a few characters, longer ones that the bytes spell, and completions of the kernel.
#include "expressions.h"
#include "fuzz.h"

namespace {

using reference::Text;

constexpr char32_t kAlphabet[] = {'a', 'b', 'c', 'd', 0xe9, 0x215, 0x65e5, '"', '\\', '\n', 0x1f600};

// Whether the kernel accepts a text, byte by byte; and a completion of the longest prefix that it accepts.
struct Verdict {
    bool accepted;
    std::size_t taken;
    std::string completed;
};
Verdict verdict(guideway::Matcher matcher, const std::string& bytes) {
    std::size_t taken = 0;
    while (taken < bytes.size() && fuzz::takes(matcher, 1 + static_cast<std::uint8_t>(bytes[taken]))) ++taken;
    return {taken == bytes.size() && matcher.is_accepting(), taken, bytes.substr(0, taken) + matcher.completion()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto vocabulary = fuzz::vocabulary();
    if (size > 128) return 0;
    programs::Writer writer;
    fuzz::Expressions w(writer);
    std::size_t at = 0;
    const std::uint32_t root = fuzz::expression(w, data, size, at);
    const fuzz::Spelled leaf = fuzz::spelled(writer, root, data, size, at);
    writer.node({0, leaf.expr});
    const auto spell = [&](const Text& text) { return leaf.quoted ? reference::quoted(text) : reference::encoded(text); };
    const auto accepts = [&](const Text& text) { return reference::Matcher(w.tree(), text).accepts(root); };

    std::vector<Text> texts{{}};
    for (const char32_t c : kAlphabet) texts.push_back({c});
    for (std::size_t i = 0; i < 24; ++i) {
        Text text;
        std::uint32_t state = static_cast<std::uint32_t>(i + 1) * 2654435761u;
        for (std::size_t n = 0; n < 2 + i / 3; ++n) {
            state = state * 1664525u + 1013904223u + (at + n < size ? data[at + n] : 0u);
            text.push_back(kAlphabet[(state >> 16) % (i % 2 ? 4 : std::size(kAlphabet))]);
        }
        texts.push_back(std::move(text));
    }
    std::optional<guideway::Matcher> start;
    try {
        start.emplace(guideway::Automaton::compile(vocabulary, writer.program(0)));
    } catch (const guideway::Error& error) {
        if (error.kind != guideway::ErrorKind::unsatisfiable) return 0;
    }
    for (const Text& text : texts) {
        if (!start) {
            fuzz::promise(!accepts(text), "an expression that is refused as empty accepts nothing");
            continue;
        }
        try {
            const Verdict kernel = verdict(*start, spell(text));
            fuzz::promise(kernel.accepted == accepts(text), "the kernel accepts what the reference accepts");
            if (kernel.completed.size() > 40) continue;
            const std::string inside = leaf.quoted ? kernel.completed.substr(1, kernel.completed.size() - 2) : kernel.completed;
            if (leaf.quoted && inside.find('\\') != std::string::npos) continue;
            const std::optional<Text> completed = reference::decoded(inside);
            fuzz::promise(completed && accepts(*completed), "the reference accepts completions");
        } catch (const guideway::Error&) {
            continue;  // a limit
        }
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    using namespace std::string_literals;
    return {"\x00\x10\x08\x0c\xff\x00"s,     "\x02\x1d\x33\x08\xff\x01"s,     "\x03\x0c\x10\x06\x22\x0a\x0b\x0a\xff\x00"s,
            "\x44\x0c\x20\x08\xfe\xff\x01"s, "\x05\x0b\x03\x0c\x0a\xff\x01"s, "\x00\x10\x06\x2d\x02\x1d\x0b\x0a\xff\x02"s};
}
