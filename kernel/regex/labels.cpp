// Labels of an expression (labels.h).
#include "guideway/regex/labels.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

constexpr std::uint64_t kStateWork = 20;

}  // namespace

const std::vector<LabelDistance>& Labels::reachable(ExprId e) {
    auto memo = known_.find(e);
    if (memo != known_.end()) return memo->second;
    std::vector<LabelDistance> found;
    struct Task {
        ExprId expr;
        std::uint32_t distance;
        bool further;
    };
    std::vector<Task> work{{e, 0, false}};
    while (!work.empty()) {
        const Task at = work.back();
        work.pop_back();
        exprs_.fuel().spend(kStateWork);
        const Expr expr = exprs_[at.expr];
        if (expr.op == Op::label) found.push_back({expr.label(), at.distance, at.further});
        else if (expr.op == Op::alternation) {
            for (ExprId p : exprs_.parts(expr)) work.push_back({p, at.distance, at.further});
        } else if (expr.op == Op::strings && expr.labelled) {
            std::vector<std::pair<StringNode, std::uint32_t>> nodes;  // nodes below this one, and their distances
            auto take_end = [&](StringNode node, std::uint32_t distance, bool further) {
                if (exprs_.strings().end(node) != kNone) work.push_back({exprs_.strings().end(node), distance, further});
            };
            auto add_children = [&](StringNode node, DecoderState part, std::uint32_t distance) {
                const Encoding spelling = exprs_.strings().spelling(node);
                exprs_.strings().each_child(
                    node, part, [&](char32_t c, StringNode child) { nodes.emplace_back(child, distance + bytes_left(spelling, part, c)); });
            };
            if (expr.part() == kBetween) take_end(expr.string_node(), at.distance, at.further);
            add_children(expr.string_node(), expr.part(), at.distance);
            while (!nodes.empty()) {
                const auto [node, distance] = nodes.back();
                nodes.pop_back();
                exprs_.fuel().spend(kStateWork);
                take_end(node, distance, true);
                add_children(node, kBetween, distance);
            }
        } else if (expr.op == Op::concatenation && expr.labelled) {
            const std::uint32_t head = emptiness_.shortest(expr.head());
            if (head != kInfinite) work.push_back({expr.tail(), at.distance + head, at.further || emptiness_.has_more(expr.head())});
        }
    }
    std::sort(found.begin(), found.end(), [](const LabelDistance& x, const LabelDistance& y) {
        return x.label != y.label ? x.label < y.label : x.distance < y.distance;
    });
    std::size_t kept = 0;
    for (const LabelDistance& next : found) {
        if (kept && found[kept - 1].label == next.label) found[kept - 1].further |= next.further;
        else found[kept++] = next;
    }
    found.resize(kept);
    exprs_.grew(64 + found.capacity() * sizeof(LabelDistance));
    return known_.emplace(e, std::move(found)).first->second;
}

ExprId Labels::tail_of_string(ExprId e) const {
    const Expr& x = exprs_[e];
    return x.op == Op::strings && x.part() == kBetween ? exprs_.strings().end(x.string_node()) : kNone;
}

std::uint32_t last_label(ExprTable& exprs, ExprId e, bool further, Emptiness* emptiness) {
    const auto has_more = [&](ExprId head) { return exprs[head].boolean && emptiness ? emptiness->has_more(head) : head > kEmpty; };
    const auto of_words = [&](const Expr& x, bool wanted) {
        return wanted || x.part() != kBetween ? exprs.strings().last_label_below(x.string_node(), x.part())
                                              : exprs.strings().last_label(x.string_node());
    };
    std::uint32_t made = kNoLabel;
    bool wanted = further;
    std::vector<std::pair<ExprId, bool>> others;  // parts of alternations that are still to be examined; empty without alternations
    while (true) {
        for (; exprs[e].labelled && exprs[e].op == Op::concatenation; e = exprs[e].tail()) wanted = wanted && !has_more(exprs[e].head());
        const Expr x = exprs[e];
        std::uint32_t found = kNoLabel;
        if (x.labelled) {
            if (x.op == Op::label && !wanted) found = x.label();
            else if (x.op == Op::strings) found = of_words(x, wanted);
            else if (x.op == Op::alternation)
                for (ExprId p : exprs.parts(x)) others.emplace_back(p, wanted);
        }
        if (found != kNoLabel) made = made == kNoLabel ? found : std::max(made, found);
        if (others.empty()) return made;
        std::tie(e, wanted) = others.back();
        others.pop_back();
    }
}

}  // namespace guideway
