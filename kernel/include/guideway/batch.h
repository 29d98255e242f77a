// Many matchers in one call.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace guideway
