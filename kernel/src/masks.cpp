#include "guideway/masks.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "guideway/wide.h"

namespace guideway {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr auto kNeverBits = std::bit_cast<std::uint32_t>(kNever);

// 32 logits of which some are legal, without a branch, which no one could foresee.
inline void blend(const float* source, float* target, std::uint32_t bits) {
    std::array<std::uint32_t, 32> raw;
    std::memcpy(raw.data(), source, sizeof raw);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t keep = 0u - (bits >> lane & 1u);
        raw[lane] = (raw[lane] & keep) | (kNeverBits & ~keep);
    }
    std::memcpy(target, raw.data(), sizeof raw);
}

// Whole words of a row; says whether something legal is left.
GUIDEWAY_WIDE bool mask_words(const float* source, float* target, const std::uint32_t* row, std::size_t whole) {
    bool left = false;
    for (std::size_t word = 0; word < whole; ++word) {  // words of one kind are most of a row
        const std::uint32_t bits = row[word];
        const float* const from = source + word * 32;
        float* const to = target + word * 32;
        if (!bits) {  // what stood there is not read
            for (std::size_t lane = 0; lane < 32; ++lane) to[lane] = kNever;
            continue;
        }
        if (bits != ~std::uint32_t{0})
            blend(from, to, bits);
        else if (source != target)
            std::memcpy(to, from, 32 * sizeof(float));
        left = left || std::any_of(to, to + 32, [](float logit) { return logit != kNever; });
    }
    return left;
}

}  // namespace

bool mask_logits(const float* source, float* target, std::size_t width, std::span<const std::uint32_t> row) {
    const std::size_t whole = std::min(row.size(), width / 32);
    bool left = mask_words(source, target, row.data(), whole);
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
