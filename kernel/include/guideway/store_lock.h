// The lock of a store: readers of what is known, and one writer, who may work for long.
//
// Work is counted (work.h), and the lock is called between two pieces of it. There the writer
// - lets waiting readers in, who see complete tables, and goes on when they have left;
// - gives way, by throwing `Preempted`, once it has done a turn of work and another writer waits, or when the process is
//   about to fork. Whatever the kernel does may be cut off at any piece and be done again (work.h), so nothing is lost but
//   time; what the caller does then is in matcher.cpp and automaton.cpp.
// So a reader waits for one piece of work, and a step for a turn.
//
// Writers have a rank. Steps of sequences come before compiling and warm-up, in their order; after kMostSteps steps one of
// the others has its turn. The lock is handed from thread to thread, so nobody can overtake who waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

#include "guideway/fork_safe.h"
#include "guideway/work.h"

namespace guideway {

// Thrown out of a writer's work; the lock is free afterwards. No error: the work is to be done again.
struct Preempted {
    bool by_fork;
};

// Thrown out of a call of a thread whose work is bounded, where the bound is reached. The caller's state is unchanged, and
// the same call can be made again: what was found out stays in the store.
struct Deferred final : std::exception {
    const char* what() const noexcept override { return "the bound of this thread's work is reached"; }
};

// Bounds the work of the calls of this thread in total. It is checked after each piece of work (work.h), so that short calls
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

// A call from outside that must not block others for long. Before its thread waits for a lock, and once it has done a piece
// of work, `begin` is called, once: the bindings give back the lock of Python's interpreter there. The call is that of the
// thread that makes it, from its making to its end.
class LongCall {
public:
    LongCall(const LongCall&) = delete;
    LongCall& operator=(const LongCall&) = delete;

    bool has_begun() const { return has_begun_; }
    // Of this thread's call, if it makes one; `units`: done since the last of these.
    static void begins(std::uint64_t units) noexcept {
        if (current_ && !current_->has_begun_) current_->begin_now(units);
    }
    static std::uint64_t most_work();  // units that a call did before `begin`, at most

protected:
    LongCall() : outer_(current_) { current_ = this; }
    ~LongCall() { current_ = outer_; }

private:
    virtual void begin() noexcept = 0;
    void begin_now(std::uint64_t units) noexcept;

    static constinit inline thread_local LongCall* current_ = nullptr;
    LongCall* const outer_;
    bool has_begun_ = false;
};

class StoreLock final : public Work::Watcher, ForkSafe {
public:
    enum class Rank : std::uint8_t { step, background };
    // Units of work, after which a writer gives way to a step, and to others.
    static constexpr std::uint64_t kStepTurn = 300'000, kBackgroundTurn = 100'000, kLongTurn = 2'000'000;
    static constexpr unsigned kMostSteps = 32;

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
    // Whether somebody has it just now.
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

    // Between two pieces of the writer's work. Throws Preempted.
    void piece_done(std::uint64_t units) override;

    struct Statistics {
        std::uint64_t most_waited = 0;  // units that one turn did while another thread waited for the lock, at most
        std::uint64_t most_delayed = 0;  // the same, while a reader or a step waited
        std::uint64_t preempted = 0;    // turns that were cut off
        std::uint64_t windows = 0;      // times that readers were let in
    };
    Statistics statistics() const {
        return {most_waited_.load(std::memory_order_relaxed), most_delayed_.load(std::memory_order_relaxed), preempted_.load(std::memory_order_relaxed), windows_.load(std::memory_order_relaxed)};
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
    void wait_in(Queue& queue);
    void hand_over();
    void reader_left();
    void let_readers_in();
    void grant();
    void give(Waiter& waiter);
    void admit_readers();
    void before_fork() override;
    void after_fork(bool in_child) override;

    std::atomic<std::uint32_t> state_ = 0;  // kWriter, kWaiters (somebody waits: the ways without the mutex are closed), readers
    std::mutex mutex_;                      // of the queues
    Queue readers_, steps_, background_, forks_;
    Waiter* returning_ = nullptr;  // a writer that has let readers in
    bool readers_are_next_ = false;
    unsigned steps_since_ = 0;  // one of the background had its turn

    // Of the writer.
    Rank rank_ = Rank::step;
    std::uint64_t done_ = 0, waited_ = 0, delayed_ = 0;
    std::atomic<std::uint64_t> most_waited_ = 0, most_delayed_ = 0, preempted_ = 0, windows_ = 0;
};

}  // namespace guideway
