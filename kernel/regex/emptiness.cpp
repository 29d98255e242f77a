// Computes shortest lengths from the parts of expressions (emptiness.h).
#include "guideway/regex/emptiness.h"

#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/regex/external_language.h"
#include "guideway/regex/lazy_dfa.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/structure.h"

namespace guideway {

namespace {

constexpr std::uint64_t kValueWork = 100;

struct SeenDifference {
    ExprId expr;
    std::uint32_t depth, parent;  // number of bytes; position in the list of seen expressions
};

}  // namespace

Emptiness::Emptiness(ExprTable& exprs, LazyDfa& dfa, ByteFacts& byte_facts)
    : exprs_(exprs), dfa_(dfa), search_(exprs, dfa, byte_facts), max_search_(exprs.limits().max_search) {}

// If all texts of the other values are longer than a shortest text of the value, this text is none of theirs.
bool Emptiness::measured_by_length(ExprId difference) {
    const Expr x = exprs_[difference];
    const std::uint32_t bytes = shortest(x.minuend());
    if (bytes >= shortest(x.excluded())) return false;
    exprs_.set_shortest(difference, bytes);
    return true;
}

// Searches for a shortest text of a value that must differ from other values. A* is fast here: such a text is usually not much
// longer than the shortest text of the value, and usually the next byte distinguishes the values (Hart, Nilsson and Raphael, "A
// formal basis for the heuristic determination of minimum cost paths", 1968).
void Emptiness::search_other_composite(ExprId start) {
    if (measured_by_length(start)) return;
    std::vector<SeenDifference> seen{{start, 0, 0}};
    std::unordered_map<ExprId, std::uint32_t> depths{{start, 0}};
    using Task =
        std::pair<std::uint32_t, std::uint32_t>;  // a lower bound of the length, a position in `seen`; among equals, the last first
    auto later = [](const Task& x, const Task& y) { return x.first != y.first ? x.first > y.first : x.second < y.second; };
    std::priority_queue<Task, std::vector<Task>, decltype(later)> tasks(later);
    tasks.emplace(shortest(exprs_[start].minuend()), 0);
    std::uint32_t best = kInfinite, best_at = 0, most = 0;  // most: bound on the length of a shortest text (`reach`)
    each_part(exprs_, exprs_[start].excluded(), [&](ExprId other) {
        if (exprs_[other].op == Op::composite)
            most = std::max(most, sum(exprs_.composites()->reach(exprs_[other].composite_state()),
                                      exprs_.composites()->reach(exprs_[exprs_[start].minuend()].composite_state())));
        return false;
    });
    while (!tasks.empty() && tasks.top().first < best) {
        const std::uint32_t at = tasks.top().second;
        tasks.pop();
        const SeenDifference here = seen[at];
        if (depths[here.expr] < here.depth || here.depth >= most) continue;
        if (seen.size() > max_search_)
            throw SearchLimit(over_limit(max_search_, "states in the search for an item that differs from all others",
                                         "use a smaller schema for the items")
                                  .what());
        exprs_.fuel().spend(kValueWork);
        const Expr x = exprs_[here.expr];
        ExprId left = kNone, others = kNone;  // results of the previous byte
        dfa_.first(x.minuend()).each([&](std::uint8_t b) {
            const ExprId a = dfa_.derivative(x.minuend(), b), o = dfa_.derivative(x.excluded(), b);
            if (a == left && o == others) return;
            left = a;
            others = o;
            const ExprId made = exprs_.subtract(a, o);
            if (made == kNone) return;
            const Expr y = exprs_[made];
            if (y.op != Op::difference || y.measured || measured_by_length(made)) {
                const std::uint32_t total = sum(here.depth + 1, shortest(made));
                if (total >= best) return;
                best = total;
                best_at = at;
                return;
            }
            auto [place, fresh] = depths.emplace(made, here.depth + 1);
            if (!fresh && place->second <= here.depth + 1) return;
            place->second = here.depth + 1;
            tasks.emplace(sum(here.depth + 1, shortest(y.minuend())), static_cast<std::uint32_t>(seen.size()));
            seen.push_back({made, here.depth + 1, at});
        });
    }
    if (best == kInfinite) {
        for (const SeenDifference& state : seen) exprs_.set_shortest(state.expr, kInfinite);
        return;
    }
    for (std::uint32_t at = best_at;; at = seen[at].parent) {
        exprs_.set_shortest(seen[at].expr, best - seen[at].depth);
        if (at == 0) return;
    }
}

// Concatenations, alternations and repetitions are computed from their parts, with a worklist. Of an alternation, only parts that may
// be the shortest are computed.
std::uint32_t Emptiness::shortest(ExprId start) {
    auto known = [&](ExprId e) { return exprs_[e].nullable || exprs_[e].measured; };
    auto length = [&](ExprId e) { return exprs_[e].nullable ? 0 : exprs_[e].shortest; };
    if (known(start)) return length(start);
    std::vector<ExprId> todo{start};
    while (!todo.empty()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        ExprId missing = kNone;
        exprs_.fuel().spend(x.op == Op::alternation ? 4 + 2 * std::uint64_t{x.part_count()} : 4);
        if (known(e)) {
            todo.pop_back();
            continue;
        }
        if (x.op == Op::concatenation) {
            if (!known(x.head())) missing = x.head();
            else if (length(x.head()) == kInfinite) exprs_.set_shortest(e, kInfinite);
            else if (!known(x.tail())) missing = x.tail();
            else exprs_.set_shortest(e, sum(length(x.head()), length(x.tail())));
        } else if (x.op == Op::repetition) {
            if (!known(x.body())) missing = x.body();
            else exprs_.set_shortest(e, multiply(length(x.body()), x.minimum()));
        } else if (x.op == Op::alternation) {
            std::uint32_t best = kInfinite, least = kInfinite;
            each_part(exprs_, e, [&](ExprId part) {
                if (known(part)) best = std::min(best, length(part));
                else if (exprs_[part].shortest < least) {
                    least = exprs_[part].shortest;
                    missing = part;
                }
                return false;
            });
            if (missing == kNone || least >= best) {
                missing = kNone;
                exprs_.set_shortest(e, best);
            }
        } else if (exprs_[e].op == Op::composite) exprs_.set_shortest(e, exprs_.composites()->shortest(x.composite_state()));
        else if (x.op == Op::difference && exprs_[x.minuend()].op == Op::composite) search_other_composite(e);
        else exprs_.set_shortest(e, search_.shortest(e, max_search_));
        if (missing != kNone) todo.push_back(missing);
    }
    return length(start);
}

bool Emptiness::has_more(ExprId e) {
    if (!exprs_[e].boolean) return e > kEmpty;
    for (unsigned b = 0; b < 256; ++b)
        if (dfa_.derivative(e, static_cast<std::uint8_t>(b)) != kNone) return true;
    return false;
}

// A string has finitely many spellings, so infinitely many texts are infinitely many strings. A number has infinitely many spellings.
std::uint32_t Emptiness::values_at_least(ExprId e) {
    if (e == kNone) return 0;
    if (exprs_[e].op == Op::composite) return exprs_.composites()->at_least(exprs_[e].composite_state());
    if (exprs_[e].op == Op::number) return exprs_.number_language().has_endless_values(exprs_[e].number_state()) ? kInfinite : 1;
    const ExprId string = dfa_.derivative(e, '"');
    return string != kNone && exprs_[string].known_infinite ? kInfinite : exprs_[e].known_nonempty ? 1 : 0;
}

// As `shortest`, but any text suffices, which is faster to find.
bool Emptiness::search_nonempty(ExprId start) {
    auto decided = [&](ExprId e) {
        return e == kNone || exprs_[e].known_nonempty || exprs_[e].nullable || !exprs_[e].boolean || exprs_[e].measured;
    };
    auto lives = [&](ExprId e) {
        return e != kNone && (exprs_[e].known_nonempty || exprs_[e].nullable || !exprs_[e].boolean || exprs_[e].shortest != kInfinite);
    };
    auto settle = [&](ExprId e, bool found) {
        if (found) exprs_.set_nonempty(e);
        else exprs_.set_shortest(e, kInfinite);
    };
    std::vector<ExprId> todo{start};
    while (!todo.empty()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        ExprId missing = kNone;
        if (decided(e)) {
            todo.pop_back();
            continue;
        }
        exprs_.fuel().spend(x.op == Op::alternation ? 4 + 2 * std::uint64_t{x.part_count()} : 4);
        if (x.op == Op::concatenation || x.op == Op::repetition) {
            if (!decided(x.operand())) missing = x.operand();
            else if (x.op == Op::repetition || !lives(x.operand())) settle(e, lives(x.operand()));
            else if (!decided(x.tail())) missing = x.tail();
            else settle(e, lives(x.tail()));
        } else if (x.op == Op::alternation) {
            bool found = false;
            each_part(exprs_, e, [&](ExprId part) {
                if (!decided(part)) missing = part;
                else found = lives(part);
                return found;
            });
            if (found) missing = kNone;
            if (missing == kNone) settle(e, found);
        } else if (x.op == Op::difference && exprs_[x.minuend()].op == Op::composite) search_other_composite(e);
        else settle(e, search_.is_nonempty(e, max_search_));
        if (missing != kNone) todo.push_back(missing);
    }
    return lives(start);
}

}  // namespace guideway
