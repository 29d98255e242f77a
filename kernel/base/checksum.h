// A checksum at the speed of memory, against damage and not against malice: eight lanes of 64 bits that do not wait for
// each other, each step of which can be undone, so that a change within one word always shows.
#pragma once

#include <cstdint>
#include <span>

namespace guideway {

std::uint64_t checksum(std::span<const std::uint8_t> data, std::uint64_t seed);

}  // namespace guideway
