// Converts the Python objects of a grammar (`guideway.grammar`) to the words of a program (program.h in the kernel). In C++, since
// in Python the many small calls of this last step took most of the time of a compilation with cold caches.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"

namespace guideway {

namespace nb = nanobind;

using WordList = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kNoWord = 0xffffffff;
inline constexpr const char* kTooManyMarks = "more than 64 demands on one object, or 32 counters on one array";

// A value that is too large for a program. `ProgramWriter::write` converts it to an Error with the node.
struct TooLarge {
    std::string what;
};

// A field of a class with slots: its offset in objects of the class.
class Field {
public:
    Field(const nb::handle& type, const char* name);
    // A borrowed reference. Raises AttributeError if the field was never set.
    PyObject* of(PyObject* object) const {
        PyObject* const found = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset_);
        if (!found) unset();
        return found;
    }
    // Sets the field of a new object. It must be unset: an earlier value would not be released.
    void set(const nb::object& object, nb::object value) const {
        *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object.ptr()) + offset_) = value.release().ptr();
    }

private:
    [[noreturn]] static void unset();

    Py_ssize_t offset_;
};

// Numbers of kinds of objects: the positions of their classes in a list.
class Kinds {
public:
    Kinds(const nb::tuple& classes, std::size_t count);
    // Raises TypeError for an object of another class.
    std::size_t of(PyObject* object) const {
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (types_[i].ptr() == reinterpret_cast<PyObject*>(Py_TYPE(object))) return i;
        unknown(object);
    }
    // The same object, if it is of that kind.
    PyObject* check(PyObject* object, std::size_t kind) const {
        if (of(object) != kind) unknown(object);
        return object;
    }
    const nb::object& operator[](std::size_t kind) const { return types_[kind]; }

private:
    [[noreturn]] static void unknown(PyObject* object);

    std::vector<nb::object> types_;
};

// Numbers of objects, by identity.
class Numbered {
public:
    // kNoWord: the object has no number.
    std::uint32_t find(const PyObject* object) const {
        for (std::size_t i = first(object);; i = (i + 1) & (slots_.size() - 1))
            if (slots_[i].first == object || !slots_[i].first) return slots_[i].second;
    }
    void add(const PyObject* object, std::uint32_t number);

private:
    void place(const PyObject* object, std::uint32_t number);
    std::size_t first(const PyObject* object) const { return NumberHash{}(reinterpret_cast<std::uintptr_t>(object)) & (slots_.size() - 1); }

    std::vector<std::pair<const PyObject*, std::uint32_t>> slots_{64, {nullptr, kNoWord}};
    std::size_t size_ = 0;
};

// The length and the items of a tuple. `count` raises TypeError for other objects.
Py_ssize_t count(PyObject* items);
inline PyObject* at(PyObject* items, Py_ssize_t i) { return PyTuple_GET_ITEM(items, i); }
inline std::uint32_t size(Py_ssize_t n) { return static_cast<std::uint32_t>(n); }

// Conversions to words. Of numbers that are too large, `word` raises OverflowError, `marks` throws TooLarge, and `bound` returns
// `most`, a number that no text reaches. `bound` of None is kNoWord.
std::uint32_t is(PyObject* flag);
bool is_text(PyObject* object, const char* text);
std::uint32_t word(PyObject* number);
std::uint32_t bound(PyObject* number, std::uint32_t most);
std::uint64_t marks(PyObject* number);
void put_text(WordList& words, PyObject* text);  // writes its length and its characters

// Writes a `Decimal`: sign, exponent, number of digits, digits.
void put_decimal(WordList& words, PyObject* decimal);

// Writes expressions with their numbers, parts first, with an explicit stack: they can be nested to any depth.
class ExpressionWriter {
public:
    explicit ExpressionWriter(const nb::tuple& classes);

    // The expressions of one program so far.
    struct Written {
        WordList words;
        std::uint32_t count = 0;
        Numbered numbers;  // by address: the grammar keeps the expressions alive
    };
    // The number of an expression in the program. Writes it with its parts if it has none yet.
    std::uint32_t number(PyObject* expression, Written& out) const;
    // From now on, writes this expression as one block of words.
    void share(nb::object expression);

private:
    struct Block {  // the words of an expression and its parts, as if it were first; `references`: positions of numbers of parts
        nb::object expression;
        WordList words;
        std::vector<std::uint32_t> references;
        std::uint32_t count;
    };
    enum Kind : std::size_t { chars, literals, cat, either, both, negate, repeat, spelled, graph, special, substrings };

    bool put_block(PyObject* expression, Written& out) const;
    bool put_quoted(PyObject* expression, Written& out) const;
    void parts_of(PyObject* expression, Kind kind, std::vector<PyObject*>& parts) const;
    void put(PyObject* expression, Kind kind, const std::vector<std::uint32_t>& parts, Written& out) const;
    void put_graph(PyObject* states, const std::vector<std::uint32_t>& parts, WordList& words) const;
    void put_substrings(PyObject* expression, WordList& words) const;
    void put_texts(PyObject* texts, WordList& words) const;
    std::uint32_t spelling_of(PyObject* expression) const;
    // The attribute `parts` or `part`.
    PyObject* inside(PyObject* expression, Kind kind) const { return parts_[kind - cat].of(expression); }

    Kinds kinds_;
    Field ranges_{kinds_[chars], "ranges"}, texts_{kinds_[literals], "texts"}, states_{kinds_[graph], "states"},
        name_{kinds_[special], "name"};
    Field source_{kinds_[substrings], "text"}, begins_{kinds_[substrings], "begins"}, finishes_{kinds_[substrings], "ends"};
    Field variants_{kinds_[substrings], "variants"}, empty_{kinds_[substrings], "empty"}, placeholder_{kinds_[substrings], "name"};
    Field minimum_{kinds_[repeat], "minimum"}, maximum_{kinds_[repeat], "maximum"}, spelling_{kinds_[spelled], "spelling"};
    std::vector<Field> parts_;  // by kind, from `cat` on
    std::unordered_map<PyObject*, Block> blocks_;
};

// Grammars as programs.
class ProgramWriter {
public:
    // Classes in the order of the numbers in program.h: `nodes` has nodes and then their parts.
    ProgramWriter(const nb::tuple& nodes, const nb::tuple& expressions);

    // Throws Error with the number of a node that cannot be written.
    nb::bytes write(const nb::list& nodes, std::uint32_t root, const nb::tuple& first) const;
    void share(nb::object expression) { expressions_.share(std::move(expression)); }

private:
    using Written = ExpressionWriter::Written;
    enum Kind : std::size_t { leaf, sequence, alternative, object, array, number, punctuation, property, marked, cell };

    void put(PyObject* node, WordList& words, Written& out) const;
    void put_punctuation(PyObject* marks, WordList& words) const;
    void put_entries(PyObject* entries, WordList& words, bool wide, Written& out) const;
    void put_value(PyObject* value, WordList& words, bool wide = false) const;
    void put_object(PyObject* node, WordList& words, Written& out) const;
    void put_array(PyObject* node, WordList& words) const;
    void put_number(PyObject* node, WordList& words) const;

    Kinds kinds_;
    ExpressionWriter expressions_;
    struct Fields {
        Field text, series, choices;
        Field braces, ordered, minimum, maximum, demands, least_marks, most_marks, properties, open;
        Field brackets, fewest, most, unique, counts, prefix, rest;
        Field spelling, cells;
        Field space, begin, comma, colon, end;
        Field key, value, required, missing, marks, node;
        Field low, high, open_low, open_high, multiple, not_multiple;
    } of_;
};

}  // namespace guideway
