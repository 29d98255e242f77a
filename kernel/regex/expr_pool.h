// Expressions and the classes that compute their properties.
#pragma once

#include <cstddef>

#include "guideway/regex/byte_facts.h"
#include "guideway/regex/emptiness.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/labels.h"
#include "guideway/regex/lazy_dfa.h"
#include "guideway/regex/structure.h"
#include "guideway/regex/supersets.h"

namespace guideway {

// The expressions of one store. The DFA needs emptiness (of targets), and emptiness needs the DFA (to search along rows).
class ExprPool : public ExprTable {
public:
    explicit ExprPool(const ExprLimits& limits = {})
        : ExprTable(limits), dfa(*this, emptiness), emptiness(*this, dfa, byte_facts), byte_facts(*this, emptiness), supersets(*this, dfa),
          labels(*this, emptiness) {}

    std::size_t bytes() const { return ExprTable::bytes() + dfa.bytes() + emptiness.bytes() + byte_facts.bytes() + supersets.bytes(); }

    LazyDfa dfa;
    Emptiness emptiness;
    ByteFacts byte_facts;
    Supersets supersets;
    Labels labels;
};

}  // namespace guideway
