// The bytes in the texts of an expression.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guideway/regex/expr.h"

namespace guideway {

class Emptiness;

class ByteFacts {
public:
    ByteFacts(ExprTable& exprs, Emptiness& emptiness) : exprs_(exprs), emptiness_(emptiness) {}

    // A superset of the bytes of its texts.
    ByteSet alphabet(ExprId e);
    // Bytes that occur in every text of the expression, if each character has its shortest spelling. For pieces of JSON
    // strings. May omit some of them.
    ByteSet needed(ExprId e);
    std::size_t bytes() const { return alphabets_.bytes() + needed_.bytes(); }

private:
    ExprTable& exprs_;
    Emptiness& emptiness_;
    FlatMap<ExprId, ByteSetId, NumberHash> alphabets_, needed_;
};

}  // namespace guideway
