// DFA states of leaves as small numbers, for walks over many tokens: a step is one look-up in a table, and the properties of a
// state that walks need are stored with its number. The table is kept for later walks, and dropped when it is full.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/base/page_arena.h"
#include "guideway/base/simd.h"
#include "guideway/mask/stable_sets.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/vocabulary/subtree_alphabets.h"

namespace guideway {

// Caches the self-loops of states by their expression.
class LoopMemo {
public:
    // The self-loops of `state`. Null if no ASCII byte is one, or if it is not known that the state has texts. Valid until `clear`.
    const SelfLoops* find(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state, bool exact);
    // The same, if it was found before.
    const SelfLoops* known(ExprId state, bool exact) const {
        const SelfLoops* const* known = found_.find(std::uint64_t{raw(state)} << 1 | exact);
        return known ? *known : nullptr;
    }
    // A sequence of states q0 → q1 → … → qn in which every character of a class C leads from qi to q(i+1): exactly n
    // characters of C can be read.
    struct ClassSequence {
        SelfLoops loops;
        std::uint32_t characters = 0;  // n; kInfinite: the last state loops by C
        bool nullable = false;         // whether a state of the sequence is nullable
    };
    // Null if no such sequence begins at the state, or if its class has few ASCII bytes.
    const ClassSequence* class_sequence(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state);
    void clear();
    std::size_t bytes() const {
        return (found_.size() + found_class_sequences_.size()) * 32 + kept_.size() * 200 + (class_sequences_.size() + heads_.size()) * 300;
    }

private:
    const std::vector<std::uint64_t>& blocks_of(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId head);
    std::optional<ClassSequence> find_class_sequence(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state);
    void add_blocks(ExprPool& pool, const SubtreeAlphabets& subtrees, const std::vector<ExprId>& states, ClassSequence& made);

    FlatMap<std::uint64_t, const SelfLoops*, NumberHash> found_;  // by expression, and whether exact
    std::deque<SelfLoops> kept_;
    FlatMap<ExprId, const ClassSequence*, NumberHash> found_class_sequences_;  // by expression
    std::deque<ClassSequence> class_sequences_;
    std::unordered_map<ExprId, std::vector<std::uint64_t>> heads_;  // by expression: the blocks whose characters are texts of it
};

class DfaTable {
public:
    static constexpr std::uint16_t kUnknown = 0xffff, kDead = 0xfffe, kAlive = 0xfffd;  // kAlive: a state without a number yet
    struct State {
        ExprId expr = kNone;
        bool nullable = false;
        std::uint16_t after_continuation = kUnknown;
        std::uint32_t walked = 0;  // nodes below it in all walks, counted up to Tuning::worth_following
        bool scouted = false;      // whether `plain` to `left` are set
        bool plain = false;        // any number of characters of `loops` can be read, and the text is not complete meanwhile
        bool open_end = false;     // the state, or one that it leads to by `loops`, may be complete
        const SelfLoops* loops = nullptr;
        ExprId looping = kNone;                                        // the expression, or the summand, that `loops` belongs to
        std::uint32_t left = 0;                                        // maximum number of characters of `loops`; kInfinite: none
        std::optional<const LoopMemo::ClassSequence*> class_sequence;  // nullopt: not searched yet
        StableSets::Found closed{};
        std::size_t stable_sets = 0;  // the number of stable sets when `closed` was looked up
        bool looked_around = false;
        std::uint32_t rest = kInfinite,
                      looping_rest = kInfinite;  // bytes of a shortest text of `expr` and `looping`; kInfinite: not known yet
        ByteSet live;                            // empty: not known yet
        std::optional<ByteRanges> loop_bytes;    // ASCII bytes of `loops`, if `plain`; nullopt: not known yet
    };

    // `longest`: bytes of the vocabulary's longest token, each of which a walk may keep a state for.
    explicit DfaTable(std::size_t longest) : most_(std::max(kMost, longest + kMost / 2)) {}
    std::uint16_t number(const ExprPool& pool, ExprId expr);
    // The state that all continuation bytes lead to; kDead: there is none, or no room for it.
    std::uint16_t after_continuation(ExprPool& pool, std::uint16_t number);
    State& operator[](std::uint16_t number) { return states_[number]; }
    // The number of the next state, kDead, kAlive or kUnknown.
    std::uint16_t& next(std::uint16_t number, std::uint8_t byte) { return steps_[number][byte]; }
    const std::uint16_t* steps(std::uint16_t number) const { return steps_[number].data(); }
    // Begins a walk. Drops the states if the table is full.
    void begin();
    StableSets& stable_sets(ExprPool& pool, const SubtreeAlphabets& subtrees) {
        return stable_sets_ ? *stable_sets_ : stable_sets_.emplace(pool, subtrees);
    }
    bool full() const { return states_.size() >= most_; }
    void drop();  // drops the states, but not the stable sets
    void clear();
    std::size_t bytes() const { return states_.size() * (sizeof(State) + sizeof(Steps)) + (stable_sets_ ? stable_sets_->bytes() : 0); }

private:
    using Steps = std::array<std::uint16_t, 256>;
    static constexpr std::size_t kMost = 2000;  // maximum number of states, unless tokens are longer than half of it
    std::size_t most_;                          // less than kAlive, because no token has more than 60,000 bytes
    ArenaVector<State> states_;
    ArenaVector<Steps> steps_;
    ArenaVector<std::uint16_t> slots_;  // by hash; kUnknown: free
    std::optional<StableSets> stable_sets_;
};

}  // namespace guideway
