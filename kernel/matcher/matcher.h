// The automaton: a program compiled for a vocabulary. Its language does not change; its caches grow, and its matchers share
// them. And the matcher: one for each sequence.
//
// Every call of a matcher is atomic: it throws and changes nothing, or succeeds. Matchers of one automaton may be used
// from different threads; one matcher only from one at a time, also for calls that only read: each may move the matcher to
// an equal automaton (matcher.cpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "guideway/grammar/machine.h"
#include "guideway/grammar/state_sets.h"
#include "guideway/mask/substrings_walk.h"
#include "guideway/matcher/history.h"
#include "guideway/matcher/vocabulary.h"

namespace guideway {

// The words of a program in LEB128, since most are small: seven bits in a byte, the low ones first.
using PackedProgram = std::shared_ptr<const std::vector<std::uint8_t>>;
PackedProgram packed(std::span<const std::uint32_t> words);
std::vector<std::uint32_t> unpacked(const PackedProgram& program);

class Completions;

class Automaton : public std::enable_shared_from_this<Automaton> {
public:
    ~Automaton();
    Automaton(const Automaton&) = delete;
    Automaton& operator=(const Automaton&) = delete;
    // Throws Error(invalid | unsatisfiable | limit), with the node that caused it if there is one. Compiles in the store of the
    // vocabulary; other threads can interrupt this (store_lock.h). After too many interruptions, it compiles in a separate
    // store.
    static std::shared_ptr<const Automaton> compile(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program) {
        return compile(std::move(vocabulary), packed(program));
    }
    static std::shared_ptr<const Automaton> compile(std::shared_ptr<const Vocabulary> vocabulary, const PackedProgram& program);
    // Whether the language of a program is empty. Costs less than `compile`. Throws Error(invalid | limit).
    static bool is_empty(const Vocabulary& vocabulary, std::span<const std::uint32_t> program);
    // An automaton of the same program in a separate store. All calls return the same one while it is cached.
    std::shared_ptr<const Automaton> apart() const;
    // The last automaton in the chain of results of `apart` that starts at this one, as far as they are cached.
    std::shared_ptr<const Automaton> newest() const;
    bool is_apart() const { return is_apart_; }

    const Vocabulary& vocabulary() const { return *vocabulary_; }
    struct Stats {
        std::size_t nodes, frames, expressions, runs_bytes, runs_hits, runs_misses;
    };
    Stats stats() const;
    // Precomputes results that masks need, with this many units of work at most (fuel.h).
    void warm_up(std::uint64_t work) const;
    // Whether a new matcher should use a new automaton of the same program: this one is too large, or the vocabulary
    // has begun another store (which this call does if the current one is full).
    bool needs_replacement() const;
    const std::shared_ptr<Store>& store() const { return store_; }

private:
    friend class Matcher;
    Automaton() = default;
    static std::shared_ptr<const Automaton> compile_in(const std::shared_ptr<Store>& store,
                                                       const std::shared_ptr<const Vocabulary>& vocabulary, const PackedProgram& program,
                                                       bool is_apart);
    static std::shared_ptr<const Automaton> compile_apart(const std::shared_ptr<const Vocabulary>& vocabulary,
                                                          const PackedProgram& program);
    // The state set at the start of a text. Called under the store's lock.
    const StateSet& start() const;
    // Computes the first mask of a large grammar, and the runs of leaves at their start.
    void warm_up_first() const;
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::shared_ptr<Store> store_;
    std::unique_ptr<Machine> machine_;  // grows under the store's lock
    PackedProgram program_;
    mutable std::shared_ptr<CurrentAutomaton> apart_;       // the result of `apart`; under the vocabulary's lock
    mutable std::atomic<const StateSet*> start_ = nullptr;  // null: not computed yet
    AutomatonCache& cache() const { return store_->engine.cache_of(id_); }
    bool is_apart_ = false;
    std::size_t nodes_ = 0;
    std::size_t first_bytes_ = 0;  // bytes of the store's expressions directly after compilation
    AutomatonId id_{};
    std::unique_ptr<RetireList::Entry> retire_entry_;
    mutable std::optional<StateSetTable> state_sets_;  // that matchers have reached; it grows under the store's lock
};

class Matcher {
public:
    explicit Matcher(std::shared_ptr<const Automaton> automaton);

    // Bit t % 32 of word t / 32 is set exactly when the text so far and token t can still be completed.
    void fill_mask(std::span<std::uint32_t> row) const;
    // Only those of these tokens after which at most `left - 1` more complete the text, end token included. Returns whether there
    // is one.
    bool fill_mask_within(std::span<std::uint32_t> row, std::uint32_t left) const;
    // Fills `row` as fill_mask_within does. If the budget removed tokens, it also fills `whole` as fill_mask does.
    // none: no token fits; all: `row` is the mask without the budget; some: `row` has fewer tokens.
    enum class Fit : std::uint8_t { none, all, some };
    Fit fill_masks_within(std::span<std::uint32_t> row, std::span<std::uint32_t> whole, std::uint32_t left) const;
    // Row i: the mask after draft token i, which follows draft token parents[i] (an earlier one), or the matcher's position
    // (-1). After a token that is not legal: no bits. Throws Error(argument).
    void fill_draft_masks(std::span<const std::int64_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows) const;
    // Throws Error(rejected | token).
    void advance(std::int64_t token);
    // The same, then fill_mask. If one of them throws, the matcher has not changed.
    void advance_and_fill(std::int64_t token, std::span<std::uint32_t> row);
    // An id of the mask that fill_mask would write: equal masks have equal ids, in any process. Among n different masks, two have
    // the same id with a probability of about n * n / 2^129. If the id is cached, no mask is computed.
    using MaskId = std::array<std::uint64_t, 2>;
    MaskId mask_id() const;
    // Returns to the position before the last `count` tokens (history.h), end token included. Throws Error(argument).
    void rollback(std::size_t count);
    // The number of tokens at the beginning that are legal one after the other. The matcher does not change.
    std::size_t validate(std::span<const std::int64_t> tokens) const;
    // The bytes that must come next: until there is a choice, or the text may end (`Completions::forced`).
    std::string forced_bytes() const;
    // Tokens that spell a prefix of these bytes: the longest first, and none that a longer token could replace.
    std::vector<std::uint32_t> forced_tokens() const;
    // Fewest tokens that spell the shortest completion, end token included; kInfinite if the vocabulary cannot spell it. Beyond
    // a million bytes: the number of bytes.
    std::uint32_t tokens_to_finish() const;
    // A shortest text that completes the current one.
    std::string completion() const;
    bool is_accepting() const;
    // The position of the text in a quotation (substrings_walk.h). `none` also if the configurations differ in it.
    Quotation quotation() const;
    bool is_finished() const { return finished_; }
    std::size_t position() const { return history_.position() + (finished_ ? 1 : 0); }
    const Automaton& automaton() const { return *automaton_; }

    // The number of external calls that use the matcher now; the bindings count them. It is 0 in a copy.
    struct Uses {
        unsigned count = 0;
        Uses() = default;
        Uses(const Uses&) {}
        Uses& operator=(const Uses&) { return *this; }
    };
    mutable Uses uses;

private:
    // `known` in a name: uses only cached results, under the shared lock, and reports if these are not enough.
    template <class F>
    auto locked(F&& f) const;
    void move_apart() const;
    bool advance_known(std::uint32_t token);
    std::optional<bool> accepting_known() const;
    Configs now() const {
        const auto here = history_.now().configs();
        return {here.begin(), here.end()};
    }
    bool accepting(std::span<const Config> configs) const;
    bool ends(std::span<const Config> configs, std::uint32_t token) const;
    bool step_token(Configs& configs, std::uint32_t token) const;
    // The state set after a token; null: the token is not legal.
    const StateSet* successor(const StateSet& state_set, std::uint32_t token) const;
    std::uint32_t checked(std::int64_t token) const;
    void check_row(std::span<std::uint32_t> row) const;
    void fill(std::span<std::uint32_t> row) const;
    bool fill_known(const StateSet& state_set, std::span<std::uint32_t> row) const;
    void fill_locked(const StateSet& state_set, std::span<std::uint32_t> row) const;  // under the store's lock
    void add_ends(std::span<std::uint32_t> row) const;
    void take(std::uint32_t token);
    void undo(std::size_t count);
    struct Filled {
        bool fits, is_whole;  // is_whole: the row is known to be the mask without the budget
    };
    std::uint32_t needed() const;  // as `tokens_to_finish`, under the store's lock
    Filled fill_within(std::span<std::uint32_t> row, std::uint32_t left) const;
    bool fill_drafts(std::span<const std::uint32_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows,
                     bool known) const;
    Completions completions() const;

    // Mutable, because each call may move the matcher to an equal automaton (`move_apart`), which replaces both together.
    mutable std::shared_ptr<const Automaton> automaton_;
    mutable History history_;  // the state sets of all positions
    bool finished_ = false;    // an end token was taken after the last position; it is not in the history
};

}  // namespace guideway
