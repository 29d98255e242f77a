#include <algorithm>

#include "encode/writing.h"
#include "guideway/base/error.h"
#include "guideway/grammar/program.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxShared = 2048;

}  // namespace

ExpressionWriter::ExpressionWriter(const nb::tuple& classes) : kinds_(classes, substrings + 1) {
    for (const std::size_t kind : {cat, either, both, negate, repeat, spelled})
        parts_.emplace_back(kinds_[kind], kind < negate ? "parts" : "part");
}

std::uint32_t ExpressionWriter::spelling_of(PyObject* expression) const { return is_text(spelling_.of(expression), "json") ? 1 : 2; }

void ExpressionWriter::put_texts(PyObject* texts, WordList& words) const {
    const Py_ssize_t n = count(texts);
    words.push_back(size(n));
    for (Py_ssize_t i = 0; i < n; ++i) put_text(words, at(texts, i));
}

bool ExpressionWriter::put_block(PyObject* expression, Written& out) const {
    const auto found = blocks_.find(expression);
    if (found == blocks_.end()) return false;
    const Block& block = found->second;
    const std::size_t before = out.words.size();
    out.words.insert(out.words.end(), block.words.begin(), block.words.end());
    for (const std::uint32_t place : block.references) out.words[before + place] += out.count;
    out.count += block.count;
    out.numbers.add(expression, out.count - 1);
    return true;
}

// Writes the JSON strings of some texts, or of all others, as one expression, if `expression` is of this form, as most keys
// are.
bool ExpressionWriter::put_quoted(PyObject* expression, Written& out) const {
    PyObject* const parts = inside(expression, cat);
    if (count(parts) != 3) return false;
    PyObject *const before = at(parts, 0), *const text = at(parts, 1), *const after = at(parts, 2);
    if (kinds_.of(text) != spelled || kinds_.of(before) != literals || kinds_.of(after) != literals) return false;
    const auto is_quote = [&](PyObject* one) {
        PyObject* const texts = texts_.of(one);
        return count(texts) == 1 && is_text(at(texts, 0), "\"");
    };
    if (!is_quote(before) || (after != before && !is_quote(after))) return false;
    PyObject* part = inside(text, spelled);
    const bool others = kinds_.of(part) == negate;
    if (others) part = inside(part, negate);
    if (kinds_.of(part) != literals) return false;
    out.words.insert(out.words.end(), {11, spelling_of(text), others});
    put_texts(texts_.of(part), out.words);
    out.numbers.add(expression, out.count++);
    return true;
}

std::uint32_t ExpressionWriter::number(PyObject* expression, Written& out) const {
    if (const std::uint32_t known = out.numbers.find(expression); known != kNoWord) return known;
    if (put_block(expression, out) || (kinds_.of(expression) == cat && put_quoted(expression, out))) return out.count - 1;
    std::vector<PyObject*> stack{expression}, parts;
    std::vector<std::uint32_t> found;
    while (!stack.empty()) {
        PyObject* const top = stack.back();
        if (out.numbers.find(top) != kNoWord || put_block(top, out)) {
            stack.pop_back();
            continue;
        }
        const auto kind = static_cast<Kind>(kinds_.of(top));
        parts.clear();
        found.clear();
        parts_of(top, kind, parts);
        for (PyObject* part : parts)
            if (const std::uint32_t known = out.numbers.find(part); known != kNoWord) found.push_back(known);
        if (found.size() < parts.size()) {
            std::copy_if(parts.rbegin(), parts.rend(), std::back_inserter(stack),
                         [&](PyObject* part) { return out.numbers.find(part) == kNoWord; });
            continue;
        }
        stack.pop_back();
        put(top, kind, found, out);
        out.numbers.add(top, out.count++);
    }
    return out.numbers.find(expression);
}

void ExpressionWriter::parts_of(PyObject* expression, Kind kind, std::vector<PyObject*>& parts) const {
    if (kind == negate || kind == repeat || kind == spelled) parts.push_back(inside(expression, kind));
    else if (kind == cat || kind == either || kind == both) {
        PyObject* const all = inside(expression, kind);
        for (Py_ssize_t i = 0; i < count(all); ++i) parts.push_back(at(all, i));
    } else if (kind == graph) {
        PyObject* const states = states_.of(expression);
        for (Py_ssize_t i = 0; i < count(states); ++i) {
            PyObject* const steps = count(at(states, i)) == 2 ? at(at(states, i), 1) : Py_None;
            for (Py_ssize_t s = 0; s < count(steps); ++s) parts.push_back(count(at(steps, s)) == 2 ? at(at(steps, s), 0) : Py_None);
        }
    }
}

void ExpressionWriter::put(PyObject* expression, Kind kind, const std::vector<std::uint32_t>& parts, Written& out) const {
    WordList& words = out.words;
    words.push_back(size(static_cast<Py_ssize_t>(kind)));
    switch (kind) {
        case chars: {
            PyObject* const ranges = ranges_.of(expression);
            words.push_back(size(count(ranges)));
            for (Py_ssize_t i = 0; i < count(ranges); ++i)
                for (Py_ssize_t end = 0; end < 2 && count(at(ranges, i)) == 2; ++end) words.push_back(word(at(at(ranges, i), end)));
            break;
        }
        case literals: put_texts(texts_.of(expression), words); break;
        case repeat: words.insert(words.end(), {parts[0], word(minimum_.of(expression)), bound(maximum_.of(expression), kNoWord)}); break;
        case spelled: words.insert(words.end(), {parts[0], spelling_of(expression)}); break;
        case graph: put_graph(states_.of(expression), parts, words); break;
        case special: {
            PyObject* const name = name_.of(expression);
            if (PyUnicode_Check(name)) put_text(words, name);
            else {
                words.back() = 10;
                words.push_back(word(name));
            }
            break;
        }
        case substrings: put_substrings(expression, words); break;
        default:
            if (kind != negate) words.push_back(size(static_cast<Py_ssize_t>(parts.size())));
            words.insert(words.end(), parts.begin(), parts.end());
    }
}

// Programs have another number for this kind than `Kind`.
void ExpressionWriter::put_substrings(PyObject* expression, WordList& words) const {
    words.back() = 12;
    PyObject *const text = source_.of(expression), *const begins = begins_.of(expression), *const ends = finishes_.of(expression);
    if (!PyUnicode_Check(text) || !PyBytes_Check(begins) || !PyBytes_Check(ends))
        throw nb::type_error("substrings are of a str, with flags as bytes");
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (!is_text(placeholder_.of(expression), ""))
        throw Error(ErrorKind::invalid, "a verbatim string needs a source text: use extract, or .quoting(text) of the constraint");
    if (PyBytes_GET_SIZE(begins) != length || PyBytes_GET_SIZE(ends) != length + 1)
        throw nb::value_error("substrings need one flag for each character");
    words.push_back(is(empty_.of(expression)));
    words.push_back(size(length));
    const char *const first = PyBytes_AS_STRING(begins), *const last = PyBytes_AS_STRING(ends);
    for (Py_ssize_t i = 0; i < length; ++i)
        words.push_back(PyUnicode_READ_CHAR(text, i) << 2 | (first[i] ? kBegins : 0) | (last[i] ? kEnds : 0));
    words.push_back(last[length] ? 1 : 0);
    PyObject* const variants = variants_.of(expression);
    words.push_back(size(count(variants)));
    for (Py_ssize_t i = 0; i < count(variants); ++i)
        for (Py_ssize_t part = 0; part < 2; ++part) words.push_back(word(at(at(variants, i), part)));
}

void ExpressionWriter::put_graph(PyObject* states, const std::vector<std::uint32_t>& parts, WordList& words) const {
    auto part = parts.begin();
    words.push_back(size(count(states)));
    for (Py_ssize_t i = 0; i < count(states); ++i) {
        PyObject* const steps = at(at(states, i), 1);
        words.insert(words.end(), {is(at(at(states, i), 0)), size(count(steps))});
        for (Py_ssize_t s = 0; s < count(steps); ++s) words.insert(words.end(), {*part++, word(at(at(steps, s), 1))});
    }
}

void ExpressionWriter::share(nb::object expression) {
    if (blocks_.size() >= kMaxShared || blocks_.contains(expression.ptr())) return;
    Written first, second;
    number(expression.ptr(), first);
    second.count = 1;  // all numbers are greater by one: words that differ are references
    number(expression.ptr(), second);
    Block made{expression, std::move(first.words), {}, first.count};
    for (std::size_t i = 0; i < made.words.size(); ++i)
        if (made.words[i] != second.words[i]) made.references.push_back(static_cast<std::uint32_t>(i));
    blocks_.emplace(expression.ptr(), std::move(made));
}

}  // namespace guideway
