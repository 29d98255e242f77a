#include "guideway/base/store_lock.h"

#include <thread>
#include <utility>

namespace guideway {

namespace {

constexpr int kSpins = 200;  // attempts before a thread sleeps and releases Python's interpreter; most sections are shorter

constexpr std::chrono::microseconds kPoll{200};  // the time between two checks whether a round runs

std::atomic<std::uint64_t> most_of_calls = 0;

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t units) {
    std::uint64_t now = most.load(std::memory_order_relaxed);
    while (now < units && !most.compare_exchange_weak(now, units, std::memory_order_relaxed)) {
    }
}

void pause() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#endif
}

}  // namespace

std::uint64_t LongCall::most_work() { return most_of_calls.load(std::memory_order_relaxed); }

void LongCall::begin_now() noexcept {
    if (!LoopRounds::is_mine()) raise_to(most_of_calls, work_);
    has_begun_ = true;
    begin();
}

void StoreLock::Queue::push(Waiter& waiter) {
    if (last) last->next = &waiter;
    else first = &waiter;
    last = &waiter;
    size.fetch_add(1, std::memory_order_relaxed);
}

StoreLock::Waiter& StoreLock::Queue::pop() {
    Waiter& waiter = *first;
    first = waiter.next;
    if (!first) last = nullptr;
    size.fetch_sub(1, std::memory_order_relaxed);
    return waiter;
}

// Polls, so that the end of a round need not wake other threads.
void StoreLock::wait_for_rounds() {
    if (!LoopRounds::is_running()) return;
    LongCall::waits();
    const auto end = std::chrono::steady_clock::now() + kMostPause;
    while (LoopRounds::is_running() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
}

void StoreLock::lock(Rank rank) {
    if (LoopRounds::is_background()) rank = Rank::background;
    if (rank == Rank::background) wait_for_rounds();
    for (int spin = 0; spin < kSpins; ++spin) {
        if (try_lock(rank)) return;
        if (state_.load(std::memory_order_relaxed) & kWaiters) break;  // another thread was first
        pause();
    }
    wait_in(rank == Rank::step ? steps_ : background_);
    begin_turn(rank);
}

void StoreLock::lock_shared() {
    for (int spin = 0; spin < kSpins; ++spin) {
        if (try_lock_shared()) return;
        if (state_.load(std::memory_order_relaxed) & kWaiters) break;
        pause();
    }
    wait_in(readers_);
}

void StoreLock::wait_in(Queue& queue) {
    const bool is_in_round = LoopRounds::is_mine();
    if (!is_in_round) LongCall::waits();
    Waiter me;
    std::unique_lock guard(mutex_);
    queue.push(me);
    state_.fetch_or(kWaiters, std::memory_order_relaxed);
    grant();
    if (is_in_round && !me.granted.wait_for(guard, LongCall::kKeptWait, [&] { return me.has_it; })) {
        guard.unlock();  // releasing Python's interpreter lock can block until another thread has taken it
        LongCall::waits();
        guard.lock();
    }
    while (!me.has_it) me.granted.wait(guard);
}

void StoreLock::hand_over() {
    const std::lock_guard guard(mutex_);
    readers_are_next_ = true;
    state_.fetch_and(~kWriter, std::memory_order_release);
    grant();
}

void StoreLock::reader_left() {
    const std::lock_guard guard(mutex_);
    grant();
}

void StoreLock::give(Waiter& waiter) {
    waiter.has_it = true;
    waiter.granted.notify_one();
}

// Wakes all waiting readers at once.
void StoreLock::admit_readers() {
    std::uint32_t count = 0;
    while (readers_.first) {
        give(readers_.pop());
        ++count;
    }
    readers_are_next_ = false;
    const bool others = returning_ || forks_.first || steps_.first || background_.first;
    state_.store(count | (others ? kWaiters : 0), std::memory_order_release);
}

// Passes the lock to the next waiting thread, if it is free. Call with the mutex held. While kWaiters is set, no other
// thread takes the lock. Without it, nothing may be stored: `reader_left` can come after another call has served all
// waiting threads, and a thread that takes the lock then does not hold the mutex.
void StoreLock::grant() {
    const std::uint32_t now = state_.load(std::memory_order_acquire);
    if (!(now & kWaiters) || (now & (kWriter | kReaders))) return;  // the holder calls this function again
    const bool writers = forks_.first || steps_.first || background_.first;
    if (!returning_ && readers_.first && (readers_are_next_ || !writers)) return admit_readers();
    Waiter* next = std::exchange(returning_, nullptr);
    if (next) {
    } else if (forks_.first) next = &forks_.pop();
    else if (steps_.first && (!background_.first || steps_since_ < kMostSteps)) {
        next = &steps_.pop();
        steps_since_ += background_.first != nullptr;
    } else if (background_.first) {
        next = &background_.pop();
        steps_since_ = 0;
    }
    const bool others = readers_.first || forks_.first || steps_.first || background_.first;
    state_.store((next ? kWriter : 0) | (others ? kWaiters : 0), std::memory_order_release);
    if (next) give(*next);
}

void StoreLock::piece_done(std::uint64_t units) {
    LongCall::works(units);
    const std::uint32_t now = state_.load(std::memory_order_relaxed);
    if (!(now & kWriter)) return;  // only in tests: expressions without a store
    WorkBound::spend(units);
    done_ += units;
    if (!(now & kWaiters)) {
        waited_ = delayed_ = 0;
        return;
    }
    waited_ += units;
    raise_to(most_waited_, waited_);
    const bool delays = steps_.size.load(std::memory_order_relaxed) != 0 || readers_.size.load(std::memory_order_relaxed) != 0;
    delayed_ = delays ? delayed_ + units : 0;
    raise_to(most_delayed_, delayed_);
    const bool by_process_fork = forks_.size.load(std::memory_order_relaxed) != 0;
    // While a round runs, background work yields to readers too.
    const bool by_round = rank_ == Rank::background && delays && LoopRounds::is_running();
    const bool by_step =
        (by_round || steps_.size.load(std::memory_order_relaxed) != 0) && done_ >= (rank_ == Rank::step ? kStepTurn : kBackgroundTurn);
    if (by_process_fork || by_step || (done_ >= kLongTurn && background_.size.load(std::memory_order_relaxed) != 0)) {
        preempted_.fetch_add(1, std::memory_order_relaxed);
        throw Preempted{by_process_fork};
    }
    if (readers_.size.load(std::memory_order_relaxed) != 0) let_readers_in();
}

void StoreLock::let_readers_in() {
    Waiter me;
    std::unique_lock guard(mutex_);
    if (!readers_.first) return;
    windows_.fetch_add(1, std::memory_order_relaxed);
    returning_ = &me;
    admit_readers();
    while (!me.has_it) me.granted.wait(guard);
}

// Takes the mutex too, so that no other thread holds it in the child.
void StoreLock::before_fork() {
    if (!try_lock(Rank::step)) {
        wait_in(forks_);
        begin_turn(Rank::step);
    }
    mutex_.lock();
}

void StoreLock::after_fork(bool in_child) {
    if (in_child) {  // the waiting threads do not exist in the child
        LoopRounds::after_fork();
        for (Queue* queue : {&readers_, &steps_, &background_, &forks_}) {
            queue->first = queue->last = nullptr;
            queue->size.store(0, std::memory_order_relaxed);
        }
        returning_ = nullptr;
        state_.store(kWriter, std::memory_order_relaxed);
    }
    mutex_.unlock();
    unlock();
}

}  // namespace guideway
