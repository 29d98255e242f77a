// A limit on the work of one call into the kernel. Work is counted in units, not timed, so that equal calls have equal results on
// all machines: all functions that can run for long spend units, and each external call begins with a full allowance.
//
// A unit is about ten nanoseconds. Units are spent before the work is done, and `spend` may throw. So no table has an incomplete
// entry, and earlier results are kept.
//
// Work is divided into pieces. A watcher is called between two of them: the lock of a store then admits waiting threads
// (store_lock.h). It may throw, as `spend` may.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "guideway/base/error.h"

namespace guideway {

inline constexpr std::uint64_t kDefaultFuel = 400'000'000;  // some seconds

class Fuel {
public:
    class Watcher {
    public:
        virtual void piece_done(std::uint64_t units) = 0;

    protected:
        ~Watcher() = default;
    };
    static constexpr std::uint64_t kPiece = 10'000;  // units between two calls of the watcher, unless more are spent at once

    explicit Fuel(std::uint64_t allowance = kDefaultFuel) { allow(allowance); }
    void watch(Watcher* watcher) { watcher_ = watcher; }
    void refill() {
        piece_ = left_ = std::min(kPiece, allowance_);
        rest_ = allowance_ - left_;
    }
    // Restores the full allowance, as at the start of another call. The current piece continues.
    void renew() {
        const std::uint64_t kept = std::min(left_, allowance_);
        piece_ -= left_ - kept;
        left_ = kept;
        rest_ = allowance_ - kept;
    }
    std::uint64_t left() const { return left_ + rest_; }
    // Calls f with at most this many units: f throws Error(limit) if it needs more.
    template <class F>
    void within(std::uint64_t units, F&& f) {
        struct Withheld {  // units that f must not spend; they are returned after it
            Fuel& work;
            std::uint64_t units;
            ~Withheld() { work.rest_ += units; }
        };
        const Withheld withheld{*this, left() - std::min(left(), units)};
        const std::uint64_t of_rest = std::min(withheld.units, rest_);
        rest_ -= of_rest;
        left_ -= withheld.units - of_rest;
        piece_ -= withheld.units - of_rest;
        f();
    }
    void allow(std::uint64_t allowance) {
        allowance_ = allowance;
        refill();
    }
    // Throws Error(limit) if fewer units are left.
    void spend(std::uint64_t units) {
        if (units > left_) [[unlikely]]
            begin_piece(units);
        left_ -= units;
    }

private:
    // Begins a piece of at least `units` units.
    void begin_piece(std::uint64_t units) {
        const std::uint64_t all = left();
        if (units > all)
            throw Error(ErrorKind::limit, "one call needs more than max_work = " + std::to_string(allowance_) + " units of work");
        if (watcher_) watcher_->piece_done(piece_ - left_);
        piece_ = left_ = std::max(units, std::min(kPiece, all));
        rest_ = all - left_;
    }

    std::uint64_t allowance_ = 0, piece_ = 0, left_ = 0, rest_ = 0;  // left_: of the piece; rest_: after it
    Watcher* watcher_ = nullptr;
};

}  // namespace guideway
