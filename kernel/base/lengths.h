// Saturating arithmetic of lengths and costs: kInfinite means unbounded. Finite results saturate at kInfinite - 1.
#pragma once

#include <cstdint>

namespace guideway {

inline constexpr std::uint32_t kInfinite = 0xffffffff;

inline std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    if (a == kInfinite || b == kInfinite) return kInfinite;
    return a > kInfinite - 1 - b ? kInfinite - 1 : a + b;
}

inline std::uint32_t multiply(std::uint32_t a, std::uint32_t times) {
    if (times == 0) return 0;
    if (a == kInfinite) return kInfinite;
    return a > (kInfinite - 1) / times ? kInfinite - 1 : a * times;
}

}  // namespace guideway
