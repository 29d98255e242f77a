// Bytes choose a text, its boundaries and its variants; more bytes walk a string that occurs in it. Masks must agree with
// steps, and what is written must be the beginning of a substring.
#include "../tests/programs.h"
#include "../tests/reference.h"
#include "fuzz.h"

namespace {

using programs::Words;

constexpr char32_t kCharacters[] = {'a', 'b', 'a', 'b', 'c', ' ', '"', '\\', '/', '\n', 1, 0x7f, 0xe9, 0x20ac, 0xd7ff, 0x1f600};

struct Quoted {
    std::u32string text;
    std::vector<std::uint8_t> flags;
    bool in_quotes = false, empty = false, variants = false;
    unsigned kind = 0;  // of the spelling
};

// All substrings in the canonical spelling.
std::vector<std::string> all_texts(const Quoted& made) {
    const auto written = [&](const std::u32string& text) { return made.in_quotes ? reference::quoted(text) : reference::encoded(text); };
    std::vector<std::string> all;
    if (made.empty) all.push_back(written({}));
    for (std::size_t first = 0; first < made.text.size(); ++first)
        for (std::size_t last = first + 1; last <= made.text.size() && (made.flags[first] & 1); ++last)
            if (made.flags[last] & 2) all.push_back(written(made.text.substr(first, last - first)));
    return all;
}

Quoted read(const std::uint8_t* data, std::size_t size, std::size_t& at) {
    Quoted made;
    const std::uint8_t options = data[at++];
    made.in_quotes = options & 1;
    made.empty = options & 2;
    made.variants = options & 4;
    made.kind = options & 8 ? 2 : 1;
    const std::size_t length = options / 16 * 2u;
    while (made.text.size() < length && at < size) {
        made.text.push_back(kCharacters[data[at] % 16]);
        made.flags.push_back(data[at++] / 16 % 4 ? 3 : static_cast<std::uint8_t>(made.text.size() % 3));
    }
    made.flags.push_back(3);
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto vocabulary = fuzz::vocabulary();
    if (size < 2 || size > 256) return 0;
    std::size_t at = 0;
    const Quoted quoted = read(data, size, at);
    programs::Writer w;
    const std::uint32_t all =
        w.substrings(quoted.text, quoted.flags, quoted.empty, quoted.variants ? Words{'A', 'a', 'B', 'b', 0xc9, 0xe9} : Words{});
    w.node({0, quoted.in_quotes ? w.concat({w.literal("\""), w.spelled(all, quoted.kind), w.literal("\"")}) : all});
    const bool is_plain = !quoted.variants && !(quoted.in_quotes && quoted.kind == 2);
    const auto texts = all_texts(quoted);
    try {
        guideway::Matcher matcher(guideway::Automaton::compile(vocabulary, w.program(0)));
        fuzz::consistent(matcher);
        std::string done;
        for (int steps = 0; at < size && steps < 16; ++at, ++steps) {
            // A token of the vocabulary, or the next byte of one of the texts.
            std::uint32_t token = 1 + data[at] % (vocabulary->size() - 1);
            if (data[at] % 4 != 0 && !texts.empty())
                if (const std::string& one = texts[data[at] % texts.size()]; one.size() > done.size())
                    token = 1 + static_cast<std::uint8_t>(one[done.size()]);
            if (!fuzz::takes(matcher, token)) continue;
            if (vocabulary->is_eos(token)) break;
            done += std::string(vocabulary->token(token));
            if (steps % 3 == 0) fuzz::consistent(matcher);
            if (!is_plain) continue;
            bool begins = false, whole = false;
            for (const std::string& one : texts) {
                begins |= one.compare(0, done.size(), done) == 0;
                whole |= one == done;
            }
            fuzz::promise(begins, "what is written is the beginning of a substring");
            fuzz::promise(matcher.is_accepting() == whole, "a whole substring is accepted");
        }
    } catch (const guideway::Error&) {
        return 0;  // no text, or a limit
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    using namespace std::string_literals;
    return {
        "\x60"
        "abcabc def"s,
        "\xf1"
        "\x10\x20\x30\x15\x16\x17\x1a\x1c\x1f"
        "abcabcabc"s,
        "\xf3"
        "ab ab\"\\\n walks"s,
        "\xf9"
        "aabbaabb\\u0"s,
        "\xf4"
        "abcabcABab"s,
        "\xfd"
        "abab\x1c\x2f more"s};
}
