// The state sets of an automaton: sets of configurations that its matchers have reached, each stored once, and the
// transitions between them by tokens. A transition that a matcher took before is one look-up, unless it leads to the same
// state set, or a newer one has replaced it.
//
// The automaton has the state sets; AutomatonCache has their index and transitions. State sets are only added. Their
// addresses are valid as long as the automaton exists; when there are too many, later matchers use a new automaton
// (compiled.h). Their index can be emptied and is then filled again. The table of transitions has a fixed size, and
// newer transitions replace older ones. The store's lock protects all of it; a state set may be read without it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"
#include "guideway/base/segmented_vector.h"
#include "guideway/grammar/machine.h"

namespace guideway {

enum class StateSetId : std::uint32_t {};
inline constexpr StateSetId kNoStateSet{0xffffffff};

struct StateSet {
    const Config* first = nullptr;
    std::uint32_t count = 0;
    StateSetId id{};
    std::span<const Config> configs() const { return {first, count}; }
};

// The index of state sets and their transitions (automaton_cache.h).
struct StateSetIndex {
    struct Step {
        StateSetId state_set{};
        std::uint32_t token = 0;
        const StateSet* to = nullptr;  // null: free
    };
    DroppableIndex<StateSetId> ids;
    ArenaVector<Step> steps;  // a hash table by state set and token, with a few probes
    std::size_t noted = 0;    // number of calls of `note` since the table was empty

    void empty_except_large() {
        ids.drop_if_small();
        steps = {};
        noted = 0;
    }
};

class StateSetTable {
public:
    // `tables` must outlive this; they can be emptied between two calls.
    explicit StateSetTable(StateSetIndex& tables) : tables_(tables) {}

    // The state set of these configurations, which must be sorted and different.
    const StateSet& keep(std::span<const Config> configs) {
        GUIDEWAY_DCHECK(std::ranges::adjacent_find(configs, [](const Config& a, const Config& b) { return !(a < b); }) == configs.end());
        const std::uint64_t wanted = hash(configs);
        const auto hash_of = [&](StateSetId id) { return hash(state_sets_[id].configs()); };
        const auto same = [&](StateSetId id) { return std::ranges::equal(state_sets_[id].configs(), configs); };
        if (const auto known = tables_.ids.find(wanted, state_sets_.size(), hash_of, same)) return state_sets_[*known];
        if (pieces_.empty() || pieces_.back().size() - used_ < configs.size()) {
            pieces_.emplace_back(std::max(configs.size(), std::clamp(stored_configs_ / 4, kFewest, kMost)));
            used_ = 0;
        }
        Config* const first = pieces_.back().data() + used_;
        std::copy(configs.begin(), configs.end(), first);
        used_ += configs.size();
        stored_configs_ += configs.size();
        const auto id = next_id<StateSetId>(state_sets_);
        state_sets_.push_back({first, static_cast<std::uint32_t>(configs.size()), id});
        tables_.ids.add(wanted);
        return state_sets_[id];
    }

    // The state set after a token, if the transition is in the table; else null.
    const StateSet* successor(const StateSet& state_set, std::uint32_t token) const {
        const StateSetIndex::Step* const step = find(state_set.id, token);
        return step ? step->to : nullptr;
    }
    // Adds a transition. If all probed places are in use, the table grows, or an older transition is replaced: the latter while few
    // were noted for its size, or at its maximum size.
    void note(const StateSet& state_set, std::uint32_t token, const StateSet& to) {
        StateSetIndex::Step* at = find(state_set.id, token);
        if (!at && 2 * tables_.noted >= tables_.steps.size() && tables_.steps.size() < kMostSteps) {
            grow();
            at = find(state_set.id, token);
        }
        if (!at) at = &tables_.steps[place(state_set.id, token)];
        *at = {state_set.id, token, &to};
        ++tables_.noted;
    }
    // The number of configurations in all state sets.
    std::size_t stored_configs() const { return stored_configs_; }

private:
    static constexpr std::size_t kFewest = 16, kMost = 1024;                                        // configurations in a piece
    static constexpr std::size_t kTried = 4, kFewestSteps = 32, kMostSteps = std::size_t{1} << 14;  // 256 KB at most

    static std::uint64_t hash(std::span<const Config> configs) {
        std::uint64_t hash = configs.size();
        for (const Config& c : configs) hash = mix(hash, ConfigHash{}(c));
        return hash;
    }
    std::size_t place(StateSetId state_set, std::uint32_t token) const {
        return mix(std::uint64_t{raw(state_set)} << 32 | token, 0) >> 20 & (tables_.steps.size() - 1);
    }
    // The place of this transition, or the first free one of the probed places; null: neither. With a single probe, half of the
    // repeated transitions were lost.
    StateSetIndex::Step* find(StateSetId state_set, std::uint32_t token) const {
        auto& steps = tables_.steps;
        if (steps.empty()) return nullptr;
        for (std::size_t i = 0, at = place(state_set, token); i < kTried; ++i, at = (at + 1) & (steps.size() - 1))
            if (!steps[at].to || (steps[at].state_set == state_set && steps[at].token == token)) return &steps[at];
        return nullptr;
    }
    void grow() {
        auto& steps = tables_.steps;
        const ArenaVector<StateSetIndex::Step> before =
            std::exchange(steps, ArenaVector<StateSetIndex::Step>(steps.empty() ? kFewestSteps : 2 * steps.size()));
        for (const StateSetIndex::Step& step : before) {
            if (!step.to) continue;
            if (StateSetIndex::Step* const at = find(step.state_set, step.token)) *at = step;
        }
    }

    StateSetIndex& tables_;
    std::vector<ArenaBlock<Config>> pieces_;
    std::size_t used_ = 0, stored_configs_ = 0;  // used_: of the last piece
    SegmentedVector<StateSet, 5, StateSetId> state_sets_;
};

}  // namespace guideway
