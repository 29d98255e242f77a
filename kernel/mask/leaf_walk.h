// Walks a token trie from one state of a leaf.
//
// If the state loops by all characters of a subtree (`SubtreeAlphabets`), all tokens of the subtree are accepted without a walk;
// if it also counts repetitions, the tokens that are not longer than the remaining count. If it loops by some of them, the nodes of the
// subtree are searched for the other bytes. Of a node with many children (`TokenTrie::Wide`), only the children that the state can read
// are visited. `pair_walk` finds the tokens by which two states differ: where both reach the same
// state, the subtree is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "guideway/base/tuning.h"
#include "guideway/mask/dfa_table.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/vocabulary/subtree_alphabets.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

// A trie, or some subtrees of it: each is walked as if its top node were the only child of the root.
struct TrieForest {
    struct Part {
        std::uint32_t begin, end;  // its nodes
        std::uint32_t above;       // depth of the node above them
    };
    const TokenTrie* trie;
    std::vector<Part> parts;
    bool whole() const { return parts.size() == 1 && parts[0].begin == 1 && parts[0].above == 0; }
};

struct TokenRange {  // of a trie's list of tokens
    std::uint32_t begin, end;
};

// Skips the children of a node with many children (`TokenTrie::Wide`) whose bytes are not wanted.
class ChildFilter {
public:
    ChildFilter() = default;
    ChildFilter(const TokenTrie& trie, std::uint32_t node, const ByteSet& bytes)
        : wide_(trie.wide(node)), wanted_(bytes), end_(trie.end[node]) {
        if (wide_) wanted_ &= wide_->bytes;
        if (wide_ && wanted_ == wide_->bytes) wide_ = nullptr;  // no child is skipped
    }
    bool wants(std::uint8_t byte) const { return !wide_ || wanted_.contains(byte); }
    // The node to continue with: the child `node` or a sibling after it, or the parent's end.
    std::uint32_t next(const TokenTrie& trie, std::uint32_t node) const {
        if (!wide_ || wanted_.contains(trie.byte[node])) return node;
        const int b = wanted_.from(trie.byte[node]);
        return b < 0 ? end_ : trie.children[wide_->first + wide_->bytes.rank(static_cast<unsigned>(b))];
    }

private:
    const TokenTrie::Wide* wide_ = nullptr;
    ByteSet wanted_;
    std::uint32_t end_ = 0;
};

struct LeafWalk {
    struct Limited {  // ranges of which only the tokens of at most this many characters are accepted
        std::uint8_t characters;
        std::vector<TokenRange> places;
    };
    struct Rounds {  // the maximum number of iterations of loop bodies that the tokens of this range begin
        TokenRange places;
        std::uint32_t begun;
    };
    static constexpr std::uint32_t kAnyRounds = kInfinite;  // the number is not known
    static constexpr std::uint32_t kMostRoundTokens = 1000;
    std::vector<TokenRange> places;
    std::vector<Limited> limited;
    std::vector<std::uint32_t> to_verify;   // tokens of `places` that must be stepped byte by byte
    std::vector<std::uint32_t> exit_nodes;  // nodes before whose byte the leaf may end
    bool measures = false;                  // whether to find `rest`
    std::uint32_t rest = 0;                 // maximum bytes of a shortest completion, of all states that were reached
    bool counts = false;                    // whether to find the next three; cleared if more than kMostRoundTokens tokens are found
    std::vector<Rounds> rounds;             // for tokens that may begin two or more iterations of loop bodies (supersets.h)
    std::uint32_t round_tokens = 0;         // the number of these tokens
    std::uint32_t rounds_at_exits = 0;      // maximum number of iterations begun before an exit node

    // `subtrees`: of the forest's trie, or null. `places` is sorted only if the forest is a whole trie.
    void run(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, const SubtreeAlphabets* subtrees,
             LoopMemo& loops, DfaTable& states, const Tuning& tuning);
    void add(std::uint32_t begin, std::uint32_t end) {
        if (begin == end) return;
        if (!places.empty() && places.back().end == begin) places.back().end = end;
        else places.push_back({begin, end});
    }
    void add_up_to(std::uint8_t characters, TokenRange more);
    void add_rounds(TokenRange some, std::uint32_t begun);
};

// Tokens that a leaf takes (or that leave it) in one state and not in the other.
struct Difference {
    std::vector<std::uint32_t> cleared, added;  // tokens of `base` only; tokens of `state` only
};

// The difference of a state that is its base without finite sets of texts. Nothing if the state has another form, if the
// conditions of delta_walk.cpp are not met, or if more than `bound` nodes or tokens are needed.
std::optional<Difference> text_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound);
// The difference of two states. Nothing if more than `bound` nodes or tokens are needed, or if a token may leave the leaf from
// only one of them.
std::optional<Difference> pair_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound);

}  // namespace guideway
