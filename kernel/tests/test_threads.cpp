// Matchers of one automaton in several threads see the same masks as alone. Run it under ThreadSanitizer.
#include <atomic>
#include <span>
#include <thread>

#include "check.hpp"
#include "guideway/batch.h"
#include "guideway/error.h"
#include "guideway/matcher.h"
#include "programs.h"

using namespace guideway;

struct Case {
    programs::Words program;
    std::string text;
};

// Two batches on threads of their own, over automata that they share, give what `follow` gives; so do their masks.
void check_jobs(const std::shared_ptr<Vocabulary>& vocabulary, std::span<const Case> cases) {
    const std::size_t width = vocabulary->words();
    std::vector<std::shared_ptr<const Automaton>> automata;
    for (const Case& one : cases) automata.push_back(Automaton::compile(vocabulary, one.program));
    struct Batch {
        std::vector<Matcher> matchers;
        std::vector<std::uint32_t> masks;
    };
    const auto batch = [&] {
        Batch made;
        for (const auto& automaton : automata) made.matchers.emplace_back(automaton);
        made.masks.resize((automata.size() + 1) * width);
        return made;
    };
    // Row i of a step: the next byte of text i, behind its end one that is not legal; the last row has no matcher.
    const auto rows = [&](Batch& of, std::size_t step) {
        std::vector<Follow> made;
        for (std::size_t i = 0; i < cases.size(); ++i) {
            const std::string& text = cases[i].text;
            const std::int64_t token = step == 0 ? Follow::kNone : step <= text.size() ? 1 + static_cast<std::uint8_t>(text[step - 1]) : 1;
            made.push_back({&of.matchers[i], token, i % 2 ? 40u : 0u});
        }
        made.push_back({nullptr, Follow::kNone, 0});
        return made;
    };
    Batch alone = batch(), left = batch(), right = batch();
    for (std::size_t step = 0; step < 24; ++step) {
        FollowJob first(rows(left, step), left.masks, width), second(rows(right, step), right.masks, width);
        const auto took = follow(rows(alone, step), alone.masks, width);
        CHECK(first.wait() == took && second.wait() == took);
        CHECK(left.masks == alone.masks && right.masks == alone.masks);
        CHECK(took.back() && first.seconds() >= 0);
    }
    Matcher twice(automata[0]);
    std::vector<std::uint32_t> masks(2 * width);
    FollowJob wrong({{&twice, Follow::kNone, 0}, {&twice, Follow::kNone, 0}}, masks, width);
    bool thrown = false;
    try {
        wrong.wait();
    } catch (const Error& error) {
        thrown = error.kind == ErrorKind::argument;
    }
    CHECK(thrown);
    const FollowJob forgotten(rows(left, 24), left.masks, width);  // nobody waits: its end does
}

int main() {
    const auto vocabulary = std::make_shared<Vocabulary>(programs::tokens(), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
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
                Matcher other(matcher);  // forks share what lies behind them
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
    check_jobs(vocabulary, cases);
    return check::report();
}
