// A grammar met a vocabulary: the automaton, immutable and shared; and the matcher, one per sequence.
//
// Every call of a matcher is atomic: it throws and changes nothing, or succeeds. Matchers of one automaton may be used
// from different threads; one matcher only from one at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "guideway/fronts.h"
#include "guideway/history.h"
#include "guideway/machine.h"
#include "guideway/tails.h"
#include "guideway/vocabulary.h"

namespace guideway {

class Automaton {
public:
    ~Automaton();
    Automaton(const Automaton&) = delete;
    Automaton& operator=(const Automaton&) = delete;
    // Throws Error(invalid | unsatisfiable | limit), with the node to blame where there is one.
    static std::shared_ptr<const Automaton> compile(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program);

    const Vocabulary& vocabulary() const { return *vocabulary_; }
    struct Stats {
        std::size_t nodes, frames, expressions, runs_bytes, runs_hits, runs_misses;
    };
    Stats stats() const;
    // Finds out ahead what masks will need, for so long at most.
    void walk_ahead(std::chrono::microseconds budget) const;
    // Whether it has learned so much that a new matcher should begin with another of its kind.
    bool is_worn() const;
    const std::shared_ptr<Store>& store() const { return store_; }

private:
    friend class Matcher;
    Automaton() = default;
    // Under the store's lock. Where texts begin.
    const Front& start() const;
    // The first mask of a large grammar, and the runs of leaves where they begin.
    void find_ahead() const;
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::shared_ptr<Store> store_;
    std::unique_ptr<Machine> machine_;  // grows under the store's lock
    std::size_t nodes_ = 0;
    std::size_t first_bytes_ = 0;  // of the store's expressions once it was compiled
    std::uint32_t number_ = 0;     // names its configurations in the store
    std::unique_ptr<Ended::Number> ended_;
    // By configurations: fewest tokens to finish, and an upper bound of that after any legal token.
    mutable std::unordered_map<Configs, std::uint32_t, ConfigsHash> finish_, worst_;
    mutable Tails tails_;  // long completions
    mutable std::unordered_map<std::uint32_t, std::array<std::uint64_t, 2>> mask_ids_;  // by front
    mutable std::optional<Fronts> fronts_;  // that matchers have come to; grow under the store's lock
};

class Matcher {
public:
    explicit Matcher(std::shared_ptr<const Automaton> automaton);

    // Bit t % 32 of word t / 32 is set exactly when the text so far and token t can still be completed.
    void fill_mask(std::span<std::uint32_t> row) const;
    // Of those, only tokens after which `left - 1` more can complete the text, end token included; false: there is none.
    bool fill_mask_within(std::span<std::uint32_t> row, std::uint32_t left) const;
    // Row i: the mask behind draft token i, which follows draft token parents[i] (an earlier one), or where the matcher
    // stands (-1). No bits behind a token that is not legal. Throws Error(argument).
    void fill_draft_masks(std::span<const std::int64_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows) const;
    // Throws Error(rejected | token).
    void advance(std::int64_t token);
    // The same, then fill_mask; what either throws leaves the matcher as it was.
    void advance_and_fill(std::int64_t token, std::span<std::uint32_t> row);
    // Names what fill_mask would write: equal masks have equal ids, in any process; different ones different ids, but for
    // a chance of about n * n / 2^129 among n masks. Where it was asked before, no mask is made.
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
    bool is_finished() const { return finished_; }
    std::size_t position() const { return history_.position() + (finished_ ? 1 : 0); }
    const Automaton& automaton() const { return *automaton_; }

private:
    Configs now() const {
        const auto here = history_.now().configs();
        return {here.begin(), here.end()};
    }
    bool accepting(std::span<const Config> configs) const;
    bool ends(std::span<const Config> configs, std::uint32_t token) const;
    bool step_token(Configs& configs, std::uint32_t token) const;
    // Where a token leads; null: it is not legal.
    const Front* front_behind(const Front& front, std::uint32_t token) const;
    std::uint32_t checked(std::int64_t token) const;
    void check_row(std::span<std::uint32_t> row) const;
    void fill(const Front& front, bool finished, std::span<std::uint32_t> row) const;
    void fill_locked(const Front& front, std::span<std::uint32_t> row) const;  // of a text that goes on, for who holds the store's lock
    void add_ends(std::span<std::uint32_t> row) const;
    void take(std::uint32_t token);
    std::uint32_t cost(const Configs& configs) const;  // bytes of a shortest completion
    std::uint32_t fewest_tokens(Configs configs) const;
    std::string completion_of(Configs configs) const;
    std::string forced_of(Configs configs) const;
    std::uint32_t finish(Configs configs) const;
    std::uint32_t loop_needs(const Configs& configs, std::uint32_t node) const;
    std::uint32_t keep_within(const Configs& configs, std::span<std::uint32_t> row, std::uint32_t left) const;

    std::shared_ptr<const Automaton> automaton_;
    History history_;        // the fronts of all positions
    bool finished_ = false;  // an end token was taken after the last position
};

}  // namespace guideway
