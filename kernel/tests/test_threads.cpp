// Matchers of one automaton in several threads see the same masks as alone. Run it under ThreadSanitizer.
#include <atomic>
#include <thread>

#include "check.hpp"
#include "guideway/matcher.h"
#include "programs.h"

using namespace guideway;

int main() {
    const auto vocabulary = std::make_shared<Vocabulary>(programs::tokens(), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
    const auto automaton = Automaton::compile(vocabulary, programs::tree(false, true));
    const std::string text = "{ \"kids\":[{\"name\":\"x\"}] , \"name\":\"y\" }";
    auto masks = [&](std::shared_ptr<const Automaton> a) {
        std::vector<std::uint32_t> all;
        Matcher matcher(std::move(a));
        for (char c : text) {
            std::vector<std::uint32_t> row(vocabulary->words());
            matcher.fill_mask(row);
            all.insert(all.end(), row.begin(), row.end());
            matcher.advance(1 + static_cast<std::uint8_t>(c));
        }
        return all;
    };
    const auto expected = masks(Automaton::compile(vocabulary, programs::tree(false, true)));
    std::atomic<int> equal = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round)
                if (masks(i % 2 ? automaton : Automaton::compile(vocabulary, programs::tree(false, true))) == expected) ++equal;
        });
    for (auto& thread : threads) thread.join();
    CHECK(equal == 20);
    return check::report();
}
