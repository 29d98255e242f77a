// Results of walks: a suffix trie through one component from one of its states, cached by trie, component and state;
// and the strategies by which the result of a leaf's state is found (mask_engine.h describes them; the order in which they
// are tried is in `run`).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/base/tuning.h"
#include "guideway/grammar/machine.h"
#include "guideway/mask/automaton_cache.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/mask/suffix_tries.h"
#include "guideway/mask/token_sets.h"
#include "guideway/vocabulary/plain_tokens.h"
#include "guideway/vocabulary/subtree_alphabets.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

class TokenTable;

struct WalkResult {
    TokenSetId tokens{};
    TrieId suffix_trie = kNoTrie;              // kNoTrie: nothing is left
    TokenSetId context_dependent = kNoTokens;  // tokens that depend on text before them, a list; kNoTokens: none
};

// Ids of components in the keys of cached results: leaves with equal follow bytes share an id, each other component has one.
class ComponentIds {
public:
    // These throw Error(limit) if all ids of 32 bits are used; a vocabulary begins a new store long before.
    ComponentId of(const AnalysedNode& component);
    ComponentId of_leaf(const ByteSet& follow);
    bool is_short() const { return next_ >= kLast / 2; }
    std::size_t leaves() const { return leaves_.size(); }
    // For tests: the next component that is new has this id.
    void number_from(std::uint32_t id) { next_ = id; }

private:
    static constexpr std::uint32_t kLast = 0xffffffff;
    ComponentId next();

    std::unordered_map<ByteSet, ComponentId, ByteSetHash> leaves_;
    std::uint32_t next_ = 0;
};

// Counters that all parts of the mask engine share.
struct ResultCounters {
    mutable std::atomic<std::size_t> hits = 0;
    std::size_t misses = 0, bytes = 0;  // bytes: those of cached results
    // The clock of Known::last_use and FrameSummary::last_use: a tick for each look-up of a leaf or frame without a result.
    std::uint32_t result_clock = 1;
};

// Results of arrays and objects that are one leaf; a higher part implements them (composite_results.cpp).
class CompositeResults {
public:
    // Returns false if the configuration is not such a leaf.
    virtual bool walk_composite(Machine& machine, TrieId trie, const Config& config, WalkResult& made) = 0;

protected:
    ~CompositeResults() = default;
};

// Marks a token set as used, for TokenSets::sweep. Does nothing for kNoTokens.
void mark_used(TokenSetId set, std::vector<bool>& sets);

class LeafResults {
public:
    LeafResults(const TokenTable& vocabulary, const Tuning& tuning, Fuel& work, CompositeResults& composites);

    // The result of a trie in the component of a configuration. `bare`: its token set is no delta.
    const WalkResult& run(Machine& machine, TrieId trie, const Config& config, bool bare = false);
    // The same for a leaf that all grammars share. `component`: an id of ids().
    const WalkResult& run_shared(ExprPool& pool, TrieId trie, ComponentId component, ExprId state, const ByteSet& follow);
    // A suffix trie without the tokens that a delta clears.
    TrieId without(TrieId suffix_trie, std::span<const std::uint32_t> cleared);
    // The characters by which a state of a leaf returns to itself, in the vocabulary's trie; null if there are none.
    const SelfLoops* loops(ExprPool& pool, ExprId state) {
        return tuning_.self_loops ? loops_.find(pool, subtrees_, state, true) : nullptr;
    }

    ResultCounters counters;
    ComponentIds& ids() { return ids_; }
    const ComponentIds& ids() const { return ids_; }
    TokenSets& sets() { return sets_; }
    const TokenSets& sets() const { return sets_; }
    SuffixTries& suffix_tries() { return suffix_tries_; }
    const TokenTable& vocabulary() const { return vocabulary_; }
    const Tuning& tuning() const { return tuning_; }
    Fuel& fuel() const { return fuel_; }
    std::uint32_t words() const { return words_; }
    std::size_t bytes() const { return counters.bytes + sets_.bytes() + loops_.bytes() + dfa_table_.bytes() + suffix_tries_.bytes(); }

    // Removal of results that were not used recently: see MaskEngine::drop_before.
    void append_last_uses(std::vector<std::uint32_t>& times) const {
        memo_.each([&](const ResultKey&, const Known& known) { times.push_back(known.last_use); });
    }
    void drop_before(std::uint32_t time, std::vector<bool>& tries);
    void sweep(std::vector<bool>& sets, const std::vector<bool>& tries);
    void clear();

private:
    static constexpr std::size_t kRunBytes = 64;  // of an entry of the memo
    struct Known {                                // a result, and when it was used last
        WalkResult run;
        std::uint32_t last_use;
    };
    struct SupersetBounds {  // of the run of a superset: maximum bytes of a shortest completion, maximum depth before an exit node
        std::uint32_t rest = 0, deepest = 0;
    };
    struct Rounds {  // iterations of loop bodies that tokens can begin, in the run of a state that does not count them (supersets.h)
        std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens;  // tokens that may begin more than one iteration, and how many
        std::uint32_t at_exits = 0;                                   // maximum that a token begins before it leaves the leaf
        std::uint32_t loop_bodies = 0;                                // number of known loop bodies when the state was walked
        std::size_t bytes() const { return sizeof(Rounds) + sizeof(ResultKey) + 48 + tokens.size() * sizeof(tokens[0]); }
    };

    WalkResult walk(Machine& machine, TrieId trie, const Config& config);
    ExprId clipped(ExprPool& pool, TrieId trie, ExprId state) const;
    TrieId alphabet_slice(ExprPool& pool, ExprId state);
    // The trie that has all tokens of these bytes; kVocabularyTrie if they are too many; null: not cached.
    const TrieId* known_slice(const ByteSet& bytes) const;
    // Whether the tokens of these bytes are too many for a separate trie, or the bytes are not only ASCII.
    bool is_large_alphabet(const ByteSet& bytes);
    WalkResult walk_leaf(ExprPool& pool, TrieId trie, ExprId state, const ByteSet& follow, SupersetBounds* wider = nullptr,
                         const ResultKey* rounds_of = nullptr);
    bool accepts_plain_tokens(ExprPool& pool, ExprId state, bool exact);
    ExprId plain_summand(ExprPool& pool, ExprId state);
    TokenSetId plain_set(std::uint32_t characters, std::span<const std::uint32_t> others);
    bool walk_plain_tokens(Machine& machine, const Config& config, bool bare, WalkResult& made);
    bool knows(Machine& machine, const Config& config, ExprId state);
    bool walk_difference(Machine& machine, const Config& config, WalkResult& made);
    bool walk_minuend(Machine& machine, TrieId trie, const Config& config, WalkResult& made);
    void keep_rounds(ExprPool& pool, const TokenTrie& x, const LeafWalk& walked, const ResultKey& key);
    bool walk_without_loop_bounds(Machine& machine, const Config& config, bool walks, WalkResult& made);
    WalkResult run_without(const WalkResult& run, std::vector<std::uint32_t>&& cleared);
    bool walk_superset(Machine& machine, const Config& config, std::size_t most_tried, WalkResult& made);
    const Known& superset_result(Machine& machine, const Config& config, SupersetBounds& wider);
    TokenSetId keep(const TokenTrie& x, LeafWalk& walked, bool disordered);
    void bits_of(const TokenTrie& x, std::span<const TokenRange> places, std::vector<std::uint32_t>& row);
    const std::vector<std::uint32_t>& tokens_up_to(std::uint8_t characters);
    void write_row(TokenSetId set);
    bool accepts_token(ExprPool& pool, ExprId state, std::string_view token);

    const TokenTable& vocabulary_;
    const TokenTrie& trie_;  // of the vocabulary
    const SubtreeAlphabets& subtrees_;
    std::uint32_t words_;
    Tuning tuning_;
    Fuel& fuel_;
    CompositeResults& composites_;
    ComponentIds ids_;
    TokenSets sets_;
    LoopMemo loops_;
    DfaTable dfa_table_;
    SuffixTries suffix_tries_;
    FlatMap<ResultKey, Known, ResultKeyHash> memo_;
    std::unordered_map<ResultKey, SupersetBounds, ResultKeyHash> superset_bounds_;
    std::unordered_map<ResultKey, Rounds, ResultKeyHash> rounds_;
    std::array<TrieId, PlainTokens::kinds> structural_;  // suffix tries of structural tokens; kNoTrie: not made yet
    // Alphabet slices: suffix tries of the tokens of these bytes; kVocabularyTrie: too many.
    std::vector<std::pair<ByteSet, TrieId>> alphabet_slices_;
    std::vector<std::uint32_t> all_;                                      // the row of all tokens of the trie
    std::unordered_map<std::uint8_t, std::vector<std::uint32_t>> up_to_;  // rows of tokens, by number of characters
    std::vector<std::uint32_t> longest_first_;                            // tokens of kNear bytes or more, longest first
    std::vector<std::uint8_t> characters_;                                // by token, as `SubtreeAlphabets` counts them
    std::vector<std::uint32_t> plain_row_;                                // all plain tokens
    std::vector<std::uint32_t> row_, scratch_;
};

}  // namespace guideway
