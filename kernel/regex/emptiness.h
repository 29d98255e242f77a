// Whether the language of an expression is empty, and the length of a shortest text.
//
// For the maintainer: concatenations, alternations and repetitions are computed from their parts. An intersection or difference needs
// a search (part_search.h); the search for a composite value that differs from others is here. Results are kept in the table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "guideway/regex/expr.h"
#include "guideway/regex/part_search.h"

namespace guideway {

class Emptiness {
public:
    Emptiness(ExprTable& exprs, LazyDfa& dfa, ByteFacts& byte_facts);

    bool is_nonempty(ExprId e) { return e != kNone && (exprs_[e].known_nonempty || !exprs_[e].boolean || search_nonempty(e)); }
    // Bytes of a shortest text, kInfinite if there is none.
    std::uint32_t shortest(ExprId e);
    // Whether it has a text that is not empty.
    bool has_more(ExprId e);
    // A lower bound of the number of JSON values that its texts spell, from the start of a value; kInfinite: infinitely many.
    std::uint32_t values_at_least(ExprId e);
    // Whether the next character may be one that can only be written as an escape. May return true in other cases.
    bool has_escapes(ExprId e) { return search_.has_escapes(e); }
    // Calls f(); returns false if a search in it stopped at kShortSearch states (or the table's own limit).
    template <class F>
    bool with_short_searches(F&& f) {
        struct Limit {
            std::size_t &most, before;
            ~Limit() { most = before; }
        };
        const Limit limit{max_search_, max_search_};
        max_search_ = std::min(limit.before, kShortSearch);
        try {
            f();
            return true;
        } catch (const SearchLimit&) {
            return false;
        }
    }
    std::size_t bytes() const { return search_.bytes(); }

private:
    static constexpr std::size_t kShortSearch = 2000;  // states

    bool measured_by_length(ExprId difference);
    void search_other_composite(ExprId start);
    bool search_nonempty(ExprId start);

    ExprTable& exprs_;
    LazyDfa& dfa_;
    PartSearch search_;
    std::size_t max_search_;
};

}  // namespace guideway
