// Masks on logits, in place and to a target, compared with a loop over single bits.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "check.h"
#include "guideway/base/byte_set.h"
#include "guideway/base/simd.h"
#include "guideway/logits/mask_logits.h"

using namespace guideway;

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool legal(const std::vector<std::uint32_t>& masks, std::size_t words, std::size_t row, std::size_t token) {
    return token / 32 < words && (masks[row * words + token / 32] >> (token % 32) & 1);
}

// Masks with long ranges in which no, few, half, most or all tokens are legal.
void stretches(std::mt19937& chance, std::vector<std::uint32_t>& masks) {
    for (std::size_t from = 0; from < masks.size(); from += 256) {
        const std::uint32_t share = std::array{0u, 1u, 20u, 512u, 1000u, 1023u, 1024u}[chance() % 7];
        for (std::size_t t = from * 32; t < std::min(from + 256, masks.size()) * 32; ++t) {
            const std::uint32_t bit = 1u << t % 32;
            masks[t / 32] = chance() % 1024 < share ? masks[t / 32] | bit : masks[t / 32] & ~bit;
        }
    }
}

void batch(std::mt19937& chance, std::size_t count, std::size_t width, std::size_t words, std::size_t gap, bool stretched = false) {
    std::vector<float> logits(count * (width + gap));
    for (float& logit : logits) logit = static_cast<float>(chance() % 1000);
    std::vector<std::uint32_t> masks(count * words);
    for (std::uint32_t& word : masks) word = chance() % 4 == 0 ? ~0u : chance() % 3 == 0 ? static_cast<std::uint32_t>(chance()) : 0u;
    if (stretched) stretches(chance, masks);
    const auto held = std::make_unique<bool[]>(count);
    for (std::size_t row = 0; row < count; ++row) {
        held[row] = chance() % 4 != 0;
        if (chance() % 4 == 0)
            for (std::size_t t = 0; t < width; ++t) logits[row * (width + gap) + t] = kNever;
    }
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(width + gap);
    std::vector<float> apart(count * (width + gap), 7.0f), before = logits;
    const LogitRows source{logits.data(), count, width, stride}, target{apart.data(), count, width, stride};
    const auto nothing = mask_logits(source, target, masks, words, {held.get(), count});
    CHECK(logits == before);
    CHECK(mask_logits(source, source, masks, words, {held.get(), count}) == nothing);
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < count; ++row) {
        bool left = false;
        for (std::size_t t = 0; t < width + gap; ++t) {
            const std::size_t at = row * (width + gap) + t;
            if (t >= width) {
                CHECK(apart[at] == 7.0f && logits[at] == before[at]);  // memory between rows
                continue;
            }
            const float wanted = !held[row] || legal(masks, words, row, t) ? before[at] : kNever;
            CHECK(apart[at] == wanted && logits[at] == wanted);
            left = left || wanted != kNever;
        }
        if (held[row] && !left) expected.push_back(row);
    }
    CHECK(nothing == expected);
}

void counted(std::mt19937& chance) {
    for (std::size_t words = 0; words < 9; ++words) {
        std::vector<std::uint32_t> row(words);
        std::size_t wanted = 0;
        for (std::uint32_t& word : row) {
            word = static_cast<std::uint32_t>(chance());
            for (unsigned bit = 0; bit < 32; ++bit) wanted += word >> bit & 1;
        }
        CHECK(ones(row) == wanted);
    }
}

// For all alignments, exactly the given number of words is copied or cleared.
void copied(std::mt19937& chance) {
    std::vector<std::uint32_t> from(200);
    for (std::uint32_t& word : from) word = static_cast<std::uint32_t>(chance());
    for (std::size_t behind = 0; behind < 17; ++behind) {
        for (std::size_t words = 0; words < 150; ++words) {
            std::vector<std::uint32_t> to(200, 7), wanted(200, 7);
            const auto begin = static_cast<std::ptrdiff_t>(behind);
            std::copy_n(from.begin() + 3, words, wanted.begin() + begin);
            copy(std::span(from).subspan(3, words), std::span(to).subspan(behind));
            CHECK(to == wanted);
            std::fill_n(wanted.begin() + begin, words, 0);
            clear_row(std::span(to).subspan(behind, words));
            CHECK(to == wanted);
        }
    }
}

// The first byte outside of random ranges, for all sizes.
void searched(std::mt19937& chance) {
    ByteSet set;
    for (std::size_t ranges = 1 + chance() % 6; ranges > 0; --ranges) {
        const auto low = static_cast<unsigned>(chance() % 0x80), width = static_cast<unsigned>(chance() % 30);
        set |= ByteSet::range(low, std::min(low + width, 0x7fu));
    }
    const ByteRanges loops(set);
    set |= ByteSet::range(0x80, 0x8f);  // no ASCII bytes
    std::vector<std::uint8_t> bytes;
    for (std::size_t size = 0; size < 150; ++size) {
        auto byte = static_cast<std::uint8_t>(chance());
        while (byte >= 0x80 || !set.contains(byte)) byte = static_cast<std::uint8_t>(chance());
        bytes.push_back(byte);
        CHECK(first_outside(bytes, loops) == bytes.size());
        const std::size_t place = chance() % bytes.size();
        const std::uint8_t kept = bytes[place];
        do bytes[place] = static_cast<std::uint8_t>(chance());
        while (bytes[place] < 0x80 && set.contains(bytes[place]));
        CHECK(first_outside(bytes, loops) == place);
        bytes[place] = kept;
    }
}

// Of eight ranges, the first six are used.
void many_ranges() {
    const ByteRanges loops(ByteSet::of("acegikmo"));
    const std::vector<std::uint8_t> bytes{'a', 'c', 'e', 'g', 'i', 'k', 'm', 'o'};
    CHECK(first_outside(bytes, loops) == 6);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    std::mt19937 chance(1);
    for (int round = 0; round < 300; ++round) RUN(batch(chance, chance() % 5, chance() % 200, chance() % 8, chance() % 3));
    RUN(batch(chance, 3, 4099, 129, 0));
    for (int round = 0; round < 40; ++round)
        RUN(batch(chance, 1 + chance() % 2, 9000 + chance() % 30000, chance() % 1200, chance() % 3, true));
    for (int round = 0; round < 20; ++round) RUN(counted(chance));
    RUN(copied(chance));
    for (int round = 0; round < 100; ++round) RUN(searched(chance));
    RUN(many_ranges());
    return check::report();
}
