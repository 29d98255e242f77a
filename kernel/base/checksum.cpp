#include "guideway/base/checksum.h"

#include <bit>
#include <cstring>

#include "guideway/base/simd.h"

namespace guideway {

namespace {

std::uint64_t little(std::uint64_t word) {
    if constexpr (std::endian::native == std::endian::little) return word;
    std::uint64_t turned = 0;
    for (unsigned i = 0; i < 8; ++i) turned |= (word >> (8 * i) & 255) << (56 - 8 * i);
    return turned;
}

constexpr std::size_t kLanes = 8;
constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15, kOther = 0xd6e8feb86659fd93;

// The rotation lets high bits change low ones.
inline std::uint64_t step(std::uint64_t lane, std::uint64_t word) { return std::rotl((lane ^ little(word)) * kOdd, 32); }

GUIDEWAY_WIDE void take(const std::uint8_t* data, std::size_t blocks, std::uint64_t* lanes) {
    std::uint64_t held[kLanes], block[kLanes];
    std::memcpy(held, lanes, sizeof held);
    for (std::size_t b = 0; b < blocks; ++b) {
        std::memcpy(block, data + b * sizeof block, sizeof block);
        for (std::size_t i = 0; i < kLanes; ++i) held[i] = step(held[i], block[i]);
    }
    std::memcpy(lanes, held, sizeof held);
}

}  // namespace

std::uint64_t checksum(std::span<const std::uint8_t> data, std::uint64_t seed) {
    std::uint64_t lanes[kLanes], block[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = (seed + i + 1) * kOdd;
    const std::size_t blocks = data.size() / sizeof block, at = blocks * sizeof block;
    take(data.data(), blocks, lanes);
    std::memset(block, 0, sizeof block);
    if (at < data.size()) std::memcpy(block, data.data() + at, data.size() - at);
    std::uint64_t sum = seed ^ data.size() * kOther;
    for (std::size_t i = 0; i < kLanes; ++i) {
        sum = (sum ^ step(lanes[i], block[i])) * kOther;
        sum ^= sum >> 29;
    }
    sum *= kOdd;
    return sum ^ sum >> 32;
}

}  // namespace guideway
