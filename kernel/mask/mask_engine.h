// Masks by suffix tries.
//
// How a mask is made that is not cached: `fill` calls `mask` for each configuration of the state set. `mask` lets `MaskBuilder`
// follow the suffix tries from the first component down the stack. Each run of a leaf comes from `LeafResults::run`: from its
// cache, or from the run of another state by one of the methods below, or, last, from a walk over the trie (leaf_walk.h,
// machine_walk.h). Runs are cached once for all automata, in `LeafResults::memo_`. What depends on one automaton is in its
// `AutomatonCache` (automaton_cache.h): summaries of components, indexes of keys, masks of configurations, and lists of masks of
// state sets.
//
// Run(X, q): walk the trie X through one component from its state q. The tokens that end inside the component form a mask.
// The rest of X, where the component ends, is another trie: the suffix trie. The next frame of the stack continues with it. So
//     mask(q0 | f1 f2 ...) = A(X0, q0) + A(X1, f1) + A(X2, f2) + ...   until the suffix trie is empty
// and the key of the cache (ResultKey) does not depend on the stack: it is X, the component, q, and the register of an object
// or array.
//
// Delta encoding: the run of a state over the whole vocabulary can be stored as that of a base state minus `cleared` plus
// `added` tokens. Its suffix trie is then that of the base, and the `cleared` tokens are also removed from everything computed
// from that suffix trie. This is valid only if no token can both end in the leaf and leave it; callers check this.
//
// A string over few ASCII characters is walked over the tokens of these characters only.
//
// A state that accepts every plain token (plain_tokens.h) of at most n characters gets these from a table. Only the
// other tokens are walked.
//
// A state that counts is walked without bounds. Then the tokens that are long enough to reach a bound are tried one by
// one. So one walk is enough for all counts.
//
// Punctuation and the white space around it are separate leaves, which all objects and arrays share, with their suffix tries.
// The keys that an object can have over a trie are sorted by text. Each token has the range of keys that it can continue as,
// and the allowed tokens are selected from these ranges.
//
// In grammars that share stacks (summaries.cpp), the result of a trie in the rest of a sequence is cached like a run:
// token sets and suffix tries. So a deeper nesting costs one look-up for each level that tokens reach.
//
// The mask of a configuration with its complete stack is cached too, as a list of sets and selected keys (mask_engine.cpp). For
// a state set (state_sets.h), the list of these masks is cached. For a component over a suffix trie, the result up to the end of
// the component is cached (mask_builder.cpp); the frames below compute their own parts.
//
// Ids of token sets and suffix tries stay valid until the next call of `fill`, `warm_up`, `warm_up_leaves` or `clear`. When the
// caches of automata are larger than a share of the memory budget (`memo_bytes`), `fill` first empties those of idle automata, the
// least recently used first, with their indexes. When the memory budget is used up, it empties those of all automata, but not
// their indexes, and removes the runs and frame summaries whose last look-up is not later than the median; if this is not enough,
// all of them. Use of a cached mask is no look-up of the runs that it was made of. `fill_known` changes only the time of last use
// of the automaton, and may run in several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "guideway/base/tuning.h"
#include "guideway/grammar/machine.h"
#include "guideway/mask/automaton_cache.h"
#include "guideway/mask/leaf_results.h"
#include "guideway/mask/mask_builder.h"
#include "guideway/mask/punctuation.h"
#include "guideway/mask/summaries.h"

namespace guideway {

class MaskEngine : private CompositeResults {
public:
    // `work`: the fuel of the expression pool of all machines.
    MaskEngine(const TokenTable& vocabulary, std::size_t budget, const Tuning& tuning, Fuel& work);
    MaskEngine(const MaskEngine&) = delete;
    MaskEngine& operator=(const MaskEngine&) = delete;

    // Writes the legal tokens of a state set to the row (ceil(V/32) words); true: the text may end here. `automaton` is the
    // number of the machine's automaton (`next_automaton`).
    bool fill(Machine& machine, AutomatonId automaton, const StateSet& state_set, std::span<std::uint32_t> row);
    // The same, if all of it is cached; else nothing.
    std::optional<bool> fill_known(AutomatonId automaton, const StateSet& state_set, std::span<std::uint32_t> row) const;
    // What `fill_known` would return, without writing.
    std::optional<bool> accepting_known(AutomatonId automaton, const StateSet& state_set) const;
    // Numbers of components in the keys of cached results.
    ComponentIds& ids() { return results_.ids(); }
    std::size_t punctuation_leaves() const { return punctuation_.size(); }
    // Bytes of the numbers of components and automata. They are not freed before the store is.
    std::size_t kept_bytes() const { return results_.ids().leaves() * 80 + caches_.capacity() * sizeof *caches_.data(); }
    const SelfLoops* loops(ExprPool& pool, ExprId state) { return results_.loops(pool, state); }
    // A number for an automaton, valid until `remove_automaton`.
    AutomatonId next_automaton();
    // The reference is valid until `remove_automaton`. The contents are released while the automaton is idle.
    AutomatonCache& cache_of(AutomatonId automaton) { return *caches_[automaton]; }
    void remove_automaton(AutomatonId automaton) noexcept;
    // Counts the bytes of its caches again, after something was added.
    void recount_bytes(AutomatonId automaton);
    // Computes the runs of leaves, except sets of texts, at their start and after the opening quote, up to a limit on work
    // (some tenths of a millisecond). Throws Error(limit) if a single run takes ten times as much.
    void warm_up_leaves(Machine& machine, AutomatonId automaton);
    // Precomputes with about `work` units: the masks of the first configurations; where stacks are shared, the vocabulary's result in the
    // rest of each sequence; the runs of the states of leaves, the nearest to the start first. Results do not depend on how much is
    // precomputed, only speed.
    void warm_up(Machine& machine, AutomatonId automaton, std::uint64_t work);
    void clear();
    std::size_t bytes() const { return cache_bytes_ + results_.bytes() + warm_leaves_.bytes(); }
    std::size_t hits() const { return results_.counters.hits.load(std::memory_order_relaxed); }
    std::size_t misses() const { return results_.counters.misses; }

private:
    static constexpr std::size_t kCacheShareDivisor = 96;  // caches of idle automata are emptied above 1/96 of the memory budget
    // An automaton that was used within the last kRecentUses ticks of `automaton_clock_` is not idle: the automata of a batch alternate.
    static constexpr std::uint64_t kRecentUses = 1024;
    using Mask = AutomatonCache::Mask;

    void trim();
    void drop_before(std::uint32_t time);
    void begin_use(AutomatonId automaton);
    void empty_idle_caches(std::size_t most);
    void empty_caches();
    void recount_bytes(AutomatonCache& cache);
    static Mask* find(const Machine& machine, const AutomatonCache& cache, const Config& config);
    Mask& mask(Machine& machine, const Config& config);
    void put_first(std::span<Mask*> masks) const;
    void write(const AutomatonCache& from, std::span<Mask* const> masks, std::span<std::uint32_t> row) const;
    void write(const AutomatonCache& from, const Mask& mask, TokenSetId before, std::span<std::uint32_t> row) const;
    void write_parts(const AutomatonCache& from, const Mask& mask, TokenSetId before, std::span<std::uint32_t> row) const;
    bool walk_composite(Machine& machine, TrieId trie, const Config& config, WalkResult& made) override;
    TokenSets& sets() { return results_.sets(); }
    const TokenSets& sets() const { return results_.sets(); }

    std::size_t budget_, cache_bytes_ = 0;
    Fuel& fuel_;
    LeafResults results_;
    FrameSummaries summaries_;
    PunctuationLeaves punctuation_;
    // Leaves, by component id and expression, whose runs `warm_up_leaves` has cached.
    FlatMap<std::uint64_t, bool, NumberHash> warm_leaves_;
    MaskBuilder builder_;
    IdVector<AutomatonId, std::unique_ptr<AutomatonCache>> caches_;
    std::vector<AutomatonId> free_ids_;        // of deleted automata
    AutomatonCache* current_cache_ = nullptr;  // of the automaton that masks are computed for
    // The clock of AutomatonCache::last_use: a tick for each mask of a state set that was not cached, `warm_up` and `warm_up_leaves`.
    std::uint64_t automaton_clock_ = 0;
    std::size_t empty_idle_above_;  // bytes in the caches of automata, above which some are emptied
    std::vector<Mask*> filled_;     // in `fill`: the masks of the state set
};

}  // namespace guideway
