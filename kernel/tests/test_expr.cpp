// Expressions and their derivatives, against words enumerated by hand.
#include <random>
#include <set>
#include <string>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/grammar/composite_language.h"
#include "guideway/grammar/used_values.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/number_language.h"
#include "programs.h"

using namespace guideway;

namespace {

ExprId run(ExprPool& pool, ExprId e, const std::string& text) {
    for (char b : text) e = pool.next(e, static_cast<std::uint8_t>(b));
    return e;
}

bool matches(ExprPool& pool, ExprId e, const std::string& text) { return pool.nullable(run(pool, e, text)); }

void test_basics() {
    ExprPool pool;
    Speller speller(pool);
    const ExprId a = speller.characters({{'a', 'a'}}, Spelling::text), b = speller.characters({{'b', 'b'}}, Spelling::text);
    const ExprId word = pool.cat(pool.repeat(pool.alt({a, b}), 2, 3), a);
    CHECK(matches(pool, word, "aba"));
    CHECK(matches(pool, word, "bbba"));
    CHECK(!matches(pool, word, "aa"));
    CHECK(run(pool, word, "bbbb") == kNone);
    CHECK(pool.shortest(word) == 3);
    CHECK(pool.best_byte(word) == 'a');
    CHECK(pool.cat(a, pool.cat(b, a)) == pool.cat(pool.cat(a, b), a));
    CHECK(pool.alt({a, b, a}) == pool.alt({b, a}));
}

void test_boolean_liveness() {
    ExprPool pool;
    Speller speller(pool);
    const ExprId a = speller.characters({{'a', 'a'}}, Spelling::text);
    const ExprId even = pool.repeat(pool.cat(a, a), 0, kInfinite), three = pool.repeat(a, 3, 3);
    CHECK(!pool.alive(pool.both({even, three})));
    const ExprId odd = pool.both({speller.universe(Spelling::text), pool.negate(even), pool.repeat(a, 0, kInfinite)});
    CHECK(pool.alive(odd));
    CHECK(pool.shortest(odd) == 1);
    CHECK(matches(pool, odd, "aaa"));
    CHECK(!matches(pool, odd, "aa"));
    CHECK(run(pool, odd, "b") == kNone);
}

void test_alphabets() {
    ExprPool pool;
    const auto any_of = [&](const char* text) { return pool.set(ByteSet::of(text)); };
    const ExprId quote = any_of("\""), digits = pool.repeat(any_of("0123456789"), 0, kInfinite), letters = pool.repeat(any_of("ab12"), 1, 9);
    const ExprId both = pool.both({pool.cat(digits, quote), pool.cat(letters, quote)}), but = pool.cat(pool.except(letters, any_of("a")), quote);
    CHECK(pool.alphabet(pool.cat(digits, quote)) == ByteSet::of("0123456789\""));
    CHECK(pool.alphabet(both) == ByteSet::of("12\""));
    CHECK(pool.alphabet(but) == ByteSet::of("ab12\""));
    CHECK(pool.alphabet(pool.negate(letters)) == ByteSet::range(0, 255));
    CHECK(pool.alphabet(kEmpty).empty());
    const auto literals = [&](std::vector<std::u32string> texts, Spelling spelling) { return pool.speller().literals(std::move(texts), spelling, quote); };
    CHECK(pool.alphabet(literals({U"ab", U"a\n"}, Spelling::text)) == ByteSet::of("ab\n\""));
    CHECK(pool.alphabet(literals({U"zy", U"x"}, Spelling::escaped)) == ByteSet::of("xyz\""));
    CHECK(pool.alphabet(literals({U"zy", U"/"}, Spelling::escaped_any)) == ByteSet::of("zy/\\u0123456789abcdefABCDEF\""));
    CHECK(pool.alphabet(literals({U"a\u00e9"}, Spelling::escaped)) == ByteSet::range(0, 255));
    CHECK(pool.alphabet(literals({std::u32string(100, U'a')}, Spelling::text)) == ByteSet::range(0, 255));  // too many to look through
    for (const ExprId e : {both, but, pool.alt({pool.cat(digits, quote), pool.cat(letters, quote)})}) CHECK(pool.ends_in(e, '"'));
    CHECK(!pool.ends_in(pool.alt({letters, quote}), '"'));
    CHECK(!pool.ends_in(pool.cat(quote, digits), '"'));
    CHECK(pool.taken_from(but) == pool.cat(letters, quote));
    CHECK(pool.taken_from(pool.cat(quote, but)) == pool.cat(quote, pool.cat(letters, quote)));
    CHECK(pool.taken_from(pool.cat(quote, letters)) == kNone);
}

void test_needed() {
    ExprPool pool;
    const auto characters = [&](Ranges ranges) { return pool.speller().characters(ranges, Spelling::escaped_any); };
    const ExprId any = pool.speller().universe(Spelling::escaped_any), a = characters({{'a', 'a'}}), b = characters({{'b', 'b'}}), quote = pool.set(ByteSet::of("\""));
    CHECK(pool.needed(a) == ByteSet::of("a"));
    CHECK(pool.needed(pool.cat(any, pool.cat(a, pool.cat(any, quote)))) == ByteSet::of("a\""));
    CHECK(pool.needed(pool.alt({pool.cat(a, quote), pool.cat(b, pool.cat(a, quote))})) == ByteSet::of("a\""));
    CHECK(pool.needed(pool.repeat(a, 0, 3)).empty() && pool.needed(pool.repeat(a, 2, 3)) == ByteSet::of("a"));
    CHECK(pool.needed(characters({{'"', '"'}})).empty() && pool.needed(characters({{'a', 'b'}})).empty());
    CHECK(pool.needed(pool.speller().literals({U"a\n\"b"}, Spelling::escaped_any, quote)) == ByteSet::of("ab\""));
    CHECK(pool.needed(pool.speller().literals({U"ab", U"ac"}, Spelling::escaped_any, quote)).empty());  // not looked at so closely
    CHECK(pool.needed(pool.negate(a)).empty() && pool.needed(kEmpty).empty());
    CHECK(!pool.alive(pool.both({pool.cat(any, pool.cat(a, any)), pool.repeat(b, 0, kInfinite)})));
    CHECK(pool.alive(pool.both({pool.cat(any, pool.cat(a, any)), pool.repeat(characters({{'a', 'b'}}), 3, 3)})));
}

// A search steps values, whose machines search themselves: of numbers inside arrays and objects.
void test_search_inside_search() {
    for (const char* text : {"{}", "[1]", R"({"a": 0})", "[[1], 22]", R"(["x", {"b": [0, 1.5]}])"}) {
        ExprPool pool;
        const std::string_view bytes(text);
        const ExprId same = *Values::of(pool).spelled(bytes);
        const ExprId literal = pool.speller().literals({std::u32string(bytes.begin(), bytes.end())}, Spelling::text);
        CHECK(!pool.alive(pool.both({literal, pool.negate(same)})));
        CHECK(pool.alive(pool.both({literal, same})) && pool.shortest(pool.both({literal, same})) == bytes.size());
    }
}

Decimal decimal(std::int64_t value, std::int64_t exponent = 0) { return {value < 0, exponent, std::to_string(std::abs(value))}; }

// Bytes of a shortest text, by a search that knows nothing of what lies ahead.
std::uint32_t breadth_first(ExprPool& pool, ExprId start) {
    std::vector<ExprId> level{start};
    std::set<ExprId> seen{start};
    for (std::uint32_t depth = 0; !level.empty(); ++depth) {
        std::vector<ExprId> following;
        for (const ExprId e : level) {
            if (pool.nullable(e)) return depth;
            pool.live(e).each([&](std::uint8_t b) {
                if (const ExprId to = pool.next(e, b); to != kNone && seen.insert(to).second) following.push_back(to);
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
        ExprId at = pool.numbers().start({cell}, static_cast<NumberText>(draw(0, 2)));
        while (at != kNone) {
            const std::uint32_t expected = breadth_first(pool, at);
            CHECK(pool.shortest(at) == expected);
            ++compared;
            std::vector<std::uint8_t> bytes;
            pool.live(at).each([&](std::uint8_t b) { bytes.push_back(b); });
            if (bytes.empty() || draw(0, 4) == 0) break;
            at = pool.next(at, bytes[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(bytes.size()) - 1))]);
        }
    }
    CHECK(compared > 400);
}

// The digits that are missing until the next multiple lead the search, so not all remainders are visited.
void test_work_for_shortest_numbers() {
    for (const bool plain : {false, true}) {
        Cell cell;
        cell.multiple_of = {decimal(8721)};
        cell.not_multiple_of = {decimal(2), decimal(5), decimal(7), decimal(11), decimal(37)};
        cell.has_low = cell.open_low = true;
        cell.low = decimal(plain ? 123456 : 0);
        ExprPool pool;
        const ExprId start = pool.numbers().start({cell}, plain ? NumberText::plain : NumberText::any);
        const std::uint64_t before = pool.work().left();
        CHECK(pool.shortest(start) == (plain ? 6 : 4));
        CHECK(before - pool.work().left() < 100'000);
    }
}

// Texts of some length that spell characters are those characters alone: nothing is left to intersect, whatever else was
// made of the same characters, and in whichever sums they are.
void test_universe() {
    ExprPool pool;
    for (const Spelling spelling : {Spelling::text, Spelling::escaped, Spelling::escaped_any}) {
        const auto characters = [&](Ranges ranges) { return pool.speller().characters(ranges, spelling); };
        const ExprId one = characters({{0, 0x10ffff}}), some = pool.repeat(one, 2, kInfinite);
        const ExprId mixed = pool.alt({characters({{'a', 'z'}}), pool.cat(characters({{'%', '%'}}), characters({{'0', '9'}, {0xe9, 0x2000}}))});
        const ExprId texts = pool.cat(characters({{'a', 'a'}}), pool.cat(characters({{'b', 'b'}}), pool.repeat(mixed, 0, kInfinite)));
        ExprId both = pool.both({some, texts}), left = texts;
        CHECK(pool.boolean(both));
        for (const char byte : {'a', 'b'}) {
            both = pool.next(both, static_cast<std::uint8_t>(byte));
            left = pool.next(left, static_cast<std::uint8_t>(byte));
        }
        CHECK(both == left && !pool.boolean(both));
        CHECK(pool.both({pool.repeat(one, 0, kInfinite), pool.cat(mixed, texts)}) == pool.cat(mixed, texts));
    }
}

// Counts inside counts: what is left after the freest bounds is no separate state.
void test_counts_inside_counts() {
    const auto groups = [](ExprPool& pool, std::uint32_t most, std::uint32_t times) {
        const ExprId any = pool.set(ByteSet::of("ab.")), dot = pool.set(ByteSet::of("."));
        return pool.cat(pool.repeat(pool.cat(pool.repeat(any, 1, most), dot), 1, times), pool.set(ByteSet::of("x")));
    };
    ExprPool large;
    ExprId state = groups(large, 63, 127);
    const std::size_t before = large.size();
    for (unsigned i = 0; i < 100; ++i) state = large.next(state, '.');
    CHECK(state != kNone && large.size() - before < 3000);
    ExprPool pool;
    const ExprId few = groups(pool, 3, 3);
    bool right = true;
    for (std::uint32_t length = 0; length <= 13; ++length)
        for (std::uint32_t dots = 0; dots < 1u << length; ++dots) {
            std::string text(length, 'a');
            std::vector<std::uint32_t> ways(length + 1);  // by place: bit n: n groups may end there
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

// A byte is answered where a search finds that in few states, though another byte's would take too many; also when queried often.
void test_hard_targets() {
    ExprPool pool(ExprLimits{.max_search = 3000});
    const auto character = [&](char32_t c) { return pool.speller().characters({{c, c}}, Spelling::text); };
    const ExprId any = pool.speller().universe(Spelling::text), letter = pool.speller().characters({{'a', 'c'}}, Spelling::text);
    const auto back = [&](char32_t c) { return pool.cat(pool.repeat(letter, 0, kInfinite), pool.cat(character(c), pool.repeat(letter, 13, 13))); };
    const ExprId hard = pool.both({back('a'), back('b')});  // of one text no character is both
    const ExprId e = pool.both({pool.alt({pool.cat(character('x'), hard), pool.cat(character('y'), any)}), pool.alt({pool.cat(character('x'), hard), pool.cat(character('y'), letter)})});
    for (int i = 0; i < 100; ++i) CHECK(pool.next(e, 'y') != kNone && pool.next(e, 'z') == kNone);
    CHECK_THROWS(pool.next(e, 'x'), Error);
    CHECK(pool.lives_after(e, "ya") && !pool.lives_after(e, "yy") && !pool.lives_after(e, "za"));
}

// The same constraint on characters, in one spelling.
ExprId make(ExprPool& pool, Spelling spelling, std::mt19937& chance, int depth) {
    const auto part = [&] { return make(pool, spelling, chance, depth - 1); };
    const char32_t some[] = {'a', 'b', 1, '\n', '"', '/', 0xe9, 0x1f980};
    const char32_t c = some[chance() % 8];
    const auto kind = depth == 0 ? 0 : chance() % 9;
    if (kind == 0) return pool.speller().characters({{c, c + chance() % 2}}, spelling);
    if (kind == 1) return pool.speller().literals({{c, 'a'}, {'b', c, c}}, spelling);
    if (kind == 7) return pool.speller().literals({{c, 'a'}}, spelling);
    if (kind == 8) return pool.except(part(), pool.speller().literals({{c}, {'a', c}}, spelling));
    if (kind == 2) return pool.repeat(part(), chance() % 2, chance() % 2 ? 2 : kInfinite);
    if (kind == 3) return pool.both({pool.speller().universe(spelling), pool.negate(part())});
    const ExprId one = part(), other = part();
    return kind == 4 ? pool.cat(one, other) : kind == 5 ? pool.alt({one, other}) : pool.both({one, other});
}

// A search that leaves longer spellings of characters out finds what one through the only spelling does.
void test_shortest_spellings() {
    int found = 0, empty = 0, spelled = 0, needing = 0;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        ExprPool pool;
        std::mt19937 chance(seed), again(seed);
        const ExprId any = make(pool, Spelling::escaped_any, chance, 4), one = make(pool, Spelling::escaped, again, 4);
        spelled += pool.spelled(any);
        CHECK(pool.shortest(any) == pool.shortest(one));
        ++(pool.shortest(any) == kInfinite ? empty : found);
        for (const ExprId e : {any, one}) {  // by its bytes
            ByteSet met;
            for (ExprId at = e; pool.alive(at) && !pool.nullable(at);) {
                const int byte = pool.best_byte(at);
                CHECK(byte >= 0);
                if (byte < 0) break;
                const ExprId to = pool.next(at, static_cast<std::uint8_t>(byte));
                CHECK(pool.shortest(to) + 1 == pool.shortest(at));
                at = to;
                met.insert(static_cast<std::uint8_t>(byte));
            }
            if (!pool.alive(e)) continue;
            CHECK(met.within(pool.alphabet(e)) && pool.needed(e).within(met));
            needing += !pool.needed(e).empty();
        }
    }
    CHECK(found > 300 && empty > 300 && spelled > 2000 && needing > 300);
}

void test_spellings() {
    ExprPool pool;
    Speller speller(pool);
    const Ranges any{{0, 0x10ffff}};
    const ExprId text = speller.characters(any, Spelling::text);
    CHECK(matches(pool, text, "\xc3\xa9"));
    CHECK(matches(pool, text, "\xf0\x9f\xa6\x80"));
    CHECK(run(pool, text, "\xed\xa0") == kNone);  // a surrogate
    CHECK(run(pool, text, "\xc0") == kNone);      // overlong
    const ExprId canonical = speller.characters(any, Spelling::escaped);
    CHECK(matches(pool, canonical, "\\n"));
    CHECK(matches(pool, canonical, "\\u001f"));
    CHECK(!matches(pool, canonical, "\\u001F"));
    CHECK(run(pool, canonical, "\\u000a") == kNone);  // it has a shorter spelling
    CHECK(run(pool, canonical, "\"") == kNone);
    const ExprId any_spelling = speller.characters({{0x1f600, 0x1f600}}, Spelling::escaped_any);
    CHECK(matches(pool, any_spelling, "\xf0\x9f\x98\x80"));
    CHECK(matches(pool, any_spelling, "\\ud83d\\uDE00"));
    CHECK(!matches(pool, any_spelling, "\\ud83d\\ude01"));
    const ExprId literals = speller.literals({U"", U"ab", U"a\u00e9"}, Spelling::text);
    CHECK(matches(pool, literals, ""));
    CHECK(matches(pool, literals, "a\xc3\xa9"));
    CHECK(!matches(pool, literals, "a"));
}

void test_limits() {
    ExprPool pool(ExprLimits{.max_exprs = 200, .max_search = 100, .max_depth = 50});
    Speller speller(pool);
    const ExprId a = speller.characters({{'a', 'a'}}, Spelling::text);
    bool refused = false;
    try {
        ExprId e = pool.repeat(a, 0, 1'000'000);
        for (int i = 0; i < 1000; ++i) e = pool.next(e, 'a');
    } catch (const Error& error) { refused = error.kind == ErrorKind::limit; }
    CHECK(refused);
}

void test_labels() {
    ExprPool pool;
    Speller speller(pool);
    const ExprId keys = pool.alt({pool.cat(speller.literals({U"ab"}, Spelling::text), pool.label(0)),
                                  pool.cat(speller.literals({U"acd"}, Spelling::text), pool.label(1))});
    CHECK(pool.labels(keys).size() == 2);
    CHECK(pool.labels(keys)[1].distance == 3);
    const ExprId end = run(pool, keys, "ab");
    std::uint32_t found = kInfinite;
    pool.each_accepted_label(end, [&](std::uint32_t label) { found = label; });
    CHECK(found == 0);
}

void test_values() {
    ExprPool pool;
    const ExprId value = *Values::of(pool).spelled(R"({"a":[1,"b"],"c":{}})");
    CHECK(value == *Values::of(pool).spelled(R"({"a":[1,"b"],"c":{}})"));
    CHECK(matches(pool, value, R"({ "c" : {} , "\u0061":[1.0, "b"]})"));
    CHECK(!matches(pool, value, R"({"a":[1,"b"]})"));
    CHECK(run(pool, value, R"({"a":[2)") == kNone);
    CHECK(run(pool, value, R"({"a":[1,"b"],"c":{}})") == kEmpty);
    CHECK(pool.shortest(value) == 20);
    // Taken away from itself, nothing is left at once; from another, all of that.
    TextSets texts(pool);
    const std::uint32_t used = texts.plus(0, R"({"c":{},"a":[1,"b"]})");
    CHECK(!pool.alive(texts.without(value, used)));
    const ExprId other = *Values::of(pool).spelled(R"({"a":[1,"b"],"d":{}})");
    CHECK(pool.shortest(texts.without(other, used)) == 20);
    for (const char* text : {"[1", "[1]]", R"({"a"})", R"({"a":1)", "{1:2}", "1", "", "[}", R"(["a)"}) CHECK(!Values::of(pool).spelled(text));
}

// A string as one expression of a program is the same as in pieces.
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
                const std::uint32_t pieces = w.cat({quote, w.spelled(others ? w.without(inner) : inner, spelling), quote});
                w.node({0, whole});
                w.node({0, pieces});
                const Program made = read_program(w.program(0), pool);
                CHECK(made.nodes[0].expr == made.nodes[1].expr);
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

// What was clipped is a unit: from then on, lower counts are the same expression, up to this many rounds.
void test_units() {
    ExprPool pool;
    const auto byte = [&](char32_t c) { return pool.speller().characters({{c, c}}, Spelling::text); };
    const ExprId unit = pool.cat(byte('a'), byte('b')), other = pool.cat(byte('b'), byte('a'));
    const ExprId far = pool.clipped(pool.cat(pool.repeat(unit, 0, 99), byte('c')), 6, true);
    const auto near = pool.uncounted(pool.cat(pool.repeat(unit, 0, 3), byte('c')));
    CHECK(pool.units() == 1 && near.expr == far && near.most == 3 && near.unit == 1);
    const ExprId counts = pool.repeat(other, 0, 3);
    CHECK(pool.uncounted(counts).expr == counts);
    CHECK(pool.rounds_begin(far).contains('a') && !pool.rounds_begin(far).contains('b') && !pool.rounds_begin(far).contains('c'));
    pool.clipped(pool.repeat(byte('a'), 0, 99), 6, true);
    pool.clipped(pool.repeat(other, 0, 99), 6, false);
    CHECK(pool.units() == 1);  // texts of one byte are none, nor what only a part of the vocabulary cannot tell
}

// A state that counts has no row until it is often queried; what it says is the same before and after.
void test_counts_without_rows() {
    ExprPool pool;
    const auto byte = [&](char32_t c) { return pool.speller().characters({{c, c}}, Spelling::text); };
    const ExprId several = pool.alt({byte('a'), pool.cat(byte('b'), byte('c'))}), maybe = pool.alt({byte('a'), kEmpty});
    const ExprId both = pool.both({several, pool.repeat(byte('a'), 0, 9)});
    for (const ExprId part : {several, maybe, both, pool.repeat(several, 1, 3)})
        for (const auto& [low, high] : {std::pair{0u, 2u}, {1u, 5u}, {3u, 40u}}) {
            const ExprId tail = byte('d');
            for (const ExprId start : {pool.repeat(part, low, high), pool.cat(pool.repeat(part, low, high), tail)}) {
                ExprId first[4];
                for (unsigned b = 0; b < 4; ++b) first[b] = pool.next(start, static_cast<std::uint8_t>('a' + b));
                for (unsigned k = 0; k < 99; ++k) pool.next(start, static_cast<std::uint8_t>(k));
                for (unsigned b = 0; b < 4; ++b) {
                    const auto c = static_cast<std::uint8_t>('a' + b);
                    CHECK(pool.next(start, c) == first[b]);
                    CHECK(pool.takes(start, c) == (first[b] != kNone) && pool.live(start).contains(c) == (first[b] != kNone));
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
