// What is found about an expression from its parts up: bytes, and simpler expressions that few texts tell from it.
#include <algorithm>

#include "guideway/regex/emptiness.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxCharacters = 64;  // of sets of texts that are looked through

// The bytes that may be in some spelling of a character, and perhaps more.
ByteSet bytes_of_spellings(char32_t c, Encoding spelling) {
    static const ByteSet numbered = ByteSet::of("\\u0123456789abcdefABCDEF"), shorts = ByteSet::of("\"\\/bfnrt");
    if (c >= 0x80) return ByteSet::range(0, 255);
    ByteSet made;
    made.insert(static_cast<std::uint8_t>(c));
    const bool any = spelling == Encoding::escaped_any, must = spelling != Encoding::text && must_escape(c);
    if (must || any) made |= numbered;
    if (must) made |= shorts;
    return made;
}

}  // namespace

// Calls make(e, its parts) from the parts up, by a list of what waits for its parts.
template <class Fixed, class Known, class Make>
void ExprPool::from_parts_up(ExprId e, Fixed&& fixed, Known&& known, Make&& make) {
    if (fixed(e) || known(e)) return;
    struct Waiting {
        ExprId expr;
        bool open;  // its parts was above it
    };
    std::vector<Waiting> todo{{e, false}};
    std::vector<ExprId> parts;
    while (!todo.empty()) {
        const auto [at, open] = todo.back();
        if (!open && known(at)) {  // it waited in two places
            todo.pop_back();
            continue;
        }
        const Expr x = exprs_[at];
        if (x.op == Op::alternation || x.op == Op::intersection) parts = parts_of(at);
        else if (x.op == Op::concatenation) parts = {x.a, x.b};
        else if (x.op == Op::strings) {
            parts.clear();
            strings_->each_end(x.a, [&](ExprId end) { parts.push_back(end); });
        } else parts = {x.a};
        if (!open) {
            todo.back().open = true;
            fuel_.spend(4 + 4 * parts.size());
            const std::size_t before = todo.size();
            for (ExprId p : parts)
                if (!fixed(p) && !known(p)) todo.push_back({p, false});
            if (todo.size() > before) continue;
        }
        todo.pop_back();
        make(at, parts);
    }
}

ExprPool::Unbounded ExprPool::unbounded(ExprId e) {
    const Expr x = exprs_[e];
    const ExprId head = x.op == Op::concatenation ? x.a : e;
    const Expr y = exprs_[head];
    if (y.op != Op::repetition || (y.b == 0 && y.c == kInfinite)) return {e, kInfinite};
    if (x.op == Op::concatenation) {  // where what follows begins like the part, it continues when the count has run out
        ByteSet both = first(x.b);
        both &= first(y.a);
        if (!both.empty()) return {e, kInfinite};
    }
    const ExprId more = repeat(y.a, 0, kInfinite);
    return {x.op == Op::concatenation ? concat(more, x.b) : more, y.c};
}

ExprId ExprPool::saturate_counters(ExprId e, std::uint32_t reach, bool name_units) {
    auto fixed = [&](ExprId p) { return !exprs_[p].bounded || exprs_[p].boolean; };
    if (fixed(e)) return e;
    auto key = [&](ExprId p) { return (std::uint64_t{reach} << 1 | name_units) << 32 | p; };
    auto known = [&](ExprId p) { return saturated_.find(key(p)) != nullptr; };
    from_parts_up(e, fixed, known, [&](ExprId at, std::vector<ExprId>& parts) {
        const Expr x = exprs_[at];
        for (ExprId& p : parts)
            if (!fixed(p)) p = *saturated_.find(key(p));
        ExprId made = kNone;
        if (x.op == Op::alternation) made = unite(std::move(parts));
        else if (x.op == Op::concatenation) made = concat(parts[0], parts[1]);
        else {
            // Each time takes a byte at least; of a part of more bytes, fewer times are in reach.
            const std::uint32_t times = reach / std::max(exprs_[x.a].shortest, 1u) + 2;
            made = x.c > times ? repeat(parts[0], std::min(x.b, times), kInfinite) : repeat(parts[0], x.b, x.c);
            // What has texts of one byte comes round within all that loops: that would have to be tried.
            const bool unit = name_units && x.c > times && x.c != kInfinite && exprs_[parts[0]].shortest > 1;
            if (unit && !loop_bodies_.find(parts[0])) loop_bodies_.add(parts[0], loop_bodies() + 1);
        }
        saturated_.add(key(at), made);
    });
    return *saturated_.find(key(e));
}

ByteSet ExprPool::alphabet(ExprId e) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (x.op == Op::strings) return strings_->characters(x.a) > kMaxCharacters;
        return x.op != Op::concatenation && x.op != Op::alternation && x.op != Op::intersection && x.op != Op::difference &&
               x.op != Op::repetition;
    };
    auto of = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (!fixed(p)) return sets_[found_[p].alphabet - 1];
        if (x.op == Op::set) return sets_[x.a];
        return x.op == Op::none || x.op == Op::empty || x.op == Op::label ? ByteSet{} : ByteSet::range(0, 255);
    };
    from_parts_up(
        e, fixed, [&](ExprId p) { return found_[p].alphabet != 0; },
        [&](ExprId at, const std::vector<ExprId>& parts) {
            const Expr x = exprs_[at];
            ByteSet made = of(parts[0]);
            for (std::size_t i = 1; i < parts.size(); ++i)
                if (x.op == Op::intersection) made &= of(parts[i]);
                else made |= of(parts[i]);
            if (x.op == Op::strings)
                strings_->each_character_below(x.a, [&](char32_t c) { made |= bytes_of_spellings(c, strings_->spelling(x.a)); });
            found_[at].alphabet = 1 + set_id(made);
        });
    return of(e);
}

// A sum needs what all its parts do; but those that begin with an escape have a shorter spelling among the others, unless
// one of its characters can only be escaped.
ByteSet ExprPool::needed(ExprId e) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (!x.encoding_closed) return true;
        if (x.op == Op::strings) return strings_->count(x.a) != 1 || strings_->characters(x.a) > kMaxCharacters;
        if (x.op == Op::concatenation) return !exprs_[x.a].encoding_closed || !exprs_[x.b].encoding_closed;  // inside an escape
        return x.op != Op::alternation && x.op != Op::intersection && x.op != Op::difference && (x.op != Op::repetition || x.nullable);
    };
    auto of = [&](ExprId p) {
        if (const std::uint32_t* known = needed_.find(p)) return sets_[*known];
        return exprs_[p].op == Op::set && sets_[exprs_[p].a].size() == 1 ? sets_[exprs_[p].a] : ByteSet{};
    };
    auto escaped = [&](ExprId p) { return is_byte(p, '\\') || after_byte('\\', p) != kNone; };
    from_parts_up(
        e, fixed, [&](ExprId p) { return needed_.find(p) != nullptr; },
        [&](ExprId at, const std::vector<ExprId>& parts) {
            const Expr x = exprs_[at];
            ByteSet made;
            if (x.op == Op::alternation) {
                const bool shorter = std::any_of(parts.begin(), parts.end(), escaped) && !liveness_->has_escapes(at);
                made = ByteSet::range(0, 255);
                for (const ExprId p : parts)
                    if (!shorter || !escaped(p)) made &= of(p);
            } else {
                for (const ExprId p : parts) made |= of(p);
            }
            if (x.op == Op::strings)
                for (const char32_t c : strings_->only_text(x.a).characters)
                    if (c < 0x80 && !must_escape(c)) made.insert(static_cast<std::uint8_t>(c));
            needed_.add(at, set_id(made));
        });
    return of(e);
}

// A text of n bytes comes round n times at most, so bounds beyond are met whatever it is. Where nothing is Boolean,
// everything can be completed, and fewer times at least let only texts of kNear bytes or more continue too early. Else a
// completion in the wider expression must fit too: whatever it comes round, and however long the texts excluded are.
ExprPool::Superset ExprPool::relax(ExprId e, Bounds which, const std::vector<Superset>& parts) {
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
        case Op::alternation: made.expr = unite(std::move(exprs)); return made;
        case Op::intersection: made.expr = intersect(std::move(exprs)); return made;
        case Op::concatenation: made.expr = concat(exprs[0], exprs[1]); return made;
        case Op::difference: made.expr = subtract(exprs[0], x.b); return made;
        case Op::complement: made = {complement(kNone), exprs_[x.a].shortest - 1, kInfinite}; return made;
        default: break;
    }
    if (which == Bounds::of_units) {  // with a round that must come yet it is another expression than what was clipped
        const std::uint32_t* const unit = x.b == 0 && x.c != kInfinite ? loop_bodies_.find(exprs[0]) : nullptr;
        if (unit) {
            made.exact_up_to = std::min(made.exact_up_to, x.c);
            made.loop_body = std::max(made.loop_body, *unit);
        }
        made.expr = repeat(exprs[0], x.b, unit ? kInfinite : x.c);
        return made;
    }
    const bool far = x.c != kInfinite && x.c > kNear;
    const std::uint32_t least = which == Bounds::far_inside || (x.c != kInfinite && !far) ? x.b : std::min(x.b, kNear);
    if (far) made.exact_up_to = std::min(made.exact_up_to, x.c);
    if (least < x.b) made.early = kNear - 1;
    made.expr = repeat(exprs[0], least, far ? kInfinite : x.c);
    return made;
}

ExprPool::Superset ExprPool::superset(ExprId e, Bounds which) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        return x.labelled || (which == Bounds::of_units ? !x.counted || x.boolean : !x.bounded);
    };
    if (fixed(e)) return {e};
    auto key = [&](ExprId p) { return std::uint64_t{static_cast<std::uint8_t>(which)} << 32 | p; };
    auto known = [&](ExprId p) { return supersets_.find(key(p)) != nullptr; };
    from_parts_up(
        e, [&](ExprId p) { return fixed(p) || exprs_[p].op == Op::complement; }, known,
        [&](ExprId at, std::vector<ExprId>& parts) {
            std::vector<Superset> made;
            for (ExprId p : parts)
                made.push_back(fixed(p) ? Superset{p} : exprs_[p].op == Op::complement ? relax(p, which, {}) : *supersets_.find(key(p)));
            const Superset one = relax(at, which, made);
            supersets_.add(key(at), one);
        });
    return exprs_[e].op == Op::complement ? Superset{e} : *supersets_.find(key(e));
}

ExprPool::Superset ExprPool::superset(ExprId e) { return superset(e, exprs_[e].boolean ? Bounds::far_inside : Bounds::far); }
ExprPool::Superset ExprPool::without_loop_bounds(ExprId e) { return superset(e, Bounds::of_units); }

ByteSet ExprPool::iterations_begin(ExprId e) {
    constexpr std::size_t kMostHeads = 64;
    ByteSet made;
    std::vector<ExprId> heads{e};  // none twice
    auto add = [&](ExprId head) {
        if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(head);
    };
    for (std::size_t i = 0; i < heads.size(); ++i) {
        const Expr x = exprs_[heads[i]];
        if (heads.size() + (x.op == Op::alternation ? x.b : 0) > kMostHeads) return ByteSet::range(0, 255);
        if (x.op == Op::alternation)
            for (std::uint32_t k = 0; k < x.b; ++k) add(args_[x.a + k]);
        if (x.op != Op::concatenation && x.op != Op::repetition) continue;
        add(x.a);
        if (x.op == Op::concatenation && exprs_[x.a].nullable) add(x.b);
        if (x.op == Op::repetition && loop_bodies_.find(x.a)) made |= first(x.a);
    }
    return made;
}

}  // namespace guideway
