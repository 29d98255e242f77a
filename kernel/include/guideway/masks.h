// What is done with a mask row, without looking at any grammar.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace guideway {

// Every bit below `size`; the rest of the row is 0.
inline void allow_all(std::span<std::uint32_t> row, std::size_t size) {
    std::fill(row.begin(), row.end(), ~std::uint32_t{0});
    if (size % 32 && !row.empty() && size / 32 == row.size() - 1) row.back() = (1u << (size % 32)) - 1;
}

// Logits without their bit, or beyond the last word, become -inf.
inline void apply_mask(std::span<float> logits, std::span<const std::uint32_t> row) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    for (std::size_t word = 0; word * 32 < logits.size(); ++word) {
        const std::uint32_t bits = word < row.size() ? row[word] : 0;
        if (bits == ~std::uint32_t{0}) continue;
        const std::size_t end = std::min(logits.size(), word * 32 + 32);
        for (std::size_t t = word * 32; t < end; ++t)
            if (!(bits >> (t & 31) & 1)) logits[t] = kNever;
    }
}

}  // namespace guideway
