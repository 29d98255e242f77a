// A checksum at the speed of memory, which detects damage, but not malicious changes: eight independent lanes of 64 bits. Each step
// is invertible, so a change of one word always changes the result.
#pragma once

#include <cstdint>
#include <span>

namespace guideway {

std::uint64_t checksum(std::span<const std::uint8_t> data, std::uint64_t seed);

}  // namespace guideway
