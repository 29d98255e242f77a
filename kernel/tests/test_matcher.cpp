// Masks compared with `advance`, token by token, along random walks; rollback, fork, budgets; equal results for all cache sizes.
#include <random>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;

std::shared_ptr<const Vocabulary> vocabulary(std::size_t memo_bytes, const Tuning& tuning = {}) {
    VocabularyLimits limits;
    limits.memo_bytes = memo_bytes;
    limits.tuning = tuning;
    const std::vector<std::uint32_t> eos{0}, special{programs::kSpecial};
    const std::string tokens = programs::block_of(programs::tokens());
    const auto made = std::make_shared<Vocabulary>(TokenBlock(tokens), eos, special, limits);
    if (memo_bytes) return made;
    const auto file = std::make_shared<const std::vector<std::uint64_t>>(made->file());
    const auto read = std::make_shared<Vocabulary>(TokenBlock(tokens), eos, special, *file, file,
                                                   limits);  // those with small caches are also loaded from a file
    CHECK(read->file() == *file);
    return read;
}

bool bit(const Row& row, std::uint32_t t) { return row[t >> 5] >> (t & 31) & 1; }

void walk(const programs::Words& program, unsigned seed) {
    const auto automaton = Automaton::compile(vocabulary(64 << 20), program), forgetful = Automaton::compile(vocabulary(0), program);
    Matcher matcher(automaton), twin(forgetful), encoder(automaton),
        plodder(Automaton::compile(vocabulary(seed % 2 ? 0 : 64 << 20, Tuning::off()), program)),
        eager(Automaton::compile(vocabulary(64 << 20, Tuning::eager()), program));
    const Vocabulary& v = automaton->vocabulary();
    std::mt19937 random(seed);
    Row row(v.words()), other(v.words());
    for (int step = 0; step < 60 && !matcher.is_finished(); ++step) {
        matcher.fill_mask(row);
        twin.fill_mask(other);
        CHECK(row == other);
        plodder.fill_mask(other);
        CHECK(row == other);
        eager.fill_mask(other);
        CHECK(row == other);
        encoder.fill_mask(other);  // it took the same text byte by byte
        CHECK(row == other);
        std::vector<std::uint32_t> legal;
        for (std::uint32_t t = 0; t < v.size(); ++t) {
            Matcher copy = matcher;
            bool taken = true;
            try {
                copy.advance(t);
            } catch (const Error&) {
                taken = false;
            }
            CHECK(taken == bit(row, t));
            if (taken) legal.push_back(t);
        }
        CHECK(!legal.empty());
        const std::uint32_t chosen = legal[random() % legal.size()];
        matcher.advance(chosen);
        twin.advance(chosen);
        plodder.advance(chosen);
        eager.advance(chosen);
        if (v.is_eos(chosen) || v.is_special(chosen)) encoder.advance(chosen);
        else
            for (const char byte : v.token(chosen)) encoder.advance(1 + static_cast<std::uint8_t>(byte));
        matcher.rollback(1);
        matcher.fill_mask(other);
        CHECK(row == other);
        matcher.advance(chosen);
    }
}

void budget(const programs::Words& program, unsigned seed) {
    const auto automaton = Automaton::compile(vocabulary(64 << 20), program);
    std::mt19937 random(seed);
    Row row(automaton->vocabulary().words()), again = row, full = row, whole = row;
    for (std::uint32_t extra = 0; extra < 12; ++extra) {
        Matcher matcher(automaton);
        std::uint32_t left = matcher.tokens_to_finish() + extra;
        CHECK(!matcher.fill_mask_within(row, matcher.tokens_to_finish() - 1));
        CHECK(matcher.fill_masks_within(row, whole, matcher.tokens_to_finish() - 1) == Matcher::Fit::none);
        for (; !matcher.is_finished() && left > 0; --left) {
            CHECK(matcher.fill_mask_within(row, left));
            matcher.fill_mask(full);
            const Matcher::Fit fit = matcher.fill_masks_within(again, whole, left);
            CHECK(again == row);
            CHECK(fit == (row == full ? Matcher::Fit::all : Matcher::Fit::some));
            CHECK(fit == Matcher::Fit::all || whole == full);
            std::vector<std::uint32_t> legal;
            for (std::uint32_t t = 0; t < automaton->vocabulary().size(); ++t)
                if (bit(row, t)) legal.push_back(t);
            CHECK(!legal.empty());
            if (legal.empty()) return;
            matcher.advance(legal[random() % legal.size()]);
        }
        CHECK(matcher.is_finished());
    }
}

void errors() {
    const auto automaton = Automaton::compile(vocabulary(1 << 20), programs::letters(false));
    Matcher matcher(automaton);
    CHECK_THROWS(matcher.advance(100'000), Error);
    CHECK_THROWS(matcher.advance(-1), Error);
    CHECK_THROWS(matcher.advance(0), Error);
    CHECK_THROWS(matcher.rollback(1), Error);
    Row narrow(1);
    CHECK_THROWS(matcher.fill_mask(narrow), Error);
    CHECK(matcher.position() == 0);
    CHECK(matcher.completion() == "a");
    programs::Writer w;
    w.node({1, 2, 0, 0});
    CHECK_THROWS(Automaton::compile(vocabulary(0), w.program(0)), Error);  // left recursion
    programs::Writer never;
    never.node({0, never.either({})});
    CHECK_THROWS(Automaton::compile(vocabulary(0), never.program(0)), Error);
}

// Any number of empty parts needs no stack.
void empty_parts() {
    programs::Writer w;
    w.node({0, w.concat({})});
    w.node({0, w.literal("a")});
    constexpr std::uint32_t kParts = 300'000;
    programs::Words sequence{1, kParts};
    sequence.resize(2 + kParts, 0);
    sequence.back() = 1;
    w.node(sequence);
    CHECK(Matcher(Automaton::compile(vocabulary(0), w.program(2))).completion() == "a");
}

// "aabc" is no single part here, but "aa" and "bc" are two: what a difference takes away before a tail is not taken from
// the whole, where the tail can begin inside of it (found by fuzz_regex).
void tails() {
    programs::Writer w;
    w.node({0, w.quoted(w.repeat(w.without(w.literal("aab")), 1, 0xffffffff))});
    Matcher matcher(Automaton::compile(vocabulary(64 << 20), w.program(0)));
    const Vocabulary& v = matcher.automaton().vocabulary();
    Row row(v.words());
    for (const char byte : std::string("\"aaab")) {
        matcher.advance(1 + static_cast<std::uint8_t>(byte));
        matcher.fill_mask(row);
        for (std::uint32_t t = 0; t < v.size(); ++t) {
            const std::int64_t ids[] = {t};
            CHECK((matcher.validate(ids) == 1) == bit(row, t));
        }
    }
}

// An object that requires two different marks but allows at most one is empty. (Found by fuzz_program.)
void too_few_marks() {
    for (bool ordered : {false, true}) {
        bool refused = false;
        try {
            Automaton::compile(vocabulary(0), programs::demands(ordered, 1));
        } catch (const Error& error) {
            refused = error.kind == ErrorKind::unsatisfiable;
        }
        CHECK(refused);
    }
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    for (unsigned seed = 0; seed < 6; ++seed) {
        for (bool split : {false, true}) walk(programs::letters(split), seed);
        for (bool ordered : {false, true})
            for (bool space : {false, true}) walk(programs::tree(ordered, space), seed);
        for (bool ordered : {false, true}) budget(programs::tree(ordered, seed % 2), seed);
        RUN(budget(programs::letters(true), seed));
        for (const programs::Words& program : programs::all()) {
            RUN(walk(program, seed));
            RUN(budget(program, seed));
        }
        for (unsigned kind = 0; kind < programs::kCounted; ++kind) RUN(walk(programs::counted(kind), seed));
    }
    RUN(errors());
    RUN(empty_parts());
    RUN(tails());
    RUN(too_few_marks());
    return check::report();
}
