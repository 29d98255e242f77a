// How a trie is walked from one state of a leaf, and what can be left out of the walk.
//
// Below a node whose whole subtree loops on the state (`SubtreeAlphabets`), every token is taken at once; where the
// state counts what it repeats, every token of no more characters than are left. Below a wide node only children that
// can continue are visited. `pair_walk` finds in what two states differ: where both reach the same state, their
// subtrees agree.
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
        std::uint32_t begin, end, above;  // nodes; the depth of the node above them
    };
    const TokenTrie* trie;
    std::vector<Part> parts;
    bool whole() const { return parts.size() == 1 && parts[0].begin == 1 && parts[0].above == 0; }
};

struct TokenRange {  // of a trie's list of tokens
    std::uint32_t begin, end;
};

// Over the children of a wide node, to those that are wanted.
class ChildFilter {
public:
    ChildFilter() = default;
    ChildFilter(const TokenTrie& trie, std::uint32_t node, const ByteSet& bytes)
        : wide_(trie.wide(node)), wanted_(bytes), end_(trie.end[node]) {
        if (wide_) wanted_ &= wide_->bytes;
        if (wide_ && wanted_ == wide_->bytes) wide_ = nullptr;  // nothing to leap over
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
    struct Limited {  // places whose tokens count only up to this many characters
        std::uint8_t characters;
        std::vector<TokenRange> places;
    };
    struct Rounds {  // that tokens may begin, at most
        TokenRange places;
        std::uint32_t begun;
    };
    static constexpr std::uint32_t kAnyRounds = kInfinite;  // that is not seen
    static constexpr std::uint32_t kMostRoundTokens = 1000;
    std::vector<TokenRange> places;
    std::vector<Limited> limited;
    std::vector<std::uint32_t> to_verify;   // tokens at these places that must be tried
    std::vector<std::uint32_t> exit_nodes;  // nodes whose byte the leaf does not take, but what follows it may
    bool measures = false;                  // whether to find `rest`
    std::uint32_t rest = 0;                 // bytes, at most, of a shortest completion of what was reached
    bool counts = false;                    // whether to find what follows; unset where too many tokens come round
    std::vector<Rounds> rounds;             // tokens that may begin two iterations of loop bodies (supersets.h) or more
    std::uint32_t round_tokens = 0;         // this many
    std::uint32_t rounds_at_exits = 0;      // begun before an exit node, at most

    // `subtrees`: of the forest's trie, or null. Places are in order in a whole trie only.
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
    std::vector<std::uint32_t> cleared, added;  // not in `state` but in `base`; in `state` only
};

// How a state that is its base without some sets of texts differs from it; nothing where it is not, that is not seen, or it
// takes over `bound`.
std::optional<Difference> text_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound);
// Nothing if that is not worth it (over `bound` nodes or tokens), or if the two states are left at different places.
std::optional<Difference> pair_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound);

}  // namespace guideway
