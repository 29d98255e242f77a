#include "guideway/mask/self_loops.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

// The transitions from one state by bytes of characters beyond ASCII, computed once instead of once for each block.
class Ways {
public:
    Ways& from(ExprPool& pool, ExprId state) {
        if (state == state_) return *this;
        state_ = state;
        all_.reset();
        ways_.clear();
        pool.dfa.for_each_derivative(state, kBeyondAscii, [&](const ByteSet& bytes, ExprId to) { ways_.emplace_back(bytes, to); });
        return *this;
    }
    ExprId by(std::uint8_t byte) const {
        for (const auto& [bytes, to] : ways_)
            if (bytes.contains(byte)) return to;
        return kNone;
    }
    // Whether every continuation byte leads to a state for which `good` holds. `good` must be the same in all calls.
    bool all(const std::function<bool(ExprId)>& good) {
        if (all_) return *all_;
        ByteSet missing = kContinuation;
        for (const auto& [bytes, to] : ways_)
            if (good(to)) missing -= bytes;
        all_ = missing.empty();
        return *all_;
    }

private:
    ExprId state_ = kNone;
    std::optional<bool> all_;
    std::vector<std::pair<ByteSet, ExprId>> ways_;
};

unsigned length_of(std::uint8_t lead) { return lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0; }

}  // namespace

SelfLoops loops_of(const SubtreeAlphabets& subtrees, ExprPool& pool, ExprId state, bool exact) {
    SelfLoops made;
    auto returns = [&](ExprId to) {
        if (to == state) return true;
        if (exact || !has_summand(pool, to, state)) return false;
        made.grows = true;
        return true;
    };
    // Whether every character that continues from here returns to the state: a token that ends inside a character may be the
    // prefix of another token.
    auto closed = [&](ExprId from, unsigned left) {
        std::vector<ExprId> here{from}, after;
        for (; left > 0; --left) {
            for (ExprId at : here) pool.dfa.for_each_derivative(at, kContinuation, [&](const ByteSet&, ExprId to) { after.push_back(to); });
            sort_unique(after);
            here.swap(after);
            after.clear();
        }
        return here == std::vector<ExprId>{state};
    };
    pool.fuel().spend(128);
    pool.dfa.for_each_raw_derivative(state, ByteSet::range(0, 0x7f), [&](const ByteSet& bytes, ExprId to) {
        if (!returns(to)) return;
        made.ascii[0] |= bytes.words[0];
        made.ascii[1] |= bytes.words[1];
    });
    if (!made.any()) return made;
    made.blocks = exact ? blocks_to(subtrees, pool, state, returns, closed) : blocks_to(subtrees, pool, state, returns);
    std::size_t count = 0;
    for (const std::uint64_t word : made.blocks) count += static_cast<std::size_t>(std::popcount(word));
    made.all_blocks = count == subtrees.blocks().size();
    return made;
}

std::vector<std::uint64_t> blocks_to(const SubtreeAlphabets& subtrees, ExprPool& pool, ExprId state,
                                     const std::function<bool(ExprId)>& good, const std::function<bool(ExprId, unsigned)>& inside) {
    const std::span<const SubtreeAlphabets::Block> blocks = subtrees.blocks();
    std::vector<std::uint64_t> made = subtrees.no_blocks();
    if (!pool[state].boolean && !pool.dfa.first(state).meets(kBeyondAscii)) return made;  // most patterns accept only ASCII
    pool.fuel().spend(blocks.size());
    ExprId path[4] = {state};  // states after each number of bytes of a block; blocks are sorted, so that equal beginnings are stepped once
    Ways ways[4];              // of the states of `path`
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const SubtreeAlphabets::Block& block = blocks[i];
        unsigned k = 0;
        if (i)
            while (k < std::min(block.size, blocks[i - 1].size) && block.bytes[k] == blocks[i - 1].bytes[k]) ++k;
        for (; k < block.size; ++k) path[k + 1] = path[k] == kNone ? kNone : ways[k].from(pool, path[k]).by(block.bytes[k]);
        const ExprId at = path[block.size];
        if (at == kNone) continue;
        const unsigned left = length_of(block.bytes[0]) - block.size;
        if (left == 1 ? ways[block.size].from(pool, at).all(good) : !inside || inside(at, left))
            made[i >> 6] |= std::uint64_t{1} << (i & 63);
    }
    return made;
}

}  // namespace guideway
