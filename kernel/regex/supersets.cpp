// Supersets and saturated counters, computed from the parts of expressions (supersets.h).
#include "guideway/regex/supersets.h"

#include <algorithm>
#include <utility>

#include "guideway/regex/parts_up.h"

namespace guideway {

Supersets::Unbounded Supersets::unbounded(ExprId e) {
    const Expr x = exprs_[e];
    const ExprId head = x.op == Op::concatenation ? x.head() : e;
    const Expr y = exprs_[head];
    if (y.op != Op::repetition || (y.minimum() == 0 && y.maximum() == kInfinite)) return {e, kInfinite};
    if (x.op == Op::concatenation) {  // if the tail can begin like an iteration, the text may continue after the last iteration
        ByteSet both = dfa_.first(x.tail());
        both &= dfa_.first(y.body());
        if (!both.empty()) return {e, kInfinite};
    }
    const ExprId more = exprs_.repeat(y.body(), 0, kInfinite);
    return {x.op == Op::concatenation ? exprs_.concat(more, x.tail()) : more, y.maximum()};
}

ExprId Supersets::saturate_counters(ExprId e, std::uint32_t reach, bool name_bodies) {
    auto fixed = [&](ExprId p) { return !exprs_[p].bounded || exprs_[p].boolean; };
    if (fixed(e)) return e;
    auto key = [&](ExprId p) { return (std::uint64_t{reach} << 1 | name_bodies) << 32 | raw(p); };
    auto known = [&](ExprId p) { return saturated_.find(key(p)) != nullptr; };
    from_parts_up(exprs_, e, fixed, known, [&](ExprId at, std::vector<ExprId>& parts) {
        const Expr x = exprs_[at];
        for (ExprId& p : parts)
            if (!fixed(p)) p = *saturated_.find(key(p));
        ExprId made = kNone;
        if (x.op == Op::alternation) made = exprs_.unite(std::move(parts));
        else if (x.op == Op::concatenation) made = exprs_.concat(parts[0], parts[1]);
        else {
            // Each iteration has at least one byte. If its shortest text is longer, fewer iterations are in reach.
            const std::uint32_t times = reach / std::max(exprs_[x.body()].shortest, 1u) + 2;
            made = x.maximum() > times ? exprs_.repeat(parts[0], std::min(x.minimum(), times), kInfinite)
                                       : exprs_.repeat(parts[0], x.minimum(), x.maximum());
            // A body with texts of one byte can be repeated inside any other loop, and each of these cases would have to be tried.
            const bool body = name_bodies && x.maximum() > times && x.maximum() != kInfinite && exprs_[parts[0]].shortest > 1;
            if (body && !exprs_.loop_bodies().find(parts[0])) exprs_.loop_bodies().add(parts[0], loop_bodies() + 1);
        }
        saturated_.add(key(at), made);
    });
    return *saturated_.find(key(e));
}

// A text of n bytes has at most n iterations, so it cannot reach larger upper bounds. If the expression is not boolean, every text
// read so far can be completed, and with a smaller lower bound only texts of kNear bytes or more can leave the repetition too
// early. If it is boolean, a completion in the superset must also be in reach of the bounds and of the excluded texts.
Superset Supersets::relax(ExprId e, Bounds which, const std::vector<Superset>& parts) {
    const Expr x = exprs_[e];
    Superset made{e};
    std::vector<ExprId> exprs;
    for (const Superset& p : parts) {
        made.exact_up_to = std::min(made.exact_up_to, p.exact_up_to);
        made.early = std::min(made.early, p.early);
        made.loop_body = std::max(made.loop_body, p.loop_body);
        exprs.push_back(p.expr);
    }
    switch (x.op) {
        case Op::alternation: made.expr = exprs_.unite(std::move(exprs)); return made;
        case Op::intersection: made.expr = exprs_.intersect(std::move(exprs)); return made;
        case Op::concatenation: made.expr = exprs_.concat(exprs[0], exprs[1]); return made;
        case Op::difference: made.expr = exprs_.subtract(exprs[0], x.excluded()); return made;
        case Op::complement: made = {exprs_.complement(kNone), exprs_[x.operand()].shortest - 1, kInfinite}; return made;
        default: break;
    }
    if (which == Bounds::of_bodies) {  // with required iterations it differs from the expression whose bounds were removed
        const std::uint32_t* const body = x.minimum() == 0 && x.maximum() != kInfinite ? exprs_.loop_bodies().find(exprs[0]) : nullptr;
        if (body) {
            made.exact_up_to = std::min(made.exact_up_to, x.maximum());
            made.loop_body = std::max(made.loop_body, *body);
        }
        made.expr = exprs_.repeat(exprs[0], x.minimum(), body ? kInfinite : x.maximum());
        return made;
    }
    const bool far = x.maximum() != kInfinite && x.maximum() > kNear;
    const std::uint32_t least =
        which == Bounds::far_inside || (x.maximum() != kInfinite && !far) ? x.minimum() : std::min(x.minimum(), kNear);
    if (far) made.exact_up_to = std::min(made.exact_up_to, x.maximum());
    if (least < x.minimum()) made.early = kNear - 1;
    made.expr = exprs_.repeat(exprs[0], least, far ? kInfinite : x.maximum());
    return made;
}

Superset Supersets::find(ExprId e, Bounds which) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        return x.labelled || (which == Bounds::of_bodies ? !x.counted || x.boolean : !x.bounded);
    };
    if (fixed(e)) return {e};
    auto key = [&](ExprId p) { return std::uint64_t{static_cast<std::uint8_t>(which)} << 32 | raw(p); };
    auto known = [&](ExprId p) { return known_.find(key(p)) != nullptr; };
    from_parts_up(
        exprs_, e, [&](ExprId p) { return fixed(p) || exprs_[p].op == Op::complement; }, known,
        [&](ExprId at, std::vector<ExprId>& parts) {
            std::vector<Superset> made;
            for (ExprId p : parts)
                made.push_back(fixed(p) ? Superset{p} : exprs_[p].op == Op::complement ? relax(p, which, {}) : *known_.find(key(p)));
            const Superset one = relax(at, which, made);
            known_.add(key(at), one);
        });
    return exprs_[e].op == Op::complement ? Superset{e} : *known_.find(key(e));
}

Superset Supersets::superset(ExprId e) { return find(e, exprs_[e].boolean ? Bounds::far_inside : Bounds::far); }
Superset Supersets::without_loop_bounds(ExprId e) { return find(e, Bounds::of_bodies); }

ByteSet Supersets::iterations_begin(ExprId e) {
    constexpr std::size_t kMostHeads = 64;
    ByteSet made;
    std::vector<ExprId> heads{e};  // without duplicates
    auto add = [&](ExprId head) {
        if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(head);
    };
    for (std::size_t i = 0; i < heads.size(); ++i) {
        const Expr x = exprs_[heads[i]];
        if (heads.size() + (x.op == Op::alternation ? x.part_count() : 0) > kMostHeads) return ByteSet::range(0, 255);
        if (x.op == Op::alternation)
            for (std::uint32_t k = 0; k < x.part_count(); ++k) add(exprs_.parts(x)[k]);
        if (x.op != Op::concatenation && x.op != Op::repetition) continue;
        add(x.operand());
        if (x.op == Op::concatenation && exprs_[x.head()].nullable) add(x.tail());
        if (x.op == Op::repetition && exprs_.loop_bodies().find(x.body())) made |= dfa_.first(x.body());
    }
    return made;
}

}  // namespace guideway
