#include <algorithm>
#include <bit>

#include "bindings.h"
#include "encode/writing.h"
#include "guideway/base/error.h"
#include "guideway/grammar/program.h"

namespace guideway {

ProgramWriter::ProgramWriter(const nb::tuple& nodes, const nb::tuple& expressions)
    : kinds_(nodes, cell + 1), expressions_(expressions), of_{
                                                              .text = {kinds_[leaf], "text"},
                                                              .series = {kinds_[sequence], "parts"},
                                                              .choices = {kinds_[alternative], "parts"},
                                                              .braces = {kinds_[object], "punctuation"},
                                                              .ordered = {kinds_[object], "ordered"},
                                                              .minimum = {kinds_[object], "minimum"},
                                                              .maximum = {kinds_[object], "maximum"},
                                                              .demands = {kinds_[object], "demands"},
                                                              .least_marks = {kinds_[object], "least"},
                                                              .most_marks = {kinds_[object], "most"},
                                                              .properties = {kinds_[object], "properties"},
                                                              .open = {kinds_[object], "open"},
                                                              .brackets = {kinds_[array], "punctuation"},
                                                              .fewest = {kinds_[array], "minimum"},
                                                              .most = {kinds_[array], "maximum"},
                                                              .unique = {kinds_[array], "unique"},
                                                              .counts = {kinds_[array], "counts"},
                                                              .prefix = {kinds_[array], "prefix"},
                                                              .rest = {kinds_[array], "rest"},
                                                              .spelling = {kinds_[number], "spelling"},
                                                              .cells = {kinds_[number], "cells"},
                                                              .space = {kinds_[punctuation], "space"},
                                                              .begin = {kinds_[punctuation], "open"},
                                                              .comma = {kinds_[punctuation], "comma"},
                                                              .colon = {kinds_[punctuation], "colon"},
                                                              .end = {kinds_[punctuation], "close"},
                                                              .key = {kinds_[property], "key"},
                                                              .value = {kinds_[property], "value"},
                                                              .required = {kinds_[property], "required"},
                                                              .missing = {kinds_[property], "missing"},
                                                              .marks = {kinds_[marked], "marks"},
                                                              .node = {kinds_[marked], "node"},
                                                              .low = {kinds_[cell], "low"},
                                                              .high = {kinds_[cell], "high"},
                                                              .open_low = {kinds_[cell], "open_low"},
                                                              .open_high = {kinds_[cell], "open_high"},
                                                              .multiple = {kinds_[cell], "multiple_of"},
                                                              .not_multiple = {kinds_[cell], "not_multiple_of"},
                                                          } {}

void ProgramWriter::put_punctuation(PyObject* marks, WordList& words) const {
    kinds_.check(marks, punctuation);
    words.push_back(is(of_.space.of(marks)));
    for (const Field* field : {&of_.begin, &of_.comma, &of_.colon, &of_.end}) {
        Py_ssize_t length = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(field->of(marks), &length);
        if (!bytes) throw nb::python_error();
        words.push_back(size(length));
        for (Py_ssize_t i = 0; i < length; ++i) words.push_back(static_cast<std::uint8_t>(bytes[i]));
    }
}

namespace {

void put_marks(std::uint64_t marks, bool wide, WordList& words) {
    if (!wide && marks >> 32) throw TooLarge{kTooManyMarks};
    words.push_back(static_cast<std::uint32_t>(marks));
    if (wide) words.push_back(static_cast<std::uint32_t>(marks >> 32));
}

}  // namespace

void ProgramWriter::put_value(PyObject* value, WordList& words, bool wide) const {
    if (PyLong_Check(value)) {
        words.insert(words.end(), {1, 0});
        if (wide) words.push_back(0);
        words.push_back(word(value));
        return;
    }
    words.push_back(size(count(value)));
    for (Py_ssize_t i = 0; i < count(value); ++i) {
        PyObject* const way = kinds_.check(at(value, i), marked);
        put_marks(guideway::marks(of_.marks.of(way)), wide, words);
        words.push_back(word(of_.node.of(way)));
    }
}

void ProgramWriter::put_entries(PyObject* entries, WordList& words, bool wide, Written& out) const {
    words.push_back(size(count(entries)));
    for (Py_ssize_t i = 0; i < count(entries); ++i) {
        PyObject* const entry = kinds_.check(at(entries, i), property);
        const std::uint64_t missing = marks(of_.missing.of(entry));
        words.insert(words.end(), {expressions_.number(of_.key.of(entry), out), is(of_.required.of(entry)) | (missing ? 2u : 0)});
        if (missing) put_marks(missing, wide, words);
        put_value(of_.value.of(entry), words, wide);
    }
}

void ProgramWriter::put_object(PyObject* node, WordList& words, Written& out) const {
    put_punctuation(of_.braces.of(node), words);
    words.insert(words.end(), {is(of_.ordered.of(node)), bound(of_.minimum.of(node), kNoWord - 1), bound(of_.maximum.of(node), kNoWord)});
    const std::uint64_t demands = marks(of_.demands.of(node));
    const auto count = static_cast<std::uint32_t>(std::popcount(demands));
    PyObject *const least = of_.least_marks.of(node), *const most = of_.most_marks.of(node);
    const bool wide = demands >> 32;
    words.insert(words.end(),
                 {static_cast<std::uint32_t>(demands), (least == Py_None ? count : std::min(word(least), 64u)) | (wide ? kWideMarks : 0),
                  most == Py_None ? count : std::min(word(most), 64u)});
    if (wide) words.push_back(static_cast<std::uint32_t>(demands >> 32));
    put_entries(of_.properties.of(node), words, wide, out);
    put_entries(of_.open.of(node), words, wide, out);
}

void ProgramWriter::put_array(PyObject* node, WordList& words) const {
    put_punctuation(of_.brackets.of(node), words);
    words.insert(words.end(), {bound(of_.fewest.of(node), kNoWord - 1), bound(of_.most.of(node), kNoWord), is(of_.unique.of(node))});
    PyObject *const counts = of_.counts.of(node), *const prefix = of_.prefix.of(node), *const rest = of_.rest.of(node);
    if (count(counts) > 32) throw TooLarge{kTooManyMarks};
    words.push_back(size(count(counts)));
    for (Py_ssize_t i = 0; i < count(counts); ++i) {
        PyObject* const pair = at(counts, i);
        if (count(pair) != 2) throw nb::type_error("counts are pairs");
        words.insert(words.end(), {bound(at(pair, 0), kNoWord - 1), bound(at(pair, 1), kNoWord)});
    }
    words.push_back(size(count(prefix)));
    for (Py_ssize_t i = 0; i < count(prefix); ++i) put_value(at(prefix, i), words);
    if (rest == Py_None) words.push_back(0);
    else put_value(rest, words);
}

void ProgramWriter::put_number(PyObject* node, WordList& words) const {
    PyObject* const cells = of_.cells.of(node);
    PyObject* const spelling = of_.spelling.of(node);
    const std::uint32_t spelled = is_text(spelling, "plain") ? 1 : is_text(spelling, "pointed") ? 2 : 0;
    words.insert(words.end(), {spelled, size(count(cells))});
    for (Py_ssize_t i = 0; i < count(cells); ++i) {
        PyObject* const one = kinds_.check(at(cells, i), cell);
        PyObject *const low = of_.low.of(one), *const high = of_.high.of(one);
        words.push_back(std::uint32_t{low != Py_None} | std::uint32_t{high != Py_None} << 1 | is(of_.open_low.of(one)) << 2 |
                        is(of_.open_high.of(one)) << 3);
        for (PyObject* end : {low, high})
            if (end != Py_None) put_decimal(words, end);
        for (const Field* field : {&of_.multiple, &of_.not_multiple}) {
            PyObject* const divisors = field->of(one);
            words.push_back(size(count(divisors)));
            for (Py_ssize_t d = 0; d < count(divisors); ++d) put_decimal(words, at(divisors, d));
        }
    }
}

void ProgramWriter::put(PyObject* node, WordList& words, Written& out) const {
    const std::size_t kind = kinds_.of(node);
    words.push_back(static_cast<std::uint32_t>(kind));
    switch (kind) {
        case leaf: words.push_back(expressions_.number(of_.text.of(node), out)); break;
        case sequence:
        case alternative: {
            PyObject* const parts = (kind == sequence ? of_.series : of_.choices).of(node);
            words.push_back(size(count(parts)));
            for (Py_ssize_t i = 0; i < count(parts); ++i) words.push_back(word(at(parts, i)));
            break;
        }
        case object: put_object(node, words, out); break;
        case array: put_array(node, words); break;
        case number: put_number(node, words); break;
        default: throw nb::type_error("this is no node of a grammar");
    }
}

nb::bytes ProgramWriter::write(const nb::list& nodes, std::uint32_t root, const nb::tuple& first) const {
    Written out;
    for (Py_ssize_t i = 0; i < count(first.ptr()); ++i) expressions_.number(at(first.ptr(), i), out);
    WordList words;
    const nb::tuple all_nodes(nodes);  // a copy: the conversion of numbers to text runs Python code, which could change the list
    const Py_ssize_t n = count(all_nodes.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* const node = at(all_nodes.ptr(), i);
        try {
            if (node == Py_None) throw Error(ErrorKind::invalid, "a part was referred to but never given", i);
            put(node, words, out);
        } catch (const TooLarge& error) {
            throw Error(ErrorKind::limit, error.what, i);
        }
    }
    WordList all{kProgramMagic, kProgramVersion, out.count, size(n), root};
    all.reserve(all.size() + out.words.size() + words.size());
    all.insert(all.end(), out.words.begin(), out.words.end());
    all.insert(all.end(), words.begin(), words.end());
    if constexpr (std::endian::native == std::endian::big)
        for (std::uint32_t& word : all) word = swapped(word);
    return nb::bytes(reinterpret_cast<const char*>(all.data()), 4 * all.size());
}

}  // namespace guideway
