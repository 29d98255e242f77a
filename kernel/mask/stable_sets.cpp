#include "guideway/mask/stable_sets.h"

#include <algorithm>
#include <map>

#include "guideway/base/sort_unique.h"
#include "guideway/mask/self_loops.h"

namespace guideway {

StableSets::Found StableSets::find(ExprId state) const {
    const auto at = places_.find(state);
    if (at == places_.end()) return {};
    const StableSet& in = stable_sets_[at->second.stable_set];
    return {&in.loops, at->second.characters, in.nullable};
}

std::uint32_t StableSets::number_of(ExprId state) const {
    const auto at = std::find_if(states_.begin(), states_.end(), [&](const State& s) { return s.expr == state; });
    return static_cast<std::uint32_t>(at - states_.begin());
}

// Finds the states that strings over these bytes lead to from `start`. A state that does not continue by all of them, or whose
// successors would exceed the limit on states, has `characters` = 0.
void StableSets::close(ExprId start, const ByteSet& bytes) {
    states_.assign(1, {start, 0, {}});
    std::vector<ExprId> targets;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
        const ExprId state = states_[i].expr;
        pool_.fuel().spend(bytes.size());
        targets.clear();
        ByteSet missing = bytes;
        pool_.dfa.for_each_derivative(state, bytes, [&](const ByteSet& some, ExprId to) {
            missing -= some;
            targets.push_back(to);
        });
        if (!missing.empty()) continue;
        sort_unique(targets);
        if (states_.size() + targets.size() > kMaxStates &&
            std::any_of(targets.begin(), targets.end(), [&](ExprId t) { return number_of(t) == states_.size(); }))
            continue;
        states_[i].characters = kForever;
        for (const ExprId to : targets) {
            const std::uint32_t number = number_of(to);
            if (number == states_.size()) states_.push_back({to, 0, {}});
            states_[number].from.push_back(i);
        }
    }
}

// Sets `characters` of each state to its distance from the states where it is 0.
void StableSets::measure() {
    std::vector<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < states_.size(); ++i)
        if (states_[i].characters == 0) queue.push_back(i);
    for (std::size_t at = 0; at < queue.size(); ++at) {
        const auto further = static_cast<std::uint8_t>(states_[queue[at]].characters + 1);
        for (const std::uint32_t from : states_[queue[at]].from)
            if (states_[from].characters == kForever) {
                states_[from].characters = further;
                queue.push_back(from);
            }
    }
}

// The blocks by which a state leads only to states of at least as many characters less one.
std::vector<std::uint64_t> StableSets::blocks_of(const State& state) const {
    const std::uint8_t wanted = state.characters == kForever ? kForever : static_cast<std::uint8_t>(state.characters - 1);
    return blocks_to(subtrees_, pool_, state.expr, [&](ExprId to) {
        const std::uint32_t number = number_of(to);
        return number < states_.size() && states_[number].characters >= wanted;
    });
}

// States with equal transitions by the lead bytes of characters have the same blocks. If many states differ, or if the first
// one has no blocks, no blocks are computed: to step all states by all lead bytes is expensive (decision 7).
void StableSets::add_blocks(StableSet& made) {
    auto& blocks = made.loops.blocks;
    blocks = blocks_of(states_[0]);
    if (blocks == subtrees_.no_blocks()) return;
    std::map<std::vector<ExprId>, const State*> kinds;  // of states with equal transitions, one with the most characters
    std::vector<ExprId> leads;
    for (const State& state : states_) {
        if (state.characters == 0) continue;
        leads.assign(0xf5 - 0xc2, kNone);
        pool_.dfa.for_each_derivative(state.expr, ByteSet::range(0xc2, 0xf4),
                                      [&](const ByteSet& some, ExprId to) { some.each([&](std::uint8_t b) { leads[b - 0xc2u] = to; }); });
        const State*& most = kinds.emplace(leads, &state).first->second;
        if (state.characters > most->characters) most = &state;
        if (kinds.size() > kMaxKinds) break;
    }
    if (kinds.size() > kMaxKinds) {
        blocks = subtrees_.no_blocks();
        return;
    }
    for (const auto& [targets, state] : kinds) {
        const auto more = blocks_of(*state);
        for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] &= more[i];
    }
}

void StableSets::keep(const ByteSet& bytes) {
    StableSet made;
    made.loops.ascii[0] = bytes.words[0];
    made.loops.ascii[1] = bytes.words[1];
    add_blocks(made);
    for (const State& state : states_) {
        made.nullable = made.nullable || pool_[state.expr].nullable;
        Place& place = places_[state.expr];
        const Place here{static_cast<std::uint32_t>(stable_sets_.size()), state.characters, bytes.size()};
        if (!place.better_than(here)) place = here;
    }
    stable_sets_.push_back(std::move(made));
}

void StableSets::look_around(ExprId start) {
    looks_ += !pool_.emptiness.with_short_searches([&] { look(start, looks_); });
}

void StableSets::look_wider(ExprId start) {
    if (wider_looks_ < kMaxLooks && looked_.insert(start).second)
        wider_looks_ += !pool_.emptiness.with_short_searches([&] { look(start, wider_looks_); });
}

// Leaves out bytes, in a few rounds, that lead to states where other bytes do not continue.
void StableSets::look(ExprId start, unsigned& looks) {
    if (looks >= kMaxLooks || (!pool_[start].unbounded && !pool_[start].boolean)) return;
    ByteSet bytes = pool_.dfa.first(start);
    bytes.words[2] = bytes.words[3] = 0;
    for (unsigned round = 0; round < kMaxRounds && bytes.size() >= kFewBytes; ++round) {
        looks += round == 0;
        const ByteSet before = bytes;
        pool_.dfa.for_each_derivative(start, before, [&](const ByteSet& some, ExprId next) {
            if (!before.within(pool_.dfa.first(next))) bytes -= some;  // cheaper than `close`
        });
        if (bytes != before) continue;
        close(start, bytes);
        measure();
        if (states_[0].characters >= kFewCharacters) return keep(bytes);
        pool_.dfa.for_each_derivative(start, before, [&](const ByteSet& some, ExprId next) {
            const std::uint32_t to = number_of(next);
            if (to == states_.size() || states_[to].characters < states_[0].characters) bytes -= some;
        });
    }
}

}  // namespace guideway
