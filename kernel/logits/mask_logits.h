// What is done with a mask row, without looking at any grammar.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace guideway {

// Every bit below `size`; the rest of the row is 0.
inline void allow_all(std::span<std::uint32_t> row, std::size_t size) {
    std::fill(row.begin(), row.end(), ~std::uint32_t{0});
    if (size % 32 && !row.empty() && size / 32 == row.size() - 1) row.back() = (1u << (size % 32)) - 1;
}

// The one token that the row allows, where it allows exactly one. Stops at the second.
inline std::optional<std::uint32_t> only_token(std::span<const std::uint32_t> row) {
    std::optional<std::uint32_t> found;
    for (std::size_t word = 0; word < row.size(); ++word) {
        if (!row[word]) continue;
        if (found || !std::has_single_bit(row[word])) return std::nullopt;
        found = static_cast<std::uint32_t>(word * 32) + static_cast<std::uint32_t>(std::countr_zero(row[word]));
    }
    return found;
}

// Logits, rows of `width` floats that lie `stride` floats apart.
struct LogitRows {
    float* data;
    std::size_t count, width;
    std::ptrdiff_t stride;
    float* row(std::size_t index) const { return data + static_cast<std::ptrdiff_t>(index) * stride; }
};

// One row: `target` becomes `source` with -inf where there is no bit, or no word; they are the same or apart. Says whether
// a legal token has a logit above -inf (or NaN).
bool mask_logits(const float* source, float* target, std::size_t width, std::span<const std::uint32_t> row);

// Each row that is `held` by its mask (`words` to a row; others are copied as they are): as above. The indices of rows
// where nothing is left.
std::vector<std::size_t> mask_logits(const LogitRows& source, const LogitRows& target, std::span<const std::uint32_t> masks,
                                     std::size_t words, std::span<const bool> held);

}  // namespace guideway
