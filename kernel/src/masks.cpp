#include "guideway/masks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include "guideway/wide.h"

namespace guideway {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr std::size_t kGroup = 4;  // words that are looked at as one; a branch for each of them could not be foreseen

// Whole words of a row. What is read and written back in one piece is quicker than stores of single lanes, as soon as
// logits do not fit a cache; where all is legal, or nothing, half of that traffic is saved.
GUIDEWAY_WIDE void mask_words(const float* source, float* target, const std::uint32_t* row, std::size_t whole) {
    for (std::size_t first = 0; first < whole; first += kGroup) {
        const std::size_t end = std::min(first + kGroup, whole);
        std::uint32_t all = ~std::uint32_t{0}, any = 0;
        for (std::size_t word = first; word < end; ++word) {
            all &= row[word];
            any |= row[word];
        }
        if (source == target && all == ~std::uint32_t{0}) continue;
        if (!any) {  // what stood there is not read
            std::fill(target + first * 32, target + end * 32, kNever);
            continue;
        }
        for (std::size_t word = first; word < end; ++word) {
            const std::uint32_t bits = row[word];
            float* const to = target + word * 32;
            if (source != target) std::copy_n(source + word * 32, 32, to);
            for (std::uint32_t lane = 0; lane < 32; ++lane) to[lane] = bits >> lane & 1u ? to[lane] : kNever;
        }
    }
}

bool any_of_eight(const std::uint32_t* words) {
    return std::accumulate(words, words + 8, 0u, std::bit_or<>()) != 0;
}

// Whether a legal token has a logit above -inf (or NaN). Most rows say so at once.
bool anything_left(const float* logits, const std::uint32_t* row, std::size_t whole) {
    for (std::size_t word = 0; word < whole; ++word) {
        while (word + 8 < whole && !any_of_eight(row + word)) word += 8;
        for (std::uint32_t bits = row[word]; bits; bits &= bits - 1)
            if (logits[word * 32 + static_cast<std::size_t>(std::countr_zero(bits))] != kNever) return true;
    }
    return false;
}

}  // namespace

bool mask_logits(const float* source, float* target, std::size_t width, std::span<const std::uint32_t> row) {
    const std::size_t whole = std::min(row.size(), width / 32);
    bool left = anything_left(source, row.data(), whole);  // before they are written over
    mask_words(source, target, row.data(), whole);
    for (std::size_t t = whole * 32; t < width; ++t) {
        target[t] = t / 32 < row.size() && row[t / 32] >> (t & 31) & 1 ? source[t] : kNever;
        left = left || target[t] != kNever;
    }
    return left;
}

std::vector<std::size_t> mask_logits(const LogitRows& source, const LogitRows& target, std::span<const std::uint32_t> masks,
                                     std::size_t words, std::span<const bool> held) {
    std::vector<std::size_t> nothing;
    for (std::size_t index = 0; index < source.count; ++index) {
        const float* const from = source.row(index);
        if (!held[index]) {
            if (from != target.row(index)) std::copy_n(from, source.width, target.row(index));
        } else if (!mask_logits(from, target.row(index), source.width, masks.subspan(index * words, words))) {
            nothing.push_back(index);
        }
    }
    return nothing;
}

}  // namespace guideway
