// The labels of an expression: the keys of an object that can still be reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "guideway/regex/emptiness.h"
#include "guideway/regex/structure.h"

namespace guideway {

struct LabelDistance {
    std::uint32_t label;
    std::uint32_t distance;  // length of the shortest text that leads to it
    bool further;            // a text that is not empty leads to it
};

// The greatest label that can still be reached, kNoLabel if there is none; `further`: by a text that is not empty.
// `emptiness`: may be null if no head of a concatenation is boolean, as in the ends of string tries.
std::uint32_t last_label(ExprTable& exprs, ExprId e, bool further, Emptiness* emptiness);

class Labels {
public:
    Labels(ExprTable& exprs, Emptiness& emptiness) : exprs_(exprs), emptiness_(emptiness) {}

    // Labels that can still be reached, in rising order.
    const std::vector<LabelDistance>& reachable(ExprId e);
    std::uint32_t last(ExprId e, bool further) { return last_label(exprs_, e, further, &emptiness_); }
    // Calls f(label) for each label that e matches with the empty text.
    template <class F>
    void each_accepted(ExprId e, F&& f) {
        if (!exprs_[e].nullable) return;
        const auto own = [&](ExprId p) {
            const Expr x = exprs_[p];
            if (x.op == Op::label) f(x.label());
            else if (x.op == Op::concatenation && x.labelled)  // a key that can end here or continue
                for (const LabelDistance& reach : reachable(p))
                    if (reach.distance == 0) f(reach.label);
            return false;
        };
        each_part(exprs_, e, [&](ExprId p) {
            own(p);
            if (const ExprId end = tail_of_string(p); end != kNone) each_part(exprs_, end, own);  // a key without quotes
            return false;
        });
    }

private:
    // The end of the text at the node of a string trie; kNone if no text ends there, or e is no such node.
    ExprId tail_of_string(ExprId e) const;

    ExprTable& exprs_;
    Emptiness& emptiness_;
    std::unordered_map<ExprId, std::vector<LabelDistance>> known_;
};

}  // namespace guideway
