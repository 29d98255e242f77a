// Masks by suffix tries.
//
// Run(X, q): walk the trie X through one component from its state q. The tokens that end inside the component form a mask.
// The rest of X, where the component ends, is another trie: the suffix trie. The next frame of the stack continues with it. So
//     mask(q0 | f1 f2 ...) = A(X0, q0) + A(X1, f1) + A(X2, f2) + ...   until the suffix trie is empty
// and the key of the cache, (X, component, q, register), does not depend on the stack. Equal suffix tries have equal ids.
//
// Delta encoding: the run of a state over the whole vocabulary can be stored as that of a base state minus `cleared` plus
// `added` tokens. It then uses the suffix trie of the base, and `cleared` is also removed from everything computed from that
// suffix trie. This is valid only if no token can both stay in the leaf and leave it; callers check this.
//
// A string over few ASCII characters is walked over the tokens of these characters only. A difference over a trie that
// spells none of the excluded texts has the run of the expression that they are excluded from.
//
// A state that accepts every plain token (plain_tokens.h) of at most n characters gets these from a table. Its run covers the
// other tokens only.
//
// A state that counts is walked without bounds. Then the tokens that are long enough to reach a bound are tried one by
// one. So one walk serves every count.
//
// Punctuation and the white space around it are separate leaves, which all objects and arrays share, with their suffix tries.
// The names of an object over a trie are sorted by text. Each token has the range of names that it leads to, and the
// allowed tokens are selected from these ranges.
//
// In recursive grammars (summaries.cpp), the result of a trie in the rest of a sequence is cached like a run: token sets and
// suffix tries. So a new nesting costs one look-up for each level that tokens reach.
//
// The result of a configuration with its complete stack is cached too: its mask, as a list of sets and selected names
// (mask_builder.cpp). For a state set (state_sets.h), the list of these masks is cached; for a component over a suffix trie, the result
// up to the end of the component. The frames below compute their own parts.
//
// Ids stay valid until the next call of `fill`. When automata have learned more than a share of the budget, `fill` first
// releases what the automata learned that were idle longest. When the budget is used up, it releases what all automata
// learned, and the runs that were not used recently. `fill_known` changes only the time of use, and may run in several
// threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/grammar/machine.h"
#include "guideway/mask/automaton_cache.h"
#include "guideway/mask/key_walk.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/mask/suffix_tries.h"
#include "guideway/mask/token_sets.h"
#include "guideway/vocabulary/plain_tokens.h"
#include "guideway/vocabulary/subtree_alphabets.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

struct WalkResult {
    std::uint32_t tokens;    // number of a token set
    std::uint32_t suffix_trie;  // number of a trie, 0: nothing is left
    std::uint32_t context_dependent;    // tokens that depend on text before them, a list; kNoTokens: none
};

class TokenTable;

// Paths around work; masks are the same whichever are open, and tests close them.
struct Shortcuts {
    bool subtrees = true;  // subtrees that loop are taken whole; strings in few characters are walked over their own tokens
    bool deltas = true;    // runs are written as another and what differs, or as another where nothing does
    bool clips = true;     // counts beyond the longest token are one state
    bool marks = true;     // punctuation is walked once for all grammars
};

class MaskEngine {
public:
    // `work`: of whose pool the expressions of all machines are.
    MaskEngine(const TokenTable& vocabulary, std::size_t budget, Shortcuts shortcuts, Fuel& work);

    // Writes the legal tokens of a state set to the row (ceil(V/32) words); true: the text may end here. `automaton` names
    // the machine.
    bool fill(Machine& machine, std::uint32_t automaton, const StateSet& state_set, std::span<std::uint32_t> row);
    // The same, if all of it is cached; else nothing.
    std::optional<bool> fill_known(std::uint32_t automaton, const StateSet& state_set, std::span<std::uint32_t> row) const;
    // What `fill_known` would say, without writing.
    std::optional<bool> accepting_known(std::uint32_t automaton, const StateSet& state_set) const;
    // A number that names a component in the memo: leaves with equal follow bytes share one, everything else has its own.
    // Throws Error(limit) where 32 bits have no id left; a vocabulary begins a new store long before.
    std::uint32_t component_id(const AnalysedNode& component);
    std::size_t marks() const { return punctuation_.size(); }
    // Of what is never forgotten while the store lives.
    std::size_t kept_bytes() const { return leaf_ids_.size() * 80 + learned_.capacity() * sizeof(learned_[0]); }
    bool is_short_of_ids() const { return next_component_ >= kInfinite / 2; }
    // For tests: the next component that is new has this id.
    void number_from(std::uint32_t id) { next_component_ = id; }
    // What a leaf's state loops by in the vocabulary's trie, null if by nothing.
    const SelfLoops* loops(ExprPool& pool, ExprId state) { return shortcuts_.subtrees ? loops_.find(pool, subtrees_, state, true) : nullptr; }
    // A number for an automaton, good until `forget`.
    std::uint32_t next_automaton();
    // The reference is valid until `forget`. The contents are released while the automaton is idle.
    AutomatonCache& learned(std::uint32_t automaton) { return *learned_[automaton]; }
    void forget(std::uint32_t automaton) noexcept;
    // After something was added to what it has learned.
    void count(std::uint32_t automaton);
    // Computes the runs of leaves at their start and after the opening quote, up to a limit on work (some tenths of a
    // millisecond). Throws Error(limit) if a single run takes ten times as much.
    void warm_up_leaves(Machine& machine, std::uint32_t automaton);
    // Precomputes with about `work` units: the first mask, the masks of each rest of a sequence, the states of leaves, the
    // nearest first. Results do not depend on how much is precomputed, only speed.
    void warm_up(Machine& machine, std::uint32_t automaton, std::uint64_t work);
    void trim();
    void clear();
    std::size_t used() const { return used_ + learned_bytes_ + sets_.bytes() + loops_.bytes() + dfa_table_.bytes() + suffix_tries_.bytes(); }
    std::size_t hits() const { return hits_.load(std::memory_order_relaxed); }
    std::size_t misses() const { return misses_; }

private:
    static constexpr std::size_t kRunBytes = 64;    // of an entry of the memo
    static constexpr std::size_t kShare = 96;       // of the budget, for what automata learned: beyond it, idle ones forget
    static constexpr std::uint64_t kLately = 1024;  // turns back: an automaton used since is not idle, those of a batch take turns
    using Key = ResultKey;
    using KeyHash = ResultKeyHash;
    using Span = AutomatonCache::Span;
    using Parts = AutomatonCache::Parts;
    using Mask = AutomatonCache::Mask;
    using ComponentSummary = AutomatonCache::ComponentSummary;
    using KeyIndex = AutomatonCache::KeyIndex;
    struct Task {
        std::uint32_t trie;
        Config config;
    };
    struct Known {  // a run, and when it was used last
        WalkResult run;
        std::uint32_t time;
    };
    // The result of a trie in the rest of a sequence, independent of the stack below.
    struct FrameSummary {
        std::vector<std::uint32_t> sets, exits, context_dependent;  // token sets; suffix tries; tokens that depend on more context
        std::uint32_t time = 0;
        bool open = true;  // it is being worked out
        std::size_t bytes() const { return sizeof(FrameSummary) + sizeof(Key) + 48 + (sets.size() + exits.size() + context_dependent.size()) * 4; }
    };
    // The open tasks, and the results so far.
    struct Exploration {
        std::vector<Task> tasks;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> ended;  // by reach and trie: frames
        std::vector<std::uint32_t> sets, context_dependent, exits;
        std::unordered_set<std::uint64_t> visited;  // tries and frames
        std::unordered_map<std::uint32_t, VisitedSet> taken;  // by trie: configurations of objects and arrays
    };
    struct SupersetBounds {  // of the run of a state without bounds: bytes at most of a completion, and of what leaves it
        std::uint32_t rest = 0, deepest = 0;
    };
    struct Rounds {  // of the run of a state that counts no units (expr.h), for all that were known then
        std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens;  // that may begin more than one round, and how many
        std::uint32_t at_pieces = 0, units = 0;                        // rounds begun by what leaves the state, at most
        std::size_t bytes() const { return sizeof(Rounds) + sizeof(Key) + 48 + tokens.size() * sizeof(tokens[0]); }
    };
    struct SummaryBuilder {  // a yield that is being found; what comes of its tasks is on top of theirs
        Key key;
        Config config;
        std::size_t tasks, sets, spans;
        bool by_entry, whole;
        std::vector<std::uint32_t> exits, continuations;
    };
    struct PunctuationLeaf {  // punctuation as a leaf, and the leaf's numbers by what follows it
        std::string text;
        bool spaced;
        ExprId expr;
        std::vector<std::pair<ByteSet, std::uint32_t>> ids;
    };
    // Runs.
    void drop_before(std::uint32_t time);
    void turn_to(std::uint32_t automaton);
    void forget_idle(std::size_t most);
    void forget_learned();
    void count_learned(AutomatonCache& learned);
    void forget_rows();
    // `bare`: not as another run and what differs.
    const WalkResult& run(Machine& machine, std::uint32_t trie, const Config& config, bool bare = false);
    const WalkResult& result_of_punctuation(ExprPool& pool, std::uint32_t trie, PunctuationLeaf& mark, const ByteSet& follow);
    WalkResult walk(Machine& machine, std::uint32_t trie, const Config& config);
    std::uint32_t leaf_id(const ByteSet& follow);
    std::uint32_t new_component();
    ExprId clipped(ExprPool& pool, std::uint32_t trie, ExprId state) const;
    std::uint32_t alphabet_slice(ExprPool& pool, ExprId state);
    // The trie that serves tokens of these bytes, 0 if they are too many; null: not known yet.
    const std::uint32_t* known_slice(const ByteSet& bytes) const;
    // Whether tokens of these bytes are too many for a separate trie, or not of ASCII alone.
    bool is_large_alphabet(const ByteSet& bytes);
    WalkResult walk_leaf(ExprPool& pool, std::uint32_t trie, ExprId state, const ByteSet& follow, SupersetBounds* wider = nullptr, const Key* rounds_of = nullptr);
    bool accepts_plain_tokens(ExprPool& pool, ExprId state, bool exact);
    bool walk_plain_tokens(Machine& machine, const Config& config, bool bare, WalkResult& made);
    bool knows(Machine& machine, const Config& config, ExprId state);
    bool walk_difference(Machine& machine, const Config& config, WalkResult& made);
    bool walk_as_base(Machine& machine, std::uint32_t trie, const Config& config, WalkResult& made);
    void keep_rounds(ExprPool& pool, const TokenTrie& x, const LeafWalk& walked, const Key& key);
    bool walk_without_loop_bounds(Machine& machine, const Config& config, bool walks, WalkResult& made);
    WalkResult but_for(const WalkResult& run, std::vector<std::uint32_t>&& cleared);
    std::uint32_t without(std::uint32_t suffix_trie, std::span<const std::uint32_t> taken);
    bool walk_superset(Machine& machine, const Config& config, std::size_t most_tried, WalkResult& made);
    const Known& superset_result(Machine& machine, const Config& config, SupersetBounds& wider);
    std::uint32_t keep(const TokenTrie& x, LeafWalk& walked, bool disordered);
    void bits_of(const TokenTrie& x, std::span<const TokenRange> places, std::vector<std::uint32_t>& row);
    const std::vector<std::uint32_t>& tokens_up_to(std::uint8_t characters);
    void write_row(std::uint32_t set);
    bool lives(ExprPool& pool, ExprId state, std::string_view token);
    // composite_results.cpp
    bool walk_composite(Machine& machine, std::uint32_t trie, const Config& config, WalkResult& made);
    WalkResult result_of_composite(Machine& machine, std::uint32_t trie, const Config& config);
    struct Taken {  // the row is made where there is much
        std::vector<std::uint32_t> tokens, row;
    };
    std::uint32_t take_one(Machine& inner, std::uint32_t trie, const Config& config, Taken& taken);
    std::vector<std::uint32_t> spelled_alike(ExprPool& pool, std::uint32_t trie, ExprId value, ExprId others);

    // Masks, of parts.
    static Mask* find(const Machine& machine, const AutomatonCache& learned, const Config& config);
    Mask& mask(Machine& machine, const Config& config);
    void find_mask(Machine& machine, const Config& config, Mask& made);
    void step_through_context_dependent(Machine& machine, const Config& config, Mask& made);
    void put_first(std::span<Mask*> masks) const;
    void write(const AutomatonCache& from, std::span<Mask* const> masks, std::span<std::uint32_t> row) const;
    void write(const AutomatonCache& from, const Mask& mask, std::uint32_t before, std::span<std::uint32_t> row) const;
    Parts keep_parts(std::size_t sets, std::size_t spans);
    static ByteSet canonical(const ByteSet& bytes);
    PunctuationLeaf& mark_of(ExprPool& pool, std::string_view text, bool spaced);
    void drain_worklist(Machine& machine, Mask& mask);
    void take(Machine& machine, const Task& task, Mask& mask);
    bool take_punctuation(Machine& machine, const Task& task);
    bool step_along(Machine& machine, const Config& c, std::string_view bytes);
    void take_text(Machine& machine, std::uint32_t trie, bool spaced, std::string_view text, std::span<const Config> after);
    void take_closing(Machine& machine, const Task& task, bool spaced, std::string_view text);
    bool take_keys(Machine& machine, const Task& task);
    KeyIndex key_index_of(Machine& machine, const Task& task);
    bool take_summary(Machine& machine, const Task& task);
    void close_summary(Machine& machine);
    void leave(Machine& machine, std::uint32_t suffix_trie, const Config& config);
    void go_on(std::uint32_t suffix_trie, const Config& config);

    // summaries.cpp
    void find_forked_mask(Machine& machine, const Config& config, Mask& made);
    std::vector<std::uint32_t> saturate_all(Machine& machine, std::uint32_t trie, const Config& config, Mask& mask);
    void follow(Machine& machine, Exploration& trail, unsigned depth);
    void drain_worklist(Machine& machine, Exploration& trail);
    bool take_parts(Machine& machine, Exploration& trail, const Task& task);
    const FrameSummary* call(Machine& machine, std::uint32_t trie, const Config& frame, unsigned depth);
    void leave(Exploration& trail, std::uint32_t trie, std::uint32_t frame);
    void join_sets(std::vector<std::uint32_t>& sets);
    std::uint32_t joined(const std::vector<std::uint32_t>& sets);

    const TokenTable& vocabulary_;
    const TokenTrie& trie_;  // of the vocabulary
    const SubtreeAlphabets& subtrees_;
    std::uint32_t words_;
    std::size_t budget_, used_ = 0, learned_bytes_ = 0, misses_ = 0;
    mutable std::atomic<std::size_t> hits_ = 0;
    Shortcuts shortcuts_;
    Fuel& fuel_;
    TokenSets sets_;
    LoopMemo loops_;
    DfaTable dfa_table_;
    SuffixTries suffix_tries_;
    FlatMap<Key, Known, KeyHash> memo_;
    std::vector<std::unique_ptr<AutomatonCache>> learned_;  // by number of automaton
    std::vector<std::uint32_t> free_numbers_;        // of automata that are gone
    AutomatonCache* at_ = nullptr;                          // of the automaton that masks are found for
    std::unordered_map<Key, SupersetBounds, KeyHash> superset_bounds_;
    std::unordered_map<Key, Rounds, KeyHash> rounds_;
    std::unordered_map<Key, FrameSummary, KeyHash> frame_summaries_;
    std::map<std::vector<std::uint32_t>, std::uint32_t> joined_;  // by token sets: one of all their tokens
    std::size_t roads_ = 0;  // that the mask in the making has looked at, in grammars that call themselves
    static constexpr std::size_t kMostMarks = 64, kMostFollows = 64;  // texts, and what follows one; then they are made anew
    std::vector<PunctuationLeaf> punctuation_;
    std::uint32_t time_ = 1;  // counts what was looked for and not found
    std::uint64_t turn_ = 0;  // counts masks of state sets that were not known, and walks ahead
    std::size_t forget_at_;   // bytes that automata have learned, beyond which some forget
    std::unordered_map<ByteSet, std::uint32_t, ByteSetHash> leaf_ids_;
    std::uint32_t next_component_ = 0;
    std::uint32_t structural_[PlainTokens::kinds] = {};                       // suffix tries of structural tokens
    std::vector<std::pair<ByteSet, std::uint32_t>> few_;                  // suffix tries of tokens of these bytes; 0: they are many
    std::vector<std::uint32_t> all_;                                      // the row of all tokens of the trie
    std::unordered_map<std::uint8_t, std::vector<std::uint32_t>> up_to_;  // rows of tokens, by number of characters
    std::vector<std::uint32_t> longest_first_;                            // tokens of kNear bytes or more, by their bytes
    std::vector<std::uint8_t> characters_;                                // by token, as `SubtreeAlphabets` counts them
    std::vector<std::uint32_t> plain_row_;                               // all plain tokens
    std::vector<std::uint32_t>* ended_ = nullptr;  // suffix tries at the end of the whole grammar; null: not requested
    std::vector<Task> tasks_;  // scratch of `fill`
    Exploration* trail_ = nullptr;   // what takes tasks and what is left, in grammars that call themselves
    std::vector<Mask*> filled_;  // of the state set
    std::vector<SummaryBuilder> open_;
    std::size_t opened_ = 0;  // of them
    std::vector<std::uint32_t> found_;
    std::vector<Span> spans_;
    std::unordered_map<std::uint32_t, VisitedSet> visited_;
    std::size_t taken_ = 0;
    std::vector<std::uint32_t> scratch_, context_dependent_, row_, may_come_;
    Configs below_, next_, after_;
};

}  // namespace guideway
