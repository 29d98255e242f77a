// Masks by residual tries.
//
// Run(X, q): walk the trie X through one component from its state q. The tokens that end inside it are a mask; what is
// left of X where the component ends is another trie, the residual, for whoever stands below on the stack. So
//     mask(q0 | f1 f2 ...) = A(X0, q0) + A(X1, f1) + A(X2, f2) + ...   until the residual is empty
// and the memo's key, (X, component, q, register), does not depend on the stack. Equal residuals have equal ids.
//
// Ids stay valid until `trim`, which drops everything but the vocabulary's own trie when the budget is used up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "guideway/machine.h"
#include "guideway/trie.h"

namespace guideway {

struct TokenSet {  // a mask: token ids, or bits where there are many
    bool dense = false;
    std::vector<std::uint32_t> data;
};

struct Run {
    std::uint32_t tokens;    // number of a TokenSet
    std::uint32_t residual;  // number of a trie, 0: nothing is left
};

class Runs {
public:
    Runs(const Trie& vocabulary, std::uint32_t size, std::size_t budget) : vocabulary_(vocabulary), words_((size + 31) / 32), budget_(budget) {}

    // Writes the legal tokens of `configs` to the row (ceil(V/32) words).
    void fill(Machine& machine, const Configs& configs, std::span<std::uint32_t> row);
    // A number that names a component in the memo: leaves with equal follow bytes share one, everything else has its own.
    std::uint32_t component_id(const Component& component);
    void trim() {
        if (used_ > budget_) clear();
    }
    void clear();
    std::size_t used() const { return used_; }
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

    const Trie& trie(std::uint32_t id) const { return id == 0 ? vocabulary_ : residuals_[id - 1]; }
    Run run(Machine& machine, std::uint32_t trie, const Config& config);
    Run walk(Machine& machine, std::uint32_t trie, const Config& config);
    Run walk_leaf(Machine& machine, const Trie& x, const Config& config);
    std::uint32_t residual_of(const Trie& x, const std::vector<std::uint32_t>& pieces);
    std::uint32_t keep(const std::vector<std::uint32_t>& tokens);
    void merge(const TokenSet& set, std::span<std::uint32_t> row) const;

    const Trie& vocabulary_;
    std::uint32_t words_;
    std::size_t budget_, used_ = 0, hits_ = 0, misses_ = 0;
    std::vector<Trie> residuals_;
    std::unordered_multimap<std::uint64_t, std::uint32_t> residual_ids_;
    std::vector<TokenSet> sets_;
    std::unordered_map<Key, Run, KeyHash> memo_;
    std::unordered_map<ByteSet, std::uint32_t, ByteSetHash> leaf_ids_;
    std::uint32_t next_component_ = 0;
    std::vector<Task> tasks_;  // scratch of `fill`
    Configs below_;
};

}  // namespace guideway
