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
// Ids stay valid until `trim`, which drops what was not used lately once the budget is used up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "guideway/leaf_walk.h"
#include "guideway/machine.h"
#include "guideway/subtrees.h"
#include "guideway/token_sets.h"
#include "guideway/trie.h"

namespace guideway {

struct Run {
    std::uint32_t tokens;    // number of a token set
    std::uint32_t residual;  // number of a trie, 0: nothing is left
    std::uint32_t unsure;    // tokens that depend on text before them, a list; kNoTokens: none
};
inline constexpr std::uint32_t kNoTokens = 0xffffffff;

class Vocabulary;

// Roads around work; masks are the same whichever are open, and tests close them.
struct Shortcuts {
    bool subtrees = true;  // subtrees that loop are taken whole
    bool deltas = true;    // runs are written as another and what differs
    bool clips = true;     // counts beyond the longest token are one state
};

class Runs {
public:
    Runs(const Vocabulary& vocabulary, std::size_t budget, Shortcuts shortcuts);

    // Writes the legal tokens of `configs` to the row (ceil(V/32) words).
    void fill(Machine& machine, const Configs& configs, std::span<std::uint32_t> row);
    // A number that names a component in the memo: leaves with equal follow bytes share one, everything else has its own.
    std::uint32_t component_id(const Component& component);
    void trim() {
        if (used() > budget_) clear();
    }
    void clear();
    std::size_t used() const { return used_ + sets_.bytes() + loops_.bytes(); }
    std::size_t hits() const { return hits_; }
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
    struct KeyHash {
        std::size_t operator()(const Key& k) const {
            return static_cast<std::size_t>(mix(std::uint64_t{k.trie} << 32 | k.component, std::uint64_t{k.state} << 32 | k.regs));
        }
    };

    const Trie& trie(std::uint32_t id) const { return id == 0 ? trie_ : *residuals_[id - 1]; }
    void fill_one(Machine& machine, const Run& top, const Config& config, std::span<std::uint32_t> row);
    Run run(Machine& machine, std::uint32_t trie, const Config& config);
    Run walk(Machine& machine, std::uint32_t trie, const Config& config);
    Run walk_leaf(ExprPool& pool, std::uint32_t trie, ExprId state, const ByteSet& follow);
    bool walk_difference(Machine& machine, const Config& config, Run& made);
    std::uint32_t residual_of(const Trie& x, const std::vector<std::uint32_t>& pieces);
    std::uint32_t keep(const Trie& x, const LeafWalk& walked);
    void bits_of(const Trie& x, std::span<const Places> places, std::vector<std::uint32_t>& row);
    const std::vector<std::uint32_t>& tokens_up_to(std::uint8_t characters);

    const Vocabulary& vocabulary_;
    const Trie& trie_;  // of the vocabulary
    const Subtrees& subtrees_;
    std::uint32_t words_;
    std::size_t budget_, used_ = 0, hits_ = 0, misses_ = 0;
    Shortcuts shortcuts_;
    TokenSets sets_;
    LoopMemo loops_;
    std::vector<std::unique_ptr<Trie>> residuals_;
    std::unordered_multimap<std::uint64_t, std::uint32_t> residual_ids_;
    std::unordered_map<Key, Run, KeyHash> memo_;
    std::unordered_map<ByteSet, std::uint32_t, ByteSetHash> leaf_ids_;
    std::uint32_t next_component_ = 0;
    std::vector<std::uint32_t> all_;                                      // the row of all tokens of the trie
    std::unordered_map<std::uint8_t, std::vector<std::uint32_t>> up_to_;  // rows of tokens of so many characters
    std::vector<Task> tasks_;  // scratch of `fill`
    std::vector<std::uint32_t> scratch_;
    std::vector<std::uint32_t> unsure_;
    Configs below_, next_;
};

}  // namespace guideway
