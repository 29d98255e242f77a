// What is done with a mask row, without looking at any grammar.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

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

// For each four bits, which of four lanes stay.
inline constexpr auto kLanes = [] {
    std::array<std::array<std::uint32_t, 4>, 16> lanes{};
    for (std::uint32_t bits = 0; bits < 16; ++bits)
        for (std::uint32_t lane = 0; lane < 4; ++lane) lanes[bits][lane] = bits >> lane & 1 ? ~std::uint32_t{0} : 0;
    return lanes;
}();

// Logits without their bit, or beyond the last word, become -inf. Words of one kind are most of a row; in others four
// lanes at a time are kept or replaced without a branch, which no one could foresee.
inline void apply_mask(std::span<float> logits, std::span<const std::uint32_t> row) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    constexpr auto kNeverBits = std::bit_cast<std::uint32_t>(kNever);
    const std::size_t whole = std::min(row.size(), logits.size() / 32);
    for (std::size_t word = 0; word < whole; ++word) {
        const std::uint32_t bits = row[word];
        if (bits == ~std::uint32_t{0}) continue;
        float* const at = logits.data() + word * 32;
        if (!bits) {
            std::fill_n(at, 32, kNever);
            continue;
        }
        for (std::size_t four = 0; four < 8; ++four) {
            const auto& keep = kLanes[bits >> (4 * four) & 15];
            std::array<std::uint32_t, 4> raw;
            std::memcpy(raw.data(), at + 4 * four, sizeof raw);
            for (std::size_t lane = 0; lane < 4; ++lane)
                raw[lane] = (raw[lane] & keep[lane]) | (kNeverBits & ~keep[lane]);
            std::memcpy(at + 4 * four, raw.data(), sizeof raw);
        }
    }
    for (std::size_t t = whole * 32; t < logits.size(); ++t)
        if (t / 32 >= row.size() || !(row[t / 32] >> (t & 31) & 1)) logits[t] = kNever;
}

}  // namespace guideway
