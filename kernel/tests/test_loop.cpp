// Rows of an engine's loop, compared with separate matchers; with and without a background thread.
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/logits/mask_logits.h"
#include "guideway/matcher/batch.h"
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
            const Row found(masks.begin() + static_cast<std::ptrdiff_t>(i * width),
                            masks.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
            const bool held = i && !astray[i];
            CHECK(rows.rows()[i].is_held() == held && rows.rows()[i].length == step);
            if (!held) CHECK(found == every);
            else {
                if (i != 1 || !twins[i].fill_mask_within(expected, 40 - step)) twins[i].fill_mask(expected);
                CHECK(found == expected);
            }
            const bool wrong = chance() % 40 == 0;
            tokens.push_back(wrong ? static_cast<std::int64_t>(chance() % 300) - 5 : drawn(chance, found, vocabulary.size()));
            if (!held || twins[i].is_finished()) continue;  // tokens after the end are arbitrary
            try {
                twins[i].advance(tokens.back());
            } catch (const Error&) {
                astray[i] = true;
            }
        }
        rows.grow(tokens);
    }
}

// Logits masked in one call, in place or to a target, compared with masks computed before. Other rows are rejected.
void walk_on(const std::shared_ptr<const Automaton>& automaton, std::mt19937& chance) {
    const std::size_t count = 4, size = automaton->vocabulary().size(), width = automaton->vocabulary().words(), prompt = chance() % 3;
    std::vector<Matcher> matchers(count, Matcher(automaton)), twins = matchers;
    std::vector<LoopRow> given, same;
    for (std::size_t i = 0; i < count; ++i) {
        given.push_back({i ? &matchers[i] : nullptr, 0, 0, i == 1 ? 40u : 0u});
        same.push_back({i ? &twins[i] : nullptr, 0, 0, i == 1 ? 40u : 0u});
    }
    LoopRows rows(given), twin(same);
    LoopClock clock;
    std::vector<std::int64_t> ids(count * 200, 7);  // rows of 200
    const auto table = [&](std::size_t length) { return IdRows{ids.data(), count, length, 200}; };
    std::vector<std::uint32_t> masks(count * width);
    rows.run(masks, width);
    CHECK(!rows.grow_to(table(prompt + 1)) && rows.known().empty());
    rows.know(table(prompt));
    for (std::size_t step = 0; step < 100; ++step) {
        twin.run(masks, width);
        std::vector<std::int64_t> tokens;
        for (std::size_t i = 0; i < count; ++i) {
            const std::span row = std::span(masks).subspan(i * width, width);
            tokens.push_back(chance() % 60 == 0 ? 3 : drawn(chance, {row.begin(), row.end()}, size));
            ids[i * 200 + prompt + step] = tokens.back();
        }
        CHECK(!rows.grow_to(table(prompt + step + 2)) && !rows.grow_to({ids.data(), count - 1, prompt + step + 1, 200}));
        if (prompt) {
            ids[0] = 8;
            CHECK(!rows.grow_to(table(prompt + step + 1)));
            ids[0] = 7;
        }
        CHECK(rows.grow_to(table(prompt + step + 1)) && rows.width() == prompt + step + 1);
        twin.grow(tokens);
        twin.run(masks, width);
        std::vector<float> logits(count * size, 1.0f), target(count * size), expected;
        const bool apart = chance() % 2;
        const LogitRows from{logits.data(), count, size, static_cast<std::ptrdiff_t>(size)};
        const LogitRows to{apart ? target.data() : logits.data(), count, size, static_cast<std::ptrdiff_t>(size)};
        CHECK(rows.run_on(from, to, clock).empty());
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t t = 0; t < size; ++t)
                expected.push_back(masks[i * width + t / 32] >> (t % 32) & 1 ? 1.0f : -std::numeric_limits<float>::infinity());
        CHECK((apart ? target : logits) == expected);
    }
    CHECK(clock.calls == 100 && clock.mask > 0 && clock.copy > 0);
    std::vector<std::int64_t> known;
    for (std::size_t i = 0; i < count; ++i)
        known.insert(known.end(), ids.begin() + static_cast<std::ptrdiff_t>(i * 200),
                     ids.begin() + static_cast<std::ptrdiff_t>(i * 200 + prompt + 100));
    CHECK(rows.known() == known);
}

void take_turns() {
    LoopClock clock;
    CHECK(clock.enter() == 0.0 && !clock.enter());
    clock.leave();
    CHECK(clock.enter() >= 0.0 && !clock.enter());
}

template <class FrameSummary>
bool refused(FrameSummary call) {
    try {
        call();
    } catch (const Error& error) {
        return error.kind == ErrorKind::argument;
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                                         std::vector<std::uint32_t>{});
    std::mt19937 chance(3);
    RUN(take_turns());
    for (const auto& program : {programs::tree(false, true), programs::demands(false), programs::calls(1)}) {
        const auto automaton = Automaton::compile(vocabulary, program);
        for (int round = 0; round < 6; ++round) RUN(walk(automaton, chance));
        for (int round = 0; round < 3; ++round) RUN(walk_on(automaton, chance));
        Matcher one(automaton);
        CHECK(refused([&] { LoopRows({{&one, 0, 0, 0}, {&one, 0, 0, 0}}); }));
        LoopRows rows({{&one, 0, 0, 0}});
        Row masks(vocabulary->words());
        CHECK(refused([&] { rows.grow(std::vector<std::int64_t>{1, 2}); }));
        CHECK(refused([&] { rows.know({nullptr, 2, 0, 0}); }));
        CHECK(refused([&] {
            LoopClock clock;
            rows.run_on({nullptr, 2, 0, 0}, {nullptr, 2, 0, 0}, clock);
        }));
        CHECK(refused([&] { rows.run(std::span(masks).first(1), 1); }));
        CHECK(refused([&] { rows.run(masks, masks.size() + 1); }));
    }
    return check::report();
}
