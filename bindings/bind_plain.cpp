// Copies plain data: dicts with strings as keys, lists, strings, integers, True, False and None, of exactly these types. A function
// of the caller converts other values.
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings.h"

namespace guideway {

namespace {

struct Limits {
    std::size_t values, depth, bits;  // bits: of an int
};

struct Open {  // a copy whose parts are still those of the original; a borrowed reference
    PyObject* box;
    std::size_t depth;
};

class Copier {
public:
    Copier(const nb::callable& other, const nb::frozenset& names, const nb::frozenset& early, Limits limits)
        : other_(other), names_(names), early_(early), limits_(limits) {}

    // Returns (copy, whether a name was found), or None if the value is not plain.
    nb::object copy(nb::handle value) {
        nb::list root;
        root.append(value);
        todo_.push_back({root.ptr(), 0});
        for (std::size_t i = 0; i < todo_.size(); ++i)  // the list grows in the loop
            if (!(PyDict_CheckExact(todo_[i].box) ? copy_dict(todo_[i]) : copy_list(todo_[i]))) return nb::none();
        return nb::make_tuple(root[0], named_);
    }

private:
    bool copy_dict(const Open open) {
        PyObject *key = nullptr, *value = nullptr;
        if (open.depth > limits_.depth) return false;
        for (Py_ssize_t at = 0; PyDict_Next(open.box, &at, &key, &value);) {
            if (!PyUnicode_CheckExact(key) || !PyUnicode_IS_ASCII(key)) return false;
            if (!named_ && (PyUnicode_CheckExact(value) || PyBool_Check(value))) {
                const int found = PySet_Contains((open.depth > 1 ? names_ : early_).ptr(), key);
                if (found < 0) throw nb::python_error();
                named_ = found == 1;
            }
            const nb::object made = copied(value, open.depth);
            if (!made.is_valid()) return false;
            if (made.ptr() != value && PyDict_SetItem(open.box, key, made.ptr()) < 0)
                throw nb::python_error();  // an existing key: the iteration can continue
        }
        return true;
    }

    bool copy_list(const Open open) {
        const Py_ssize_t n = PyList_GET_SIZE(open.box);
        if (open.depth > limits_.depth) return false;
        for (Py_ssize_t i = 0; i < n; ++i) {
            nb::object made = copied(PyList_GET_ITEM(open.box, i), open.depth);
            if (!made.is_valid()) return false;
            PyList_SetItem(open.box, i, made.release().ptr());
        }
        return true;
    }

    // Returns the same object, or a copy whose parts are copied later. Returns an invalid object if the value is not plain.
    nb::object copied(PyObject* value, std::size_t depth) {
        if (value == Py_None || PyBool_Check(value)) return nb::borrow(value);
        if (PyUnicode_CheckExact(value)) return PyUnicode_IS_ASCII(value) || is_text(value) ? nb::borrow(value) : nb::object();
        const bool is_dict = PyDict_CheckExact(value);
        if (is_dict || PyList_CheckExact(value)) {
            count_ += static_cast<std::size_t>(is_dict ? PyDict_GET_SIZE(value) : PyList_GET_SIZE(value));
            if (count_ > limits_.values) return {};  // before the copy: a shared value can be in many places
            nb::object made = nb::steal(is_dict ? PyDict_Copy(value) : PyList_GetSlice(value, 0, PyList_GET_SIZE(value)));
            if (!made.is_valid()) throw nb::python_error();
            todo_.push_back({made.ptr(), depth + 1});
            return made;
        }
        if (PyLong_CheckExact(value)) {
            int beyond = 0;
            PyLong_AsLongLongAndOverflow(value, &beyond);
            return !beyond || nb::cast<std::size_t>(nb::handle(value).attr("bit_length")()) <= limits_.bits ? nb::borrow(value)
                                                                                                            : nb::object();
        }
        nb::object made = other_(nb::handle(value));
        return made.is_none() ? nb::object() : made;
    }

    // Whether a string has no surrogates.
    static bool is_text(PyObject* text) {
        const auto kind = PyUnicode_KIND(text);
        const void* const data = PyUnicode_DATA(text);
        for (Py_ssize_t i = 0, n = PyUnicode_GET_LENGTH(text); i < n; ++i)
            if (const auto c = PyUnicode_READ(kind, data, i); c >= 0xd800 && c < 0xe000) return false;
        return true;
    }

    const nb::callable& other_;
    const nb::frozenset &names_, &early_;
    Limits limits_;
    std::vector<Open> todo_;
    std::size_t count_ = 0;
    bool named_ = false;
};

// Whether dicts, lists and tuples nest deeper than `depth`. Iterative. A shared value is examined again only at a greater depth.
bool nests_deeper(nb::handle value, std::size_t depth) {
    std::vector<std::pair<PyObject*, std::size_t>> todo{{value.ptr(), 1}};
    std::unordered_map<PyObject*, std::size_t> shared;  // the greatest depth so far
    while (!todo.empty()) {
        const auto [box, level] = todo.back();
        todo.pop_back();
        const bool is_dict = PyDict_Check(box), is_tuple = PyTuple_Check(box);
        if (!is_dict && !is_tuple && !PyList_Check(box)) continue;
        if (level > depth) return true;
        if (Py_REFCNT(box) > 1) {
            std::size_t& known = shared[box];
            if (known >= level) continue;
            known = level;
        }
        const auto add = [&, level = level](PyObject* part) {
            if (PyDict_Check(part) || PyList_Check(part) || PyTuple_Check(part)) todo.emplace_back(part, level + 1);
        };
        if (is_dict) {
            PyObject *key = nullptr, *inner = nullptr;
            for (Py_ssize_t at = 0; PyDict_Next(box, &at, &key, &inner);) {
                add(key);
                add(inner);
            }
        } else {
            const Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(box) : PyList_GET_SIZE(box);
            for (Py_ssize_t i = 0; i < n; ++i) add(is_tuple ? PyTuple_GET_ITEM(box, i) : PyList_GET_ITEM(box, i));
        }
    }
    return false;
}

// The number of values in dicts, lists and tuples, with shared parts counted at each of their places; `most` + 1 if there
// are more, or if a value contains itself. Iterative; each part is examined once.
std::size_t count_values(nb::handle value, std::size_t most) {
    struct Container {
        PyObject* box;
        std::vector<PyObject*> parts;
        std::size_t values = 1;
    };
    constexpr std::size_t kOpen = 0;  // the count of a part that is not complete
    const auto is_box = [](PyObject* one) { return PyDict_Check(one) || PyList_Check(one) || PyTuple_Check(one); };
    std::unordered_map<PyObject*, std::size_t> counts;
    std::vector<Container> todo;
    const auto enter = [&](PyObject* box) {
        counts[box] = kOpen;
        Container& open = todo.emplace_back(Container{box, {}});
        const auto add = [&](PyObject* part) { is_box(part) ? open.parts.push_back(part) : void(++open.values); };
        PyObject *key = nullptr, *inner = nullptr;
        if (PyDict_Check(box))
            for (Py_ssize_t at = 0; PyDict_Next(box, &at, &key, &inner);) add(inner);
        else {
            const bool is_tuple = PyTuple_Check(box);
            for (Py_ssize_t i = 0, n = is_tuple ? PyTuple_GET_SIZE(box) : PyList_GET_SIZE(box); i < n; ++i)
                add(is_tuple ? PyTuple_GET_ITEM(box, i) : PyList_GET_ITEM(box, i));
        }
    };
    if (!is_box(value.ptr())) return 1;
    enter(value.ptr());
    for (;;) {
        Container& open = todo.back();
        if (open.values > most) return most + 1;
        if (open.parts.empty()) {
            const std::size_t values = counts[open.box] = open.values;
            todo.pop_back();
            if (todo.empty()) return values;
            todo.back().values += values;
            continue;
        }
        PyObject* const part = open.parts.back();
        open.parts.pop_back();
        if (const auto known = counts.find(part); known == counts.end()) enter(part);
        else if (known->second == kOpen) return most + 1;
        else open.values += known->second;
    }
}

}  // namespace

void bind_plain(nb::module_& m) {
    m.def("nests_deeper", &nests_deeper, nb::arg("value").none(), nb::arg("depth"),
          nb::sig("def nests_deeper(value: object, depth: int) -> bool"),
          "Whether dicts, lists and tuples of the value nest deeper than `depth`. True for cyclic values.");
    m.def("count_values", &count_values, nb::arg("value").none(), nb::arg("most"),
          nb::sig("def count_values(value: object, most: int) -> int"),
          "Count the values in dicts, lists and tuples. Shared values count at each place. Returns `most` + 1 if there "
          "are more, or if a value contains itself.");
    m.def(
        "copy_plain",
        [](nb::handle value, const nb::callable& other, const nb::frozenset& names, const nb::frozenset& early, std::size_t values,
           std::size_t depth, std::size_t bits) { return Copier(other, names, early, {values, depth, bits}).copy(value); },
        nb::arg("value").none(), nb::arg("other"), nb::arg("names"), nb::arg("early"), nb::arg("max_values"), nb::arg("max_depth"),
        nb::arg("max_bits"),
        nb::sig(
            "def copy_plain(value: object, other: collections.abc.Callable[[object], object | None], names: frozenset[str], early: frozenset[str], "
            "max_values: int, max_depth: int, max_bits: int) -> tuple[object, bool] | None"),
        "Copy plain data: dicts with ASCII strings as keys, lists, strings, integers, True, False and None, of exactly "
        "these types. Returns the copy, and whether a nested dict has one of `names`, or the outermost dict one of "
        "`early`, with a string or a bool as value. `other` converts other values and returns None for those that it "
        "cannot convert. Returns None if the data are not plain, have too many values, or are too deep.");
}

}  // namespace guideway
