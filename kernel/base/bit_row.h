// Rows of bits, such as masks: bit i is bit i % 32 of word i / 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace guideway {

inline bool has_bit(std::span<const std::uint32_t> row, std::uint32_t i) { return row[i >> 5] >> (i & 31) & 1; }
inline void set_bit(std::span<std::uint32_t> row, std::uint32_t i) { row[i >> 5] |= 1u << (i & 31); }
inline void clear_bit(std::span<std::uint32_t> row, std::uint32_t i) { row[i >> 5] &= ~(1u << (i & 31)); }

// Sets the bits of a list. It is read from four places in turn: neighbours in a sorted list often have the same word, and a write
// to a word waits for the write before it.
inline void set_bits(std::span<std::uint32_t> row, std::span<const std::uint32_t> list) {
    const std::size_t part = list.size() / 4;
    for (std::size_t i = 0; i < part; ++i) {
        set_bit(row, list[i]);
        set_bit(row, list[i + part]);
        set_bit(row, list[i + 2 * part]);
        set_bit(row, list[i + 3 * part]);
    }
    for (const std::uint32_t i : list.subspan(4 * part)) set_bit(row, i);
}
inline void clear_bits(std::span<std::uint32_t> row, std::span<const std::uint32_t> list) {
    for (const std::uint32_t i : list) clear_bit(row, i);
}

}  // namespace guideway
