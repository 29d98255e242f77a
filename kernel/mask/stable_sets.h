// A stable set is a set Q of DFA states with a character class C: from each state in Q, every string over C of
// at most n characters keeps the automaton alive; n may be infinite. If all characters below a trie node are in C
// (subtree_alphabets.h), its tokens of up to n characters are legal without a walk; longer ones are checked one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "guideway/regex/expr_pool.h"
#include "guideway/vocabulary/subtree_alphabets.h"

namespace guideway {

class StableSets {
public:
    static constexpr std::uint8_t kForever = 255, kFewCharacters = 8;
    struct Found {
        const SelfLoops* loops = nullptr;  // null: the state is in no stable set
        std::uint8_t characters = 0;       // n in the definition above, from this state; kForever: infinite
        bool nullable = false;             // whether a state of the stable set is nullable
    };
    StableSets(ExprPool& pool, const SubtreeAlphabets& subtrees) : pool_(pool), subtrees_(subtrees) {}
    void begin() { looks_ = wider_looks_ = 0; }  // of a new walk: the limits on searches are for one walk
    Found find(ExprId state) const;
    // Searches for a stable set from a state that is in none, or in one of few characters; a few times in a walk. States whose
    // emptiness is expensive to decide are in none.
    void look_around(ExprId state);
    // The same from a state in a stable set whose bytes may be fewer than possible for this state; once for a state, with a separate
    // limit.
    void look_wider(ExprId state);
    std::size_t count() const { return stable_sets_.size(); }
    bool full() const { return stable_sets_.size() >= kMost || looked_.size() >= kMostLooked; }
    std::size_t bytes() const { return stable_sets_.size() * 200 + (places_.size() + looked_.size()) * 48; }

private:
    static constexpr std::size_t kMost = 200, kMostLooked = 10'000;  // maximum sizes of `stable_sets_` and `looked_`, for `full`
    static constexpr std::size_t kMaxStates = 24, kMaxKinds = 4;
    static constexpr unsigned kMaxLooks = 4, kMaxRounds = 6;
    static constexpr unsigned kFewBytes = 40;
    struct State {
        ExprId expr;
        std::uint8_t characters;
        std::vector<std::uint32_t> from;  // states that lead here
    };
    struct Place {
        std::uint32_t stable_set = 0;
        std::uint8_t characters = 0;
        unsigned bytes = 0;  // of the stable set
        bool better_than(const Place& other) const {
            const auto rank = [](const Place& p) { return std::tuple(std::min(p.characters, kFewCharacters), p.bytes, p.characters); };
            return rank(*this) > rank(other);
        }
    };
    struct StableSet {
        SelfLoops loops;
        bool nullable = false;
    };

    void look(ExprId start, unsigned& looks);
    void close(ExprId start, const ByteSet& bytes);
    std::uint32_t number_of(ExprId state) const;
    void measure();
    std::vector<std::uint64_t> blocks_of(const State& state) const;
    void add_blocks(StableSet& made);
    void keep(const ByteSet& bytes);

    ExprPool& pool_;
    const SubtreeAlphabets& subtrees_;
    unsigned looks_ = 0, wider_looks_ = 0;
    std::unordered_set<ExprId> looked_;  // states of `look_wider`
    std::vector<State> states_;          // of the stable set that is searched for
    std::deque<StableSet> stable_sets_;
    std::unordered_map<ExprId, Place> places_;  // by state: its best stable set
};

}  // namespace guideway
