// Expressions and their derivatives, compared with enumerated texts.
#include <random>
#include <set>
#include <string>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/grammar/composite_language.h"
#include "guideway/grammar/used_values.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/number_language.h"
#include "programs.h"

using namespace guideway;

namespace {

ExprId run(ExprPool& pool, ExprId e, const std::string& text) {
    for (char b : text) e = pool.dfa.derivative(e, static_cast<std::uint8_t>(b));
    return e;
}

bool matches(ExprPool& pool, ExprId e, const std::string& text) { return pool[run(pool, e, text)].nullable; }

void test_basics() {
    ExprPool pool;
    Encoder encoder(pool);
    const ExprId a = encoder.characters({{'a', 'a'}}, Encoding::text), b = encoder.characters({{'b', 'b'}}, Encoding::text);
    const ExprId word = pool.concat(pool.repeat(pool.unite({a, b}), 2, 3), a);
    CHECK(matches(pool, word, "aba"));
    CHECK(matches(pool, word, "bbba"));
    CHECK(!matches(pool, word, "aa"));
    CHECK(run(pool, word, "bbbb") == kNone);
    CHECK(pool.emptiness.shortest(word) == 3);
    CHECK(pool.dfa.best_byte(word) == 'a');
    CHECK(pool.concat(a, pool.concat(b, a)) == pool.concat(pool.concat(a, b), a));
    CHECK(pool.unite({a, b, a}) == pool.unite({b, a}));
}

void test_boolean_liveness() {
    ExprPool pool;
    Encoder encoder(pool);
    const ExprId a = encoder.characters({{'a', 'a'}}, Encoding::text);
    const ExprId even = pool.repeat(pool.concat(a, a), 0, kInfinite), three = pool.repeat(a, 3, 3);
    CHECK(!pool.emptiness.is_nonempty(pool.intersect({even, three})));
    const ExprId odd = pool.intersect({encoder.universe(Encoding::text), pool.complement(even), pool.repeat(a, 0, kInfinite)});
    CHECK(pool.emptiness.is_nonempty(odd));
    CHECK(pool.emptiness.shortest(odd) == 1);
    CHECK(matches(pool, odd, "aaa"));
    CHECK(!matches(pool, odd, "aa"));
    CHECK(run(pool, odd, "b") == kNone);
}

void test_alphabets() {
    ExprPool pool;
    const auto any_of = [&](const char* text) { return pool.set(ByteSet::of(text)); };
    const ExprId quote = any_of("\""), digits = pool.repeat(any_of("0123456789"), 0, kInfinite),
                 letters = pool.repeat(any_of("ab12"), 1, 9);
    const ExprId both = pool.intersect({pool.concat(digits, quote), pool.concat(letters, quote)}),
                 but = pool.concat(pool.subtract(letters, any_of("a")), quote);
    CHECK(pool.byte_facts.alphabet(pool.concat(digits, quote)) == ByteSet::of("0123456789\""));
    CHECK(pool.byte_facts.alphabet(both) == ByteSet::of("12\""));
    CHECK(pool.byte_facts.alphabet(but) == ByteSet::of("ab12\""));
    CHECK(pool.byte_facts.alphabet(pool.complement(letters)) == ByteSet::range(0, 255));
    CHECK(pool.byte_facts.alphabet(kEmpty).empty());
    const auto literals = [&](std::vector<std::u32string> texts, Encoding spelling) {
        return pool.encoder().literals(std::move(texts), spelling, quote);
    };
    CHECK(pool.byte_facts.alphabet(literals({U"ab", U"a\n"}, Encoding::text)) == ByteSet::of("ab\n\""));
    CHECK(pool.byte_facts.alphabet(literals({U"zy", U"x"}, Encoding::escaped)) == ByteSet::of("xyz\""));
    CHECK(pool.byte_facts.alphabet(literals({U"zy", U"/"}, Encoding::escaped_any)) == ByteSet::of("zy/\\u0123456789abcdefABCDEF\""));
    CHECK(pool.byte_facts.alphabet(literals({U"a\u00e9"}, Encoding::escaped)) == ByteSet::range(0, 255));
    CHECK(pool.byte_facts.alphabet(literals({std::u32string(100, U'a')}, Encoding::text)) ==
          ByteSet::range(0, 255));  // too many characters to examine
    for (const ExprId e : {both, but, pool.unite({pool.concat(digits, quote), pool.concat(letters, quote)})}) CHECK(ends_in(pool, e, '"'));
    CHECK(!ends_in(pool, pool.unite({letters, quote}), '"'));
    CHECK(!ends_in(pool, pool.concat(quote, digits), '"'));
    CHECK(minuend_of(pool, but) == pool.concat(letters, quote));
    CHECK(minuend_of(pool, pool.concat(quote, but)) == pool.concat(quote, pool.concat(letters, quote)));
    CHECK(minuend_of(pool, pool.concat(quote, letters)) == kNone);
}

void test_needed() {
    ExprPool pool;
    const auto characters = [&](Ranges ranges) { return pool.encoder().characters(ranges, Encoding::escaped_any); };
    const ExprId any = pool.encoder().universe(Encoding::escaped_any), a = characters({{'a', 'a'}}), b = characters({{'b', 'b'}}),
                 quote = pool.set(ByteSet::of("\""));
    CHECK(pool.byte_facts.needed(a) == ByteSet::of("a"));
    CHECK(pool.byte_facts.needed(pool.concat(any, pool.concat(a, pool.concat(any, quote)))) == ByteSet::of("a\""));
    CHECK(pool.byte_facts.needed(pool.unite({pool.concat(a, quote), pool.concat(b, pool.concat(a, quote))})) == ByteSet::of("a\""));
    CHECK(pool.byte_facts.needed(pool.repeat(a, 0, 3)).empty() && pool.byte_facts.needed(pool.repeat(a, 2, 3)) == ByteSet::of("a"));
    CHECK(pool.byte_facts.needed(characters({{'"', '"'}})).empty() && pool.byte_facts.needed(characters({{'a', 'b'}})).empty());
    CHECK(pool.byte_facts.needed(pool.encoder().literals({U"a\n\"b"}, Encoding::escaped_any, quote)) == ByteSet::of("ab\""));
    CHECK(pool.byte_facts.needed(pool.encoder().literals({U"ab", U"ac"}, Encoding::escaped_any, quote))
              .empty());  // several texts are not examined
    CHECK(pool.byte_facts.needed(pool.complement(a)).empty() && pool.byte_facts.needed(kEmpty).empty());
    CHECK(!pool.emptiness.is_nonempty(pool.intersect({pool.concat(any, pool.concat(a, any)), pool.repeat(b, 0, kInfinite)})));
    CHECK(pool.emptiness.is_nonempty(pool.intersect({pool.concat(any, pool.concat(a, any)), pool.repeat(characters({{'a', 'b'}}), 3, 3)})));
}

// A search steps composite values, whose machines need other searches: for numbers inside arrays and objects.
void test_search_inside_search() {
    for (const char* text : {"{}", "[1]", R"({"a": 0})", "[[1], 22]", R"(["x", {"b": [0, 1.5]}])"}) {
        ExprPool pool;
        const std::string_view bytes(text);
        const ExprId same = *CompositeLanguage::of(pool).spelled(bytes);
        const ExprId literal = pool.encoder().literals({std::u32string(bytes.begin(), bytes.end())}, Encoding::text);
        CHECK(!pool.emptiness.is_nonempty(pool.intersect({literal, pool.complement(same)})));
        CHECK(pool.emptiness.is_nonempty(pool.intersect({literal, same})) &&
              pool.emptiness.shortest(pool.intersect({literal, same})) == bytes.size());
    }
}

Decimal decimal(std::int64_t value, std::int64_t exponent = 0) { return {value < 0, exponent, std::to_string(std::abs(value))}; }

// Length of a shortest text, by a breadth-first search.
std::uint32_t breadth_first(ExprPool& pool, ExprId start) {
    std::vector<ExprId> level{start};
    std::set<ExprId> seen{start};
    for (std::uint32_t depth = 0; !level.empty(); ++depth) {
        std::vector<ExprId> following;
        for (const ExprId e : level) {
            if (pool[e].nullable) return depth;
            pool.dfa.first(e).each([&](std::uint8_t b) {
                if (const ExprId to = pool.dfa.derivative(e, b); to != kNone && seen.insert(to).second) following.push_back(to);
            });
        }
        level = std::move(following);
    }
    return kInfinite;
}

// The shortest number of random bounds and divisors, also from within a number.
void test_shortest_numbers() {
    std::mt19937 random(28);
    const auto draw = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
    std::size_t compared = 0;
    for (int i = 0; i < 300; ++i) {
        Cell cell;
        cell.has_low = draw(0, 2) == 0;
        cell.has_high = draw(0, 2) == 0;
        cell.open_low = draw(0, 1) == 0;
        cell.low = decimal(draw(-3000, 3000), draw(-5, 1));
        cell.high = decimal(draw(-3000, 3000), draw(-5, 1));
        for (std::int64_t count = draw(0, 2); count > 0; --count) cell.multiple_of.push_back(decimal(draw(1, 40), draw(-2, 1)));
        if (draw(0, 2) == 0) cell.not_multiple_of.push_back(decimal(draw(2, 9)));
        ExprPool pool;
        ExprId at = pool.number_language().start({cell}, static_cast<NumberText>(draw(0, 2)));
        while (at != kNone) {
            const std::uint32_t expected = breadth_first(pool, at);
            CHECK(pool.emptiness.shortest(at) == expected);
            ++compared;
            std::vector<std::uint8_t> bytes;
            pool.dfa.first(at).each([&](std::uint8_t b) { bytes.push_back(b); });
            if (bytes.empty() || draw(0, 4) == 0) break;
            at = pool.dfa.derivative(at, bytes[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(bytes.size()) - 1))]);
        }
    }
    CHECK(compared > 400);
}

// The search uses the number of digits to the next multiple, so it does not visit all remainders.
void test_work_for_shortest_numbers() {
    for (const bool plain : {false, true}) {
        Cell cell;
        cell.multiple_of = {decimal(8721)};
        cell.not_multiple_of = {decimal(2), decimal(5), decimal(7), decimal(11), decimal(37)};
        cell.has_low = cell.open_low = true;
        cell.low = decimal(plain ? 123456 : 0);
        ExprPool pool;
        const ExprId start = pool.number_language().start({cell}, plain ? NumberText::plain : NumberText::any);
        const std::uint64_t before = pool.fuel().left();
        CHECK(pool.emptiness.shortest(start) == (plain ? 6 : 4));
        CHECK(before - pool.fuel().left() < 100'000);
    }
}

// An intersection of repeated characters with the universe of their spelling is the repetition itself, independent of other
// expressions of the same characters, and in any alternation.
void test_universe() {
    ExprPool pool;
    for (const Encoding spelling : {Encoding::text, Encoding::escaped, Encoding::escaped_any}) {
        const auto characters = [&](Ranges ranges) { return pool.encoder().characters(ranges, spelling); };
        const ExprId one = characters({{0, 0x10ffff}}), some = pool.repeat(one, 2, kInfinite);
        const ExprId mixed =
            pool.unite({characters({{'a', 'z'}}), pool.concat(characters({{'%', '%'}}), characters({{'0', '9'}, {0xe9, 0x2000}}))});
        const ExprId texts = pool.concat(characters({{'a', 'a'}}), pool.concat(characters({{'b', 'b'}}), pool.repeat(mixed, 0, kInfinite)));
        ExprId both = pool.intersect({some, texts}), left = texts;
        CHECK(pool[both].boolean);
        for (const char byte : {'a', 'b'}) {
            both = pool.dfa.derivative(both, static_cast<std::uint8_t>(byte));
            left = pool.dfa.derivative(left, static_cast<std::uint8_t>(byte));
        }
        CHECK(both == left && !pool[both].boolean);
        CHECK(pool.intersect({pool.repeat(one, 0, kInfinite), pool.concat(mixed, texts)}) == pool.concat(mixed, texts));
    }
}

// Nested counters: summands with narrower bounds are no separate states.
void test_counts_inside_counts() {
    const auto groups = [](ExprPool& pool, std::uint32_t most, std::uint32_t times) {
        const ExprId any = pool.set(ByteSet::of("ab.")), dot = pool.set(ByteSet::of("."));
        return pool.concat(pool.repeat(pool.concat(pool.repeat(any, 1, most), dot), 1, times), pool.set(ByteSet::of("x")));
    };
    ExprPool large;
    ExprId state = groups(large, 63, 127);
    const std::size_t before = large.size();
    for (unsigned i = 0; i < 100; ++i) state = large.dfa.derivative(state, '.');
    CHECK(state != kNone && large.size() - before < 3000);
    ExprPool pool;
    const ExprId few = groups(pool, 3, 3);
    bool right = true;
    for (std::uint32_t length = 0; length <= 13; ++length)
        for (std::uint32_t dots = 0; dots < 1u << length; ++dots) {
            std::string text(length, 'a');
            std::vector<std::uint32_t> ways(length + 1);  // by position: bit n: n groups can end there
            ways[0] = 1;
            for (std::uint32_t at = 0; at < length; ++at) {
                if (!(dots >> at & 1)) continue;
                text[at] = '.';
                for (std::uint32_t size = 2; size <= 4 && size <= at + 1; ++size) ways[at + 1] |= ways[at + 1 - size] << 1;
            }
            right &= matches(pool, few, text + "x") == ((ways[length] & 0b1110) != 0);
        }
    CHECK(right);
}

// The derivative by a byte that needs a short search is found although that of another byte needs a long one; also if queried often.
void test_hard_targets() {
    ExprPool pool(ExprLimits{.max_search = 3000});
    const auto character = [&](char32_t c) { return pool.encoder().characters({{c, c}}, Encoding::text); };
    const ExprId any = pool.encoder().universe(Encoding::text), letter = pool.encoder().characters({{'a', 'c'}}, Encoding::text);
    const auto back = [&](char32_t c) {
        return pool.concat(pool.repeat(letter, 0, kInfinite), pool.concat(character(c), pool.repeat(letter, 13, 13)));
    };
    const ExprId hard = pool.intersect({back('a'), back('b')});  // no character of a text can be both
    const ExprId e = pool.intersect({pool.unite({pool.concat(character('x'), hard), pool.concat(character('y'), any)}),
                                     pool.unite({pool.concat(character('x'), hard), pool.concat(character('y'), letter)})});
    for (int i = 0; i < 100; ++i) CHECK(pool.dfa.derivative(e, 'y') != kNone && pool.dfa.derivative(e, 'z') == kNone);
    CHECK_THROWS(pool.dfa.derivative(e, 'x'), Error);
    CHECK(pool.dfa.nonempty_after(e, "ya") && !pool.dfa.nonempty_after(e, "yy") && !pool.dfa.nonempty_after(e, "za"));
}

// The same constraint on characters, in one spelling.
ExprId make(ExprPool& pool, Encoding spelling, std::mt19937& chance, int depth) {
    const auto part = [&] { return make(pool, spelling, chance, depth - 1); };
    const char32_t some[] = {'a', 'b', 1, '\n', '"', '/', 0xe9, 0x1f980};
    const char32_t c = some[chance() % 8];
    const auto kind = depth == 0 ? 0 : chance() % 9;
    if (kind == 0) return pool.encoder().characters({{c, c + chance() % 2}}, spelling);
    if (kind == 1) return pool.encoder().literals({{c, 'a'}, {'b', c, c}}, spelling);
    if (kind == 7) return pool.encoder().literals({{c, 'a'}}, spelling);
    if (kind == 8) return pool.subtract(part(), pool.encoder().literals({{c}, {'a', c}}, spelling));
    if (kind == 2) return pool.repeat(part(), chance() % 2, chance() % 2 ? 2 : kInfinite);
    if (kind == 3) return pool.intersect({pool.encoder().universe(spelling), pool.complement(part())});
    const ExprId one = part(), other = part();
    return kind == 4 ? pool.concat(one, other) : kind == 5 ? pool.unite({one, other}) : pool.intersect({one, other});
}

// A search without longer spellings of characters finds the same as a search in a single spelling.
void test_shortest_spellings() {
    int found = 0, empty = 0, spelled = 0, needing = 0;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        ExprPool pool;
        std::mt19937 chance(seed), again(seed);
        const ExprId any = make(pool, Encoding::escaped_any, chance, 4), one = make(pool, Encoding::escaped, again, 4);
        spelled += pool[any].encoding_closed;
        CHECK(pool.emptiness.shortest(any) == pool.emptiness.shortest(one));
        ++(pool.emptiness.shortest(any) == kInfinite ? empty : found);
        for (const ExprId e : {any, one}) {  // follows a shortest text
            ByteSet met;
            for (ExprId at = e; pool.emptiness.is_nonempty(at) && !pool[at].nullable;) {
                const int byte = pool.dfa.best_byte(at);
                CHECK(byte >= 0);
                if (byte < 0) break;
                const ExprId to = pool.dfa.derivative(at, static_cast<std::uint8_t>(byte));
                CHECK(pool.emptiness.shortest(to) + 1 == pool.emptiness.shortest(at));
                at = to;
                met.insert(static_cast<std::uint8_t>(byte));
            }
            if (!pool.emptiness.is_nonempty(e)) continue;
            CHECK(met.within(pool.byte_facts.alphabet(e)) && pool.byte_facts.needed(e).within(met));
            needing += !pool.byte_facts.needed(e).empty();
        }
    }
    CHECK(found > 300 && empty > 300 && spelled > 2000 && needing > 300);
}

void test_spellings() {
    ExprPool pool;
    Encoder encoder(pool);
    const Ranges any{{0, 0x10ffff}};
    const ExprId text = encoder.characters(any, Encoding::text);
    CHECK(matches(pool, text, "\xc3\xa9"));
    CHECK(matches(pool, text, "\xf0\x9f\xa6\x80"));
    CHECK(run(pool, text, "\xed\xa0") == kNone);  // a surrogate
    CHECK(run(pool, text, "\xc0") == kNone);      // overlong
    const ExprId canonical = encoder.characters(any, Encoding::escaped);
    CHECK(matches(pool, canonical, "\\n"));
    CHECK(matches(pool, canonical, "\\u001f"));
    CHECK(!matches(pool, canonical, "\\u001F"));
    CHECK(run(pool, canonical, "\\u000a") == kNone);  // it has a shorter spelling
    CHECK(run(pool, canonical, "\"") == kNone);
    const ExprId any_spelling = encoder.characters({{0x1f600, 0x1f600}}, Encoding::escaped_any);
    CHECK(matches(pool, any_spelling, "\xf0\x9f\x98\x80"));
    CHECK(matches(pool, any_spelling, "\\ud83d\\uDE00"));
    CHECK(!matches(pool, any_spelling, "\\ud83d\\ude01"));
    const ExprId literals = encoder.literals({U"", U"ab", U"a\u00e9"}, Encoding::text);
    CHECK(matches(pool, literals, ""));
    CHECK(matches(pool, literals, "a\xc3\xa9"));
    CHECK(!matches(pool, literals, "a"));
}

void test_limits() {
    ExprPool pool(ExprLimits{.max_exprs = 200, .max_search = 100, .max_depth = 50});
    Encoder encoder(pool);
    const ExprId a = encoder.characters({{'a', 'a'}}, Encoding::text);
    bool refused = false;
    try {
        ExprId e = pool.repeat(a, 0, 1'000'000);
        for (int i = 0; i < 1000; ++i) e = pool.dfa.derivative(e, 'a');
    } catch (const Error& error) {
        refused = error.kind == ErrorKind::limit;
    }
    CHECK(refused);
}

void test_labels() {
    ExprPool pool;
    Encoder encoder(pool);
    const ExprId keys = pool.unite({pool.concat(encoder.literals({U"ab"}, Encoding::text), pool.label(0)),
                                    pool.concat(encoder.literals({U"acd"}, Encoding::text), pool.label(1))});
    CHECK(pool.labels.reachable(keys).size() == 2);
    CHECK(pool.labels.reachable(keys)[1].distance == 3);
    const ExprId end = run(pool, keys, "ab");
    std::uint32_t found = kInfinite;
    pool.labels.each_accepted(end, [&](std::uint32_t label) { found = label; });
    CHECK(found == 0);
}

void test_values() {
    ExprPool pool;
    const ExprId value = *CompositeLanguage::of(pool).spelled(R"({"a":[1,"b"],"c":{}})");
    CHECK(value == *CompositeLanguage::of(pool).spelled(R"({"a":[1,"b"],"c":{}})"));
    CHECK(matches(pool, value, R"({ "c" : {} , "\u0061":[1.0, "b"]})"));
    CHECK(!matches(pool, value, R"({"a":[1,"b"]})"));
    CHECK(run(pool, value, R"({"a":[2)") == kNone);
    CHECK(run(pool, value, R"({"a":[1,"b"],"c":{}})") == kEmpty);
    CHECK(pool.emptiness.shortest(value) == 20);
    // A language without itself is empty at once; without a disjoint one, it is unchanged.
    UsedValues texts(pool);
    const ValueSet used = texts.plus(UsedValues::kEmptySet, R"({"c":{},"a":[1,"b"]})");
    CHECK(!pool.emptiness.is_nonempty(texts.without(value, used)));
    const ExprId other = *CompositeLanguage::of(pool).spelled(R"({"a":[1,"b"],"d":{}})");
    CHECK(pool.emptiness.shortest(texts.without(other, used)) == 20);
    for (const char* text : {"[1", "[1]]", R"({"a"})", R"({"a":1)", "{1:2}", "1", "", "[}", R"(["a)"})
        CHECK(!CompositeLanguage::of(pool).spelled(text));
}

// A string as one expression of a program equals its construction from parts.
void test_strings_of_programs() {
    ExprPool pool;
    for (const std::uint32_t spelling : {1u, 2u})
        for (const bool others : {false, true})
            for (const std::vector<std::string>& texts : {std::vector<std::string>{"a"}, {"ab", "b\"", ""}, {}}) {
                programs::Writer w;
                programs::Words list;
                for (const std::string& text : texts) {
                    list.push_back(static_cast<std::uint32_t>(text.size()));
                    for (char c : text) list.push_back(static_cast<std::uint8_t>(c));
                }
                const std::uint32_t whole = w.string(spelling, others, static_cast<std::uint32_t>(texts.size()), list);
                const std::uint32_t quote = w.literal("\""), inner = w.literals(static_cast<std::uint32_t>(texts.size()), list);
                const std::uint32_t pieces = w.concat({quote, w.spelled(others ? w.without(inner) : inner, spelling), quote});
                w.node({0, whole});
                w.node({0, pieces});
                const Program made = read_program(w.program(0), pool);
                CHECK(made.nodes[NodeId{0}].expr == made.nodes[NodeId{1}].expr);
            }
    for (const std::uint32_t spelling : {0u, 3u}) {
        programs::Writer w;
        w.node({0, w.string(spelling, false, 1, {1, 'a'})});
        CHECK_THROWS(read_program(w.program(0), pool), Error);
    }
    programs::Writer w;
    w.node({0, w.spelled(w.string(1, false, 1, {1, 'a'}), 1)});
    CHECK_THROWS(read_program(w.program(0), pool), Error);
}

}  // namespace

// A body whose bounds were saturated is a loop body: then lower counts are the same expression, up to this many iterations.
void test_units() {
    ExprPool pool;
    const auto byte = [&](char32_t c) { return pool.encoder().characters({{c, c}}, Encoding::text); };
    const ExprId unit = pool.concat(byte('a'), byte('b')), other = pool.concat(byte('b'), byte('a'));
    const ExprId far = pool.supersets.saturate_counters(pool.concat(pool.repeat(unit, 0, 99), byte('c')), 6, true);
    const auto near = pool.supersets.without_loop_bounds(pool.concat(pool.repeat(unit, 0, 3), byte('c')));
    CHECK(pool.supersets.loop_bodies() == 1 && near.expr == far && near.exact_up_to == 3 && near.loop_body == 1);
    const ExprId counts = pool.repeat(other, 0, 3);
    CHECK(pool.supersets.without_loop_bounds(counts).expr == counts);
    CHECK(pool.supersets.iterations_begin(far).contains('a') && !pool.supersets.iterations_begin(far).contains('b') &&
          !pool.supersets.iterations_begin(far).contains('c'));
    pool.supersets.saturate_counters(pool.repeat(byte('a'), 0, 99), 6, true);
    pool.supersets.saturate_counters(pool.repeat(other, 0, 99), 6, false);
    CHECK(pool.supersets.loop_bodies() ==
          1);  // texts of one byte are no loop bodies, nor are bodies that only part of the vocabulary cannot distinguish
}

// A state with a counter gets a row only after many queries. Its derivatives are the same before and after.
void test_counts_without_rows() {
    ExprPool pool;
    const auto byte = [&](char32_t c) { return pool.encoder().characters({{c, c}}, Encoding::text); };
    const ExprId several = pool.unite({byte('a'), pool.concat(byte('b'), byte('c'))}), maybe = pool.unite({byte('a'), kEmpty});
    const ExprId both = pool.intersect({several, pool.repeat(byte('a'), 0, 9)});
    for (const ExprId part : {several, maybe, both, pool.repeat(several, 1, 3)})
        for (const auto& [low, high] : {std::pair{0u, 2u}, {1u, 5u}, {3u, 40u}}) {
            const ExprId tail = byte('d');
            for (const ExprId start : {pool.repeat(part, low, high), pool.concat(pool.repeat(part, low, high), tail)}) {
                ExprId first[4];
                for (unsigned b = 0; b < 4; ++b) first[b] = pool.dfa.derivative(start, static_cast<std::uint8_t>('a' + b));
                for (unsigned k = 0; k < 99; ++k) pool.dfa.derivative(start, static_cast<std::uint8_t>(k));
                for (unsigned b = 0; b < 4; ++b) {
                    const auto c = static_cast<std::uint8_t>('a' + b);
                    CHECK(pool.dfa.derivative(start, c) == first[b]);
                    CHECK(pool.dfa.has_derivative(start, c) == (first[b] != kNone) &&
                          pool.dfa.first(start).contains(c) == (first[b] != kNone));
                }
            }
        }
}

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(test_basics());
    RUN(test_boolean_liveness());
    RUN(test_alphabets());
    RUN(test_needed());
    RUN(test_universe());
    RUN(test_search_inside_search());
    RUN(test_shortest_numbers());
    RUN(test_work_for_shortest_numbers());
    RUN(test_units());
    RUN(test_counts_without_rows());
    RUN(test_counts_inside_counts());
    RUN(test_hard_targets());
    RUN(test_shortest_spellings());
    RUN(test_spellings());
    RUN(test_limits());
    RUN(test_labels());
    RUN(test_values());
    RUN(test_strings_of_programs());
    return check::report();
}
