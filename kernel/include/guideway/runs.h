// Masks by residual tries.
//
// Run(X, q): walk the trie X through one component from its state q. The tokens that end inside it are a mask; what is
// left of X where the component ends is another trie, the residual, for whoever stands below on the stack. So
//     mask(q0 | f1 f2 ...) = A(X0, q0) + A(X1, f1) + A(X2, f2) + ...   until the residual is empty
// and the memo's key, (X, component, q, register), does not depend on the stack. Equal residuals have equal ids.
//
// A leaf's run over the whole vocabulary may be written as that of another state, its base, and what differs: the run of
// a string with a few words left out is that of any string but for a few tokens. It then has the base's residual, and
// what it clears is cleared from what comes of the residual too: on such runs each token goes one way only.
//
// A state that takes every smooth token (smooth.h), at most n characters of them, has these by a table; the run is that
// over the rough ones.
//
// Punctuation, and the white space around it, are leaves of their own, which all objects and arrays share; so is what is
// left behind them. A run of keys ends behind each name.
//
// Where a grammar calls itself (calls.cpp), what comes of a trie in what is left of a sequence is remembered as a run is:
// the sets, and the tries that are left behind it. So a new nesting costs a look-up for each of its levels that tokens reach.
//
// What comes of a configuration with all that stands below it is remembered too: its mask, as the sets that make it up.
//
// Ids stay valid until the next call of `fill`, which first drops the half that was not used lately once the budget is
// used up. `fill_known` changes nothing but the time of use, and may run in several threads at once.
#pragma once

#include <atomic>
#include <chrono>
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

#include "guideway/leaf_walk.h"
#include "guideway/machine.h"
#include "guideway/smooth.h"
#include "guideway/subtrees.h"
#include "guideway/token_sets.h"
#include "guideway/trie.h"

namespace guideway {

inline constexpr std::uint32_t kNoTokens = 0xffffffff;

struct Run {
    std::uint32_t tokens;    // number of a token set
    std::uint32_t residual;  // number of a trie, 0: nothing is left
    std::uint32_t unsure;    // tokens that depend on text before them, a list; kNoTokens: none
    std::uint32_t exits = kNoTokens;  // of keys: number of a list of names that end, and what is left behind each
};

class Vocabulary;

// Roads around work; masks are the same whichever are open, and tests close them.
struct Shortcuts {
    bool subtrees = true;  // subtrees that loop are taken whole
    bool deltas = true;    // runs are written as another and what differs
    bool clips = true;     // counts beyond the longest token are one state
    bool marks = true;     // punctuation is walked once for all grammars
};

class Runs {
public:
    Runs(const Vocabulary& vocabulary, std::size_t budget, Shortcuts shortcuts);

    // Writes the legal tokens of `configs` to the row (ceil(V/32) words); true: the text may end here. `automaton`
    // names the machine.
    bool fill(Machine& machine, std::uint32_t automaton, std::span<const Config> configs, std::span<std::uint32_t> row);
    // The same, if all of it is remembered; else nothing.
    std::optional<bool> fill_known(const Machine& machine, std::uint32_t automaton, std::span<const Config> configs, std::span<std::uint32_t> row) const;
    // A number that names a component in the memo: leaves with equal follow bytes share one, everything else has its own.
    std::uint32_t component_id(const Component& component);
    // What a leaf's state loops by in the vocabulary's trie, null if by nothing.
    const Loops* loops(ExprPool& pool, ExprId state) { return shortcuts_.subtrees ? loops_.find(pool, subtrees_, state, true) : nullptr; }
    std::uint32_t next_automaton() { return automata_++; }
    // Walks ahead, for so long: the first mask, what may follow in each rest of a sequence, the states of leaves, the near
    // ones first. Only speed depends on how far it came.
    void walk_ahead(Machine& machine, std::uint32_t automaton, std::chrono::microseconds budget);
    void trim();
    void clear();
    std::size_t used() const { return used_ + sets_.bytes() + loops_.bytes(); }
    std::size_t hits() const { return hits_.load(std::memory_order_relaxed); }
    std::size_t misses() const { return misses_; }

private:
    struct Key {
        std::uint32_t trie, component, state, regs;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Task {
        std::uint32_t trie;
        Config config;
    };
    struct Known {  // a run, and when it was used last
        Run run;
        std::uint32_t time;
    };
    // What comes of a trie in what is left of a sequence, whatever stands below it on the stack.
    struct Call {
        std::vector<std::uint32_t> sets, pops, unsure;  // token sets; tries left behind it; tokens that depend on more
        std::uint32_t time = 0;
        bool open = true;  // it is being worked out
        std::size_t bytes() const { return sizeof(Call) + sizeof(Key) + 48 + (sets.size() + pops.size() + unsure.size()) * 4; }
    };
    // What is to be gone on with, and what came of it so far.
    struct Trail {
        std::vector<Task> tasks;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> ended;  // by reach and trie: frames
        std::vector<std::uint32_t> sets, unsure, pops;
        std::unordered_set<std::uint64_t> gone;  // tries and frames
    };
    struct Mask {
        std::uint32_t first = 0, last = kNoTokens;  // sets: with its changes; added at the very end
        std::vector<std::uint32_t> more;            // sets added to the first before its changes
        bool accepting = false, unsure = false;  // unsure: it holds for what was read up to here only
        mutable std::atomic<std::uint32_t> time = 0;
        std::size_t bytes() const { return sizeof(Mask) + sizeof(Place) + 32 + more.size() * 4; }
    };
    struct Place {  // a configuration of an automaton
        std::uint32_t automaton;
        Config config;
        friend bool operator==(const Place&, const Place&) = default;
    };
    struct PlaceHash {
        std::size_t operator()(const Place& p) const { return static_cast<std::size_t>(mix(ConfigHash{}(p.config), p.automaton)); }
    };
    struct KeyHash {
        std::size_t operator()(const Key& k) const {
            return static_cast<std::size_t>(mix(std::uint64_t{k.trie} << 32 | k.component, std::uint64_t{k.state} << 32 | k.regs));
        }
    };

    struct Residual {
        Trie trie;
        std::vector<std::uint32_t> tops;  // or, if there are any: subtrees of the vocabulary's trie
        std::uint32_t reach = 0;          // bytes of its longest text
        std::size_t bytes() const { return trie.bytes() + tops.size() * 4 + sizeof(Residual) + 64; }
    };

    Grove grove_of(std::uint32_t id) const;
    auto find(const Machine& machine, std::uint32_t automaton, const Config& config) const;
    const Mask& mask(Machine& machine, std::uint32_t automaton, const Config& config);
    void find_mask(Machine& machine, const Config& config, Mask& made);
    void find_plain_mask(Machine& machine, const Config& config, Mask& made);
    void find_forked_mask(Machine& machine, const Config& config, Mask& made);
    void step_through_unsure(Machine& machine, const Config& config, Mask& mask);
    void follow(Machine& machine, Trail& trail, unsigned depth);
    void work_off(Machine& machine, Trail& trail);
    const Call* call(Machine& machine, std::uint32_t trie, const Config& frame, unsigned depth);
    void leave(Trail& trail, std::uint32_t trie, std::uint32_t frame);
    std::uint32_t reach_of(std::uint32_t trie) const;
    void join_sets(std::vector<std::uint32_t>& sets);
    void write(const Mask& mask, bool blank, std::span<std::uint32_t> row) const;
    void drop_before(std::uint32_t time);
    // `bare`: not as another run and what differs.
    Run run(Machine& machine, std::uint32_t trie, const Config& config, bool bare = false);
    Run walk(Machine& machine, std::uint32_t trie, const Config& config);
    bool take_smooth(Machine& machine, const Config& config, Mask& mask);
    std::uint32_t smooth_up_to(std::uint32_t characters);
    std::uint32_t keep_residual(Residual made);
    std::uint32_t leaf_id(const ByteSet& follow);
    bool walk_keys(Machine& machine, std::uint32_t trie, const Config& config, Run& made);
    std::uint32_t keep_exits(Machine& machine, const Config& config, const Trie& x, std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends);
    static ByteSet canonical(const ByteSet& bytes);
    void take_text(Machine& machine, std::uint32_t trie, bool spaced, std::string_view text, std::span<const Config> after, Mask& mask);
    bool take_marks(Machine& machine, const Task& task, Mask& mask);
    Run walk_leaf(ExprPool& pool, std::uint32_t trie, ExprId state, const ByteSet& follow);
    bool walk_difference(Machine& machine, const Config& config, Run& made);
    std::uint32_t residual_of(const Trie& x, std::vector<std::uint32_t>& pieces);
    static Trie merged(const Trie& x, const std::vector<std::uint32_t>& pieces);
    std::uint32_t keep(const Trie& x, LeafWalk& walked, bool disordered);
    void bits_of(const Trie& x, std::span<const Places> places, std::vector<std::uint32_t>& row);
    const std::vector<std::uint32_t>& tokens_up_to(std::uint8_t characters);

    const Vocabulary& vocabulary_;
    const Trie& trie_;  // of the vocabulary
    const Subtrees& subtrees_;
    std::uint32_t words_;
    std::size_t budget_, used_ = 0, misses_ = 0;
    mutable std::atomic<std::size_t> hits_ = 0;
    Shortcuts shortcuts_;
    TokenSets sets_;
    LoopMemo loops_;
    std::vector<std::unique_ptr<Residual>> residuals_;
    std::vector<std::uint32_t> free_residuals_;
    std::unordered_multimap<std::uint64_t, std::uint32_t> residual_ids_;
    std::unordered_map<Key, Known, KeyHash> memo_;
    std::unordered_map<Place, Mask, PlaceHash> masks_;
    std::unordered_map<Key, Call, KeyHash> calls_;
    std::uint32_t time_ = 1, automata_ = 0;  // time: counts what was looked for and not found
    std::unordered_map<ByteSet, std::uint32_t, ByteSetHash> leaf_ids_;
    std::uint32_t next_component_ = 0;
    std::unique_ptr<SmoothTokens> smooth_;
    std::uint32_t rough_[SmoothTokens::kinds] = {};                       // residuals of rough tokens
    std::vector<std::uint32_t> smooth_up_to_;                             // by characters: the set of smooth tokens
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> exits_;  // of runs of keys: a label, and the residual behind its name
    std::vector<std::uint32_t> free_exits_;
    std::vector<std::uint32_t> all_;                                      // the row of all tokens of the trie
    std::unordered_map<std::uint8_t, std::vector<std::uint32_t>> up_to_;  // rows of tokens of so many characters
    std::vector<Task> tasks_;  // scratch of `fill`
    std::vector<std::uint32_t> scratch_, unsure_, row_;
    Configs below_, next_;
};

}  // namespace guideway
