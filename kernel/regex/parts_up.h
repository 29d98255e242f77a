// A loop over an expression and its parts, parts first.
#pragma once

#include <cstddef>
#include <vector>

#include "guideway/regex/expr.h"
#include "guideway/regex/string_trie.h"
#include "guideway/regex/structure.h"

namespace guideway {

// Calls make(e, parts of e) for e and its parts, parts first, with a worklist instead of recursion. fixed(e): e and its parts need
// no call; known(e): the call for e was made before.
template <class Fixed, class Known, class Make>
void from_parts_up(ExprTable& exprs, ExprId e, Fixed&& fixed, Known&& known, Make&& make) {
    if (fixed(e) || known(e)) return;
    struct Waiting {
        ExprId expr;
        bool open;  // its parts were added to the worklist
    };
    std::vector<Waiting> todo{{e, false}};
    std::vector<ExprId> parts;
    while (!todo.empty()) {
        const auto [at, open] = todo.back();
        if (!open && known(at)) {  // it was in the worklist twice
            todo.pop_back();
            continue;
        }
        const Expr x = exprs[at];
        if (x.op == Op::alternation || x.op == Op::intersection) parts = parts_of(exprs, at);
        else if (x.op == Op::concatenation) parts = {x.head(), x.tail()};
        else if (x.op == Op::strings) {
            parts.clear();
            exprs.strings().each_end(x.string_node(), [&](ExprId end) { parts.push_back(end); });
        } else parts = {x.operand()};
        if (!open) {
            todo.back().open = true;
            exprs.fuel().spend(4 + 4 * parts.size());
            const std::size_t before = todo.size();
            for (ExprId p : parts)
                if (!fixed(p) && !known(p)) todo.push_back({p, false});
            if (todo.size() > before) continue;
        }
        todo.pop_back();
        make(at, parts);
    }
}

}  // namespace guideway
