#include "guideway/mask/leaf_walk.h"

#include <algorithm>
#include <optional>

#include "guideway/base/simd.h"
#include "guideway/mask/stable_sets.h"
#include "guideway/mask/string_walk.h"
#include "guideway/mask/substrings_walk.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

void LeafWalk::add_up_to(std::uint8_t characters, TokenRange more) {
    if (more.begin == more.end) return;
    for (Limited& known : limited)
        if (known.characters == characters) {
            known.places.push_back(more);
            return;
        }
    limited.push_back({characters, {more}});
}

void LeafWalk::add_rounds(TokenRange some, std::uint32_t begun) {
    if (begun < 2 || some.begin == some.end) return;
    round_tokens += some.end - some.begin;
    if (round_tokens > kMostRoundTokens) counts = false;
    else rounds.push_back({some, begun});
}

namespace {

constexpr std::uint32_t kNodesOfWork = 16;    // nodes for one work unit: most are in subtrees that are decided as a whole
constexpr std::size_t kMaxDoubtful = 3000;    // maximum size of `to_verify`
constexpr std::uint32_t kMostScanned = 8192;  // nodes of a subtree that is scanned for bytes by which the state does not loop
constexpr unsigned kFew = 12, kMany = 64;     // ASCII bytes that a state loops by

// kCounts: whether iterations of loop bodies (rounds) are counted. Most walks do not count, and should not pay for it (decision 7).
template <bool kCounts>
class LeafWalker {
public:
    LeafWalker(ExprPool& pool, const TrieForest& forest, const ByteSet& follow, const SubtreeAlphabets* subtrees, LoopMemo& loops,
               DfaTable& states, const Tuning& tuning, LeafWalk& made)
        : pool_(pool), forest_(forest), x_(*forest.trie), follow_(follow), subtrees_(subtrees), loops_(loops), states_(states),
          tuning_(tuning), made_(made), whole_(forest.whole()) {}

    void run(ExprId start) {
        states_.begin();
        if (subtrees_) stable_sets_ = &states_.stable_sets(pool_, *subtrees_);
        stable_count_ = stable_sets_ ? stable_sets_->count() : 0;
        const Number first = states_.number(pool_, start);
        path_.resize(16);
        if (kCounts) begun_.resize(2);  // the root's is read before it is entered
        for (const TrieForest::Part& part : forest_.parts) {
            pool_.fuel().spend((part.end - part.begin) / kNodesOfWork);
            accepted_from_ = x_.first_token[part.begin];
            if (!whole_ || !accept_all(first)) {
                enter(0, 0, first, 0);
                walk(part);
            }
            leave_out(part.end, part.end);
        }
    }

private:
    using Number = std::uint16_t;
    struct Level {  // a node on the path, and the state there
        const Number* steps = nullptr;
        Number state = 0;
        bool nullable = false, filtered = false;
        const ByteRanges* loops = nullptr;  // of self-loops: the nodes below are scanned for bytes outside. Null: the nodes are stepped
        std::uint32_t end = 0;              // of the nodes that are scanned
        std::uint32_t characters = 0;
        ChildFilter filter;
    };
    struct Begun {  // iterations that were begun up to a node on the path
        std::uint32_t rounds = 0;
        ByteSet begins;  // the bytes that begin another one
    };

    bool accept_all(Number first) {
        if (!subtrees_) return false;
        DfaTable::State& state = states_[first];
        if (accept_below(0, 0, first, 0)) return true;
        if (!state.plain || !subtrees_->loop(0, *state.loops, kNothing)) return false;
        if (made_.measures) measure(state.expr, state.rest);
        if (counts()) count_loops(0, 0, first);
        return true;
    }

    bool counts() const { return kCounts && made_.counts; }

    // Tokens are accepted unless `leave_out` excludes their nodes, so an accepted node costs only the step to it.
    void walk(const TrieForest::Part& part) {
        const std::uint8_t* const bytes = x_.byte.data();
        const std::uint32_t* const ends = x_.end.data();
        const std::uint16_t* const depths = x_.depth.data();
        DfaTable::State* const states = &states_[0];  // never moved
        const bool measures = made_.measures;
        const Level* path = path_.data();
        for (std::uint32_t i = part.begin; i < part.end;) {
            std::size_t depth = depths[i] - part.above;
            if (!kCounts && path[depth - 1].loops) {
                const std::uint32_t last = path[depth - 1].end;
                i = scan(i, depth);
                if (i == last) continue;
                depth = depths[i] - part.above;
                path = path_.data();
            }
            const Level& above = path[depth - 1];
            const std::uint8_t byte = bytes[i];
            if (above.filtered && !above.filter.wants(byte)) {
                const std::uint32_t wanted = above.filter.next(x_, i);
                leave_out(i, wanted);
                i = wanted;
                continue;
            }
            const std::uint32_t end = ends[i];
            if (above.nullable && follow_.contains(byte)) leave_at(i, depth - 1);
            const bool alone = end == i + 1 && !measures;  // no node follows: only whether the next state is alive matters
            Number next = above.steps[byte];
            if (next == DfaTable::kUnknown || (next == DfaTable::kAlive && !alone)) next = step(depth, byte, alone);
            if (next == DfaTable::kDead) {
                leave_out(i, end);
                i = end;
                continue;
            }
            if (measures) measure(states[next].expr, states[next].rest);
            if (counts()) {
                const Begun& before = begun_[depth - 1];
                const std::uint32_t rounds = begun_[depth].rounds = before.rounds + (before.begins.contains(byte) ? 1 : 0);
                // The condition is seldom true. `add_rounds` tests it too, but needs the token places, which are not read otherwise.
                if (rounds > 1) made_.add_rounds({x_.first_token[i], x_.first_token[i + 1]}, rounds);
            }
            if (end == i + 1) {
                ++i;
                continue;
            }
            const Number from = byte < 0x80 || !subtrees_ ? next : after_character(i, next);
            if (subtrees_ && from != DfaTable::kDead && states[from].plain && subtrees_->loop_after(i, *states[from].loops, kNothing)) {
                if (counts()) count_loops(i, depth, from);
                i = end;
            } else {
                i = go_below(i, depth, next, from, above.characters + (is_continuation(byte) ? 0 : 1));
                path = path_.data();
            }
        }
    }

    // Accepts the nodes from `i` on that are reached by self-loops of the state above, whatever their depth, and excludes those that the
    // state cannot read. Returns the first other node, to which it extends the path, or the end of the nodes below the state.
    std::uint32_t scan(std::uint32_t i, std::size_t depth) {
        const Level above = path_[depth - 1];
        const std::size_t top = x_.depth[i] - depth;
        for (;;) {
            i += static_cast<std::uint32_t>(first_outside(x_.byte.subspan(i, above.end - i), *above.loops));
            if (i == above.end) return i;
            if (above.steps[x_.byte[i]] != DfaTable::kDead) break;
            leave_out(i, x_.end[i]);
            i = x_.end[i];
        }
        const std::size_t to = x_.depth[i] - top;
        if (path_.size() < to) path_.resize(to + 32);
        for (std::size_t d = depth; d < to; ++d) {
            path_[d] = above;
            path_[d].filtered = false;
            path_[d].characters += static_cast<std::uint32_t>(d - depth + 1);
        }
        return i;
    }

    // Excludes the nodes [from, to), and records the tokens since the last excluded node as accepted.
    void leave_out(std::uint32_t from, std::uint32_t to) {
        made_.add(accepted_from_, x_.first_token[from]);
        accepted_from_ = x_.first_token[to];
    }

    void leave_at(std::uint32_t i, std::size_t depth) {
        made_.exit_nodes.push_back(i);
        if (counts()) made_.rounds_at_exits = std::max(made_.rounds_at_exits, begun_[depth].rounds);
    }

    // For a node inside a multi-byte character: the state after its remaining continuation bytes, if all lead to one; else kDead.
    // More than half of the nodes that a walk of `\S+` reaches are inside characters.
    Number after_character(std::uint32_t node, Number at) {
        if (!tuning_.inside_characters) return subtrees_->left(node) > 0 ? DfaTable::kDead : at;
        for (unsigned left = subtrees_->left(node); left > 0 && at != DfaTable::kDead; --left) {
            if (counts() && begins_of(at).meets(kContinuation)) return DfaTable::kDead;  // an iteration could begin uncounted
            at = states_.after_continuation(pool_, at);
        }
        return at;
    }

    // `from`: see `after_character`. Returns the node to continue with.
    std::uint32_t go_below(std::uint32_t i, std::size_t depth, Number number, Number from, std::uint32_t characters) {
        const std::uint32_t end = x_.end[i];
        if (states_[number].expr == kEmpty) {  // the leaf is left here, whatever follows
            for (std::uint32_t child = i + 1; child < end; child = x_.end[child])
                if (follow_.contains(x_.byte[child])) leave_at(child, depth);
            leave_out(i + 1, end);
            return end;
        }
        if (end - i >= tuning_.worth_looking && from != DfaTable::kDead && accept_below(i, depth, from, characters)) return end;
        if (path_.size() <= depth) path_.resize(depth + 32);
        enter(depth, i, number, characters);
        return i + 1;
    }

    // The bytes that begin an iteration of a loop body.
    const ByteSet& begins_of(Number state) {
        if (begins_.size() <= state) begins_.resize(state + 32u);
        if (!begins_[state]) begins_[state] = pool_.supersets.iterations_begin(states_[state].expr);
        return *begins_[state];
    }

    // The tokens below a node by which the state loops begin no further iteration if none of their characters begins one.
    void count_loops(std::uint32_t node, std::size_t depth, Number state) {
        made_.add_rounds(below(node), subtrees_->begins(node, begins_of(state)) ? LeafWalk::kAnyRounds : begun_[depth].rounds);
    }

    TokenRange below(std::uint32_t node) const { return {x_.first_token[node + 1], x_.first_token[x_.end[node]]}; }

    void measure(ExprId expr, std::uint32_t& known) {
        if (known == kInfinite) known = pool_.emptiness.shortest(expr);
        made_.rest = std::max(made_.rest, known);
    }

    // `alone`: only whether the next state is alive is needed.
    Number step(std::size_t depth, std::uint8_t byte, bool alone) {
        const Number at = path_[depth - 1].state;
        const ExprId expr = states_[at].expr;
        pool_.fuel().spend(1);
        if (alone) return states_.next(at, byte) = pool_.dfa.has_derivative(expr, byte) ? DfaTable::kAlive : DfaTable::kDead;
        const ExprId to = pool_.dfa.derivative(expr, byte);
        if (to == kNone) return states_.next(at, byte) = DfaTable::kDead;
        if (states_.full()) drop_states_off_path(depth);
        const Number made = states_.number(pool_, to);
        return states_.next(path_[depth - 1].state, byte) = made;
    }

    // Drops all states except those on the path.
    void drop_states_off_path(std::size_t depth) {
        std::vector<ExprId> kept;
        for (std::size_t d = 0; d < depth; ++d) kept.push_back(states_[path_[d].state].expr);
        states_.drop();
        begins_.clear();
        for (std::size_t d = 0; d < depth; ++d) {
            path_[d].state = states_.number(pool_, kept[d]);
            path_[d].steps = states_.steps(path_[d].state);
            path_[d].loops = nullptr;  // it was in a dropped state
        }
    }

    void enter(std::size_t depth, std::uint32_t node, Number state, std::uint32_t characters) {
        Level& level = path_[depth];
        DfaTable::State& known = states_[state];
        level.state = state;
        level.steps = states_.steps(state);
        level.characters = characters;
        level.end = x_.end[node];
        level.loops = nullptr;
        const bool same = known.plain && known.looping == known.expr;  // the loops of a state with a minimum belong to another state
        if (tuning_.loop_scans && !kCounts && same && depth > 0 && level.end - node <= kMostScanned) {
            if (!known.loop_bytes) known.loop_bytes.emplace(ByteSet{{known.loops->ascii[0], known.loops->ascii[1], 0, 0}});
            level.loops = &*known.loop_bytes;
        }
        if (counts()) {
            if (begun_.size() < depth + 2) begun_.resize(depth + 2);
            begun_[depth].begins = begins_of(state);
        }
        level.nullable = known.nullable;
        level.filtered = tuning_.child_filters && x_.wide(node) && (depth > 0 || whole_);
        if (!level.filtered) return;
        if (known.live.empty()) known.live = pool_.dfa.first(known.expr);
        ByteSet wanted = known.live;
        if (level.nullable) wanted |= follow_;
        level.filter = ChildFilter(x_, node, wanted);
    }

    // Accepts the tokens below a node without a walk, or those that are short enough, if possible. Returns false if they must be walked.
    bool accept_below(std::uint32_t node, std::size_t depth, Number number, std::uint32_t characters) {
        if (!subtrees_) return false;
        DfaTable::State& state = states_[number];
        if (!state.loops && state.walked < tuning_.worth_following) state.walked += x_.end[node] - node;
        if (!state.scouted) {
            if (x_.end[node] - node < tuning_.worth_scouting || (state.walked < tuning_.worth_following && !may_loop(node, state)))
                return false;
            if (tuning_.self_loops) scout(state);
            else state.scouted = true;
        }
        if (state.loops && !state.plain && accept_by_loops(node, state, characters)) {
            if (counts()) count_loops(node, depth, number);
            return true;
        }
        if (made_.measures || !(accept_by_class_sequence(node, state, characters) || accept_by_stable_set(node, state, characters)))
            return false;
        if (counts()) made_.add_rounds(below(node), LeafWalk::kAnyRounds);
        return true;
    }

    Supersets::Unbounded unbounded(ExprId e) {
        return tuning_.counted_heads ? pool_.supersets.unbounded(e) : Supersets::Unbounded{e, kInfinite};
    }

    // Whether the state may have self-loops: it counts repetitions, or a summand is known to have self-loops, or returns to itself
    // by the first byte below the node. This is one step for each summand, instead of up to 128 to find all self-loops. The sum itself
    // is not stepped, because it may be ambiguous.
    bool may_loop(std::uint32_t node, const DfaTable::State& state) {
        if (unbounded(state.expr).left != kInfinite) return true;
        bool found = false;
        each_summand(pool_, state.expr, [&](ExprId part) {
            if (loops_.known(part, false)) return found = true;
            const ExprId to = pool_.dfa.derivative(part, x_.byte[node + 1]);
            return found = to != kNone && has_summand(pool_, to, part);
        });
        return found;
    }

    // A sum may self-loop on few bytes although one of its alternatives self-loops on almost all. So the alternatives are
    // examined too, first those whose loops are cached.
    void scout(DfaTable::State& state) {
        const Supersets::Unbounded u = unbounded(state.expr);
        state.looping = u.expr;
        state.left = u.left;
        // If bounds were removed, a summand could belong to the part after the repetition, which cannot begin yet: only exact loops count.
        const bool itself = u.expr == state.expr;
        const SelfLoops* known = loops_.known(u.expr, !itself);
        if (!itself || (known && known->count() >= kFew) || !scout_parts(state, kMany, true)) {
            state.loops = loops_.find(pool_, *subtrees_, u.expr, !itself);
            state.open_end = pool_[u.expr].nullable || (state.loops && state.loops->grows);
            const unsigned own = state.loops ? state.loops->count() : 0;
            if (itself && own < kFew) scout_parts(state, 2 * own + 1, false);
        }
        state.plain = state.loops && !state.open_end && u.left == kInfinite;
        state.scouted = true;
    }

    // Finds a summand that loops by at least `least` bytes: what a summand accepts, the sum accepts.
    bool scout_parts(DfaTable::State& state, unsigned least, bool known) {
        bool found = false;
        each_summand(pool_, state.expr, [&](ExprId part) {
            if (part == state.expr) return false;
            const SelfLoops* loops = known ? loops_.known(part, false) : loops_.find(pool_, *subtrees_, part, false);
            if (!loops || loops->count() < least) return false;
            state.loops = loops;
            state.looping = part;
            return found = state.open_end = true;
        });
        return found;
    }

    bool accept_by_loops(std::uint32_t node, DfaTable::State& state, std::uint32_t characters) {
        if (!subtrees_->loop_after(node, *state.loops, state.open_end ? follow_ : kNothing)) return false;
        if (!accept_up_to(node, std::uint64_t{state.left} + characters, state.left == kInfinite)) return false;
        if (made_.measures) measure(state.looping, state.looping_rest);
        return true;
    }

    bool accept_by_class_sequence(std::uint32_t node, DfaTable::State& state, std::uint32_t characters) {
        if (!tuning_.class_sequences || state.loops || state.walked < tuning_.worth_following) return false;
        if (!state.class_sequence) state.class_sequence = loops_.class_sequence(pool_, *subtrees_, state.expr);
        const LoopMemo::ClassSequence* const class_sequence = *state.class_sequence;
        if (!class_sequence || !subtrees_->loop_after(node, class_sequence->loops, class_sequence->nullable ? follow_ : kNothing))
            return false;
        return accept_up_to(node, std::uint64_t{class_sequence->characters} + characters, class_sequence->characters == kInfinite);
    }

    void find_stable(DfaTable::State& state) {
        state.closed = stable_sets_->find(state.expr);
        state.stable_sets = stable_count_;
    }

    // Accepts the tokens below the node that have at most `most` characters, counted from the start of the token.
    bool accept_up_to(std::uint32_t node, std::uint64_t most, bool all) {
        if (all || most >= subtrees_->most_characters()) return true;
        if (!whole_) return false;
        made_.add_up_to(static_cast<std::uint8_t>(most), below(node));
        leave_out(node + 1, x_.end[node]);
        return true;
    }

    // Accepts the tokens below the node by a stable set. Those that may be too long for it are added to `to_verify`, if they are few.
    bool accept_by_stable_set(std::uint32_t node, DfaTable::State& state, std::uint32_t characters) {
        if (!tuning_.stable_sets) return false;
        if (state.stable_sets != stable_count_) find_stable(state);
        auto closed = [&] {
            return state.closed.loops && state.closed.characters > 0 &&
                   subtrees_->loop_after(node, *state.closed.loops, state.closed.nullable ? follow_ : kNothing);
        };
        if (!state.looked_around && x_.end[node] - node >= tuning_.worth_closing) {
            const bool none = state.closed.characters < StableSets::kFewCharacters && !state.loops;  // nothing loops here
            const bool narrow = !none && pool_[state.expr].boolean && !closed();
            if (none) stable_sets_->look_around(state.expr);
            if (narrow) stable_sets_->look_wider(state.expr);
            if (none || narrow) {
                state.looked_around = true;
                stable_count_ = stable_sets_->count();
                find_stable(state);
            }
        }
        if (!closed()) return false;
        const StableSets::Found& in = state.closed;
        const TokenRange places = below(node);
        const std::uint32_t most = characters + in.characters;
        std::vector<std::uint32_t>& to_verify = made_.to_verify;
        if (in.characters != StableSets::kForever && most < subtrees_->most_characters()) {
            const std::size_t before = to_verify.size();
            for (std::uint32_t p = places.begin; p < places.end; ++p)
                if (subtrees_->characters(p) > most) to_verify.push_back(x_.tokens[p]);
            if ((to_verify.size() - before) * 8 > places.end - places.begin || to_verify.size() > kMaxDoubtful) {
                to_verify.resize(before);
                return false;
            }
            if (to_verify.size() > before && may_leave_beyond(node, state)) {
                to_verify.resize(before);
                return false;
            }
        }
        return true;
    }

    // Whether a token below the node may leave the leaf from a state outside of the stable set, of which nothing is known. It may
    // not if all texts end with a quote and the subtree has no quote.
    bool may_leave_beyond(std::uint32_t node, const DfaTable::State& state) const {
        const ByteSet leaving = ends_in(pool_, state.expr, '"') ? ByteSet::range('"', '"') : follow_;
        return !subtrees_->loop_after(node, *state.closed.loops, leaving);
    }

    static constexpr ByteSet kNothing{};
    ExprPool& pool_;
    const TrieForest& forest_;
    const TokenTrie& x_;
    const ByteSet& follow_;
    const SubtreeAlphabets* subtrees_;
    LoopMemo& loops_;
    DfaTable& states_;
    const Tuning& tuning_;
    LeafWalk& made_;
    const bool whole_;
    StableSets* stable_sets_ = nullptr;
    std::size_t stable_count_ = 0;
    std::uint32_t accepted_from_ = 0;  // index in the trie's list of tokens: those from it on are accepted, up to the next excluded node
    std::vector<Level> path_;
    std::vector<Begun> begun_;                    // by depth, with kCounts
    std::vector<std::optional<ByteSet>> begins_;  // results of `begins_of` by state
};

// Records the result of a walk along texts that end with a quote. The nodes after the quote are exit nodes.
struct Texts {
    static constexpr bool kRanks = false;
    const TokenTrie& x;
    const ByteSet& follow;
    LeafWalk& made;

    void at(std::uint32_t i, const StringTrie::Step&, std::uint32_t) { made.add(x.first_token[i], x.first_token[i + 1]); }
    void over(std::uint32_t i, std::uint32_t) {
        made.add(x.first_token[i], x.first_token[i + 1]);
        for (std::uint32_t child = i + 1; child < x.end[i]; child = x.end[child])
            if (follow.contains(x.byte[child])) made.exit_nodes.push_back(child);
    }
};

// Returns false if the state is not a set of JSON strings.
bool walk_texts(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, LeafWalk& made) {
    const bool within = pool[start].op == Op::strings;
    const ExprId rest = within ? start : after_byte(pool, kQuote, start);
    if (pool[rest].op != Op::strings) return false;
    const auto [node, part] = std::pair{pool[rest].string_node(), pool[rest].part()};
    const StringTrie& strings = pool.strings();
    if (strings.spelling(node) == Encoding::text || !is_byte(pool, strings.only_tail(node), kQuote)) return false;
    Texts texts{*forest.trie, follow, made};
    StringWalk<Texts>(strings, *forest.trie, texts).run(forest, {node, part}, !within);
    return true;
}

}  // namespace

void LeafWalk::run(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, const SubtreeAlphabets* subtrees,
                   LoopMemo& loops, DfaTable& states, const Tuning& tuning) {
    if (!measures && (walk_texts(pool, forest, start, follow, *this) || walk_substrings(pool, forest, start, follow, *this))) return;
    if (counts) LeafWalker<true>(pool, forest, follow, subtrees, loops, states, tuning, *this).run(start);
    else LeafWalker<false>(pool, forest, follow, subtrees, loops, states, tuning, *this).run(start);
}

}  // namespace guideway
