// Matchers of one automaton in several threads get the same masks as in one thread. Run it under ThreadSanitizer.
#include <atomic>
#include <memory>
#include <span>
#include <thread>

#include "check.h"
#include "guideway/matcher/batch.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

struct Case {
    programs::Words program;
    std::string text;
};

// Two loops on separate threads, with shared automata, get the same masks as one.
void check_loops(const std::shared_ptr<Vocabulary>& vocabulary, std::span<const Case> cases) {
    const std::size_t width = vocabulary->words();
    std::vector<std::shared_ptr<const Automaton>> automata;
    for (const Case& one : cases) automata.push_back(Automaton::compile(vocabulary, one.program));
    struct Loop {
        std::vector<Matcher> matchers;
        std::vector<std::uint32_t> masks;
        std::unique_ptr<LoopRows> rows;
    };
    Loop alone, left, right;
    for (Loop* loop : {&alone, &left, &right}) {
        for (const auto& automaton : automata) loop->matchers.emplace_back(automaton);
        std::vector<LoopRow> rows{{nullptr, 0, 0, 0}};
        for (std::size_t i = 0; i < cases.size(); ++i) rows.push_back({&loop->matchers[i], 0, 0, i % 2 ? 60u : 0u});
        loop->masks.resize(rows.size() * width);
        loop->rows = std::make_unique<LoopRows>(std::move(rows));
    }
    for (std::size_t step = 0; step < 24; ++step) {
        for (Loop* loop : {&left, &right}) loop->rows->begin(loop->masks, width);
        alone.rows->run(alone.masks, width);
        std::vector<std::int64_t> tokens{0};
        for (const Case& one : cases) tokens.push_back(step < one.text.size() ? 1 + static_cast<std::uint8_t>(one.text[step]) : 1);
        for (Loop* loop : {&left, &right}) {
            loop->rows->wait();
            CHECK(loop->masks == alone.masks);
            loop->rows->grow(tokens);
        }
        alone.rows->grow(tokens);
    }
    left.rows->begin(left.masks, width);  // the destructor waits
    left.rows.reset();
}

// Threads compile, fill masks and drop automata while the vocabulary begins new stores: the results are those of one thread.
void check_rollover(std::span<const Case> cases) {
    VocabularyLimits limits;
    limits.store_bytes = 1 << 17;  // a few constraints fill it
    limits.memo_bytes = 1 << 18;
    const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                                         std::vector<std::uint32_t>{}, limits);
    const auto masks = [&](const Case& one) {
        Matcher matcher(Automaton::compile(vocabulary, one.program));
        std::vector<std::uint32_t> all, row(vocabulary->words());
        for (const char c : one.text) {
            matcher.fill_mask(row);
            all.insert(all.end(), row.begin(), row.end());
            matcher.advance(1 + static_cast<std::uint8_t>(c));
        }
        return all;
    };
    const auto fresh = [](std::uint32_t number) {  // a new constraint
        programs::Writer w;
        const std::uint32_t text = w.repeat(w.chars({'a', 'b' + number % 20}), number % 7, 300 + number);
        w.node({0, w.quoted(w.either({text, w.literal(std::to_string(number))}))});
        return w.program(0);
    };
    std::vector<std::vector<std::uint32_t>> expected;
    for (const Case& one : cases) expected.push_back(masks(one));
    std::atomic<int> equal = 0;
    std::atomic<std::size_t> stores = 0;
    constexpr int kThreads = 4, kRounds = 6, kConstraints = 12;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            std::shared_ptr<Store> last = vocabulary->store();
            for (int round = 0; round < kRounds; ++round) {
                const std::size_t which = static_cast<std::size_t>(i + round) % cases.size();
                if (masks(cases[which]) == expected[which]) ++equal;
                for (int n = 0; n < kConstraints; ++n)
                    Automaton::compile(vocabulary, fresh(static_cast<std::uint32_t>((i * kRounds + round) * kConstraints + n)));
                if (auto now = vocabulary->store(); now != last) {
                    ++stores;
                    last = std::move(now);
                }
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(equal == kThreads * kRounds);
    CHECK(stores > 2);
}

int main(int argc, char** argv) {
    check::begin(argc, argv);
    const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                                         std::vector<std::uint32_t>{});
    const Case cases[] = {{programs::tree(false, true), "{ \"kids\":[{\"name\":\"x\"}] , \"name\":\"y\" }"},
                          {programs::demands(false), "{ \"ab\":\"b\", \"a\" : \"ca\",\"name\":\"\"}"},
                          {programs::calls(0), "abb[cbab[a]]bab[b]"},
                          {programs::calls(1), "ccabcbcabaccbbcabb"},
                          {programs::calls(2), "[[][[]]][][[[]]]"}};
    for (const Case& one : cases) {
        const auto automaton = Automaton::compile(vocabulary, one.program);
        auto masks = [&](std::shared_ptr<const Automaton> a) {
            std::vector<std::uint32_t> all;
            Matcher matcher(std::move(a));
            for (char c : one.text) {
                std::vector<std::uint32_t> row(vocabulary->words());
                matcher.fill_mask(row);
                all.insert(all.end(), row.begin(), row.end());
                all.push_back(static_cast<std::uint32_t>(matcher.mask_id()[0]));
                matcher.advance(1 + static_cast<std::uint8_t>(c));
                Matcher other(matcher);  // forks share their history
                other.rollback(1);
                all.push_back(other.tokens_to_finish());
            }
            return all;
        };
        const auto expected = masks(Automaton::compile(vocabulary, one.program));
        std::atomic<int> equal = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                for (int round = 0; round < 5; ++round)
                    if (masks(i % 2 ? automaton : Automaton::compile(vocabulary, one.program)) == expected) ++equal;
            });
        for (auto& thread : threads) thread.join();
        CHECK(equal == 20);
    }
    RUN(check_loops(vocabulary, cases));
    RUN(check_rollover(cases));
    return check::report();
}
