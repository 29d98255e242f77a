#include "guideway/base/simd.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>

namespace guideway {

namespace {

constexpr std::size_t kLine = 64;   // bytes of a cache line
constexpr std::size_t kBlock = 32;  // bytes that `outside_of` reads

GUIDEWAY_WIDE std::uint32_t largest_of(const std::uint16_t* numbers, std::size_t size, std::uint16_t add) {
    std::uint16_t most = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const auto number = static_cast<std::uint16_t>(numbers[i] + add);
        most = number > most ? number : most;
    }
    return most;
}

GUIDEWAY_WIDE std::uint32_t largest_of(const std::uint8_t* numbers, std::size_t size) {
    std::uint8_t most = 0;
    for (std::size_t i = 0; i < size; ++i) most = numbers[i] > most ? numbers[i] : most;
    return most;
}

GUIDEWAY_WIDE std::uint32_t largest_of(const std::uint32_t* numbers, std::size_t size) {
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < size; ++i) most = numbers[i] > most ? numbers[i] : most;
    return most;
}

// `to` must be aligned to a cache line.
GUIDEWAY_WIDE GUIDEWAY_AS_WRITTEN void copy_words(const std::uint32_t* __restrict from, std::uint32_t* __restrict to, std::size_t size) {
    to = std::assume_aligned<kLine>(to);
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
}

// `row` must be aligned to a cache line.
GUIDEWAY_WIDE GUIDEWAY_AS_WRITTEN void clear_words(std::uint32_t* row, std::size_t size) {
    row = std::assume_aligned<kLine>(row);
    for (std::size_t i = 0; i < size; ++i) row[i] = 0;
}

GUIDEWAY_WIDE void join_words(const std::uint32_t* __restrict from, std::uint32_t* __restrict to, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) to[i] |= from[i];
}

// `outside`: 1 for each of the bytes that is in none of the ranges, else 0.
GUIDEWAY_WIDE void outside_of(const std::uint8_t* __restrict bytes, const ByteRanges& ranges, std::uint8_t* __restrict outside) {
    for (std::size_t i = 0; i < kBlock; ++i) {
        std::uint8_t found = 1;
        for (std::size_t r = 0; r < ByteRanges::kMost; ++r)
            found &= static_cast<std::uint8_t>(bytes[i] - ranges.first[r]) > ranges.width[r];
        outside[i] = found;
    }
}

GUIDEWAY_WIDE void at_most_of(const std::uint8_t* __restrict numbers, std::uint8_t most, std::uint32_t* __restrict row, std::size_t words) {
    for (std::size_t w = 0; w < words; ++w) {
        std::uint32_t bits = 0;
        for (std::uint32_t i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(numbers[w * 32 + i] <= most) << i;
        row[w] |= bits;
    }
}

GUIDEWAY_WIDE std::size_t ones_of(const std::uint32_t* words, std::size_t count) {
    std::size_t found = 0, word = 0;
    for (; word + 2 <= count; word += 2) {
        std::uint64_t two;
        std::memcpy(&two, words + word, sizeof two);
        found += static_cast<std::size_t>(std::popcount(two));
    }
    return word < count ? found + static_cast<std::size_t>(std::popcount(words[word])) : found;
}

// The number of words before the first begin of a cache line. All, if no word begins there.
std::size_t before_line(std::span<std::uint32_t> row) {
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(row.data()) % kLine;
    return beyond % sizeof row[0] ? row.size() : std::min(row.size(), beyond ? (kLine - beyond) / sizeof row[0] : 0);
}

}  // namespace

std::uint32_t largest(std::span<const std::uint16_t> numbers, std::uint16_t add) { return largest_of(numbers.data(), numbers.size(), add); }
std::uint32_t largest(std::span<const std::uint8_t> numbers) { return largest_of(numbers.data(), numbers.size()); }
std::uint32_t largest(std::span<const std::uint32_t> numbers) { return largest_of(numbers.data(), numbers.size()); }

ByteRanges::ByteRanges(const ByteSet& bytes) {
    std::size_t count = 0;
    for (int from = bytes.from(0); from >= 0 && from < 0x80 && count < kMost;) {
        auto last = static_cast<std::uint8_t>(from);
        while (last < 0x7f && bytes.contains(static_cast<std::uint8_t>(last + 1))) ++last;
        first[count] = static_cast<std::uint8_t>(from);
        width[count++] = static_cast<std::uint8_t>(last - from);
        from = bytes.from(last + 1u);
    }
    for (std::size_t i = count; i < kMost; ++i) {
        first[i] = first[0];
        width[i] = width[0];
    }
}

std::size_t first_outside(std::span<const std::uint8_t> bytes, const ByteRanges& ranges) {
    std::size_t i = 0;
    alignas(8) std::uint8_t outside[kBlock];
    for (; i + kBlock <= bytes.size(); i += kBlock) {
        outside_of(bytes.data() + i, ranges, outside);
        for (std::size_t k = 0; k < kBlock; k += 8) {
            std::uint64_t eight;
            std::memcpy(&eight, outside + k, 8);
            if (eight) return i + k + static_cast<std::size_t>(std::countr_zero(eight)) / 8;
        }
    }
    for (; i < bytes.size(); ++i) {
        bool found = true;
        for (std::size_t r = 0; r < ByteRanges::kMost; ++r)
            found &= static_cast<std::uint8_t>(bytes[i] - ranges.first[r]) > ranges.width[r];
        if (found) return i;
    }
    return i;
}

void at_most(std::span<const std::uint8_t> numbers, std::uint8_t most, std::span<std::uint32_t> row) {
    const std::size_t words = numbers.size() / 32;
    at_most_of(numbers.data(), most, row.data(), words);
    for (std::size_t i = words * 32; i < numbers.size(); ++i) row[i >> 5] |= static_cast<std::uint32_t>(numbers[i] <= most) << (i & 31);
}

std::size_t ones(std::span<const std::uint32_t> row) { return ones_of(row.data(), row.size()); }

// Without memset: for 16 KB, its string instructions take a quarter longer.
void clear_row(std::span<std::uint32_t> row) {
    const std::size_t first = before_line(row);
    std::memset(row.data(), 0, first * sizeof row[0]);
    if (first < row.size()) clear_words(row.data() + first, row.size() - first);
}

// Without memcpy: its string instructions are slow if the offset of the target in its page is slightly larger than that of the
// source (decision 7).
void copy(std::span<const std::uint32_t> from, std::span<std::uint32_t> to) {
    const std::size_t first = before_line(to.first(from.size()));
    std::memcpy(to.data(), from.data(), first * sizeof to[0]);
    if (first < from.size()) copy_words(from.data() + first, to.data() + first, from.size() - first);
}

void join(std::span<const std::uint32_t> from, std::span<std::uint32_t> to) { join_words(from.data(), to.data(), from.size()); }

}  // namespace guideway
