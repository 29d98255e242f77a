// Many matchers in one call.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
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

// One row of an engine's loop: `length` tokens stand in it, and the matcher took the first `taken` of them: all, unless
// it has ended, or they were not legal. Null: a free row. `budget`: tokens that all of it may have, 0: any number.
struct LoopRow {
    Matcher* matcher;
    std::size_t length, taken;
    std::uint32_t budget;
    bool is_held() const { return matcher && (taken == length || matcher->is_finished()); }
};

// The rows of an engine's loop from step to step, each of which adds a token to all of them. Matchers, and masks while
// they are found, are left alone by everybody else. Once something was thrown, no more can be asked.
class LoopRows {
public:
    // Throws Error(argument) where one matcher stands there twice.
    explicit LoopRows(std::vector<LoopRow> rows);
    ~LoopRows();
    LoopRows(const LoopRows&) = delete;
    LoopRows& operator=(const LoopRows&) = delete;

    // Row i goes on with token i. Throws Error(argument) for another number of them.
    void grow(std::span<const std::int64_t> tokens);
    // Rows take what they have grown by, where it is legal; then row i of `masks` is the mask of row i, of tokens that
    // fit its budget (where none fits: of all). Rows that are not held: every bit. Throws Error(argument) for masks of
    // another size, and what matchers throw.
    void run(std::span<std::uint32_t> masks, std::size_t width);
    // The same on a thread of its own, while a model runs; `wait` throws what `run` would have.
    void begin(std::span<std::uint32_t> masks, std::size_t width);
    void wait();
    void settle();  // `wait`, but nothing is thrown

    std::span<const LoopRow> rows() const { return rows_; }
    double seconds() const { return seconds_; }  // what it took on the other thread

private:
    std::vector<LoopRow> rows_;
    std::vector<const Matcher*> matchers_;  // of the rows
    std::vector<std::optional<std::int64_t>> grown_;  // by row: a token that its matcher has yet to take
    std::exception_ptr failed_;
    double seconds_ = 0;
    std::thread thread_;  // last: it uses the others
};

}  // namespace guideway
