// The token table of a model, and its current store, which automata that are compiled now share.
//
// A vocabulary starts a new store when the old one has outgrown its budget; automata keep the one that they were made with.
//
// Work that was interrupted too often because other threads waited is done in a separate store. A constraint is
// compiled in a store for it alone. All sequences that leave one automaton share a separate store (matcher.cpp).
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
    Vocabulary(const std::vector<std::string>& tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               VocabularyLimits limits = {});
    Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               std::span<const std::uint64_t> file, std::shared_ptr<const void> owner, VocabularyLimits limits = {});

    const VocabularyLimits& limits() const { return limits_; }
    std::shared_ptr<Store> store() const;
    // A store for one automaton, of which the vocabulary gives no other a part; it has a share of the budget.
    std::shared_ptr<Store> store_apart() const;
    // Empties it when a new store is begun.
    void keep(const std::shared_ptr<CurrentAutomaton>& standing) const;
    // Its automaton has a separate store: the oldest of these are emptied where there are more than kMostApart.
    void keep_apart(const std::shared_ptr<CurrentAutomaton>& standing) const;
    // Of all `CurrentAutomaton`s; for short sections, and not while a store's lock is held.
    ForkSafeMutex& lock() const { return lock_; }
    static constexpr std::size_t kMostApart = 8;

private:
    static VocabularyLimits checked(VocabularyLimits limits);
    bool is_full(Store& store) const;

    VocabularyLimits limits_;
    mutable ForkSafeMutex lock_;  // of all below
    mutable std::shared_ptr<Store> store_;
    mutable std::vector<std::weak_ptr<CurrentAutomaton>> standing_, apart_;
};

}  // namespace guideway
