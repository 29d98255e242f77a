// The order of the suffixes of a text, in linear time: induced sorting (SA-IS), after Nong, Zhang and Chan, "Two
// efficient algorithms for linear time suffix array construction" (2011).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace guideway {

// The positions of all suffixes of `symbols`, in lexicographical order. Symbols are less than `count`.
std::vector<std::uint32_t> suffix_array(std::span<const std::uint32_t> symbols, std::uint32_t count);

}  // namespace guideway
