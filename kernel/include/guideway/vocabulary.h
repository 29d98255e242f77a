// The tokens of a model as bytes, and what all grammars over them share.
//
// A token without bytes is never in a mask. The bytes of a special one are its name: it is in a mask where the grammar
// asks for it by that name, and is walked as `special_text`, whose first byte no text in UTF-8 holds (nor does any token
// here: those that would are never legal). End-of-sequence tokens are special, and in a mask when the text is complete.
//
// The store is the lazily grown part: expressions, residual tries and runs. One lock (store_lock.h) guards it and every
// automaton made from it; masks and transitions that are remembered need it shared only. A vocabulary starts a new store
// when the old one has outgrown its budget; automata keep the one that they were made with.
//
// Work that was cut off too often because others waited is done in a store of its own, where nobody waits: whole
// constraints while they are compiled, sequences with the automaton that they walk (matcher.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guideway/expr.h"
#include "guideway/runs.h"
#include "guideway/fork_safe.h"
#include "guideway/smooth.h"
#include "guideway/store_lock.h"
#include "guideway/subtrees.h"
#include "guideway/tokens.h"
#include "guideway/trie.h"

namespace guideway {

inline constexpr std::uint8_t kSpecialByte = 0xff;
inline constexpr std::size_t kSpecialBytes = 5;
// What a special token is walked as: that byte, and its number.
std::string special_text(std::uint32_t id);

struct VocabularyLimits {
    std::size_t memo_bytes = 256u << 20;   // runs, masks and residual tries; those not used lately go when it is full
    std::size_t store_bytes = 512u << 20;  // expressions of automata made so far, before a new store is begun
    std::size_t max_states = 4'000'000;    // expressions in one store
    std::uint64_t max_work = kAllowance;   // of one call (work.h)
    Shortcuts shortcuts{};
};

// Numbers of automata that have ended, until somebody who holds the store's lock forgets them: an automaton may end on any
// thread, while others hold that lock for long, or in a process that was forked while they did.
class Ended {
public:
    struct Number {
        std::uint32_t number;
        Number* next = nullptr;
    };
    Ended() = default;
    Ended(const Ended&) = delete;
    Ended& operator=(const Ended&) = delete;
    ~Ended() {
        each([](std::uint32_t) {});
    }
    void add(std::unique_ptr<Number> added) noexcept {
        Number* const one = added.release();
        one->next = last_.load(std::memory_order_relaxed);
        while (!last_.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {}
    }
    // Calls f(number) for each, once.
    template <class F>
    void each(F&& f) {
        for (std::unique_ptr<Number> one(last_.exchange(nullptr, std::memory_order_acquire)); one; one.reset(one->next)) f(one->number);
    }

private:
    std::atomic<Number*> last_ = nullptr;
};

struct Store {
    Store(const Vocabulary& vocabulary, const VocabularyLimits& limits)
        : pool(ExprLimits{.max_exprs = limits.max_states, .max_work = limits.max_work}), runs(vocabulary, limits.memo_bytes, limits.shortcuts, pool.work()) {
        pool.work().watch(&lock);
    }
    StoreLock lock;  // shared while nothing is made: masks and transitions that are remembered
    ExprPool pool;
    Beginnings beginnings;
    Leaves leaves;
    Runs runs;
    Ended ended;
    Configs now, scratch;  // of whoever steps
};

// Whoever calls from outside, and may have something made, begins with a full allowance.
class Hold {
public:
    Hold(Store& store, StoreLock::Rank rank) : store_(store) {
        store.lock.lock(rank);
        store.pool.work().refill();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { store_.lock.unlock(); }

private:
    Store& store_;
};

// What is known, and does not change meanwhile.
class SharedHold {
public:
    explicit SharedHold(Store& store) : store_(store) { store.lock.lock_shared(); }
    SharedHold(const SharedHold&) = delete;
    SharedHold& operator=(const SharedHold&) = delete;
    ~SharedHold() { store_.lock.unlock_shared(); }

private:
    Store& store_;
};

class Automaton;

// Where the automaton stands that a compiled constraint gives to new matchers; empty once its store was left. Read and
// written under the lock of its vocabulary.
struct Standing {
    std::shared_ptr<const Automaton> automaton;
};

class Vocabulary {
public:
    // Throws Error(argument) for ids out of range or tokens longer than 60,000 bytes.
    Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special, VocabularyLimits limits = {});
    Vocabulary(const std::vector<std::string>& tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               VocabularyLimits limits = {});
    // The same with what `file()` gave of them, in this process or another of the same byte order, instead of building
    // it. It stays where it is, and `owner` keeps it. Throws Error(argument) where it is of other tokens, or no such file.
    Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special, std::span<const std::uint64_t> file,
               std::shared_ptr<const void> owner, VocabularyLimits limits = {});
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;

    // What building takes long for.
    std::vector<std::uint64_t> file() const;
    std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    std::uint32_t words() const { return (size() + 31) / 32; }
    // Empty for a token that is never legal.
    std::string_view token(std::uint32_t id) const { return tokens()[id]; }
    TokenView tokens() const { return {starts_, text_.data()}; }
    bool is_eos(std::uint32_t id) const;
    // Whether a grammar may ask for it by its number.
    bool is_special(std::uint32_t id) const { return id < size() && token(id).size() == kSpecialBytes && static_cast<std::uint8_t>(token(id)[0]) == kSpecialByte; }
    // The special tokens of a name.
    std::vector<std::uint32_t> special(std::string_view name) const;
    // Bytes that a machine took, special tokens by their names.
    std::string shown(std::string_view bytes) const;
    const std::vector<std::uint32_t>& eos() const { return eos_; }
    const Trie& trie() const { return trie_; }
    const Subtrees& subtrees() const { return *subtrees_; }
    const SmoothTokens& smooth() const { return *smooth_; }
    std::uint32_t longest() const { return longest_; }  // bytes of the longest token, at least 1
    bool spells_every_byte() const { return spells_every_byte_; }
    std::shared_ptr<Store> store() const;
    // A store for one automaton, of which the vocabulary gives no other a part; it has a share of the budget.
    std::shared_ptr<Store> store_apart() const;
    // Empties it when a new store is begun.
    void keep(const std::shared_ptr<Standing>& standing) const;
    // Its automaton has a store of its own: the oldest of these are emptied where there are more than kMostApart.
    void keep_apart(const std::shared_ptr<Standing>& standing) const;
    // Of all `Standing`s; for short sections, and not while a store's lock is held.
    ForkSafeMutex& lock() const { return lock_; }
    // Where the ends of `text` begin with which some token begins, and goes on.
    std::vector<std::size_t> open_ends(std::string_view text) const;
    // Fewest tokens that spell `text`; kInfinite if they cannot.
    std::uint32_t fewest_tokens(std::string_view text) const;

    static constexpr std::size_t kMostApart = 8;

private:
    struct Bare {};
    bool is_full(Store& store) const;

    Vocabulary(Bare, TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special, VocabularyLimits limits);

    std::vector<std::uint32_t> starts_;
    std::string text_;  // without that of silent tokens
    std::vector<std::pair<std::string, std::uint32_t>> names_;  // of special tokens, sorted
    std::vector<std::uint32_t> eos_;
    VocabularyLimits limits_;
    std::shared_ptr<const void> owner_;  // of the file that the tries are views of, if they were read
    Trie trie_;
    std::unique_ptr<Subtrees> subtrees_;
    std::unique_ptr<SmoothTokens> smooth_;
    bool spells_every_byte_ = true;
    std::uint32_t longest_ = 1;
    mutable ForkSafeMutex lock_;  // of all below
    mutable std::shared_ptr<Store> store_;
    mutable std::vector<std::weak_ptr<Standing>> standing_, apart_;
};

}  // namespace guideway
