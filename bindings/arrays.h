// Mask rows from Python: writable uint32 in C order. A NumPy array, the usual argument, is read through NumPy's own
// structure: an exchange by DLPack or the buffer protocol takes 0.1 us, a quarter of the time of a cached mask.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include <array>
#include <cstdint>
#include <utility>

namespace guideway {

namespace nb = nanobind;

template <int N>
class MaskArray {
public:
    using Foreign = nb::ndarray<std::uint32_t, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

    MaskArray() = default;
    explicit MaskArray(Foreign array) : data_(array.data()), foreign_(std::move(array)) {
        for (std::size_t i = 0; i < N; ++i) shape_[i] = foreign_.shape(i);
    }
    explicit MaskArray(PyArrayObject* array)
        : data_(static_cast<std::uint32_t*>(PyArray_DATA(array))), owner_(nb::borrow(reinterpret_cast<PyObject*>(array))) {
        for (std::size_t i = 0; i < N; ++i) shape_[i] = static_cast<std::size_t>(PyArray_DIMS(array)[i]);
    }

    std::uint32_t* data() const { return data_; }
    std::size_t shape(std::size_t axis) const { return shape_[axis]; }
    std::size_t size() const {
        std::size_t made = 1;
        for (const std::size_t one : shape_) made *= one;
        return made;
    }

private:
    std::uint32_t* data_ = nullptr;
    std::array<std::size_t, N> shape_{};
    nb::object owner_;
    Foreign foreign_;
};

using MaskRow = MaskArray<1>;
using MaskRows = MaskArray<2>;

// numpy.ndarray. Instances of derived classes are converted by nanobind instead. Set when the module is initialized: an import
// within a call could wait for another thread that waits for the GIL.
inline PyTypeObject* numpy_array = nullptr;

inline void find_numpy_array() {
    numpy_array = reinterpret_cast<PyTypeObject*>(nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr());
}

template <int N>
PyArrayObject* as_rows(nb::handle given) {
    if (Py_TYPE(given.ptr()) != numpy_array) return nullptr;
    auto* const array = reinterpret_cast<PyArrayObject*>(given.ptr());
    const bool fits = PyArray_NDIM(array) == N && PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY) && PyArray_TYPE(array) == NPY_UINT32 &&
                      PyArray_ISNBO(PyArray_DESCR(array)->byteorder);
    return fits ? array : nullptr;
}

}  // namespace guideway

namespace nanobind::detail {

template <int N>
struct type_caster<guideway::MaskArray<N>> {
    using Foreign = make_caster<typename guideway::MaskArray<N>::Foreign>;
    NB_TYPE_CASTER(guideway::MaskArray<N>, const_name("numpy.typing.NDArray[numpy.uint32]"))

    bool from_python(handle given, std::uint32_t flags, cleanup_list* cleanup) noexcept {
        if (auto* const array = guideway::as_rows<N>(given)) {
            value = guideway::MaskArray<N>(array);
            return true;
        }
        Foreign foreign;
        if (!foreign.from_python(given, flags & ~std::uint32_t{cast_flags::convert}, cleanup))
            return false;  // a converted copy would be filled, and lost
        value = guideway::MaskArray<N>(std::move(foreign.value));
        return true;
    }
};

}  // namespace nanobind::detail
