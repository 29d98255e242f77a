// What an expression looks like: how it begins and ends, and its parts.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "guideway/regex/expr.h"

namespace guideway {

// The head of a product and what follows it; of other expressions, all and nothing.
inline std::pair<ExprId, ExprId> head_and_tail(const ExprTable& exprs, ExprId e) {
    const Expr& x = exprs[e];
    return x.op == Op::concatenation ? std::pair{ExprId{x.a}, ExprId{x.b}} : std::pair{e, kEmpty};
}

inline bool is_byte(const ExprTable& exprs, ExprId e, std::uint8_t byte) {
    return exprs[e].op == Op::set && exprs.bytes_of(exprs[e].a) == ByteSet::range(byte, byte);
}

// What follows a byte that all texts begin with, if it is written so; else kNone.
inline ExprId after_byte(const ExprTable& exprs, std::uint8_t byte, ExprId e) {
    const auto [head, tail] = head_and_tail(exprs, e);
    return exprs[e].op == Op::concatenation && is_byte(exprs, head, byte) ? tail : kNone;
}

// The number of a label, or kNoLabel.
inline std::uint32_t label_of(const ExprTable& exprs, ExprId e) { return exprs[e].op == Op::label ? exprs[e].a : kNoLabel; }

// What a product begins with; of a repetition, also at the beginning of a product, what is repeated; none of others.
inline ExprId head_of(const ExprTable& exprs, ExprId e) {
    const ExprId head = head_and_tail(exprs, e).first;
    return exprs[head].op == Op::repetition ? ExprId{exprs[head].a} : head != e ? head : kNone;
}

inline bool is_difference(const ExprTable& exprs, ExprId e) { return exprs[head_and_tail(exprs, e).first].op == Op::difference; }

// Whether it can be the end of texts (string_trie.h).
inline bool may_end_strings(const Expr& x) { return x.known_finite && !x.boolean && !x.bounded && !x.rowless; }

// Whether it is a set of bytes, a label, or both: what may come after a single text.
bool is_quote(const ExprTable& exprs, ExprId e);

// A copy of the parts of an alternation or intersection: making expressions moves them.
inline std::vector<ExprId> parts_of(const ExprTable& exprs, ExprId e) {
    const std::span<const ExprId> parts = exprs.parts(exprs[e]);
    return {parts.begin(), parts.end()};
}

// Calls f(part) for each part of a sum, f(e) where e is none, until f returns true.
template <class F>
void each_part(const ExprTable& exprs, ExprId e, F&& f) {
    const Expr x = exprs[e];
    if (x.op != Op::alternation) f(e);
    else
        for (std::uint32_t i = 0; i < x.b && !f(exprs.parts(x)[i]); ++i) {
        }
}

// The same of a product, too, that begins with a sum of few: each part with what follows the sum, which it makes.
template <class F>
void each_summand(ExprTable& exprs, ExprId e, F&& f) {
    constexpr std::uint32_t kMaxSummands = 8;
    const Expr x = exprs[e], head = exprs[x.op == Op::concatenation ? x.a : e];
    if (x.op != Op::concatenation || head.op != Op::alternation || head.b > kMaxSummands) return each_part(exprs, e, f);
    for (std::uint32_t i = 0; i < head.b && !f(exprs.concat(exprs.parts(head)[i], x.b)); ++i) {
    }
}

// Whether `summand` is a summand of e, or e itself.
bool has_summand(ExprTable& exprs, ExprId e, ExprId summand);

// Whether all texts of e end in a byte, as far as can be seen.
bool ends_in(const ExprTable& exprs, ExprId e, std::uint8_t byte);

// Whether a set of texts and what is left of it after a character hold the same ones: none has ended, none is left out.
bool leads_as_far(ExprTable& exprs, ExprId e, ExprId next);

// Any of some keys, each before its label.
ExprId unite_labelled(ExprTable& exprs, const std::vector<std::pair<ExprId, std::uint32_t>>& keys);

// The expression without alternatives at its beginning that no shortest text needs. May keep some of them.
ExprId cheapest_alternatives(ExprTable& exprs, ExprId e);

// What a difference, perhaps after sets of bytes, is taken from; none of others.
ExprId taken_from(ExprTable& exprs, ExprId e);

// Of nested differences, each perhaps before a tail: the texts taken away, what follows them, and (before a tail) what
// they are taken from.
struct Layer {
    ExprId texts, tail, head;
};
// What all of them are taken from; e itself, and no layers, where it is no difference.
ExprId split_layers(ExprTable& exprs, ExprId e, std::vector<Layer>& made);

}  // namespace guideway
