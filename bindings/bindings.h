// Declarations that the binding files share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <vector>

#include "arrays.h"

namespace guideway {

namespace nb = nanobind;

// A word with its bytes in reverse order.
constexpr std::uint32_t swapped(std::uint32_t w) { return w >> 24 | (w >> 8 & 0xff00) | (w << 8 & 0xff0000) | w << 24; }

// A parameter that is a sequence of integers. `integers` converts it to a vector in the called function: nanobind's own conversion
// ends the process if memory is exhausted.
using Integers = nb::typed<nb::sequence, int>;

template <class T>
std::vector<T> integers(const nb::sequence& given) {
    if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr())) throw nb::type_error("expected a sequence of integers");
    const nb::object items = nb::steal(PySequence_Fast(given.ptr(), "expected a sequence of integers"));
    if (!items.is_valid()) throw nb::python_error();
    const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
    std::vector<T> made(count);
    for (std::size_t i = 0; i < count; ++i)
        if (!nb::try_cast(nb::handle(PySequence_Fast_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i))), made[i]))
            throw nb::type_error("expected a sequence of integers in the range of token ids");
    return made;
}

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
void bind_schema_nodes(nb::module_& m);

}  // namespace guideway
