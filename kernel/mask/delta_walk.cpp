// Finds the tokens by which two states of a leaf differ.
#include <algorithm>

#include "guideway/base/sort_unique.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

class PairWalker {
public:
    PairWalker(ExprPool& pool, const TokenTrie& trie, std::size_t bound) : pool_(pool), x_(trie), bound_(bound) {}

    bool run(ExprId state, ExprId base) {
        if (pool_[state].nullable || pool_[base].nullable) return false;
        path_.push_back(pair(0, state, base));
        for (std::uint32_t i = 1; i < x_.size();) {
            if (++visits_ > bound_) return false;
            const std::size_t depth = x_.depth[i];
            path_.resize(depth);
            const Pair& above = path_.back();
            if (const std::uint32_t wanted = above.filter.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            const std::uint8_t byte = x_.byte[i];
            const ExprId s = pool_.dfa.derivative(above.state, byte), t = pool_.dfa.derivative(above.base, byte);
            if (s == t) {
                i = x_.end[i];
                continue;
            }
            if (!differ(i, s, t)) return false;
            if (s == kNone || x_.end[i] == i + 1) {
                i = x_.end[i];
                continue;
            }
            path_.push_back(pair(i, s, t));
            ++i;
        }
        return true;
    }
    Difference made;

private:
    struct Pair {
        ExprId state, base;
        ChildFilter filter;
    };

    Pair pair(std::uint32_t node, ExprId s, ExprId t) {
        Pair made_pair{s, t, {}};
        if (!x_.wide(node)) return made_pair;
        made_pair.filter = ChildFilter(x_, node, told_apart(s, t));
        return made_pair;
    }

    // The bytes that lead the two states to different states.
    const ByteSet& told_apart(ExprId s, ExprId t) {
        for (const Told& known : told_)
            if (known.state == s && known.base == t) return known.bytes;
        ByteSet some = pool_.dfa.first(s), made_set;
        some |= pool_.dfa.first(t);
        ByteSet left = some;  // bytes that only the base reads
        pool_.dfa.for_each_derivative(s, some, [&](const ByteSet& bytes, ExprId to) {
            left -= bytes;
            ByteSet without = bytes;
            pool_.dfa.for_each_derivative(t, bytes, [&](const ByteSet& same, ExprId there) {
                if (there == to) without -= same;
            });
            made_set |= without;
        });
        pool_.dfa.for_each_derivative(t, left, [&](const ByteSet& bytes, ExprId) { made_set |= bytes; });
        pool_.fuel().spend(some.size());
        Told& kept = told_.size() < kMaxTold ? told_.emplace_back() : told_[visits_ % kMaxTold];
        kept = {s, t, made_set};
        return kept.bytes;
    }

    // Records the difference at node i, where the states are s and t. Returns false if only one of them may leave the leaf.
    bool differ(std::uint32_t i, ExprId s, ExprId t) {
        const bool leaf = x_.end[i] == i + 1;
        if (s == kNone) {  // all tokens below are cleared, also those that leave the leaf from t
            const std::uint32_t begin = x_.first_token[i], end = x_.first_token[x_.end[i]];
            if (made.cleared.size() + (end - begin) > bound_) return false;
            made.cleared.insert(made.cleared.end(), x_.tokens.begin() + begin, x_.tokens.begin() + end);
            return true;
        }
        if (t == kNone) {
            const auto here = x_.tokens_at(i);
            made.added.insert(made.added.end(), here.begin(), here.end());
        }
        // If one of the states accepts, a token could leave the leaf from it and not from the other.
        return leaf || !(pool_[s].nullable || (t != kNone && pool_[t].nullable));
    }

    static constexpr std::size_t kMaxTold = 24;
    struct Told {
        ExprId state, base;
        ByteSet bytes;
    };

    ExprPool& pool_;
    const TokenTrie& x_;
    std::size_t bound_, visits_ = 0;
    std::vector<Pair> path_;
    std::vector<Told> told_;
};

// For A \ W with a finite W: finds the tokens that complete a text of W, in a walk of the trie of W along the token trie.
// This is correct only if A stays infinite after every proper prefix of W, so that removing W removes nothing else, and
// if the tail cannot begin where A can continue.
class TextWalker {
public:
    TextWalker(ExprPool& pool, const TokenTrie& trie, std::size_t bound, std::vector<std::uint32_t>& cleared)
        : pool_(pool), strings_(pool.strings()), x_(trie), bound_(bound), cleared_(cleared) {}

    // Walks below the node `top`, at which the state of A is `head`. Returns false if the conditions above are not met, or if the
    // walk exceeds the bound.
    bool run(std::uint32_t top, ExprId head, const Layer& layer) {
        tail_ = layer.tail;
        const auto [node, part] = std::pair{pool_[layer.texts].string_node(), pool_[layer.texts].part()};
        const std::uint32_t above = x_.depth[top];
        path_.clear();
        if (!enter(top, head, {node, part})) return false;
        for (std::uint32_t i = top + 1; i < x_.end[top];) {
            if (++visits_ > bound_) return false;
            path_.resize(x_.depth[i] - above);
            const Level& here = path_.back();
            if (const std::uint32_t wanted = here.filter.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            const std::uint8_t byte = x_.byte[i];
            const ExprId next = pool_.dfa.derivative(here.head, byte),
                         left = tail_ != kEmpty && pool_[here.head].nullable ? pool_.dfa.derivative(tail_, byte) : kNone;
            if (next != kNone && left != kNone) return false;
            const ExprId last = here.end == kNone ? kNone : tail_ == kEmpty ? pool_.dfa.derivative(here.end, byte) : left;
            const StringTrie::Step step = strings_.next(here.step.node, here.step.part, byte);
            const bool goes_on = step.node != StringTrie::kNoEntries;
            if (last != kNone) {
                if (goes_on || (tail_ == kEmpty && last != next)) return false;
                const std::uint32_t begin = x_.first_token[i], end = x_.first_token[x_.end[i]];
                if (cleared_.size() + (end - begin) > bound_) return false;
                cleared_.insert(cleared_.end(), x_.tokens.begin() + begin, x_.tokens.begin() + end);
            }
            if (last != kNone || next == kNone || !goes_on) {
                i = x_.end[i];
                continue;
            }
            if (x_.end[i] == i + 1 ? !pool_[next].known_infinite : !enter(i, next, step)) return false;
            ++i;
        }
        return true;
    }

private:
    struct Level {
        ExprId head, end;  // end: what follows the text of W that ends here, without the tail; kNone: none ends here
        StringTrie::Step step;
        ChildFilter filter;
    };

    bool enter(std::uint32_t node, ExprId head, StringTrie::Step step) {
        if (!pool_[head].known_infinite || (pool_[head].nullable && pool_[tail_].nullable)) return false;
        const ExprId end = step.part == kBetween ? strings_.end(step.node) : kNone;
        if (end != kNone && tail_ != kEmpty && end != kEmpty) return false;
        ChildFilter filter;
        if (x_.wide(node)) {
            ByteSet wanted;
            strings_.live(step.node, step.part, wanted);
            if (end != kNone) wanted |= pool_.dfa.first(tail_ == kEmpty ? end : tail_);
            filter = ChildFilter(x_, node, wanted);
        }
        path_.push_back({head, end, step, filter});
        return true;
    }

    ExprPool& pool_;
    const StringTrie& strings_;
    const TokenTrie& x_;
    std::size_t bound_, visits_ = 0;
    std::vector<std::uint32_t>& cleared_;
    ExprId tail_ = kEmpty;
    std::vector<Level> path_;
};

}  // namespace

std::optional<Difference> text_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound) {
    std::uint32_t top = 0;
    Difference made;
    std::vector<Layer> layers;
    for (unsigned opening = 0; split_layers(pool, state, layers) != base; ++opening) {  // the quote before the text
        const ByteSet bytes = pool.dfa.first(state);
        const int byte = bytes.from(0);
        if (opening == 2 || bytes.size() != 1 || pool.dfa.first(base) != bytes || pool[state].nullable || pool[base].nullable)
            return std::nullopt;
        state = pool.dfa.derivative(state, static_cast<std::uint8_t>(byte));
        base = pool.dfa.derivative(base, static_cast<std::uint8_t>(byte));
        top = trie.child(top, static_cast<std::uint8_t>(byte));
        if (top == 0) return std::nullopt;
    }
    TextWalker walker(pool, trie, bound, made.cleared);
    for (const Layer& layer : layers)
        if (pool[layer.texts].op != Op::strings || !walker.run(top, layer.tail == kEmpty ? base : layer.head, layer)) return std::nullopt;
    sort_unique(made.cleared);
    return made;
}

std::optional<Difference> pair_walk(ExprPool& pool, const TokenTrie& trie, ExprId state, ExprId base, std::size_t bound) {
    if (auto found = text_walk(pool, trie, state, base, bound)) return found;
    PairWalker walker(pool, trie, bound);
    if (!walker.run(state, base)) return std::nullopt;
    return std::move(walker.made);
}

}  // namespace guideway
