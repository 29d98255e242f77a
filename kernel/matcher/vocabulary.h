// The token table of a model, and its current store, which automata that are compiled now share.
//
// When the current store is larger than its limit, a vocabulary starts a new one; automata keep the store that they were
// compiled in.
//
// Work that other waiting threads interrupted too often is done in a separate store: one for each constraint whose compilation
// was interrupted, and one for all matchers that leave an automaton (matcher.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "guideway/base/fork_safe.h"
#include "guideway/matcher/store.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

class Automaton;

// The automaton that a compiled constraint gives to new matchers; empty once its store was replaced. Read and
// written under the lock of its vocabulary.
struct CurrentAutomaton {
    std::shared_ptr<const Automaton> automaton;
};

class Vocabulary : public TokenTable {
public:
    // Throws the errors of TokenTable, and Error(argument) if max_states is beyond kMaxExprs.
    Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special, VocabularyLimits limits = {});
    Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               std::span<const std::uint64_t> file, std::shared_ptr<const void> owner, VocabularyLimits limits = {});

    const VocabularyLimits& limits() const { return limits_; }
    std::shared_ptr<Store> store() const;
    // A separate store for one automaton, with a share of `memo_bytes`.
    std::shared_ptr<Store> store_apart() const;
    // Registers a `CurrentAutomaton` to be emptied when a new store is begun.
    void keep(const std::shared_ptr<CurrentAutomaton>& current) const;
    // Registers one whose automaton has a separate store: if more than kMostApart are registered, the oldest are emptied.
    void keep_apart(const std::shared_ptr<CurrentAutomaton>& current) const;
    // The lock of all `CurrentAutomaton`s; for short sections, and not while a store's lock is held.
    ForkSafeMutex& lock() const { return lock_; }
    static constexpr std::size_t kMostApart = 8;

private:
    static VocabularyLimits checked(VocabularyLimits limits);
    bool is_full(Store& store) const;

    VocabularyLimits limits_;
    mutable ForkSafeMutex lock_;  // of the members below
    mutable std::shared_ptr<Store> store_;
    mutable std::vector<std::weak_ptr<CurrentAutomaton>> current_, apart_;
};

}  // namespace guideway
