// The structure of expressions: head, tail, first and last bytes, parts.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "guideway/regex/expr.h"

namespace guideway {

// The language of one text.
inline ExprId literal(ExprTable& exprs, std::string_view text) {
    ExprId made = kEmpty;
    for (auto b = text.rbegin(); b != text.rend(); ++b) made = exprs.concat(exprs.set(ByteSet::of({&*b, 1})), made);
    return made;
}

// The head and tail of a concatenation; for other expressions, e and kEmpty.
inline std::pair<ExprId, ExprId> head_and_tail(const ExprTable& exprs, ExprId e) {
    const Expr& x = exprs[e];
    return x.op == Op::concatenation ? std::pair{x.head(), x.tail()} : std::pair{e, kEmpty};
}

inline bool is_byte(const ExprTable& exprs, ExprId e, std::uint8_t byte) {
    return exprs[e].op == Op::set && exprs.bytes_of(exprs[e].byte_set()) == ByteSet::range(byte, byte);
}

// The tail of a concatenation whose head is a byte; else kNone.
inline ExprId after_byte(const ExprTable& exprs, std::uint8_t byte, ExprId e) {
    const auto [head, tail] = head_and_tail(exprs, e);
    return exprs[e].op == Op::concatenation && is_byte(exprs, head, byte) ? tail : kNone;
}

// The number of a label, or kNoLabel.
inline std::uint32_t label_of(const ExprTable& exprs, ExprId e) { return exprs[e].op == Op::label ? exprs[e].label() : kNoLabel; }

// The body of a repetition, or of one that is the head of a concatenation; the head of other concatenations; else kNone.
inline ExprId head_of(const ExprTable& exprs, ExprId e) {
    const ExprId head = head_and_tail(exprs, e).first;
    return exprs[head].op == Op::repetition ? exprs[head].body() : head != e ? head : kNone;
}

inline bool is_difference(const ExprTable& exprs, ExprId e) { return exprs[head_and_tail(exprs, e).first].op == Op::difference; }

// Whether it can be the end of texts (string_trie.h).
inline bool may_end_strings(const Expr& x) { return x.known_finite && !x.boolean && !x.bounded && !x.rowless; }

// Whether it is a set of bytes, a label, or both: an end that can be joined to a single text.
bool is_quote(const ExprTable& exprs, ExprId e);

// A copy of the parts of an alternation or intersection: constructing expressions invalidates the original.
inline std::vector<ExprId> parts_of(const ExprTable& exprs, ExprId e) {
    const std::span<const ExprId> parts = exprs.parts(exprs[e]);
    return {parts.begin(), parts.end()};
}

// Calls f(part) for each part of an alternation, or f(e) for another expression, until f returns true.
template <class F>
void each_part(const ExprTable& exprs, ExprId e, F&& f) {
    const Expr x = exprs[e];
    if (x.op != Op::alternation) f(e);
    else
        for (std::uint32_t i = 0; i < x.part_count() && !f(exprs.parts(x)[i]); ++i) {
        }
}

// The same, and for a concatenation whose head is a small alternation: each part with the tail, as a new expression.
template <class F>
void each_summand(ExprTable& exprs, ExprId e, F&& f) {
    constexpr std::uint32_t kMaxSummands = 8;
    const Expr x = exprs[e], head = exprs[x.op == Op::concatenation ? x.head() : e];
    if (x.op != Op::concatenation || head.op != Op::alternation || head.part_count() > kMaxSummands) return each_part(exprs, e, f);
    for (std::uint32_t i = 0; i < head.part_count() && !f(exprs.concat(exprs.parts(head)[i], x.tail())); ++i) {
    }
}

// Whether `summand` is a part of the alternation e, or e itself.
bool has_summand(ExprTable& exprs, ExprId e, ExprId summand);

// Whether all texts of e end in a byte, by a sufficient condition.
bool ends_in(const ExprTable& exprs, ExprId e, std::uint8_t byte);

// Whether a set of texts and its derivative have the same texts: none has ended, and none was excluded.
bool leads_as_far(ExprTable& exprs, ExprId e, ExprId next);

// The alternation of some keys, each before its label.
ExprId unite_labelled(ExprTable& exprs, const std::vector<std::pair<ExprId, std::uint32_t>>& keys);

// The expression without alternatives at its beginning that no shortest text needs. May keep some of them.
ExprId cheapest_alternatives(ExprTable& exprs, ExprId e);

// The first operand of a difference, with sets of bytes that may be before it; kNone for others.
ExprId minuend_of(ExprTable& exprs, ExprId e);

// One of nested differences: the excluded texts, the tail after the difference, and its first operand (kNone without a tail).
struct Layer {
    ExprId texts, tail, head;
};
// The innermost first operand; e itself, and no layers, if it is no difference.
ExprId split_layers(ExprTable& exprs, ExprId e, std::vector<Layer>& made);

}  // namespace guideway
