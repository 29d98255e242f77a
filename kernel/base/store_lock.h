// The readers-writer lock of a store. A writer may work for a long time.
//
// Work is counted (fuel.h) and divided into pieces. Between two pieces, the writer calls the lock and
// - admits waiting readers, which see complete tables, and continues when they have finished;
// - yields, by throwing `Preempted`, if it has done one turn of work and another writer waits, or if the process is about
//   to fork. Every piece of work in the kernel can be interrupted and repeated (fuel.h), so only time is lost. The callers
//   in matcher.cpp and automaton.cpp repeat the work.
// So a reader waits for at most one piece of work, and a step (a call of a matcher) for at most one turn.
//
// Writers have priorities. Steps of sequences come before compiling and precomputation, in order of arrival; after
// kMostSteps steps, one of the other writers gets a turn. The lock is passed from thread to thread, so no thread can
// overtake a waiting one.
//
// A loop that generates for many sequences takes the lock hundreds of times per round. It must not wait each time. Therefore a
// background writer waits for the end of the round before it takes the lock, but at most kMostPause (`LoopRounds`).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

#include "guideway/base/fork_safe.h"
#include "guideway/base/fuel.h"

namespace guideway {

// Thrown inside a writer's work. The lock is free afterwards. Not an error: the caller repeats the work.
struct Preempted {
    bool by_process_fork;  // the process is about to fork; else another writer waits
};

// Thrown by a call of a thread whose work is bounded, when the bound is reached. The caller's state is unchanged, and the call can
// be repeated: the store keeps partial results.
struct Deferred final : std::exception {
    const char* what() const noexcept override { return "the bound of this thread's work is reached"; }
};

// Bounds the work of the calls of this thread in total. It is checked after each piece of work (fuel.h), so that short calls
// are free.
class WorkBound {
public:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    static std::uint64_t left() { return left_; }
    static void set(std::uint64_t units) { left_ = units; }
    // Throws Deferred.
    static void spend(std::uint64_t units) {
        if (left_ == kNone) return;
        left_ -= left_ < units ? left_ : units;
        if (left_ == 0) throw Deferred();
    }

private:
    static constinit inline thread_local std::uint64_t left_ = kNone;
};

// Counts the rounds of generation loops that run now, in all threads. Also stores whether this thread does only background work.
class LoopRounds {
public:
    // Begin and end a round of this thread. A thread has at most one round at a time.
    static void begin() noexcept {
        if (!std::exchange(is_mine_, true)) count_.fetch_add(1, std::memory_order_relaxed);
    }
    static void end() noexcept {
        if (std::exchange(is_mine_, false)) count_.fetch_sub(1, std::memory_order_relaxed);
    }
    static bool is_mine() { return is_mine_; }
    // Whether a round of another thread runs.
    static bool is_running() { return count_.load(std::memory_order_relaxed) > (is_mine_ ? 1u : 0u); }
    // From now on, steps of this thread have the rank of background work.
    static void work_in_background() noexcept { is_background_ = true; }
    static bool is_background() { return is_background_; }
    // Call it in the child: the other threads do not exist there, so their rounds have ended.
    static void after_fork() noexcept { count_.store(is_mine_ ? 1 : 0, std::memory_order_relaxed); }

private:
    static constinit inline std::atomic<unsigned> count_ = 0;
    static constinit inline thread_local bool is_mine_ = false, is_background_ = false;
};

// A call from outside that must not block other threads for long. `begin` is called once: before the thread waits for a
// lock, or after its first piece of work. The bindings release Python's interpreter lock there. The object belongs to the
// thread that constructs it, until its destruction.
//
// In a round, `begin` is called later: after `kKeptWork` units, or after a wait of `kKeptWait`. Taking the interpreter's lock
// back takes milliseconds while other threads run Python code, and a round has hundreds of calls.
class LongCall {
public:
    static constexpr std::uint64_t kKeptWork = 100'000;
    static constexpr std::chrono::milliseconds kKeptWait{1};

    LongCall(const LongCall&) = delete;
    LongCall& operator=(const LongCall&) = delete;

    bool has_begun() const { return has_begun_; }
    // Reports work of this thread's call, if there is one. `units`: work since the last report.
    static void works(std::uint64_t units) noexcept {
        if (!current_ || current_->has_begun_) return;
        current_->work_ += units;
        if (!LoopRounds::is_mine() || current_->work_ >= kKeptWork) current_->begin_now();
    }
    // Reports that this thread's call, if there is one, waits. In a round: that it has waited for `kKeptWait`.
    static void waits() noexcept {
        if (current_ && !current_->has_begun_) current_->begin_now();
    }
    static std::uint64_t most_work();  // maximum number of units that a call outside of a round did before `begin`

protected:
    LongCall() : outer_(current_) { current_ = this; }
    ~LongCall() { current_ = outer_; }

private:
    virtual void begin() noexcept = 0;
    void begin_now() noexcept;

    static constinit inline thread_local LongCall* current_ = nullptr;
    LongCall* const outer_;
    std::uint64_t work_ = 0;
    bool has_begun_ = false;
};

class StoreLock final : public Fuel::Watcher, ForkSafe {
public:
    enum class Rank : std::uint8_t { step, background };
    // Units of work after which a writer yields to a step, and to other writers.
    static constexpr std::uint64_t kStepTurn = 300'000, kBackgroundTurn = 100'000, kLongTurn = 2'000'000;
    static constexpr unsigned kMostSteps = 32;
    static constexpr std::chrono::milliseconds kMostPause{5};
    // The number of preempted turns after which a call of this thread uses a separate store. Background work is preempted more often.
    static unsigned most_tries() { return LoopRounds::is_background() ? 30 : 3; }

    StoreLock() { enter(); }
    ~StoreLock() { leave(); }

    void lock(Rank rank);
    bool try_lock(Rank rank) {
        std::uint32_t free = 0;
        if (!state_.compare_exchange_strong(free, kWriter, std::memory_order_acquire, std::memory_order_relaxed)) return false;
        begin_turn(rank);
        return true;
    }
    void unlock() {
        std::uint32_t mine = kWriter;
        if (!state_.compare_exchange_strong(mine, 0, std::memory_order_release, std::memory_order_relaxed)) hand_over();
    }
    // Whether a thread holds the lock now.
    bool is_taken() const { return state_.load(std::memory_order_relaxed) != 0; }
    void lock_shared();
    bool try_lock_shared() {
        std::uint32_t now = state_.load(std::memory_order_relaxed);
        while (!(now & (kWriter | kWaiters)))
            if (state_.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
        return false;
    }
    void unlock_shared() {
        const std::uint32_t before = state_.fetch_sub(1, std::memory_order_release);
        if ((before & kWaiters) && (before & kReaders) == 1) reader_left();
    }

    // Called between two pieces of the writer's work. Throws Preempted.
    void piece_done(std::uint64_t units) override;

    struct Statistics {
        std::uint64_t most_waited = 0;   // maximum units of one turn while another thread waited for the lock
        std::uint64_t most_delayed = 0;  // the same, while a reader or a step waited
        std::uint64_t preempted = 0;     // number of interrupted turns
        std::uint64_t windows = 0;       // number of times that readers were admitted
    };
    Statistics statistics() const {
        return {most_waited_.load(std::memory_order_relaxed), most_delayed_.load(std::memory_order_relaxed),
                preempted_.load(std::memory_order_relaxed), windows_.load(std::memory_order_relaxed)};
    }

private:
    static constexpr std::uint32_t kWriter = 1u << 31, kWaiters = 1u << 30, kReaders = kWaiters - 1;

    struct Waiter {
        std::condition_variable granted;
        bool has_it = false;
        Waiter* next = nullptr;
    };
    struct Queue {
        Waiter *first = nullptr, *last = nullptr;
        std::atomic<std::uint32_t> size = 0;

        void push(Waiter& waiter);
        Waiter& pop();
    };

    void begin_turn(Rank rank) {
        rank_ = rank;
        done_ = waited_ = delayed_ = 0;
    }
    static void wait_for_rounds();
    void wait_in(Queue& queue);
    void hand_over();
    void reader_left();
    void let_readers_in();
    void grant();
    void give(Waiter& waiter);
    void admit_readers();
    void before_fork() override;
    void after_fork(bool in_child) override;

    std::atomic<std::uint32_t> state_ = 0;  // kWriter; kWaiters: threads wait, so taking it needs `mutex_`; number of readers
    std::mutex mutex_;                      // protects the queues
    Queue readers_, steps_, background_, forks_;
    Waiter* returning_ = nullptr;  // a writer that has admitted readers
    bool readers_are_next_ = false;
    unsigned steps_since_ = 0;  // number of steps since the last turn of a background writer

    // State of the writer.
    Rank rank_ = Rank::step;
    std::uint64_t done_ = 0, waited_ = 0, delayed_ = 0;
    std::atomic<std::uint64_t> most_waited_ = 0, most_delayed_ = 0, preempted_ = 0, windows_ = 0;
};

}  // namespace guideway
