// Many matchers in one call.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "guideway/matcher.h"

namespace guideway {

// Row i is the mask of matcher i; null: every bit below the vocabulary's size (of the other matchers; of the row, where
// there is none). `threads` workers, begun for this call, share the rows: worth it for cold masks, and from about a
// thousand remembered ones; 1: the caller alone. Throws Error(argument) where widths differ.
void fill_masks(std::span<const Matcher* const> matchers, std::span<std::uint32_t> rows, std::size_t width, unsigned threads);

// Matcher i takes token i, and row i is its mask then. Where a token is not legal nobody has moved, and no row is
// written: Error(rejected | token), whose message names the place in the batch. Null matchers take nothing. Throws
// Error(argument) where one matcher stands there twice.
void advance_and_fill(std::span<Matcher* const> matchers, std::span<const std::int64_t> tokens, std::span<std::uint32_t> rows, std::size_t width,
                      unsigned threads);

// What an engine's loop asks of row i: matcher i (null: every bit) takes `token`, if it is legal (kNone: nothing is to be
// taken), and row i is its mask then, of tokens that fit `left` (see fill_mask_within; 0, or where none fits: of all). A
// token that is not legal, or none: every bit.
struct Follow {
    static constexpr std::int64_t kNone = -1;
    Matcher* matcher;
    std::int64_t token;
    std::uint32_t left;
};

// Gives which matchers took their token, or had none to take. Throws Error(argument) as above.
std::vector<bool> follow(std::span<const Follow> rows, std::span<std::uint32_t> masks, std::size_t width);

// The same on a thread of its own, while a model runs. Matchers and masks must be left alone until it has ended.
class FollowJob {
public:
    FollowJob(std::vector<Follow> rows, std::span<std::uint32_t> masks, std::size_t width);
    ~FollowJob();
    FollowJob(const FollowJob&) = delete;
    FollowJob& operator=(const FollowJob&) = delete;
    // Waits; throws what `follow` threw.
    const std::vector<bool>& wait();
    double seconds() const { return seconds_; }  // what it took, once it was waited for

private:
    std::vector<Follow> rows_;
    std::vector<bool> took_;
    std::exception_ptr failed_;
    double seconds_ = 0;
    std::thread thread_;  // last: it uses the others
};

}  // namespace guideway
