// Operations on mask rows and logits that need no grammar.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace guideway {

// Sets the first `size` bits of a row, and clears the others.
inline void allow_all(std::span<std::uint32_t> row, std::size_t size) {
    std::fill(row.begin(), row.end(), ~std::uint32_t{0});
    if (size % 32 && !row.empty() && size / 32 == row.size() - 1) row.back() = (1u << (size % 32)) - 1;
}

// The only token that a row allows; no value if it allows none or several.
inline std::optional<std::uint32_t> only_token(std::span<const std::uint32_t> row) {
    std::optional<std::uint32_t> found;
    for (std::size_t word = 0; word < row.size(); ++word) {
        if (!row[word]) continue;
        if (found || !std::has_single_bit(row[word])) return std::nullopt;
        found = static_cast<std::uint32_t>(word * 32) + static_cast<std::uint32_t>(std::countr_zero(row[word]));
    }
    return found;
}

// Logits in rows of `width` floats. `stride`: the distance of two rows, in floats.
struct LogitRows {
    float* data;
    std::size_t count, width;
    std::ptrdiff_t stride;
    float* row(std::size_t index) const { return data + static_cast<std::ptrdiff_t>(index) * stride; }
};

// For one row: `target` becomes `source` with -inf where the mask has no bit, or no word. `target` is `source` or does not overlap
// it. Returns whether a legal token has a logit above -inf (or NaN).
bool mask_logits(const float* source, float* target, std::size_t width, std::span<const std::uint32_t> row);

// The same for each row that is `held`, with `words` words of its mask; other rows are copied. Returns the indices of rows where no
// token is left.
std::vector<std::size_t> mask_logits(const LogitRows& source, const LogitRows& target, std::span<const std::uint32_t> masks,
                                     std::size_t words, std::span<const bool> held);

}  // namespace guideway
