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

}  // namespace guideway
