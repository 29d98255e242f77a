// Work is counted: hostile input ends. A call that reaches a limit anywhere changes nothing, and succeeds when it is repeated.
#include <chrono>
#include <random>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/batch.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;

std::size_t cuts = 0;

std::shared_ptr<const Vocabulary> vocabulary(std::size_t memo_bytes = 64 << 20) {
    VocabularyLimits limits;
    limits.memo_bytes = memo_bytes;
    return std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                        std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

// Repeats a call with increasing limits until it succeeds.
template <class F>
auto persist(Store& store, F&& call) {
    for (std::uint64_t allowed = 16;; allowed += 1 + allowed / 8) {
        store.pool.fuel().allow(allowed);
        try {
            return call();
        } catch (const Error& error) {
            CHECK(error.kind == ErrorKind::limit);
            if (error.kind != ErrorKind::limit) throw;
            ++cuts;
        }
    }
}

void walk(const programs::Words& program, unsigned seed) {
    const auto whole = Automaton::compile(vocabulary(), program);
    const auto small = vocabulary(seed % 2 ? 64 << 20 : 0);
    Store& store = *small->store();
    const auto automaton = persist(store, [&] { return Automaton::compile(small, program); });
    Matcher expected(whole), matcher = persist(store, [&] { return Matcher(automaton); });
    std::mt19937 random(seed);
    Row row(whole->vocabulary().words()), other(row.size());
    for (int step = 0; step < 12 && !expected.is_finished(); ++step) {
        expected.fill_mask(row);
        persist(store, [&] { matcher.fill_mask(other); });
        CHECK(row == other);
        CHECK(persist(store, [&] { return matcher.forced_bytes(); }) == expected.forced_bytes());
        CHECK(persist(store, [&] { return matcher.tokens_to_finish(); }) == expected.tokens_to_finish());
        CHECK(expected.fill_mask_within(row, 12) == persist(store, [&] { return matcher.fill_mask_within(other, 12); }));
        CHECK(row == other);
        expected.fill_mask(row);
        std::vector<std::uint32_t> legal;
        for (std::uint32_t t = 0; t < whole->vocabulary().size(); ++t)
            if (row[t / 32] >> t % 32 & 1) legal.push_back(t);
        const std::uint32_t chosen = legal[random() % legal.size()];
        expected.advance(chosen);
        if (step % 2) persist(store, [&] { matcher.advance(chosen); });
        else persist(store, [&] { matcher.advance_and_fill(chosen, other); });
        CHECK(matcher.position() == expected.position());
    }
}

// ~((~([bc]{0,75}){2,5}){0,35}), found by fuzz_regex: millions of states, each an alternation of thousands.
void counts_under_complements() {
    programs::Writer w;
    const std::uint32_t letters = w.repeat(w.chars({'b', 'c'}), 0, 75);
    w.node({0, w.without(w.repeat(w.repeat(w.without(letters), 2, 5), 0, 35))});
    const auto begin = std::chrono::steady_clock::now();
    bool refused = false;
    try {
        Matcher matcher(Automaton::compile(vocabulary(), w.program(0)));
        Row row(matcher.automaton().vocabulary().words());
        matcher.fill_mask(row);
    } catch (const Error& error) {
        refused = error.kind == ErrorKind::limit && error.node == 0;
    }
    CHECK(refused);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(2));  // a second; under sanitizers more
}

// If a row of a batch cannot be filled, no matcher changes.
void batches() {
    const auto small = vocabulary();
    const auto automaton = Automaton::compile(small, programs::counted(4));
    small->store()->engine.clear();  // without the results of compilation
    Matcher one(automaton), two(automaton);
    const std::vector<std::int64_t> tokens{1 + '"', 1 + '"'};
    Row rows(2 * automaton->vocabulary().words());
    std::vector<Matcher*> both{&one, &two};
    bool cut = false;
    persist(*small->store(), [&] {
        try {
            advance_and_fill(both, tokens, rows, automaton->vocabulary().words(), 1);
        } catch (const Error&) {
            cut = true;
            CHECK(one.position() == 0 && two.position() == 0);
            throw;
        }
    });
    CHECK(cut && one.position() == 1 && two.position() == 1);
}

// A token of a batch reaches the thread's bound of work after earlier matchers took their tokens.
void bounded_batches() {
    programs::Writer w;
    w.node({0, w.repeat(w.chars({'a', 'b'}), 0, 4000)});
    const std::vector<std::string> texts{"", "a", std::string(3000, 'a')};
    const auto small =
        std::make_shared<Vocabulary>(TokenBlock(programs::block_of(texts)), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
    const auto automaton = Automaton::compile(small, w.program(0));
    Matcher one(automaton), two(automaton);
    std::vector<Matcher*> batch{&one, nullptr, &two};
    const std::vector<std::int64_t> tokens{1, 1, 2};
    Row rows(3 * small->words());
    bool deferred = false;
    WorkBound::set(1);
    try {
        advance_and_fill(batch, tokens, rows, small->words(), 1);
    } catch (const Deferred&) {
        deferred = true;
    }
    WorkBound::set(WorkBound::kNone);
    CHECK(deferred && one.position() == 0 && two.position() == 0);
    CHECK(rows == Row(rows.size()));
    advance_and_fill(batch, tokens, rows, small->words(), 1);
    CHECK(one.position() == 1 && two.position() == 1 && rows[0] == 0b111 && rows[2] == 0b011);
}

void allowances() {
    Fuel work(100);
    bool cut = false;
    work.within(30, [&] { work.spend(30); });
    CHECK(work.left() == 70);
    try {
        work.within(30, [&] {
            work.spend(10);
            work.spend(21);
        });
    } catch (const Error&) {
        cut = true;
    }
    CHECK(cut && work.left() == 60);
    work.within(1000, [&] { work.spend(60); });
    CHECK(work.left() == 0);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    for (unsigned seed = 0; seed < 4; ++seed) {
        for (const programs::Words& program : programs::all()) RUN(walk(program, seed));
        for (bool ordered : {false, true}) walk(programs::tree(ordered, true), seed);
        for (unsigned kind = 0; kind < programs::kCounted; ++kind) RUN(walk(programs::counted(kind), seed));
    }
    CHECK(cuts > 1000);
    RUN(counts_under_complements());
    RUN(batches());
    RUN(bounded_batches());
    RUN(allowances());
    return check::report();
}
