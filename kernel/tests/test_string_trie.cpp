// Sets of texts, and differences with them, compared with the same languages built from sets of bytes.
#include <random>
#include <string>

#include "check.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/string_trie.h"
#include "same_language.h"

using namespace guideway;

namespace {

constexpr char32_t kCharacters[] = {'a',  'b',  '"',    '\\',   '/',    '\n',    1,       0x7f,
                                    0xe9, 0xea, 0x20ac, 0xd7ff, 0xe000, 0x1f600, 0x1f601, 0x10ffff};

std::u32string some_text(std::mt19937& random) {
    std::u32string made(random() % 4, U' ');
    for (char32_t& c : made) c = kCharacters[random() % std::size(kCharacters)];
    if (random() % 3 == 0)  // a text with a long common prefix with others
        for (std::size_t n = random() % 9; n-- > 0;) made.push_back(random() % 8 ? U'a' : U'b');
    return made;
}

// Character by character, as concatenations of sets of bytes.
ExprId plainly(ExprPool& pool, const std::u32string& text, Encoding spelling, ExprId end) {
    ExprId made = end;
    for (std::size_t i = text.size(); i-- > 0;) made = pool.concat(pool.encoder().characters({{text[i], text[i]}}, spelling), made);
    return made;
}

constexpr same_language::Walks kWalks{30, 40};

void test_random_sets(Encoding spelling, unsigned seed) {
    std::mt19937 random(seed);
    ExprPool pool;
    const ExprId quote = pool.set(ByteSet::range(0x02, 0x02));
    std::vector<std::u32string> texts;
    std::vector<ExprId> plain;
    StringNode grown = StringTrie::kNoEntries;
    for (std::size_t n = random() % 8; n-- > 0;) {
        texts.push_back(some_text(random));
        plain.push_back(plainly(pool, texts.back(), spelling, quote));
        grown = pool.strings().plus(grown, texts.back(), quote, spelling);
    }
    std::vector<StringTrie::Entry> all_texts;
    for (const std::u32string& text : texts) all_texts.push_back({text, quote});
    CHECK(pool.strings().make(all_texts, spelling) == grown);  // in any order
    const ExprId words = pool.encoder().literals(texts, spelling, quote), together = pool.unite(plain);
    same_language::compare(pool, words, together, random, kWalks);
    same_language::compare(pool, pool.string_state(grown), together, random, kWalks);

    // Its texts in a fixed order.
    if (grown != StringTrie::kNoEntries) {
        const StringTrie& all_words = pool.strings();
        const auto listed = all_words.texts(grown);
        CHECK(listed.size() == all_words.count(grown));
        std::size_t ends = 0;
        all_words.each_end(grown, [&](ExprId end) { CHECK(end == listed[ends++].end); });
        CHECK(ends == listed.size());
        all_words.each_child(grown, kBetween, [&](char32_t, StringNode child) {
            const std::uint32_t first = all_words.texts_before(grown, child);
            const auto below = all_words.texts(child);
            for (std::size_t i = 0; i < below.size(); ++i) CHECK(listed[first + i].characters.substr(1) == below[i].characters);
        });
        if (listed.size() == 1)
            CHECK(all_words.only_text(grown).characters == listed[0].characters && all_words.only_text(grown).end == listed[0].end);
    }

    // The universe without these texts. The reference is an intersection: the complement of a language that is not known to be finite.
    const ExprId all = pool.concat(pool.encoder().universe(spelling), quote);
    const ExprId endless = pool.unite(
        {together, pool.concat(pool.set(ByteSet::range(0xff, 0xff)), pool.repeat(pool.set(ByteSet::range(0xff, 0xff)), 0, kInfinite))});
    same_language::compare(pool, pool.subtract(all, words), pool.intersect({all, pool.complement(endless)}), random, kWalks);
    // A difference with few texts can be empty.
    CHECK(!pool.emptiness.is_nonempty(pool.subtract(words, pool.string_state(grown))));
}

// Paths longer than a chain, on which texts diverge and end.
void test_long_ways() {
    ExprPool pool;
    const ExprId quote = pool.set(ByteSet::range('"', '"'));
    const std::u32string way(3000, U'a'), parting = std::u32string(1500, U'a') + std::u32string(1200, U'b'), early(700, U'a');
    StringTrie& words = pool.strings();
    StringNode grown = StringTrie::kNoEntries;
    for (const std::u32string& text : {way, parting, early}) grown = words.plus(grown, text, quote, Encoding::escaped_any);
    const StringNode made = words.make({{way, quote}, {parting, quote}, {early, quote}}, Encoding::escaped_any);
    for (const StringNode node : {grown, made}) {
        CHECK(words.count(node) == 3);
        CHECK(words.characters(node) == 3000 + 2700 + 700 + 3);
        CHECK(words.shortest(node, kBetween) == 701);
        const auto listed = words.texts(node);
        CHECK(listed.size() == 3 && listed[0].characters == early && listed[1].characters == way && listed[2].characters == parting);
        StringTrie::Step at{node, kBetween};
        for (std::size_t i = 0; i < 2700; ++i) {
            CHECK((words.end(at.node) != kNone) == (i == 700));
            CHECK(words.count(at.node) == (i <= 700 ? 3u : i <= 1500 ? 2u : 1u));
            at = words.next(at.node, kBetween, static_cast<std::uint8_t>(parting[i]));
        }
        CHECK(words.is_end(at.node) && words.end(at.node) == quote);
    }
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(test_long_ways());
    for (unsigned seed = 0; seed < 60; ++seed)
        for (const Encoding spelling : {Encoding::text, Encoding::escaped, Encoding::escaped_any}) test_random_sets(spelling, seed);
    return check::report();
}
