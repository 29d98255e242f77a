// State sets, and the memory of tables.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "guideway/base/page_arena.h"
#include "guideway/grammar/state_sets.h"
#include "guideway/matcher/history.h"

using namespace guideway;

namespace {

// Checks that allocated blocks do not overlap, after any sequence of allocations and frees.
bool keeps_apart(unsigned seed) {
    std::mt19937 chance(seed);
    struct Taken {
        unsigned char* at;
        std::size_t bytes;
        unsigned char mark;
    };
    std::vector<Taken> taken;
    const std::size_t sizes[] = {1, 100, 1023, 1024, 1100, 7168, 32768, 262144, 262145, 3000000};
    bool whole = true;
    auto give = [&](std::size_t i) {
        const Taken gone = taken[i];
        for (std::size_t k = 0; k < gone.bytes; ++k) whole &= gone.at[k] == gone.mark;
        free_block(gone.at, gone.bytes);
        taken[i] = taken.back();
        taken.pop_back();
    };
    for (int turn = 0; turn < 600; ++turn) {
        if (!taken.empty() && chance() % 5 < 2) give(chance() % taken.size());
        const std::size_t bytes = turn % 3 ? sizes[chance() % (turn % 50 ? 8 : 10)] : 1000 + chance() % 60000;
        auto* const at = static_cast<unsigned char*>(allocate_block(bytes));
        taken.push_back({at, bytes, static_cast<unsigned char>(chance())});
        std::memset(at, taken.back().mark, bytes);
    }
    while (!taken.empty()) give(taken.size() - 1);
    return whole;
}

void check_piece_arrays() {
    ArenaBlock<std::uint32_t> none, some(300);
    CHECK(!none && none.empty() && some && some.size() == 300);
    bool zero = true;
    for (const std::uint32_t one : some) zero &= one == 0;
    CHECK(zero);
    some[7] = 7;
    none = std::move(some);
    CHECK(none[7] == 7 && none.size() == 300);
    const std::vector<std::uint32_t> given{1, 2, 3};
    CHECK(std::ranges::equal(ArenaBlock<std::uint32_t>(std::span(given)), given));
    ArenaVector<std::uint32_t> grown;
    for (std::uint32_t i = 0; i < 100000; ++i) grown.push_back(i);
    CHECK(grown[99999] == 99999 && grown[17] == 17);
}

// Equal sets are one state set with a fixed address, also after the index was emptied. The state set after a token is the right one
// or not known.
void check_state_sets() {
    std::mt19937 chance(5);
    StateSetIndex tables;
    StateSetTable state_sets(tables);
    std::vector<Configs> given;
    std::vector<const StateSet*> made;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        Configs configs;
        for (std::uint32_t k = 0; k < (i == 100 ? 3000 : i % 5); ++k) configs.push_back({NodeId{k}, NodeState{i}, {}, FrameId{1}});
        given.push_back(configs);
        made.push_back(&state_sets.keep(configs));
        if (i % 700 == 0) tables = {};
    }
    bool same = true;
    std::size_t configurations = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (i % 1000 == 500) tables = {};
        same &= &state_sets.keep(given[i]) == made[i] && std::ranges::equal(made[i]->configs(), given[i]);
        configurations += given[i].size();
    }
    CHECK(same && state_sets.stored_configs() == configurations);
    CHECK(made[0] == made[5] && made[1] != made[6]);  // both are empty
    CHECK(!state_sets.successor(*made[0], 0));
    const auto led_to = [&](const StateSet& state_set, std::uint32_t token) {
        return made[(raw(state_set.id) * 7 + token * 13) % made.size()];
    };
    std::size_t noted = 0, kept = 0;
    bool right = true;
    for (int turn = 0; turn < 100000; ++turn) {
        const StateSet& state_set = *made[chance() % made.size()];
        const auto token = static_cast<std::uint32_t>(chance() % 20);
        if (const StateSet* known = state_sets.successor(state_set, token)) {
            right &= known == led_to(state_set, token);
            ++kept;
        } else {
            state_sets.note(state_set, token, *led_to(state_set, token));
            ++noted;
        }
    }
    CHECK(right && noted > 10000 && kept > 10000);

    tables = {};
    std::size_t left = 0;
    for (std::uint32_t token = 0; token < 1000; ++token) state_sets.note(*made[1], token, *made[2]);
    for (std::uint32_t token = 0; token < 1000; ++token) left += state_sets.successor(*made[1], token) != nullptr;
    CHECK(left > 900 && tables.steps.size() <= 4096);
}

void check_history() {
    std::mt19937 chance(9);
    StateSetIndex tables;
    StateSetTable state_sets(tables);
    std::vector<const StateSet*> all;
    for (std::uint32_t i = 0; i < 50; ++i) all.push_back(&state_sets.keep(Configs{{NodeId{i}, {}, {}, kBottom}}));
    std::vector<History> histories{History(*all[0])};
    std::vector<std::vector<const StateSet*>> twins{{all[0]}};
    bool same = true;
    for (int turn = 0; turn < 20000; ++turn) {
        const std::size_t i = chance() % histories.size();
        const auto what = chance() % 40;
        if (what == 0 && histories.size() < 20) {
            histories.push_back(histories[i]);
            twins.push_back(std::vector(twins[i]));
        } else if (what < 4) {
            const std::size_t position = chance() % twins[i].size();
            histories[i].back_to(position);
            twins[i].resize(position + 1);
        } else {
            const StateSet* state_set = all[chance() % all.size()];
            histories[i].push(*state_set, raw(state_set->id));
            twins[i].push_back(state_set);
        }
        const auto tokens = histories[i].tokens();
        same &= tokens.size() + 1 == twins[i].size();
        for (std::size_t at = 0; same && at < tokens.size(); ++at) same = tokens[at] == raw(twins[i][at + 1]->id);
        same &= &histories[i].now() == twins[i].back() && histories[i].position() + 1 == twins[i].size();
    }
    CHECK(same);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    CHECK(keeps_apart(0));
    bool apart[3];
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&apart, i] { apart[i] = keeps_apart(i + 1); });
    for (std::thread& one : threads) one.join();
    CHECK(apart[0] && apart[1] && apart[2]);
    RUN(check_piece_arrays());
    RUN(check_state_sets());
    RUN(check_history());
    return check::report();
}
