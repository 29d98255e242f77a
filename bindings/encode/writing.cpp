#include "encode/writing.h"

#include <structmember.h>  // for PyMemberDef, in Python before 3.12

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace guideway {

Field::Field(const nb::handle& type, const char* name) {
    const nb::object found = type.attr(name);
    if (!Py_IS_TYPE(found.ptr(), &PyMemberDescr_Type)) throw nb::type_error("the fields of a grammar's objects are slots");
    offset_ = reinterpret_cast<PyMemberDescrObject*>(found.ptr())->d_member->offset;
}

void Field::unset() {
    PyErr_SetString(PyExc_AttributeError, "a field was never set");
    throw nb::python_error();
}

Kinds::Kinds(const nb::tuple& classes, std::size_t count) {
    if (classes.size() != count) throw nb::type_error("a class for each kind is expected");
    for (const nb::handle one : classes) types_.push_back(nb::borrow(one));
}

void Kinds::unknown(PyObject* object) {
    throw nb::type_error((std::string("an object of this class is not allowed here in a grammar: ") + Py_TYPE(object)->tp_name).c_str());
}

void Numbered::add(const PyObject* object, std::uint32_t number) {
    if (2 * ++size_ > slots_.size()) {
        std::vector<std::pair<const PyObject*, std::uint32_t>> old(2 * slots_.size(), {nullptr, kNoWord});
        old.swap(slots_);
        for (const auto& [known, its] : old)
            if (known) place(known, its);
    }
    place(object, number);
}

void Numbered::place(const PyObject* object, std::uint32_t number) {
    std::size_t i = first(object);
    while (slots_[i].first) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {object, number};
}

Py_ssize_t count(PyObject* items) {
    if (!PyTuple_Check(items)) throw nb::type_error("a tuple is expected");
    return PyTuple_GET_SIZE(items);
}

// Only for bool: the truth value of another object could run Python code.
std::uint32_t is(PyObject* flag) {
    if (!PyBool_Check(flag)) throw nb::type_error("True or False is expected");
    return flag == Py_True;
}

bool is_text(PyObject* object, const char* text) { return PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0; }

std::uint32_t word(PyObject* number) {
    const unsigned long long made = PyLong_AsUnsignedLongLong(number);
    if (made == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw nb::python_error();
    if (made > kNoWord) {
        PyErr_SetString(PyExc_OverflowError, "a number does not fit into a word");
        throw nb::python_error();
    }
    return static_cast<std::uint32_t>(made);
}

std::uint32_t bound(PyObject* number, std::uint32_t most) {
    if (number == Py_None) return kNoWord;
    int beyond = 0;
    const long long made = PyLong_AsLongLongAndOverflow(number, &beyond);
    if (made == -1 && PyErr_Occurred()) throw nb::python_error();
    return beyond > 0 || made > most ? most : word(number);
}

std::uint64_t marks(PyObject* number) {
    const unsigned long long made = PyLong_AsUnsignedLongLong(number);
    if (made != static_cast<unsigned long long>(-1) || !PyErr_Occurred()) return made;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
    PyErr_Clear();
    throw TooLarge{kTooManyMarks};
}

void put_text(WordList& words, PyObject* text) {
    if (!PyUnicode_Check(text)) throw nb::type_error("a text is expected");
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const auto kind = PyUnicode_KIND(text);
    const void* const data = PyUnicode_DATA(text);
    words.push_back(size(length));
    for (Py_ssize_t i = 0; i < length; ++i) words.push_back(PyUnicode_READ(kind, data, i));
}

// Converts its text, which has all digits; `as_tuple` would create Python objects.
void put_decimal(WordList& words, PyObject* decimal) {
    const nb::str shown{nb::handle(decimal)};
    Py_ssize_t length = 0;
    const char* const characters = PyUnicode_AsUTF8AndSize(shown.ptr(), &length);
    if (!characters) throw nb::python_error();
    const std::string_view text(characters, static_cast<std::size_t>(length));
    const std::size_t mark = std::min(text.find_first_of("Ee"), text.size()),
                      head = words.size();  // the decimal context decides about the case
    if (text.substr(0, mark).find_first_of("0123456789") == std::string_view::npos) throw nb::type_error("a number is expected");
    std::int64_t power = 0;
    bool known = true, behind = false;
    if (mark < text.size()) {
        const char *const from = text.data() + mark + (text.substr(mark + 1).starts_with('+') ? 2 : 1), *const end =
                                                                                                            text.data() + text.size();
        known = std::from_chars(from, end, power).ptr == end;
    }
    words.insert(words.end(), {std::uint32_t{text[0] == '-'}, 0, 0});
    for (const char c : text.substr(text[0] == '-', mark - (text[0] == '-'))) {
        known &= c == '.' || (c >= '0' && c <= '9');
        if (c != '.' && (c != '0' || words.size() > head + 3)) words.push_back(static_cast<std::uint32_t>(c - '0'));
        power -= behind;
        behind |= c == '.';
    }
    if (words.size() == head + 3) words.push_back(0);
    if (!known || power < INT32_MIN || power > INT32_MAX) throw TooLarge{"the number " + std::string(text) + " is out of range"};
    words[head + 1] = static_cast<std::uint32_t>(power);
    words[head + 2] = static_cast<std::uint32_t>(words.size() - head - 3);
}

}  // namespace guideway
