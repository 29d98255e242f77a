#include "guideway/leaf_walk.h"

#include <algorithm>

#include "guideway/closures.h"
#include "guideway/words.h"

namespace guideway {

const Loops* LoopMemo::find(ExprPool& pool, const Subtrees& subtrees, ExprId state, bool exact) {
    if (!pool.endless(state)) return nullptr;
    auto& numbers = numbers_[exact];
    if (numbers.size() <= state || numbers[state] == 0) {
        Loops made = subtrees.loops_of(pool, state, exact);
        numbers.resize(std::max(numbers.size(), pool.size()), 0);
        numbers[state] = 1;
        if (made.any()) {
            kept_.push_back(std::move(made));
            numbers[state] = static_cast<std::uint32_t>(kept_.size() + 1);
        }
    }
    return numbers[state] == 1 ? nullptr : &kept_[numbers[state] - 2];
}

void LeafWalk::add_up_to(std::uint8_t characters, Places more) {
    if (more.begin == more.end) return;
    for (Limited& known : limited)
        if (known.characters == characters) {
            known.places.push_back(more);
            return;
        }
    limited.push_back({characters, {more}});
}

namespace {

constexpr std::uint32_t kWorthLooking = 4;     // nodes of a subtree, for which a closure is looked up
constexpr std::uint32_t kWorthClosing = 2000;  // and looked for
constexpr std::size_t kMaxDoubtful = 3000;     // tokens

struct Level {  // a node on the path, and the state there
    ExprId state = kNone;
    ChildLeap leap;
    std::uint32_t characters = 0;
    bool nullable = false;
};

}  // namespace

void LeafWalk::run(ExprPool& pool, const Grove& grove, ExprId start, const ByteSet& follow, const Subtrees* subtrees, LoopMemo& loops) {
    const ByteSet nothing;
    const Trie& x = *grove.trie;
    const bool whole = grove.whole();
    std::vector<Level> path(64);
    // What loops at the state looked at last.
    ExprId looked = kNone;
    ExprId looping = kNone;
    const Loops* found = nullptr;
    std::uint32_t left = kInfinite;
    bool open_end = false;
    auto measure = [&](ExprId state) {
        if (measures) rest = std::max(rest, pool.shortest(state));
    };
    // True: all below the node is taken, as far as it can be.
    auto take_all = [&](std::uint32_t node, ExprId state, std::uint32_t characters) {
        if (state != looked) {
            const ExprPool::Unbounded u = pool.unbounded(state);
            looked = state;
            looping = u.expr;
            left = u.left;
            found = loops.find(pool, *subtrees, u.expr, left != kInfinite);
            open_end = pool.nullable(u.expr) || (found && found->grows);
            if (!found && left == kInfinite)  // what one part of a sum takes, the sum takes
                pool.each_part(state, [&](ExprId part) {
                    found = loops.find(pool, *subtrees, part, false);
                    looping = part;
                    open_end = true;
                    return found != nullptr;
                });
        }
        if (!found || !subtrees->loop(node, *found, open_end ? follow : nothing)) return false;
        const Places below{x.first_token[node + 1], x.first_token[x.end[node]]};
        const std::uint64_t most = std::uint64_t{left} + characters;
        if (left == kInfinite || most >= subtrees->most_characters()) add(below.begin, below.end);
        else if (whole) add_up_to(static_cast<std::uint8_t>(most), below);  // counted from the start of the token
        else return false;
        measure(looping);
        return true;
    };
    // The same of states that stay among themselves; of what may be too long, if it is little, note is taken.
    std::optional<Closures> closures;
    auto take_closed = [&](std::uint32_t node, ExprId state, std::uint32_t characters) {
        if (x.end[node] - node < kWorthLooking || measures) return false;
        if (!closures) closures.emplace(pool, *subtrees);
        Closures::Found in = closures->find(state);
        if (!in.loops && !found && x.end[node] - node >= kWorthClosing) {  // nothing loops here
            closures->look_around(state);
            in = closures->find(state);
        }
        if (!in.loops || in.characters == 0 || !subtrees->loop(node, *in.loops, in.nullable ? follow : nothing)) return false;
        const Places below{x.first_token[node + 1], x.first_token[x.end[node]]};
        const std::uint32_t most = characters + in.characters;
        if (in.characters != Closures::kForever && most < subtrees->most_characters()) {
            const std::size_t before = doubtful.size();
            for (std::uint32_t p = below.begin; p < below.end; ++p)
                if (subtrees->characters(p) > most) doubtful.push_back(x.tokens[p]);
            if ((doubtful.size() - before) * 8 > below.end - below.begin || doubtful.size() > kMaxDoubtful) {
                doubtful.resize(before);
                return false;
            }
        }
        add(below.begin, below.end);
        return true;
    };
    auto enter = [&](std::size_t depth, std::uint32_t node, ExprId state, std::uint32_t characters) {
        Level& level = path[depth];
        level.state = state;
        level.characters = characters;
        level.nullable = pool.nullable(state);
        level.leap = {};
        if (!x.wide(node) || (depth == 0 && !whole)) return;
        ByteSet wanted = pool.live(state);
        if (level.nullable) wanted |= follow;
        level.leap = ChildLeap(x, node, wanted);
    };
    if (whole && subtrees && (take_all(0, start, 0) || take_closed(0, start, 0))) return;
    enter(0, 0, start, 0);
    for (const Grove::Part& part : grove.parts)
        for (std::uint32_t i = part.begin; i < part.end;) {
            const std::size_t depth = x.depth[i] - part.above;
            const Level& above = path[depth - 1];
            if (const std::uint32_t wanted = above.leap.next(x, i); wanted != i) {
                i = wanted;
                continue;
            }
            const std::uint8_t byte = x.byte[i];
            if (above.nullable && follow.contains(byte)) pieces.push_back(i);
            if (x.end[i] == i + 1) {
                if (measures ? pool.next(above.state, byte) != kNone : pool.takes(above.state, byte)) {
                    if (measures) measure(pool.next(above.state, byte));
                    add(x.first_token[i], x.first_token[i + 1]);
                }
                ++i;
                continue;
            }
            const ExprId next = pool.next(above.state, byte);
            if (next == kNone) {
                i = x.end[i];
                continue;
            }
            measure(next);
            add(x.first_token[i], x.first_token[i + 1]);
            if (next == kEmpty) {  // the leaf is left here, whatever follows
                for (std::uint32_t child = i + 1; child < x.end[i]; child = x.end[child])
                    if (follow.contains(x.byte[child])) pieces.push_back(child);
                i = x.end[i];
                continue;
            }
            const std::uint32_t characters = above.characters + (is_continuation(byte) ? 0 : 1);
            if (subtrees && (take_all(i, next, characters) || take_closed(i, next, characters))) {
                i = x.end[i];
                continue;
            }
            if (path.size() <= depth) path.resize(depth + 32);
            enter(depth, i, next, characters);
            ++i;
        }
}

namespace {

constexpr std::size_t kMaxPlaces = 1 << 21;

class KeyWalker {
public:
    KeyWalker(ExprPool& pool, const Trie& trie, KeyWalk& made) : pool_(pool), words_(pool.words()), x_(trie), made_(made) {}

    // From a state that stands above the nodes [begin, end); `whole_of`: they are all below this one.
    bool run(std::uint32_t begin, std::uint32_t end, ExprId state, std::optional<std::uint32_t> whole_of) {
        if (!pool_.is_word(state)) return false;
        const auto [node, part] = pool_.node_and_part(state);
        const std::size_t above = begin < end ? x_.depth[begin] - 1u : 0;
        path_.assign(1, {{node, part}, {}});
        if (whole_of) path_[0].leap = leap_below(*whole_of, {node, part});
        for (std::uint32_t i = begin; i < end;) {
            path_.resize(x_.depth[i] - above);
            if (const std::uint32_t wanted = path_.back().leap.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            const Words::Step here = path_.back().step;
            const std::uint8_t byte = x_.byte[i];
            if (const ExprId last = here.part == 0 ? words_.end(here.node) : kNone; last != kNone && byte == '"') {
                if (!leave(i, last)) return false;
                i = x_.end[i];
                continue;
            }
            const Words::Step next = words_.next(here.node, here.part, byte);
            if (next.part == 0 && words_.end(next.node) != kNone && pool_.nullable(words_.end(next.node))) return false;  // no quote
            if (next.node == Words::kNowhere) {
                i = x_.end[i];
                continue;
            }
            if (!add(i, next)) return false;
            path_.push_back({next, x_.end[i] > i + 1 ? leap_below(i, next) : ChildLeap()});
            ++i;
        }
        return true;
    }

    // The token at a node leads on to every name below.
    bool add(std::uint32_t i, const Words::Step& at) {
        if (x_.first_token[i] == x_.first_token[i + 1]) return true;
        auto end_of = [&](std::uint32_t node, bool further) {
            if (words_.end(node) == kNone) return;
            for (const LabelDistance& l : pool_.labels(words_.end(node)))
                if (further || l.further) made_.places.emplace_back(l.label, i);
        };
        below_.clear();
        if (at.part == 0) end_of(at.node, false);
        words_.each_child(at.node, at.part, [&](std::uint32_t child, std::uint32_t) { below_.push_back(child); });
        while (!below_.empty()) {
            const std::uint32_t node = below_.back();
            below_.pop_back();
            end_of(node, true);
            words_.each_child(node, 0, [&](std::uint32_t child, std::uint32_t) { below_.push_back(child); });
        }
        return made_.places.size() < kMaxPlaces;
    }

private:
    // Behind the closing quote stands the label, and nothing else.
    bool leave(std::uint32_t i, ExprId end) {
        const ExprId behind = pool_.next(end, '"');
        bool some = false;
        pool_.each_accepted_label(behind, [&](std::uint32_t label) {
            some = true;
            made_.places.emplace_back(label, i);
            made_.exits.emplace_back(label, i);
        });
        return some;
    }
    ChildLeap leap_below(std::uint32_t i, const Words::Step& at) const {
        if (!x_.wide(i)) return {};
        ByteSet wanted;
        words_.live(at.node, at.part, wanted);
        if (at.part == 0 && words_.end(at.node) != kNone) wanted.insert('"');
        return ChildLeap(x_, i, wanted);
    }

    struct Level {
        Words::Step step;
        ChildLeap leap;
    };
    ExprPool& pool_;
    const Words& words_;
    const Trie& x_;
    KeyWalk& made_;
    std::vector<Level> path_;
    std::vector<std::uint32_t> below_;
};

}  // namespace

bool KeyWalk::run(ExprPool& pool, const Grove& grove, ExprId state) {
    const Trie& x = *grove.trie;
    KeyWalker walker(pool, x, *this);
    if (pool.is_word(state)) {
        for (const Grove::Part& part : grove.parts)
            if (!walker.run(part.begin, part.end, state, grove.whole() ? std::optional(0u) : std::nullopt)) return false;
        return true;
    }
    // The quote before the name.
    bool good = true;
    auto take = [&](std::uint32_t top, std::uint8_t byte) {
        const ExprId next = pool.next(state, byte);
        if (next == kNone || !good) return;
        if (!(good = pool.is_word(next))) return;
        const auto [node, part] = pool.node_and_part(next);
        good = walker.add(top, {node, part}) && walker.run(top + 1, x.end[top], next, top);
    };
    if (!grove.whole())
        for (const Grove::Part& part : grove.parts) take(part.begin, x.byte[part.begin]);
    else
        pool.live(state).each([&](std::uint8_t byte) {
            if (const std::uint32_t top = x.child(0, byte)) take(top, byte);
        });
    return good;
}

}  // namespace guideway
