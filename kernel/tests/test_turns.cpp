// Concurrent calls: work is divided into turns, cached results are read between two pieces of work, and work that is interrupted too
// often is done in a separate store, with the same results. Run it under ThreadSanitizer too.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#if defined(__unix__)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/batch.h"
#include "guideway/matcher/compiled.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;

#ifdef __SANITIZE_THREAD__
constexpr int kRounds = 3;  // each takes ten times as long
#else
constexpr int kRounds = 30;
#endif

std::shared_ptr<const Vocabulary> vocabulary(std::size_t store_bytes = 512u << 20) {
    VocabularyLimits limits;
    limits.store_bytes = store_bytes;
    return std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                        std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

// Practically endless work, up to the limit: ~((~([bc]{0,75}){2,5}){0,35}).
#if defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kLess = 6;  // hostile constraints are smaller under ThreadSanitizer, which is 10 to 20 times slower
#else
constexpr std::uint32_t kLess = 1;
#endif

programs::Words hostile(std::uint32_t length) {
    programs::Writer w;
    const std::uint32_t letters = w.repeat(w.chars({'b', 'c'}), 0, length / kLess + 2);
    w.node({0, w.without(w.repeat(w.repeat(w.without(letters), 2, 5), 0, 35 / kLess + 1))});
    return w.program(0);
}

const std::string kText = "{ \"kids\":[{\"name\":\"x\"}] , \"name\":\"y\" }";

std::uint32_t token_of(char c) { return 1 + static_cast<std::uint8_t>(c); }

std::vector<Row> walk(Matcher& matcher, const std::string& text) {
    std::vector<Row> all;
    for (const char c : text) {
        Row row(matcher.automaton().vocabulary().words());
        matcher.fill_mask(row);
        all.push_back(row);
        matcher.advance(token_of(c));
    }
    return all;
}

struct Reported : LongCall {
    bool is_long = false;
    std::chrono::steady_clock::time_point at;
    void begin() noexcept override {
        is_long = true;
        at = std::chrono::steady_clock::now();
    }
};

// A call in a round is reported later.
void long_calls() {
    {
        Reported call;
        LongCall::works(1);
        CHECK(call.is_long);
    }
    LoopRounds::begin();
    {
        Reported call;
        LongCall::works(LongCall::kKeptWork - 1);
        CHECK(!call.is_long);
        LongCall::works(1);
        CHECK(call.is_long);
    }
    LoopRounds::end();
    // The lock is held: the call is reported at once, or after a wait.
    StoreLock lock;
    for (const bool is_in_round : {false, true}) {
        lock.lock(StoreLock::Rank::step);
        std::atomic<bool> begun = false, has_lock = false;
        std::thread other([&] {
            if (is_in_round) LoopRounds::begin();
            Reported call;
            const auto start = std::chrono::steady_clock::now();
            begun = true;
            lock.lock(StoreLock::Rank::step);
            has_lock = true;
            lock.unlock();
            CHECK(call.is_long);
            if (is_in_round) CHECK(call.at - start >= LongCall::kKeptWait);
            if (is_in_round) LoopRounds::end();
        });
        while (!begun) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        CHECK(!has_lock);
        lock.unlock();
        other.join();
        CHECK(has_lock);
    }
}

// Readers are admitted between two pieces. A step waits for at most one turn of a writer.
void turns() {
    StoreLock lock;
    Fuel work(10'000'000'000);
    work.watch(&lock);
    std::atomic<bool> holds = false, reader_was_in = false, step_was_in = false;
    std::uint64_t at_reader = 0, at_cut = 0;
    std::thread writer([&] {
        lock.lock(StoreLock::Rank::background);
        holds = true;
        std::uint64_t done = 0;
        try {
            for (;; done += 100) {
                work.spend(100);
                if (reader_was_in && !at_reader) at_reader = done;
                std::this_thread::yield();
            }
        } catch (const Preempted& preempted) {
            at_cut = done;
            CHECK(!preempted.by_process_fork);
        }
        CHECK(!step_was_in);
        lock.unlock();
    });
    while (!holds) std::this_thread::yield();
    CHECK(!lock.try_lock_shared() && !lock.try_lock(StoreLock::Rank::step));
    lock.lock_shared();
    reader_was_in = true;
    lock.unlock_shared();
    lock.lock(StoreLock::Rank::step);
    step_was_in = true;
    lock.unlock();
    writer.join();
    CHECK(at_reader > 0 && at_cut >= at_reader);
    CHECK(lock.statistics().windows == 1 && lock.statistics().preempted == 1);
    CHECK(lock.statistics().most_waited <= StoreLock::kBackgroundTurn + 2 * Fuel::kPiece);
    CHECK(lock.try_lock(StoreLock::Rank::step));
    lock.unlock();
}

// Many readers and writers; no update is lost.
void crowd() {
    StoreLock lock;
    std::uint64_t number = 0, other = 0;  // equal while no thread writes
    std::atomic<unsigned> wrong = 0;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            for (unsigned round = 0; round < 3000; ++round)
                if (i % 2) {
                    lock.lock_shared();
                    wrong += number != other;
                    lock.unlock_shared();
                } else {
                    lock.lock(i % 4 ? StoreLock::Rank::step : StoreLock::Rank::background);
                    ++number;
                    if (round % 8 == 0) std::this_thread::yield();
                    ++other;
                    try {
                        lock.piece_done(1);
                    } catch (const Preempted&) {
                    }
                    lock.unlock();
                }
        });
    for (std::thread& one : threads) one.join();
    CHECK(wrong == 0 && number == 9000 && other == 9000);
}

// Sequences in parallel with hostile constraints that are compiled and walked, while stores are replaced: the masks do not change.
void beside_hostile() {
    const programs::Words friendly = programs::tree(false, true);
    std::vector<Row> expected;
    {
        Matcher alone(Automaton::compile(vocabulary(), friendly));
        expected = walk(alone, kText);
    }
    for (const std::size_t store_bytes : {std::size_t{512} << 20, std::size_t{300'000}}) {
        const auto small = vocabulary(store_bytes);
        const Compiled compiled(small, friendly);
        std::atomic<bool> ends = false;
        std::atomic<unsigned> refused = 0;
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                for (std::uint32_t n = 0; !ends; ++n) try {
                        const Compiled one(small, hostile(60 + 10 * i + n % 8));
                        Matcher matcher(one.automaton());
                        Row row(small->words());
                        matcher.fill_mask(row);
                    } catch (const Error& error) {
                        refused += error.kind == ErrorKind::limit;
                    }
            });
        std::thread counts([&] {
            for (std::uint32_t n = 0; !ends; ++n) {
                const Compiled one(small, programs::counted(n % programs::kCounted));
                Matcher matcher(one.automaton());
                Row row(small->words());
                matcher.fill_mask(row);
            }
        });
        bool equal = true;
        for (int round = 0; round < kRounds; ++round) {
            Matcher matcher(compiled.automaton());
            equal &= walk(matcher, kText) == expected;
            matcher.rollback(kText.size());
            std::vector<std::int64_t> tokens;
            for (const char c : kText) tokens.push_back(token_of(c));
            equal &= matcher.validate(tokens) == tokens.size() && matcher.position() == 0;
        }
        ends = true;
        for (std::thread& one : threads) one.join();
        counts.join();
        CHECK(equal);
        CHECK(small->store()->lock.statistics().most_waited <= StoreLock::kLongTurn + 20 * Fuel::kPiece);
    }
}

// A preempted sequence moves to a separate store and keeps its state.
void moved() {
    const auto small = vocabulary();
    programs::Writer w;
    const std::uint32_t letters = w.repeat(w.chars({'b', 'c'}), 0, 40);
    const std::uint32_t hard = w.without(w.repeat(w.repeat(w.without(letters), 2, 3), 0, 6));
    w.node({0, w.concat({w.literal("ab"), hard})});
    const programs::Words program = w.program(0);
    std::vector<Row> expected;
    {
        Matcher alone(Automaton::compile(vocabulary(), program));
        expected = walk(alone, "abbc");
    }
    const auto automaton = Automaton::compile(small, program);
    std::atomic<bool> ends = false;
    std::thread other([&] {  // waits for the store's lock all the time
        while (!ends) {
            const Hold guard(*small->store(), StoreLock::Rank::step);
        }
    });
    bool equal = true;
    for (int round = 0; round < kRounds; ++round) {
        Matcher matcher(automaton);
        equal &= walk(matcher, "abbc") == expected && matcher.position() == 4;
        Matcher copy(matcher);
        copy.rollback(3);
        equal &= copy.position() == 1 && copy.forced_bytes() == "b";
        Row row(small->words());
        copy.fill_mask(row);
        equal &= row == expected[1];
    }
    ends = true;
    other.join();
    CHECK(equal);
    // An explicit move: the automaton in a separate store is cached, and has the same masks.
    const auto apart = automaton->apart();
    CHECK(apart->is_apart() && apart->store() != automaton->store() && automaton->apart() == apart && automaton->newest() == apart);
    Matcher there(apart);
    CHECK(walk(there, "abbc") == expected);
    for (std::size_t i = 0; i < Vocabulary::kMostApart; ++i)
        CHECK(Automaton::compile(small, hostile(2 + static_cast<std::uint32_t>(i)))->apart());
}

// If the ids of components are used up, it is an error; no id is used twice.
void ids_run_out() {
    const auto small = vocabulary();
    const auto store = small->store();
    const programs::Words program = programs::tree(false, true);
    Matcher before(Automaton::compile(small, program));
    const std::vector<Row> expected = walk(before, kText);
    store->engine.ids().number_from(kInfinite - 2);
    CHECK(store->engine.ids().is_short());
    CHECK(small->store() != store);  // a new store, with new ids
    AnalysedNode object;
    object.kind = NodeKind::object;
    CHECK(raw(store->engine.ids().of(object)) == kInfinite - 2 && raw(store->engine.ids().of(object)) == kInfinite - 1);
    CHECK_THROWS(store->engine.ids().of(object), Error);
    CHECK_THROWS(store->engine.ids().of(object), Error);
    Matcher after(Automaton::compile(small, program));
    CHECK(walk(after, kText) == expected);
}

void states_are_bounded() {
    VocabularyLimits limits;
    limits.max_states = kMaxExprs + 1;
    bool refused = false;
    try {
        (void)Vocabulary(TokenBlock(programs::block_of(programs::tokens())), {0}, {}, limits);
    } catch (const Error& error) {
        refused = error.kind == ErrorKind::argument;
    }
    CHECK(refused);
    CHECK_THROWS(ExprPool(ExprLimits{.max_exprs = kMaxExprs + 1}), Error);
    limits.max_states = kMaxExprs;
    CHECK(Vocabulary(TokenBlock(programs::block_of(programs::tokens())), {0}, {}, limits).size() > 0);
}

// The results of warm-up depend only on the allowed work.
void warm_up_is_counted() {
    const auto learned = [](std::uint64_t work) {
        const auto small = vocabulary();
        const auto automaton = Automaton::compile(small, programs::calls(0));
        automaton->warm_up(work);
        return automaton->stats().runs_misses;
    };
    const auto none = learned(0), all = learned(100'000'000);
    std::uint64_t work = 50;
    while (work < 100'000 && learned(work) <= none) work += 50;
    const auto some = learned(work);
    CHECK(none < some && some < all);
    for (int round = 0; round < 3; ++round) CHECK(learned(work) == some && learned(100'000'000) == all);
}

#if defined(__unix__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Not under AddressSanitizer: before GCC 14 it does not lock its allocator for a fork, so that the child of a process with
// threads can wait in malloc forever. tests/unit/compiler/test_concurrency.py forks during compiles, too.
// The child of a fork can use the vocabulary, independent of what other threads of the parent did at the fork.
bool child_works(const std::shared_ptr<const Vocabulary>& small, Matcher& matcher, const std::vector<Row>& expected) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool good = walk(matcher, kText) == expected;
        Matcher fresh(Automaton::compile(small, programs::tree(false, true)));
        good &= walk(fresh, kText) == expected;
        good &= Automaton::compile(small, programs::counted(1))->stats().nodes > 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void forks() {
    const auto small = vocabulary();
    const auto automaton = Automaton::compile(small, programs::tree(false, true));
    Matcher first(automaton);
    const std::vector<Row> expected = walk(first, kText);
    std::atomic<bool> ends = false;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i)
        threads.emplace_back([&, i] {
            for (std::uint32_t n = 0; !ends; ++n) try {
                    const auto one = Automaton::compile(small, hostile(40 + 8 * i + n % 8));
                    Matcher matcher(one);
                    Row row(small->words());
                    matcher.fill_mask(row);
                } catch (const Error&) {
                }
        });
    for (int round = 0; round < 10; ++round) {
        Matcher matcher(automaton);
        CHECK(child_works(small, matcher, expected));
        CHECK(walk(matcher, kText) == expected);  // in the parent too
    }
    ends = true;
    for (std::thread& one : threads) one.join();
}
#else
void forks() {}
#endif

#if defined(__unix__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// If the system cannot start a thread, only the calling thread works.
void few_threads() {
    const auto small = vocabulary();
    const auto automaton = Automaton::compile(small, programs::tree(false, true));
    const std::vector<Matcher> matchers(4000, Matcher(automaton));
    std::vector<const Matcher*> all;
    for (const Matcher& one : matchers) all.push_back(&one);
    Row rows(all.size() * small->words());
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 200u << 20;  // room for some stacks of 8 MB
        setrlimit(RLIMIT_AS, &limit);
        fill_masks(all, rows, small->words(), 400);
        Row one(small->words());
        all.front()->fill_mask(one);
        bool good = true;
        for (std::size_t i = 0; i < all.size(); ++i)
            good &= std::equal(one.begin(), one.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * one.size()));
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#else
void few_threads() {}
#endif

// All tables that grow with constraints are counted in the sizes that are compared with limits.
void budgets() {
    const auto small = vocabulary();
    const auto automaton = Automaton::compile(small, programs::tree(false, true));
    Matcher matcher(automaton);
    Row row(small->words());
    matcher.fill_mask(row);
    const std::size_t used = small->store()->engine.bytes();
    (void)matcher.tokens_to_finish();
    CHECK(small->store()->engine.bytes() >= used + 64);
    const std::size_t with_finish = small->store()->engine.bytes();
    (void)matcher.mask_id();
    CHECK(small->store()->engine.bytes() >= with_finish + 64);
    ExprPool pool;
    const auto cost_of = [&](auto&& make) {
        const std::size_t before = pool.bytes(), exprs = pool.size();
        for (std::uint32_t i = 0; i < 200; ++i) make(i);
        (void)pool.dfa.first(static_cast<ExprId>(pool.size() - 1));  // the DFA allocates its data for all expressions
        return (pool.bytes() - before) / std::max<std::size_t>(pool.size() - exprs, 1);
    };
    // Graphs: the expressions, their keys, a step of each state, and the data of the DFA. The bound fails if one of
    // these is not counted.
    CHECK(cost_of([&](std::uint32_t i) {
              const ExprId step = pool.set(ByteSet::range('a', static_cast<std::uint8_t>('b' + i % 20)));
              std::vector<GraphState> states(2 + i);
              for (std::uint32_t at = 0; at + 1 < states.size(); ++at) states[at].edges.push_back({step, at + 1});
              states.back().accepting = true;
              (void)pool.graph(states);
          }) >= 96);
    // New punctuation: a bounded number of leaves is cached.
    for (std::uint32_t i = 0; i < 100; ++i) {
        programs::Writer w;
        const std::uint32_t name = w.quoted(w.literal("a")), text = w.quoted(w.literal("x"));
        programs::Words object{3};
        const std::string begin = std::string("<").append(std::to_string(i));
        for (std::uint32_t word : programs::Writer::marks(false, begin, std::to_string(i) + ">")) object.push_back(word);
        for (std::uint32_t word : {0u, 0u, ~0u, 0u, 0u, 0u, 1u, name, 1u, 1u, 0u, 1u, 0u}) object.push_back(word);
        w.node(object);
        w.node({0, text});
        Matcher one(Automaton::compile(small, w.program(0)));
        for (const char c : begin) {
            one.fill_mask(row);
            one.advance(token_of(c));
        }
        one.fill_mask(row);
    }
    CHECK(small->store()->engine.punctuation_leaves() > 0);
    CHECK(small->store()->engine.punctuation_leaves() <= 64);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(long_calls());
    RUN(turns());
    RUN(crowd());
    RUN(beside_hostile());
    RUN(moved());
    RUN(ids_run_out());
    RUN(states_are_bounded());
    RUN(warm_up_is_counted());
    forks();
    RUN(few_threads());
    RUN(budgets());
    return check::report();
}
