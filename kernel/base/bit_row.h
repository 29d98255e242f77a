// Rows of bits, such as masks: bit i is bit i % 32 of word i / 32.
#pragma once

#include <cstdint>
#include <span>

namespace guideway {

inline bool has_bit(std::span<const std::uint32_t> row, std::uint32_t i) { return row[i >> 5] >> (i & 31) & 1; }
inline void set_bit(std::span<std::uint32_t> row, std::uint32_t i) { row[i >> 5] |= 1u << (i & 31); }
inline void clear_bit(std::span<std::uint32_t> row, std::uint32_t i) { row[i >> 5] &= ~(1u << (i & 31)); }

inline void set_bits(std::span<std::uint32_t> row, std::span<const std::uint32_t> list) {
    for (const std::uint32_t i : list) set_bit(row, i);
}
inline void clear_bits(std::span<std::uint32_t> row, std::span<const std::uint32_t> list) {
    for (const std::uint32_t i : list) clear_bit(row, i);
}

}  // namespace guideway
