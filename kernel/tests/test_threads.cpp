// Matchers of one automaton in several threads see the same masks as alone. Run it under ThreadSanitizer.
#include <atomic>
#include <thread>

#include "check.hpp"
#include "guideway/matcher.h"
#include "programs.h"

using namespace guideway;

int main() {
    const auto vocabulary = std::make_shared<Vocabulary>(programs::tokens(), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
    struct Case {
        programs::Words program;
        std::string text;
    };
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
    return check::report();
}
