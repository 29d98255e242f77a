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

// One row of an engine's loop: `length` tokens are in it, and the matcher took the first `taken` of them: all, unless
// it has ended, or they were not legal. Null: a free row. `budget`: tokens that all of it may have, 0: any number.
struct LoopRow {
    Matcher* matcher;
    std::size_t length, taken;
    std::uint32_t budget;
    bool is_held() const { return matcher && (taken == length || matcher->is_finished()); }
};

// Token ids, rows of `width` that lie `stride` ids apart.
struct IdRows {
    const std::int64_t* data;
    std::size_t count, width;
    std::ptrdiff_t stride;
    std::span<const std::int64_t> row(std::size_t index) const { return {data + static_cast<std::ptrdiff_t>(index) * stride, width}; }
};

// An engine's calls of a processor: one at a time, and the seconds that went where.
class LoopClock {
public:
    // Seconds since the last call was left (0: this is the first); none: another call has not been left yet.
    std::optional<double> enter();
    void leave();

    std::size_t calls = 0;  // of `LoopRows::run_on`, and what was spent there
    double model = 0, mask = 0, copy = 0;

private:
    using Time = std::chrono::steady_clock::time_point;
    std::atomic_flag busy_;
    std::optional<Time> left_;
};

// The rows of an engine's loop from step to step, each of which adds a token to all of them. Matchers, and masks while
// they are found, are left alone by all others. Once something was thrown, no further call is allowed.
class LoopRows {
public:
    // Throws Error(argument) where one matcher is there twice.
    explicit LoopRows(std::vector<LoopRow> rows);
    ~LoopRows();
    LoopRows(const LoopRows&) = delete;
    LoopRows& operator=(const LoopRows&) = delete;

    // Row i continues with token i. Throws Error(argument) for another number of them.
    void grow(std::span<const std::int64_t> tokens);
    // What the engine has in the rows as they are now, prompts and all. Throws Error(argument) for another number of rows.
    void know(const IdRows& ids);
    // `grow`, where these are the rows that are known, with one token more each. False: they are not, nothing has changed.
    bool grow_to(const IdRows& ids);
    // Of each row what is known of it, one after the other; empty where nothing is: `know` was not called, or no masks
    // could be found.
    std::vector<std::int64_t> known() const;
    std::size_t width() const { return width_; }  // the tokens of a row that are known, or were last
    // Rows take what they have grown by, where it is legal; then row i of `masks` is the mask of row i, of tokens that
    // fit its budget (where none fits: of all). Rows that are not held: every bit. Throws Error(argument) for masks of
    // another size, and what matchers throw.
    void run(std::span<std::uint32_t> masks, std::size_t width);
    // `run`, but each mask is put on the logits of its row, as `mask_logits` does; what it takes is added to the clock's
    // `mask` and `copy`. The rows where nothing is left.
    std::vector<std::size_t> run_on(const LogitRows& source, const LogitRows& target, LoopClock& clock);
    // `run` on a separate thread, while a model runs; `wait` throws what it would have.
    void begin(std::span<std::uint32_t> masks, std::size_t width);
    void wait();
    void settle();  // `wait`, but nothing is thrown

    std::span<const LoopRow> rows() const { return rows_; }
    double seconds() const { return seconds_; }  // what it took on the other thread

private:
    bool take(std::size_t index);
    void fill(std::size_t index, std::span<std::uint32_t> mask);

    std::vector<LoopRow> rows_;
    std::vector<const Matcher*> matchers_;            // of the rows
    std::vector<std::optional<std::int64_t>> grown_;  // by row: a token that its matcher has yet to take
    std::vector<std::int64_t> known_;                 // by row, with room for more after the first `width_`
    std::size_t room_ = 0, width_ = 0;
    bool is_known_ = false;
    std::vector<std::uint32_t> mask_;  // of one row, for `run_on`
    std::exception_ptr failed_;
    double seconds_ = 0;
    unsigned forks_at_begin_ = 0;  // number of process forks when the thread began; a child process has no thread
    std::thread thread_;           // last: it uses the others
};

}  // namespace guideway
