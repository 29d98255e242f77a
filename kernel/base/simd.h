// Loops over whole vocabularies, compiled for several widths of vector registers; one is selected when the program starts.
// Products and sums are not fused (-ffp-contract=off in CMakeLists.txt), so the results of all versions are identical.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "guideway/base/byte_set.h"

#if defined(GUIDEWAY_WIDE)  // kernel/tests/variants: only one width
#define GUIDEWAY_AS_WRITTEN
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define GUIDEWAY_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define GUIDEWAY_AS_WRITTEN __attribute__((optimize("no-tree-loop-distribute-patterns")))  // no call of memcpy for a loop
#else
#define GUIDEWAY_WIDE
#define GUIDEWAY_AS_WRITTEN
#endif

namespace guideway {

// The largest number, 0 if there is none. `add` is added to each before, modulo 2^16.
std::uint32_t largest(std::span<const std::uint16_t> numbers, std::uint16_t add = 0);
std::uint32_t largest(std::span<const std::uint8_t> numbers);
std::uint32_t largest(std::span<const std::uint32_t> numbers);

// Up to six ranges of ASCII bytes.
struct ByteRanges {
    static constexpr std::size_t kMost = 6;
    std::array<std::uint8_t, kMost> first{}, width{};  // width: last - first. Unused places repeat the first range

    // The ranges of a set that has an ASCII byte. If there are more than six, only the first six.
    explicit ByteRanges(const ByteSet& bytes);
};

// The index of the first byte that is in none of the ranges; the number of bytes if there is none.
std::size_t first_outside(std::span<const std::uint8_t> bytes, const ByteRanges& ranges);

// Sets bit i of the row if numbers[i] <= most. Does not change other bits.
void at_most(std::span<const std::uint8_t> numbers, std::uint8_t most, std::span<std::uint32_t> row);

// The number of bits that are set.
std::size_t ones(std::span<const std::uint32_t> row);

// Sets all words of a row to 0.
void clear_row(std::span<std::uint32_t> row);

// Writes one row over the beginning of another, which it does not overlap.
void copy(std::span<const std::uint32_t> from, std::span<std::uint32_t> to);

// Adds the bits of one row to another.
void join(std::span<const std::uint32_t> from, std::span<std::uint32_t> to);

}  // namespace guideway
