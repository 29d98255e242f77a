// What the binding files share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>

#include "arrays.h"

namespace guideway {

namespace nb = nanobind;

// A word with its bytes in the other order.
constexpr std::uint32_t swapped(std::uint32_t w) { return w >> 24 | (w >> 8 & 0xff00) | (w << 8 & 0xff0000) | w << 24; }

inline std::span<std::uint32_t> words(const MaskRow& row) { return {row.data(), row.size()}; }
inline std::span<std::uint32_t> words(const MaskRows& rows) { return {rows.data(), rows.size()}; }

void bind_errors(nb::module_& m);
void bind_vocabulary(nb::module_& m);
void bind_matcher(nb::module_& m);
void bind_masks(nb::module_& m);
void bind_loop(nb::module_& m);
void bind_sample(nb::module_& m);
void bind_program(nb::module_& m);
void bind_plain(nb::module_& m);

}  // namespace guideway
