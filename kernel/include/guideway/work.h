// How much one call into the kernel may do. Counted and not timed, so that the same calls come to the same end on every
// machine: whatever may run for long spends what it does, and whoever is called from outside begins with a full allowance.
//
// A unit is some ten nanoseconds of a plain core. What is spent before it is done may throw; so nobody is left with half a
// thing, and what was found out so far stays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "guideway/error.h"

namespace guideway {

inline constexpr std::uint64_t kAllowance = 400'000'000;  // some seconds

class Work {
public:
    explicit Work(std::uint64_t allowance = kAllowance) : allowance_(allowance), left_(allowance) {}
    void refill() { left_ = allowance_; }
    std::uint64_t left() const { return left_; }
    // Calls f, which throws Error(limit) where it would spend more than that.
    template <class F>
    void within(std::uint64_t units, F&& f) {
        struct Rest {
            Work& work;
            std::uint64_t units;
            ~Rest() { work.left_ += units; }
        };
        const Rest rest{*this, left_ - std::min(left_, units)};
        left_ -= rest.units;
        f();
    }
    void allow(std::uint64_t allowance) { left_ = allowance_ = allowance; }
    // Throws Error(limit) where that much is not left.
    void spend(std::uint64_t units) {
        if (units > left_) [[unlikely]] throw Error(ErrorKind::limit, "one call needs more than max_work = " + std::to_string(allowance_) + " units of work");
        left_ -= units;
    }

private:
    std::uint64_t allowance_, left_;
};

}  // namespace guideway
