#include "guideway/logits/mask_logits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include "guideway/base/simd.h"

namespace guideway {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr std::size_t kBlock = 256;  // words: 32 KB of logits, in which mostly nearly all or nearly no tokens are legal
constexpr std::size_t kFew = 32;     // up to this many legal tokens of a block are written one by one
constexpr std::size_t kMany = 1024;  // up to this many illegal tokens of a block are written one by one

// On x86, string instructions write whole cache lines without reading them before: a large fill takes half the time.
void never(float* target, std::size_t size) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const auto bits = std::bit_cast<std::uint32_t>(kNever);
    asm volatile("rep stosl" : "+D"(target), "+c"(size) : "a"(bits) : "memory");
#else
    std::fill_n(target, size, kNever);
#endif
}

struct Bits {
    std::uint32_t all, any;
};

GUIDEWAY_WIDE Bits bits_of(const std::uint32_t* words, std::size_t count) {
    Bits found{~std::uint32_t{0}, 0};
    for (std::size_t word = 0; word < count; ++word) {
        found.all &= words[word];
        found.any |= words[word];
    }
    return found;
}

// Reads and writes all lanes, which is faster than stores to single lanes.
GUIDEWAY_WIDE void blend(float* target, const std::uint32_t* words, std::size_t count) {
    for (std::size_t word = 0; word < count; ++word) {
        const std::uint32_t bits = words[word];
        float* const to = target + word * 32;
        for (std::uint32_t lane = 0; lane < 32; ++lane) to[lane] = bits >> lane & 1u ? to[lane] : kNever;
    }
}

// Calls f(lane) for each bit that is `set` in the words, or for each that is not.
template <class F>
void each(const std::uint32_t* words, std::size_t count, bool set, F&& f) {
    for (std::size_t word = 0; word < count; ++word)
        for (std::uint32_t bits = set ? words[word] : ~words[word]; bits; bits &= bits - 1)
            f(word * 32 + static_cast<std::size_t>(std::countr_zero(bits)));
}

// For at most kBlock words. If most tokens are legal, only the others are written; if few are, only these are read.
void mask_block(const float* source, float* target, const std::uint32_t* words, std::size_t count) {
    const std::size_t size = count * 32;
    const Bits bits = bits_of(words, count);
    if (!bits.any) return never(target, size);
    const std::size_t legal = bits.all == ~std::uint32_t{0} ? size : ones({words, count});
    if (legal <= kFew) {
        std::array<float, kFew> kept;
        std::size_t at = 0;
        each(words, count, true, [&](std::size_t lane) { kept[at++] = source[lane]; });
        never(target, size);
        at = 0;
        each(words, count, true, [&](std::size_t lane) { target[lane] = kept[at++]; });
        return;
    }
    if (source != target) std::copy_n(source, size, target);
    if (size - legal > kMany) blend(target, words, count);
    else if (legal < size) each(words, count, false, [&](std::size_t lane) { target[lane] = kNever; });
}

bool any_of_eight(const std::uint32_t* words) { return std::accumulate(words, words + 8, 0u, std::bit_or<>()) != 0; }

// Whether a legal token has a logit above -inf (or NaN). Usually the first legal token has.
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
    bool left = anything_left(source, row.data(), whole);  // before they are overwritten
    for (std::size_t word = 0; word < whole; word += kBlock)
        mask_block(source + word * 32, target + word * 32, row.data() + word, std::min(kBlock, whole - word));
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
