// The data that the automata compiled in one store share, and that grow in use: expressions, suffix tries and
// results of walks. A vocabulary can have several stores (vocabulary.h). One lock (store_lock.h) guards a store and its
// automata; cached masks and transitions can be read while the lock is shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "guideway/base/store_lock.h"
#include "guideway/grammar/machine.h"
#include "guideway/grammar/program.h"
#include "guideway/mask/mask_engine.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

struct VocabularyLimits {
    std::size_t memo_bytes =
        256u << 20;  // runs, masks and suffix tries; when it is full, those that were not used for the longest time are removed
    std::size_t store_bytes = 512u << 20;   // expressions in one store; above this, the vocabulary begins a new store
    std::size_t max_states = 4'000'000;     // expressions in one store
    std::uint64_t max_work = kDefaultFuel;  // units of work of one call (fuel.h)
    Tuning tuning{};
};

// Ids of deleted automata, until a thread that holds the store's lock releases their caches. An automaton can be deleted on
// any thread, while another holds that lock for a long time, or in a process that was forked meanwhile.
class RetireList {
public:
    struct Entry {
        AutomatonId id{};
        Entry* next = nullptr;
    };
    RetireList() = default;
    RetireList(const RetireList&) = delete;
    RetireList& operator=(const RetireList&) = delete;
    ~RetireList() {
        each([](AutomatonId) {});
    }
    void add(std::unique_ptr<Entry> added) noexcept {
        Entry* const one = added.release();
        one->next = last_.load(std::memory_order_relaxed);
        while (!last_.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
    // Calls f(id) for each id and removes it.
    template <class F>
    void each(F&& f) {
        for (std::unique_ptr<Entry> one(last_.exchange(nullptr, std::memory_order_acquire)); one; one.reset(one->next)) f(one->id);
    }

private:
    std::atomic<Entry*> last_ = nullptr;
};

struct Store {
    Store(const TokenTable& vocabulary, const VocabularyLimits& limits)
        : pool(ExprLimits{.max_exprs = limits.max_states, .max_work = limits.max_work, .tuning = limits.tuning}),
          engine(vocabulary, limits.memo_bytes, limits.tuning, pool.fuel()) {
        pool.fuel().watch(&lock);
    }
    StoreLock lock;  // shared by threads that only read cached masks and transitions
    ExprPool pool;
    ProgramPrefixCache beginnings;
    SharedLeaves leaves;
    MaskEngine engine;
    RetireList retired;
    Configs now, scratch;  // temporary data of the thread that holds the lock
};

// The exclusive lock of a call that can compute something. It sets the fuel to the limit of a call.
class Hold {
public:
    Hold(Store& store, StoreLock::Rank rank) : store_(store) {
        store.lock.lock(rank);
        store.pool.fuel().refill();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { store_.lock.unlock(); }

private:
    Store& store_;
};

// The shared lock of a call that only reads cached results.
class SharedHold {
public:
    explicit SharedHold(Store& store) : store_(store) { store.lock.lock_shared(); }
    SharedHold(const SharedHold&) = delete;
    SharedHold& operator=(const SharedHold&) = delete;
    ~SharedHold() { store_.lock.unlock_shared(); }

private:
    Store& store_;
};

}  // namespace guideway
