// Many matchers in one call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "guideway/logits/mask_logits.h"
#include "guideway/matcher/matcher.h"

namespace guideway {

// Row i is the mask of matcher i; null: every bit below the vocabulary's size (of the other matchers; of the row, where
// there is none). `threads` threads share the rows: the calling thread, and others that are started for this call. This
// pays off from about a thousand cached masks, or for several vocabularies or stores. At most 64 threads work, or as
// many as the system provides; only the calling thread if a matcher occurs in two rows. Throws Error(argument) if
// widths differ.
void fill_masks(std::span<const Matcher* const> matchers, std::span<std::uint32_t> rows, std::size_t width, unsigned threads);

// Matcher i takes token i, and row i becomes its next mask. Null matchers take no token. If this throws, no matcher has
// changed. An Error of a token (rejected, token, limit) names its row, and no row was written. If a mask cannot be
// computed, other rows may have been written. Throws Error(argument) if a matcher occurs twice.
void advance_and_fill(std::span<Matcher* const> matchers, std::span<const std::int64_t> tokens, std::span<std::uint32_t> rows,
                      std::size_t width, unsigned threads);

// One row of an engine's loop: it has `length` tokens, and the matcher took the first `taken` of them: all, unless
// it has ended, or one was not legal. Null matcher: a row without constraint. `budget`: maximum of `length`, 0: no limit.
struct LoopRow {
    Matcher* matcher;
    std::size_t length, taken;
    std::uint32_t budget;
    // Whether the row needs a mask: its matcher took all tokens, or has ended.
    bool is_held() const { return matcher && (taken == length || matcher->is_finished()); }
};

// Token ids in rows of `width`. `stride`: the distance of two rows, in ids.
struct IdRows {
    const std::int64_t* data;
    std::size_t count, width;
    std::ptrdiff_t stride;
    std::span<const std::int64_t> row(std::size_t index) const { return {data + static_cast<std::ptrdiff_t>(index) * stride, width}; }
};

// Allows one call of a logits processor at a time, and measures the seconds of each part.
class LoopClock {
public:
    // Seconds since the end of the last call (0: this is the first); none: another call has not ended.
    std::optional<double> enter();
    void leave();

    std::size_t calls = 0;                 // of `LoopRows::run_on`
    double model = 0, mask = 0, copy = 0;  // seconds

private:
    using Time = std::chrono::steady_clock::time_point;
    std::atomic_flag busy_;
    std::optional<Time> left_;
};

// The rows of an engine's loop; each step adds a token to all of them. The caller must not use the matchers, nor the masks while
// they are computed. After an exception, no further call is allowed.
class LoopRows {
public:
    // Throws Error(argument) if a matcher occurs twice.
    explicit LoopRows(std::vector<LoopRow> rows);
    ~LoopRows();
    LoopRows(const LoopRows&) = delete;
    LoopRows& operator=(const LoopRows&) = delete;

    // Row i continues with token i. Throws Error(argument) for another number of tokens.
    void grow(std::span<const std::int64_t> tokens);
    // Notes all ids that the engine now has in its rows, prompts included. Throws Error(argument) for another number of rows.
    void know(const IdRows& ids);
    // Calls `grow` if these are the noted rows with one token more each. Returns false if not; then nothing has changed.
    bool grow_to(const IdRows& ids);
    // The noted ids of all rows, one row after the other; empty if `know` was not called or `run` threw an error.
    std::vector<std::int64_t> known() const;
    std::size_t width() const { return width_; }  // number of ids of a row in the last noted rows
    // Matchers take the new tokens that are legal; then row i of `masks` becomes the mask of row i, of tokens that fit its budget
    // (if none fits: without the budget). Rows that are not held: every bit. Throws Error(argument) for masks of another size,
    // and the errors of matchers.
    void run(std::span<std::uint32_t> masks, std::size_t width);
    // `run`, but applies each mask to the logits of its row, as `mask_logits` does; adds the times to `mask` and `copy` of the
    // clock. Returns the rows where no token is left.
    std::vector<std::size_t> run_on(const LogitRows& source, const LogitRows& target, LoopClock& clock);
    // `run` on a separate thread, while a model runs; `wait` throws its error.
    void begin(std::span<std::uint32_t> masks, std::size_t width);
    void wait();
    void settle();  // `wait` without an exception

    std::span<const LoopRow> rows() const { return rows_; }
    double seconds() const { return seconds_; }  // the time of `run` on the separate thread

private:
    bool take(std::size_t index);
    void fill(std::size_t index, std::span<std::uint32_t> mask);

    std::vector<LoopRow> rows_;
    std::vector<const Matcher*> matchers_;            // of the rows
    std::vector<std::optional<std::int64_t>> grown_;  // by row: a new token that its matcher has not taken yet
    std::vector<std::int64_t> known_;                 // the noted ids: `room_` for each row, of which `width_` are used
    std::size_t room_ = 0, width_ = 0;
    bool is_known_ = false;
    std::vector<std::uint32_t> mask_;  // of one row, for `run_on`
    std::exception_ptr failed_;
    double seconds_ = 0;
    unsigned forks_at_begin_ = 0;  // number of process forks when the thread began; a child process has no thread
    std::thread thread_;           // last: it uses the others
};

}  // namespace guideway
