#include "guideway/key_walk.h"

#include <algorithm>
#include <optional>

#include "guideway/words.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxNames = 1 << 20;
constexpr std::uint32_t kFew = 4;
constexpr std::uint8_t kQuote = '"';

class KeyWalker {
public:
    KeyWalker(const Words& words, const Trie& trie, KeyWalk& made) : words_(words), x_(trie), made_(made) {}

    // From a place in the names that stands above the nodes [begin, end); `whole_of`: they are all below this one.
    void run(std::uint32_t begin, std::uint32_t end, const Words::Step& start, std::optional<std::uint32_t> whole_of) {
        const std::size_t above = begin < end ? x_.depth[begin] - 1u : 0;
        path_.assign(1, {start, 0, wanted(start, true), {}});
        if (whole_of) path_[0].leap = ChildLeap(x_, *whole_of, path_[0].wanted);
        for (std::uint32_t i = begin; i < end;) {
            path_.resize(x_.depth[i] - above);
            const Level& here = path_.back();
            if (const std::uint32_t wanted = here.leap.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            const auto [node, part] = here.step;
            const std::uint8_t byte = x_.byte[i];
            if (!here.wanted.contains(byte)) {
                i = x_.end[i];
                continue;
            }
            if (byte == kQuote && part == 0 && words_.end(node) != kNone) {
                leave(i, here.first);
                i = x_.end[i];
                continue;
            }
            const Words::Step next = words_.next(node, part, byte);
            if (next.node == Words::kNowhere) {
                i = x_.end[i];
                continue;
            }
            const std::uint32_t first = here.first + (next.part == 0 ? words_.texts_before(node, next.node) : 0);
            add(i, next, first);
            if (x_.end[i] > i + 1) {
                const ByteSet bytes = wanted(next, x_.wide(i));
                path_.push_back({next, first, bytes, x_.wide(i) ? ChildLeap(x_, i, bytes) : ChildLeap()});
            }
            ++i;
        }
    }

    // Tokens at a node, behind which the names go on at `at`, whose node's begin at `first`.
    void add(std::uint32_t i, const Words::Step& at, std::uint32_t first) {
        if (x_.first_token[i] == x_.first_token[i + 1]) return;
        if (at.part == 0) return made_.places.push_back({first, first + words_.count(at.node), i});
        words_.each_child(at.node, at.part, [&](std::uint32_t child, std::uint32_t) {
            const std::uint32_t from = first + words_.texts_before(at.node, child);
            made_.places.push_back({from, from + words_.count(child), i});
        });
    }

    // The name ends here.
    void leave(std::uint32_t i, std::uint32_t name) {
        made_.places.push_back({name, name + 1, i});
        made_.exits.push_back({name, i});
    }

private:
    // The bytes that can come, or all: where few tokens stand below and many names, they are not worth finding out.
    ByteSet wanted(const Words::Step& at, bool wide) const {
        if (!wide && words_.children(at.node) > kFew) return ByteSet::range(0, 255);
        ByteSet made;
        words_.live(at.node, at.part, made);
        if (at.part == 0 && words_.end(at.node) != kNone) made.insert(kQuote);
        return made;
    }

    struct Level {
        Words::Step step;
        std::uint32_t first;  // name of the step's node
        ByteSet wanted;
        ChildLeap leap;
    };
    const Words& words_;
    const Trie& x_;
    KeyWalk& made_;
    std::vector<Level> path_;
};

}  // namespace

bool KeyWalk::run(ExprPool& pool, const Grove& grove, ExprId state) {
    const Trie& x = *grove.trie;
    const Words& words = pool.words();
    const bool within = pool.is_word(state);  // behind the quote before the name
    const ExprId rest = within ? state : pool.behind(kQuote, state);
    KeyWalker walker(words, x, *this);
    const auto each_top = [&](auto&& f) {
        if (!grove.whole())
            for (const Grove::Part& part : grove.parts)
                if (x.byte[part.begin] == kQuote) f(part.begin);
        if (const std::uint32_t top = grove.whole() ? x.child(0, kQuote) : 0) f(top);
    };
    if (const std::uint32_t label = pool.label_of(rest); label != kInfinite) {
        labels.push_back(label);
        each_top([&](std::uint32_t top) { walker.leave(top, 0); });
        return true;
    }
    if (!pool.is_word(rest)) return false;
    const auto [node, part] = pool.node_and_part(rest);
    if (words.count(node) > kMaxNames) return false;
    words.each_end(node, [&](ExprId end) { labels.push_back(pool.label_of(pool.behind(kQuote, end))); });
    if (std::find(labels.begin(), labels.end(), kInfinite) != labels.end()) return false;
    const Words::Step start{node, part};
    if (!within)
        each_top([&](std::uint32_t top) {
            walker.add(top, start, 0);
            walker.run(top + 1, x.end[top], start, top);
        });
    else
        for (const Grove::Part& one : grove.parts) walker.run(one.begin, one.end, start, grove.whole() ? std::optional(0u) : std::nullopt);
    return true;
}

}  // namespace guideway
