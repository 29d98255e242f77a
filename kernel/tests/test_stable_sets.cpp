// Subtrees that are accepted without a walk by stable sets, compared with walks of all nodes.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/mask/stable_sets.h"
#include "guideway/matcher/matcher.h"
#include "guideway/regex/encoding.h"
#include "programs.h"

using namespace guideway;
using ProgramWords = programs::Words;

namespace {

std::vector<std::string> tokens(std::mt19937& chance) {
    const char* const pieces[] = {"a",
                                  "f",
                                  "0",
                                  "9",
                                  "x",
                                  "y",
                                  "z",
                                  " ",
                                  "-",
                                  "\xc3\xa9",
                                  "\xc3",
                                  "\xe6\x97\xa5",
                                  "\"",
                                  "\\n",
                                  "\\u00",
                                  "the",
                                  "abc",
                                  "\xe6\x97",
                                  "\xf0\x9f\x98\x80",
                                  "\xf0\x9f"};
    std::vector<std::string> made{""};
    for (unsigned b = 0; b < 256; ++b) made.push_back(std::string(1, static_cast<char>(b)));
    while (made.size() < 9000) {
        std::string one;
        const std::size_t length = 1 + chance() % (chance() % 20 ? 5 : 24), kinds = chance() % 4 ? 12 : std::size(pieces);
        for (std::size_t i = 0; i < length; ++i) one += pieces[chance() % kinds];
        made.push_back(std::move(one));
    }
    return made;
}

// A string in which a run of some characters is required, forbidden or optional; each state accepts some more characters.
ProgramWords runs(std::mt19937& chance) {
    programs::Writer w;
    const std::uint32_t any = w.repeat(w.chars({0, 0x10ffff}), 0, kInfinite), length = 1 + static_cast<std::uint32_t>(chance() % 30);
    const std::vector<std::uint32_t> classes[] = {
        {'0', '9', 'a', 'f'}, {'a', 'z'}, {' ', '~'}, {'a', 'z', 0x80, 0xfff}, {'0', 'z', 0x80, 0x65e5, 0x65e7, 0x10ffff}};
    const std::uint32_t run = w.repeat(w.chars(classes[chance() % 5]), length, chance() % 2 ? length : kInfinite);
    std::uint32_t made = w.concat({any, run, any});
    if (chance() % 3 == 0) made = w.concat({run, any});
    if (chance() % 3 == 0) made = w.repeat(w.chars(classes[chance() % 5]), 1, length);
    if (chance() % 2) made = w.without(made);
    const std::uint32_t spelling = 1 + static_cast<std::uint32_t>(chance() % 2),
                        root = w.concat({w.literal("\""), w.spelled(made, spelling), w.literal("\"")});
    return w.program(w.node({0, root}));
}

// A number of some characters, then others: many begin with the same bytes, and an optional one can be omitted.
ProgramWords counted(std::mt19937& chance) {
    programs::Writer w;
    const std::vector<std::uint32_t> classes[] = {
        {0x4e00, 0x9fa5}, {0x80, 0xffff}, {'a', 'z', 0x400, 0x4ff}, {0, 0x4dff, 0xa000, 0x10ffff}, {0x65e5, 0x65e5}};
    const std::uint32_t minimums[] = {0, 0, 1, 3, 20}, least = minimums[chance() % 5];
    const auto some = [&](std::uint32_t minimum) {
        return w.repeat(w.chars(classes[chance() % 5]), minimum, chance() % 2 ? kInfinite : minimum + 12);
    };
    return w.program(w.node({0, w.concat({some(least), some(static_cast<std::uint32_t>(chance() % 2)), w.chars(classes[chance() % 5])})}));
}

void compare(std::mt19937& chance, const std::vector<std::string>& all, const ProgramWords& program) {
    VocabularyLimits plain;
    plain.tuning = programs::without_subtrees();
    const auto quick = std::make_shared<const Vocabulary>(TokenBlock(programs::block_of(all)), std::vector<std::uint32_t>{0},
                                                          std::vector<std::uint32_t>{0});
    const auto slow = std::make_shared<const Vocabulary>(TokenBlock(programs::block_of(all)), std::vector<std::uint32_t>{0},
                                                         std::vector<std::uint32_t>{0}, plain);
    const auto one = Automaton::compile(quick, program), other = Automaton::compile(slow, program);
    std::vector<std::uint32_t> row(quick->words()), wanted(quick->words());
    for (int walk = 0; walk < 4; ++walk) {
        Matcher a(one), b(other);
        for (int step = 0; step < 12 && !a.is_finished(); ++step) {
            a.fill_mask(row);
            b.fill_mask(wanted);
            CHECK(row == wanted);
            std::vector<std::uint32_t> legal;
            for (std::uint32_t t = 0; t < quick->size(); ++t)
                if (wanted[t >> 5] >> (t & 31) & 1) legal.push_back(t);
            if (legal.empty()) break;
            const std::uint32_t token = legal[chance() % legal.size()];
            a.advance(token);
            b.advance(token);
        }
    }
}

// A run of three is required: the number of characters of each state is the rest of it.
void test_promises(const std::vector<std::string>& all) {
    const Vocabulary vocabulary(TokenBlock(programs::block_of(all)), {0}, {0});
    ExprPool pool;
    Encoder& encoder = pool.encoder();
    const ExprId any = encoder.universe(Encoding::text), x = encoder.characters({{'x', 'x'}}, Encoding::text);
    const ExprId e = pool.intersect({any, pool.complement(pool.concat(any, pool.concat(pool.repeat(x, 12, 12), any)))});
    StableSets stable(pool, vocabulary.subtrees());
    CHECK(stable.find(e).loops == nullptr);
    stable.look_around(e);
    CHECK(stable.find(e).loops && stable.find(e).characters == 11);
    CHECK(stable.find(pool.dfa.derivative(e, 'x')).characters == 10);
    CHECK(stable.find(e).nullable);
    // A state in the stable set of another, without the character that the other rejects, has or reaches its own stable set.
    ExprId last = e;
    for (int i = 0; i < 11; ++i) last = pool.dfa.derivative(last, 'x');
    CHECK(pool.dfa.derivative(last, 'x') == kNone);
    const auto holds_x = [](const StableSets::Found& found) { return found.loops && (found.loops->ascii[1] >> ('x' - 64) & 1); };
    StableSets later(pool, vocabulary.subtrees());
    later.look_around(last);
    CHECK(later.find(last).characters == StableSets::kForever && later.find(e).characters == StableSets::kForever &&
          !holds_x(later.find(e)));
    later.look_wider(e);
    stable.look_wider(last);
    for (const StableSets* made : {&later, &stable})
        CHECK(made->find(e).characters == 11 && holds_x(made->find(e)) && !holds_x(made->find(last)));
}

// A state whose successors need long emptiness searches is in no stable set, without an error.
void test_hard_ones(const std::vector<std::string>& all) {
    const Vocabulary vocabulary(TokenBlock(programs::block_of(all)), {0}, {0});
    ExprPool pool(ExprLimits{.max_search = 500});
    Encoder& encoder = pool.encoder();
    const auto but = [&](char32_t c) {  // all texts with this character at a fixed distance from the end
        const ExprId any = encoder.universe(Encoding::text);
        return pool.concat(any, pool.concat(encoder.characters({{c, c}}, Encoding::text),
                                            pool.repeat(encoder.characters({{0, 0x10ffff}}, Encoding::text), 12, 12)));
    };
    const ExprId e = pool.intersect({but('a'), but('b'), pool.complement(but('c'))});
    CHECK_THROWS(pool.emptiness.is_nonempty(pool.dfa.derivative(e, 'a')), Error);
    StableSets stable(pool, vocabulary.subtrees());
    stable.look_around(e);
    CHECK(stable.find(e).loops == nullptr);
    CHECK_THROWS(pool.emptiness.is_nonempty(pool.dfa.derivative(e, 'a')), Error);  // the limit was restored
}

// A number of letters, then a dash: subtrees of up to this many characters are accepted. A second walk uses the same stable set.
void test_chains(const std::vector<std::string>& all) {
    const Vocabulary vocabulary(TokenBlock(programs::block_of(all)), {0}, {0});
    const TokenTrie& trie = vocabulary.trie();
    ExprPool pool;
    const ExprId letter = pool.encoder().characters({{'a', 'z'}, {0xe0, 0xff}}, Encoding::text);
    ExprId e = pool.concat(pool.set(ByteSet::range('-', '-')), pool.repeat(letter, 5, 5));
    for (int i = 0; i < 3; ++i) e = pool.concat(letter, e);
    LoopMemo loops;
    const LoopMemo::ClassSequence* sequence = loops.class_sequence(pool, vocabulary.subtrees(), e);
    CHECK(sequence && sequence->characters == 3 && !sequence->nullable);
    CHECK(sequence && sequence->loops.ascii[0] == 0 && sequence->loops.ascii[1] == 0x07fffffe00000000);
    CHECK(loops.class_sequence(pool, vocabulary.subtrees(), pool.set(ByteSet::range('0', '9'))) == nullptr);
    DfaTable states(64);
    LeafWalk walks[2];  // the longest rest is that of an incomplete letter: one byte of it, two letters, the dash, five letters
    for (LeafWalk& walk : walks) {
        walk.measures = true;
        walk.run(pool, {&trie, {{1, trie.size(), 0}}}, e, {}, &vocabulary.subtrees(), loops, states, Tuning{});
    }
    CHECK(walks[0].rest == 9 && walks[1].rest == walks[0].rest);
}

// Inside a character, a node has the number of its remaining bytes, and the alphabet after it, unless a token continues differently.
void test_inside_characters() {
    const std::vector<std::string> all{"",         "a",    "\xe6\x97\xa5", "\xe6\x97\xa6!", "\xe6\x97", "\xf0\x9f\x98\x80-",
                                       "\xc3\xa9", "\xc3", "\xc4",         "\xc5\x80",      "\xc5x"};
    const Vocabulary vocabulary(TokenBlock(programs::block_of(all)), {0}, {0});
    const TokenTrie& trie = vocabulary.trie();
    const auto node = [&](std::string_view bytes) {
        std::uint32_t at = 0;
        for (const char b : bytes) at = trie.child(at, static_cast<std::uint8_t>(b));
        return at;
    };
    const auto left = [&](std::string_view bytes) { return vocabulary.subtrees().left(node(bytes)); };
    CHECK(left("\xe6") == 2 && left("\xe6\x97") == 1 && left("\xe6\x97\xa6") == 0);
    CHECK(left("\xf0") == 3 && left("\xf0\x9f") == 2 && left("\xf0\x9f\x98") == 1);
    CHECK(left("a") == 0 && left("\xc3") == 1 && left("\xc4") == 0 && left("\xc5") == 0);
    SelfLoops dashes;
    dashes.ascii[0] = std::uint64_t{1} << '-';
    const auto loop = [&](std::string_view bytes) { return vocabulary.subtrees().loop_after(node(bytes), dashes, {}); };
    CHECK(!vocabulary.subtrees().loop(node("\xf0"), dashes, {}));  // the state is inside the character
    CHECK(loop("\xf0") && loop("\xf0\x9f\x98") && loop("\xc3") && !loop("\xe6") && !loop("\xe6\x97"));
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    std::mt19937 chance(3);
    const auto all = tokens(chance);
    RUN(test_promises(all));
    RUN(test_hard_ones(all));
    RUN(test_chains(all));
    RUN(test_inside_characters());
    for (int round = 0; round < 80; ++round) {
        const ProgramWords program = round % 2 ? counted(chance) : runs(chance);
        try {
            compare(chance, all, program);
        } catch (const Error& error) {
            CHECK(error.kind == ErrorKind::unsatisfiable);
        }
    }
    return check::report();
}
