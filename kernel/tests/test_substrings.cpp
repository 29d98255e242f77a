// Substrings of texts, compared with the same languages built from sets of bytes; suffix arrays.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "check.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/substrings.h"
#include "guideway/regex/suffix_array.h"
#include "same_language.h"

using namespace guideway;

namespace {

constexpr char32_t kCharacters[] = {'a', 'b', 'a', 'b', ' ', '"', '\\', '/', '\n', 1, 0xe9, 0x20ac, 0x1f600, 0x10ffff};

// The symbols of a text in few or many values, with runs and repetitions.
std::vector<std::uint32_t> some_symbols(std::mt19937& random, std::uint32_t count) {
    std::vector<std::uint32_t> made(random() % 60);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = i >= 5 && random() % 3 == 0 ? made[i - 5] : static_cast<std::uint32_t>(random() % count);
    return made;
}

void test_suffix_array(std::uint32_t count, unsigned seed) {
    std::mt19937 random(seed);
    const auto symbols = some_symbols(random, count);
    std::vector<std::uint32_t> wanted(symbols.size());
    std::iota(wanted.begin(), wanted.end(), 0u);
    const auto from = [&](std::uint32_t place) { return symbols.begin() + place; };
    std::sort(wanted.begin(), wanted.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::lexicographical_compare(from(a), symbols.end(), from(b), symbols.end());
    });
    CHECK(suffix_array(symbols, count) == wanted);
}

Substrings::Text some_text(std::mt19937& random, bool variants) {
    Substrings::Text made;
    for (std::size_t n = random() % 9; n-- > 0;) made.characters.push_back(kCharacters[random() % std::size(kCharacters)]);
    const unsigned rarely = 1 + static_cast<unsigned>(random() % 3);
    for (std::size_t i = 0; i <= made.characters.size(); ++i)
        made.flags.push_back(static_cast<std::uint8_t>((random() % rarely == 0 ? kBegins : 0) | (random() % rarely == 0 ? kEnds : 0)));
    if (variants) made.variants = {{'A', 'a'}, {'B', 'b'}, {0xc9, 0xe9}};
    made.empty = random() % 2;
    return made;
}

// All substrings, as concatenations of sets of bytes.
ExprId plainly(ExprPool& pool, const Substrings::Text& text, Encoding spelling, ExprId end) {
    std::vector<ExprId> all;
    if (text.empty) all.push_back(end);
    for (std::size_t first = 0; first < text.characters.size(); ++first)
        for (std::size_t last = first + 1; last <= text.characters.size() && (text.flags[first] & kBegins); ++last) {
            if (!(text.flags[last] & kEnds)) continue;
            ExprId made = end;
            for (std::size_t i = last; i-- > first;) {
                Ranges ranges;
                const char32_t c = text.characters[i];
                for (const auto& [variant, character] : text.variants)
                    if (character == c) ranges.emplace_back(variant, variant);
                ranges.emplace_back(c, c);
                made = pool.concat(pool.encoder().characters(ranges, spelling), made);
            }
            all.push_back(made);
        }
    return pool.unite(all);
}

constexpr same_language::Walks kWalks{12, 60};

void test_random_texts(Encoding spelling, unsigned seed) {
    std::mt19937 random(seed);
    ExprPool pool;
    const ExprId end = pool.set(ByteSet::range(0x02, 0x02));
    for (int n = 0; n < 4; ++n) {
        const Substrings::Text text = some_text(random, seed % 2);
        Substrings::Text again = text;
        const SubstringState state = pool.substrings().make(Substrings::Text(text), spelling);
        CHECK(pool.substrings().make(std::move(again), spelling) == state);  // one source for equal texts
        const ExprId all = state == Substrings::kNowhere ? (text.empty ? kEmpty : kNone) : pool.substring(state);
        same_language::compare(pool, pool.concat(all, end), plainly(pool, text, spelling, end), random, kWalks);
    }
}

// Large intervals, which are not scanned.
void test_long_text() {
    ExprPool pool;
    Substrings::Text text;
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) text.characters.push_back(U"ab "[random() % 3]);
    text.flags.assign(text.characters.size() + 1, kBegins | kEnds);
    text.flags[1] = kBegins;
    const std::u32string characters = text.characters;
    const ExprId start = pool.substring(pool.substrings().make(std::move(text), Encoding::text));
    CHECK(pool.emptiness.shortest(start) == 1);
    for (int walk = 0; walk < 20; ++walk) {
        const std::size_t from = random() % (characters.size() - 40);
        ExprId at = start;
        for (std::size_t i = from; i < from + 40 && CHECK(at != kNone); ++i) {
            const ByteSet live = pool.dfa.first(at);
            for (const char32_t next : U"ab ")
                if (next)
                    CHECK(live.contains(static_cast<std::uint8_t>(next)) ==
                          (characters.find(characters.substr(from, i - from) + next) != std::u32string::npos));
            at = pool.dfa.derivative(at, static_cast<std::uint8_t>(characters[i]));
        }
        CHECK(pool[at].nullable);
    }
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    for (unsigned seed = 0; seed < 150; ++seed)
        for (const std::uint32_t count : {1u, 2u, 4u, 100u, 1'000'000u}) RUN(test_suffix_array(count, seed));
    for (unsigned seed = 0; seed < 60; ++seed)
        for (const Encoding spelling : {Encoding::text, Encoding::escaped, Encoding::escaped_any}) RUN(test_random_texts(spelling, seed));
    RUN(test_long_text());
    return check::report();
}
