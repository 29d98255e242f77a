// A grammar met a vocabulary: the automaton, immutable and shared; and the matcher, one per sequence.
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

// The words of a program, seven bits to a byte, the low ones first: most are small.
using PackedProgram = std::shared_ptr<const std::vector<std::uint8_t>>;
PackedProgram packed(std::span<const std::uint32_t> words);
std::vector<std::uint32_t> unpacked(const PackedProgram& program);

class Completions;

class Automaton : public std::enable_shared_from_this<Automaton> {
public:
    ~Automaton();
    Automaton(const Automaton&) = delete;
    Automaton& operator=(const Automaton&) = delete;
    // Throws Error(invalid | unsatisfiable | limit), with the node to blame where there is one.
    // What others of the vocabulary wait for is done in turns (store_lock.h); if these are too few, in a store apart.
    static std::shared_ptr<const Automaton> compile(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program) {
        return compile(std::move(vocabulary), packed(program));
    }
    static std::shared_ptr<const Automaton> compile(std::shared_ptr<const Vocabulary> vocabulary, const PackedProgram& program);
    // Whether no text fits a program. Searches for any text, which costs less than `compile`. Throws Error(invalid | limit).
    static bool is_empty(const Vocabulary& vocabulary, std::span<const std::uint32_t> program);
    // One of the same program with a separate store, the same for all that call this while it is cached.
    std::shared_ptr<const Automaton> apart() const;
    // The last one that `apart` made of it, or of that, and so on, while it is cached.
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
    bool is_outgrown() const;
    const std::shared_ptr<Store>& store() const { return store_; }

private:
    friend class Matcher;
    Automaton() = default;
    static std::shared_ptr<const Automaton> compile_in(const std::shared_ptr<Store>& store,
                                                       const std::shared_ptr<const Vocabulary>& vocabulary, const PackedProgram& program,
                                                       bool is_apart);
    static std::shared_ptr<const Automaton> compile_apart(const std::shared_ptr<const Vocabulary>& vocabulary,
                                                          const PackedProgram& program);
    // Under the store's lock. Where texts begin.
    const StateSet& start() const;
    // The first mask of a large grammar, and the runs of leaves where they begin.
    void warm_up_first() const;
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::shared_ptr<Store> store_;
    std::unique_ptr<Machine> machine_;  // grows under the store's lock
    PackedProgram program_;
    mutable std::shared_ptr<CurrentAutomaton> apart_;       // under the vocabulary's lock
    mutable std::atomic<const StateSet*> start_ = nullptr;  // once it is known
    AutomatonCache& learned() const { return store_->engine.learned(number_); }
    bool is_apart_ = false;
    std::size_t nodes_ = 0;
    std::size_t first_bytes_ = 0;  // of the store's expressions once it was compiled
    std::uint32_t number_ = 0;     // names its configurations in the store
    std::unique_ptr<RetireList::Number> ended_;
    mutable std::optional<StateSetTable> state_sets_;  // that matchers have reached; grow under the store's lock
};

class Matcher {
public:
    explicit Matcher(std::shared_ptr<const Automaton> automaton);

    // Bit t % 32 of word t / 32 is set exactly when the text so far and token t can still be completed.
    void fill_mask(std::span<std::uint32_t> row) const;
    // Of those, only tokens after which `left - 1` more can complete the text, end token included; false: there is none.
    bool fill_mask_within(std::span<std::uint32_t> row, std::uint32_t left) const;
    // Fills `row` as fill_mask_within does. If the budget removed tokens, it also fills `whole` as fill_mask does.
    enum class Fit : std::uint8_t { none, all, some };  // no token fits; `row` is the mask without the budget; fewer tokens
    Fit fill_masks_within(std::span<std::uint32_t> row, std::span<std::uint32_t> whole, std::uint32_t left) const;
    // Row i: the mask after draft token i, which follows draft token parents[i] (an earlier one), or where the matcher
    // is (-1). No bits after a token that is not legal. Throws Error(argument).
    void fill_draft_masks(std::span<const std::int64_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows) const;
    // Throws Error(rejected | token).
    void advance(std::int64_t token);
    // The same, then fill_mask; what either throws leaves the matcher as it was.
    void advance_and_fill(std::int64_t token, std::span<std::uint32_t> row);
    // Names what fill_mask would write: equal masks have equal ids, in any process; different ones different ids, but for
    // a chance of about n * n / 2^129 among n masks. If the id is cached, no mask is made.
    using MaskId = std::array<std::uint64_t, 2>;
    MaskId mask_id() const;
    void rollback(std::size_t count);  // throws Error(argument)
    std::size_t validate(std::span<const std::int64_t> tokens) const;
    std::string forced_bytes() const;
    std::vector<std::uint32_t> forced_tokens() const;
    // Fewest tokens that spell the shortest completion, end token included; kInfinite if the vocabulary cannot. Beyond
    // a million bytes it is the number of bytes.
    std::uint32_t tokens_to_finish() const;
    std::string completion() const;
    bool is_accepting() const;
    // Where the text is in a string that occurs in a source text. `none` also if readings of the text differ in it.
    Quotation quotation() const;
    bool is_finished() const { return finished_; }
    std::size_t position() const { return history_.position() + (finished_ ? 1 : 0); }
    const Automaton& automaton() const { return *automaton_; }

    // Calls from outside that use it just now, which the bindings count; a copy is in no use.
    struct Uses {
        unsigned count = 0;
        Uses() = default;
        Uses(const Uses&) {}
        Uses& operator=(const Uses&) { return *this; }
    };
    mutable Uses uses;

private:
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
    // Where a token leads; null: it is not legal.
    const StateSet* successor(const StateSet& state_set, std::uint32_t token) const;
    std::uint32_t checked(std::int64_t token) const;
    void check_row(std::span<std::uint32_t> row) const;
    void fill(std::span<std::uint32_t> row) const;
    bool fill_known(const StateSet& state_set, std::span<std::uint32_t> row) const;   // for who reads the store
    void fill_locked(const StateSet& state_set, std::span<std::uint32_t> row) const;  // of a text that continues, under the store's lock
    void add_ends(std::span<std::uint32_t> row) const;
    void take(std::uint32_t token) const;
    void give_back(std::size_t count) const;
    struct Filled {
        bool fits, is_whole;  // is_whole: the row is known to be the mask without the budget
    };
    std::uint32_t needed() const;  // as `tokens_to_finish`, under the store's lock
    Filled fill_within(std::span<std::uint32_t> row, std::uint32_t left) const;
    bool fill_drafts(std::span<const std::uint32_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows,
                     bool known) const;
    Completions completions() const;

    mutable std::shared_ptr<const Automaton> automaton_;
    mutable History history_;        // the state sets of all positions
    mutable bool finished_ = false;  // an end token was taken after the last position
};

}  // namespace guideway
