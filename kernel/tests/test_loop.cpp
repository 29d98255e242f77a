// Rows of an engine's loop, against a matcher of their own each; in the background as in the foreground.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "guideway/batch.h"
#include "guideway/error.h"
#include "guideway/masks.h"
#include "programs.h"

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;

std::int64_t drawn(std::mt19937& chance, const Row& mask, std::size_t size) {
    std::vector<std::int64_t> legal;
    for (std::size_t t = 0; t < size; ++t)
        if (mask[t / 32] >> (t % 32) & 1) legal.push_back(static_cast<std::int64_t>(t));
    return legal.empty() ? 0 : legal[chance() % legal.size()];
}

void walk(const std::shared_ptr<const Automaton>& automaton, std::mt19937& chance) {
    const Vocabulary& vocabulary = automaton->vocabulary();
    const std::size_t count = 5, width = vocabulary.words();
    std::vector<Matcher> matchers(count, Matcher(automaton)), twins = matchers;
    std::vector<LoopRow> given;
    for (std::size_t i = 0; i < count; ++i) given.push_back({i ? &matchers[i] : nullptr, 0, 0, i == 1 ? 40u : 0u});
    LoopRows rows(given);
    std::vector<std::uint32_t> masks(count * width);
    std::vector<bool> astray(count);
    Row every(width), expected(width);
    allow_all(every, vocabulary.size());
    for (std::uint32_t step = 0; step < 30; ++step) {
        if (chance() % 2) {
            rows.begin(masks, width);
            rows.wait();
        } else {
            rows.run(masks, width);
        }
        std::vector<std::int64_t> tokens;
        for (std::size_t i = 0; i < count; ++i) {
            const Row found(masks.begin() + static_cast<std::ptrdiff_t>(i * width), masks.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
            const bool held = i && !astray[i];
            CHECK(rows.rows()[i].is_held() == held && rows.rows()[i].length == step);
            if (!held) CHECK(found == every);
            else {
                if (i != 1 || !twins[i].fill_mask_within(expected, std::max(1, 40 - static_cast<int>(step)))) twins[i].fill_mask(expected);
                CHECK(found == expected);
            }
            const bool wrong = chance() % 40 == 0;
            tokens.push_back(wrong ? static_cast<std::int64_t>(chance() % 300) - 5 : drawn(chance, found, vocabulary.size()));
            if (!held || twins[i].is_finished()) continue;  // whatever comes behind the end
            try {
                twins[i].advance(tokens.back());
            } catch (const Error&) {
                astray[i] = true;
            }
        }
        rows.grow(tokens);
    }
}

template <class Call>
bool refused(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.kind == ErrorKind::argument;
    }
    return false;
}

}  // namespace

int main() {
    const auto vocabulary = std::make_shared<Vocabulary>(programs::tokens(), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
    std::mt19937 chance(3);
    for (const auto& program : {programs::tree(false, true), programs::demands(false), programs::calls(1)}) {
        const auto automaton = Automaton::compile(vocabulary, program);
        for (int round = 0; round < 6; ++round) walk(automaton, chance);
        Matcher one(automaton);
        CHECK(refused([&] { LoopRows({{&one, 0, 0, 0}, {&one, 0, 0, 0}}); }));
        LoopRows rows({{&one, 0, 0, 0}});
        Row masks(vocabulary->words());
        CHECK(refused([&] { rows.grow(std::vector<std::int64_t>{1, 2}); }));
        CHECK(refused([&] { rows.run(std::span(masks).first(1), 1); }));
        CHECK(refused([&] { rows.run(masks, masks.size() + 1); }));
    }
    return check::report();
}
