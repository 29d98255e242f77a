// The structure of expressions (structure.h).
#include "guideway/regex/structure.h"

#include <algorithm>
#include <map>

#include "guideway/regex/string_trie.h"

namespace guideway {

bool is_quote(const ExprTable& exprs, ExprId e) {
    const Expr& x = exprs[e];
    return x.op == Op::set || x.op == Op::label ||
           (x.op == Op::concatenation && exprs[x.head()].op == Op::set && exprs[x.tail()].op == Op::label);
}

bool has_summand(ExprTable& exprs, ExprId e, ExprId summand) {
    if (e == summand) return true;
    const Expr x = exprs[e];
    if (x.op == Op::alternation) {
        const std::span<const ExprId> parts = exprs.parts(x);
        return std::binary_search(parts.begin(), parts.end(), summand);
    }
    bool found = false;
    each_summand(exprs, e, [&](ExprId one) { return found = one == summand; });
    return found;
}

bool ends_in(const ExprTable& exprs, ExprId e, std::uint8_t byte) {
    constexpr int kSteps = 256;  // a limit, since a concatenation of thousands of parts is examined in each of its states
    bool all = true;
    each_part(exprs, e, [&](ExprId last) {
        Expr x = exprs[last];
        for (int step = 0; step < kSteps && (x.op == Op::concatenation || x.op == Op::difference || x.op == Op::intersection);
             ++step, x = exprs[last])
            last = x.op == Op::concatenation ? x.tail()
                   : x.op == Op::difference  ? x.minuend()
                                             : exprs.parts(x)[0];  // one part of an intersection is enough
        all = exprs[last].op == Op::set && exprs.bytes_of(exprs[last].byte_set()) == ByteSet::range(byte, byte);
        return !all;
    });
    return all;
}

bool leads_as_far(ExprTable& exprs, ExprId e, ExprId next) {
    if (exprs[e].op != Op::strings || exprs[next].op != Op::strings) return false;
    const Expr &from = exprs[e], &to = exprs[next];
    const auto leaves_none = [&](const Expr& x) {  // whether the partly read character excludes no text
        return x.part() == kBetween || (exprs.strings().children(x.string_node()) == 1 && exprs.strings().end(x.string_node()) == kNone);
    };
    const std::uint32_t count = exprs.strings().count(from.string_node());
    return count < kInfinite - 1 && count == exprs.strings().count(to.string_node()) && leaves_none(from) && leaves_none(to) &&
           (to.part() != kBetween || exprs.strings().end(to.string_node()) == kNone);
}

// Keys that have one text, as most have, are united to one set of texts.
ExprId unite_labelled(ExprTable& exprs, const std::vector<std::pair<ExprId, std::uint32_t>>& keys) {
    std::map<std::pair<ExprId, Encoding>, std::vector<StringTrie::Entry>> texts;  // by the opening quote and the spelling
    std::vector<ExprId> made;
    for (const auto& [key, number] : keys) {
        const Expr x = exprs[key];
        const bool quoted = x.op == Op::concatenation && exprs[x.head()].op == Op::set;
        const Expr y = quoted ? exprs[x.tail()] : x;
        if (y.op != Op::strings || y.part() != kBetween || exprs.strings().count(y.string_node()) != 1) {
            made.push_back(exprs.concat(key, exprs.label(number)));
            continue;
        }
        StringTrie::Entry text = exprs.strings().only_text(y.string_node());
        text.end = exprs.concat(text.end, exprs.label(number));
        texts[{quoted ? x.head() : kEmpty, exprs.strings().spelling(y.string_node())}].push_back(std::move(text));
    }
    for (auto& [kind, all] : texts)
        made.push_back(exprs.concat(kind.first, exprs.string_state(exprs.strings().make(std::move(all), kind.second))));
    return exprs.unite(std::move(made));
}

ExprId minuend_of(ExprTable& exprs, ExprId e) {
    std::vector<ExprId> heads;  // sets before a difference: the quote that opens a key
    bool found = false;
    for (Expr x = exprs[e];; x = exprs[e]) {
        const bool product = x.op == Op::concatenation, difference = product && exprs[x.head()].op == Op::difference;
        if (x.op == Op::difference) e = x.minuend();
        else if (difference) e = exprs.concat(exprs[x.head()].minuend(), x.tail());
        else if (product && exprs[x.head()].op == Op::set) {
            heads.push_back(x.head());
            e = x.tail();
        } else break;
        found |= x.op == Op::difference || difference;
    }
    if (!found) return kNone;
    for (; !heads.empty(); heads.pop_back()) e = exprs.concat(heads.back(), e);
    return e;
}

ExprId split_layers(ExprTable& exprs, ExprId e, std::vector<Layer>& made) {
    made.clear();
    while (true) {
        const Expr x = exprs[e];
        if (x.op == Op::difference) {
            made.push_back({x.excluded(), kEmpty, kNone});
            e = x.minuend();
        } else if (x.op == Op::concatenation && exprs[x.head()].op == Op::difference) {
            const Expr head = exprs[x.head()];
            made.push_back({head.excluded(), x.tail(), head.minuend()});
            e = exprs.concat(head.minuend(), x.tail());
        } else return e;
    }
}

// An ambiguous counter can have thousands of alternatives. A shortest text needs only one of them.
ExprId cheapest_alternatives(ExprTable& exprs, ExprId e) {
    while (!exprs[e].boolean) {
        const Expr whole = exprs[e], x = whole.op == Op::concatenation ? exprs[whole.head()] : whole;
        if (x.op != Op::alternation) break;
        std::vector<ExprId> kept;
        for (std::uint32_t i = 0; i < x.part_count(); ++i)
            if (exprs[exprs.parts(x)[i]].shortest == x.shortest) kept.push_back(exprs.parts(x)[i]);
        if (kept.size() == x.part_count()) break;
        const ExprId made = exprs.unite(std::move(kept));
        e = whole.op == Op::concatenation ? exprs.concat(made, whole.tail()) : made;
    }
    return e;
}

}  // namespace guideway
