// Masks of many grammars in one store, compared with those in separate stores, and with walks of all nodes.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;
using ProgramWords = programs::Words;

namespace {

constexpr std::uint32_t kNoEnd = kInfinite;

// Letters, digits and dashes, alone and before quotes; enough that whole subtrees are accepted.
std::vector<std::string> tokens(std::mt19937& chance) {
    const char* const pieces[] = {"a", "b", "e", "on", "ti", "the", "0", "9", "-", "x"};
    const char* const ends[] = {"", "", "", "", "\"", "\",", "\"]", "\",\"", ".", " ", "..", "!", "\n"};
    std::vector<std::string> made{""};
    for (unsigned b = 0; b < 256; ++b) made.push_back(std::string(1, static_cast<char>(b)));
    for (const char* end : ends) made.push_back(end);
    while (made.size() < 9000) {
        std::string one;
        const std::size_t length = 1 + chance() % (chance() % 10 ? 6 : 30), kinds = chance() % 3 ? 6 : std::size(pieces);
        for (std::size_t i = 0; i < length; ++i) one += pieces[chance() % kinds];
        if (length <= 6 && chance() % 4 == 0) one += ends[chance() % std::size(ends)];
        made.push_back(std::move(one));
    }
    return made;
}

std::shared_ptr<const Vocabulary> vocabulary(const std::vector<std::string>& all, bool subtrees = true) {
    VocabularyLimits limits;
    if (!subtrees) limits.tuning = programs::without_subtrees();
    return std::make_shared<const Vocabulary>(TokenBlock(programs::block_of(all)), std::vector<std::uint32_t>{0},
                                              std::vector<std::uint32_t>{0}, limits);
}

// An array of strings in one class, `least` to `most` characters long after a first letter or none.
ProgramWords strings(const std::vector<std::uint32_t>& one, bool first, std::uint32_t least, std::uint32_t most) {
    programs::Writer w;
    const std::uint32_t letters = w.repeat(w.chars(one), least, most);
    ProgramWords array{4};
    for (std::uint32_t word : programs::Writer::marks(false, "[", "]")) array.push_back(word);
    for (std::uint32_t word : {0u, 3u, 0u, 0u, 0u, 1u, 0u, 1u}) array.push_back(word);
    w.node(array);
    w.node({0, w.quoted(first ? w.concat({w.chars({'a', 'z'}), letters}) : letters)});
    return w.program(0);
}

// Two leaves: this many printable characters, a letter and perhaps digits; then letters and a dot.
ProgramWords leaves(std::uint32_t count) {
    programs::Writer w;
    const std::uint32_t more = w.repeat(w.concat({w.chars({'0', '9'}), w.literal("!")}), 0, kNoEnd);
    w.node({0, w.concat({w.repeat(w.chars({' ', '~'}), count, count), w.chars({'a', 'z'}), more})});
    w.node({0, w.concat({w.repeat(w.chars({'a', 'z'}), 0, kNoEnd), w.literal(".")})});
    w.node({1, 2, 0, 1});
    return w.program(2);
}

// Compares the masks of both along a text, token by token, to its first illegal token.
void compare(const std::shared_ptr<const Vocabulary>& ours, const std::shared_ptr<const Vocabulary>& theirs, const ProgramWords& program,
             const std::string& text) {
    Matcher a(Automaton::compile(ours, program)), b(Automaton::compile(theirs, program));
    std::vector<std::uint32_t> row(ours->words()), wanted(ours->words());
    for (const char c : text) {
        a.fill_mask(row);
        b.fill_mask(wanted);
        CHECK(row == wanted);
        const std::uint32_t token = 1u + static_cast<std::uint8_t>(c);
        if (!(wanted[token >> 5] >> (token & 31) & 1)) return;
        a.advance(token);
        b.advance(token);
    }
}

// The run of an unbounded state is stored as a delta; runs of bounded states are derived from it.
void test_bounds_after_no_bounds(const std::vector<std::string>& all) {
    const std::vector<std::uint32_t> classes[] = {{'-', '-', '0', '9', 'a', 'z'}, {'a', 'z'}, {'-', '-', 'a', 'z'}};
    const auto shared = vocabulary(all);
    for (const auto& one : classes) {
        const ProgramWords programs[] = {strings(one, true, 1, kNoEnd), strings(one, false, 1, kNoEnd), strings(one, false, 4, 30),
                                         strings(one, false, 4, 24),    strings(one, true, 0, 20),      strings(one, false, 20, 90)};
        for (const ProgramWords& program : programs)
            for (const char* text : {"[\"abc\"", "[\"abcdefghijk\",\"ab", "[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
                compare(shared, vocabulary(all), program, text);
    }
}

// A token can leave a leaf after states of a stable set.
void test_exits_beyond_closures(const std::vector<std::string>& all) {
    const auto quick = vocabulary(all), slow = vocabulary(all, false);
    for (const std::uint32_t count : {9u, 10u, 12u, 16u}) compare(quick, slow, leaves(count), "abonetiab");
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    std::mt19937 chance(7);
    const auto all = tokens(chance);
    RUN(test_bounds_after_no_bounds(all));
    RUN(test_exits_beyond_closures(all));
    return check::report();
}
