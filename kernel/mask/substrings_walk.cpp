#include "guideway/mask/substrings_walk.h"

#include <optional>
#include <vector>

#include "guideway/regex/substrings.h"

namespace guideway {

namespace {

constexpr std::uint8_t kQuoteByte = '"';
constexpr std::uint32_t kNodesOfWork = 4;

struct Start {
    SubstringState state;
    DecoderState part;
    bool before;  // the state is before the opening quote
    bool quoted;  // a closing quote follows
};

// Recognizes a substring expression alone, before a closing quote, or between two quotes.
std::optional<Start> start_of(const ExprPool& pool, ExprId e) {
    const ExprId rest = after_byte(pool, kQuoteByte, e);
    const ExprId whole = rest == kNone ? e : rest;
    const auto [head, tail] = head_and_tail(pool, whole);
    if (pool[head].op != Op::substring) return std::nullopt;
    const bool quoted = is_byte(pool, tail, kQuoteByte);
    if (!quoted && (tail != kEmpty || rest != kNone)) return std::nullopt;
    const auto [state, part] = std::pair{pool[head].substring_state(), pool[head].part()};
    return Start{state, part, rest != kNone, quoted};
}

class Walker {
public:
    Walker(ExprPool& pool, const TokenTrie& trie, const ByteSet& follow, bool quoted, LeafWalk& made)
        : pool_(pool), texts_(pool.substrings()), x_(trie), follow_(follow), quoted_(quoted), made_(made) {}

    void take(std::uint32_t node) { made_.add(x_.first_token[node], x_.first_token[node + 1]); }

    // Walks the nodes [begin, end) from a position. `whole_of`: they are all the nodes below this one.
    void run(std::uint32_t begin, std::uint32_t end, const Substrings::Interval& start, DecoderState part,
             std::optional<std::uint32_t> whole_of) {
        const std::size_t above = begin < end ? x_.depth[begin] - 1u : 0;
        path_.clear();
        enter(start, part, whole_of);
        for (std::uint32_t i = begin; i < end;) {
            path_.resize(x_.depth[i] - above);
            const Level& here = path_.back();
            if (const std::uint32_t wanted = here.filter.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            pool_.fuel().spend(kNodesOfWork);
            const std::uint8_t byte = x_.byte[i];
            const bool leaves = here.ends && (quoted_ ? byte == kQuoteByte : follow_.contains(byte));
            if (leaves) leave(i);
            const auto [to, rest] = texts_.next(here.at, here.part, byte);
            if (Substrings::nowhere(to)) {
                i = x_.end[i];
                continue;
            }
            if (!leaves || !quoted_) take(i);  // `leave` took a quote, which can also continue the text
            if (x_.end[i] > i + 1) enter(to, rest, i);
            ++i;
        }
    }

private:
    struct Level {
        Substrings::Interval at;
        DecoderState part;
        bool ends;
        ChildFilter filter;
    };

    void enter(const Substrings::Interval& at, DecoderState part, std::optional<std::uint32_t> node) {
        Level made{at, part, part == kBetween && texts_.ends(at), {}};
        if (node && x_.wide(*node)) {
            ByteSet bytes;
            texts_.live(at, part, bytes);
            if (made.ends && quoted_) bytes.insert(kQuoteByte);
            if (made.ends && !quoted_) bytes |= follow_;
            made.filter = ChildFilter(x_, *node, bytes);
        }
        path_.push_back(std::move(made));
    }

    void leave(std::uint32_t node) {
        if (!quoted_) {
            made_.exit_nodes.push_back(node);
            return;
        }
        take(node);  // the quote belongs to the leaf
        for (std::uint32_t child = node + 1; child < x_.end[node]; child = x_.end[child])
            if (follow_.contains(x_.byte[child])) made_.exit_nodes.push_back(child);
    }

    ExprPool& pool_;
    const Substrings& texts_;
    const TokenTrie& x_;
    const ByteSet& follow_;
    const bool quoted_;
    LeafWalk& made_;
    std::vector<Level> path_;
};

}  // namespace

bool is_substring_leaf(const ExprPool& pool, ExprId state) { return start_of(pool, state).has_value(); }

Quotation quotation_at(ExprPool& pool, ExprId state) {
    const ExprId head = head_and_tail(pool, state).first;
    if (pool[head].op != Op::substring) return Quotation::none;
    const auto [number, part] = std::pair{pool[head].substring_state(), pool[head].part()};
    const Substrings::Interval& at = pool.substrings().interval(number);
    return part == kBetween && at.high > 0 && at.depth == 0 ? Quotation::begins : Quotation::inside;
}

bool walk_substrings(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, LeafWalk& made) {
    const std::optional<Start> at = start_of(pool, start);
    if (!at) return false;
    const TokenTrie& x = *forest.trie;
    const Substrings::Interval interval = pool.substrings().interval(at->state);
    Walker walker(pool, x, follow, at->quoted, made);
    if (!at->before) {
        for (const TrieForest::Part& one : forest.parts)
            walker.run(one.begin, one.end, interval, at->part, forest.whole() ? std::optional(0u) : std::nullopt);
        return true;
    }
    const auto run_below = [&](std::uint32_t top) {
        walker.take(top);
        walker.run(top + 1, x.end[top], interval, at->part, top);
    };
    if (!forest.whole()) {
        for (const TrieForest::Part& part : forest.parts)
            if (x.byte[part.begin] == kQuoteByte) run_below(part.begin);
    } else if (const std::uint32_t top = x.child(0, kQuoteByte)) run_below(top);
    return true;
}

}  // namespace guideway
