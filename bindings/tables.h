// Tables of numbers in CPU memory from engines, read without a copy and without a Python object for each number. NumPy arrays are
// read through their structure, PyTorch tensors through DLPack's table of functions: `tensor.numpy()` takes 10 us with cold
// caches, as long as the rest of a step.
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include "arrays.h"

namespace guideway {

// Numbers in rows of `width`. `stride`: the distance of two rows, in numbers. Valid while the Python object exists and its shape does
// not change.
template <class T>
struct Table {
    T* data;
    std::size_t rows, width;
    std::ptrdiff_t stride;
};

// The part that is used of a type's `__dlpack_c_exchange_api__` (DLPack 1.2, "DLPackExchangeAPI").
struct ExchangeApi {
    std::uint32_t major, minor;
    void *previous, *allocate, *from_object, *to_object;
    int (*view)(void* object, nb::dlpack::dltensor* found);  // gives a borrowed view; a result other than 0: an exception is set
};

// Null for types without this attribute, such as subclasses, whose instances may have no memory. The last result is cached with its
// type, which usually is PyTorch's tensor.
inline const ExchangeApi* exchange_api(PyTypeObject* type) {
    static PyTypeObject* known = nullptr;  // protected by the GIL
    static const ExchangeApi* found = nullptr;
    if (type == known) return found;
    PyObject* const capsule = type->tp_dict ? PyDict_GetItemString(type->tp_dict, "__dlpack_c_exchange_api__") : nullptr;
    const auto* const api = capsule ? static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api")) : nullptr;
    if (capsule && !api) PyErr_Clear();
    if (!api || api->major != 1 || !api->view) return nullptr;
    Py_INCREF(type);
    Py_XDECREF(std::exchange(known, type));
    return found = api;
}

// No value if rows to be written share memory, or if there is no memory (some tensors have no storage).
template <class T>
std::optional<Table<T>> apart(Table<T> found) {
    const bool shared = !std::is_const_v<T> && found.rows > 1 && std::abs(found.stride) < static_cast<std::ptrdiff_t>(found.width);
    if (shared || (!found.data && found.rows && found.width)) return std::nullopt;
    return found;
}

template <class T>
std::optional<Table<T>> numpy_table(PyArrayObject* array) {
    constexpr bool is_float = std::is_same_v<std::remove_const_t<T>, float>;
    const int type = PyArray_TYPE(array);  // two integer types can have the same size
    const bool is_of_it = is_float ? type == NPY_FLOAT32 : type == NPY_INT64 || (type == NPY_LONGLONG && sizeof(npy_longlong) == sizeof(T));
    const bool fits = PyArray_NDIM(array) == 2 && is_of_it && PyArray_ISNBO(PyArray_DESCR(array)->byteorder) &&
                      PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED) && (std::is_const_v<T> || PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE));
    const npy_intp *const shape = PyArray_DIMS(array), *const strides = PyArray_STRIDES(array);
    constexpr auto size = static_cast<npy_intp>(sizeof(T));
    if (!fits || (shape[1] > 1 && strides[1] != size) || strides[0] % size) return std::nullopt;
    return apart(Table<T>{static_cast<T*>(PyArray_DATA(array)), static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]),
                          strides[0] / size});
}

// No value if the object is no such table, or if T is not const and it is not writable. Nothing is converted or copied.
template <class T>
std::optional<Table<T>> table(nb::handle given) {
    PyTypeObject* const type = Py_TYPE(given.ptr());
    if (type == numpy_array) return numpy_table<T>(reinterpret_cast<PyArrayObject*>(given.ptr()));
    const ExchangeApi* const api = exchange_api(type);
    nb::dlpack::dltensor found;
    if (!api) return std::nullopt;
    if (api->view(given.ptr(), &found) != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    const bool is_float = std::is_same_v<std::remove_const_t<T>, float>;
    const auto code = static_cast<std::uint8_t>(is_float ? nb::dlpack::dtype_code::Float : nb::dlpack::dtype_code::Int);
    const bool fits = found.device.device_type == nb::device::cpu::value && found.ndim == 2 && found.dtype.code == code &&
                      found.dtype.bits == 8 * sizeof(T) && found.dtype.lanes == 1;
    if (!fits || (found.strides && found.shape[1] > 1 && found.strides[1] != 1)) return std::nullopt;
    auto* const data = found.data ? reinterpret_cast<T*>(static_cast<char*>(found.data) + found.byte_offset) : nullptr;
    return apart(Table<T>{data, static_cast<std::size_t>(found.shape[0]), static_cast<std::size_t>(found.shape[1]),
                          static_cast<std::ptrdiff_t>(found.strides ? found.strides[0] : found.shape[1])});
}

}  // namespace guideway
