// Compares two expressions that must have the same language.
#pragma once

#include <cstdint>
#include <random>

#include "check.h"
#include "guideway/regex/expr_pool.h"

namespace same_language {

// How many random byte strings are read, and how many bytes each has at most.
struct Walks {
    int count, bytes;
};

// Both expressions read the same random bytes. After each byte, they must accept the same bytes next, agree whether the text is
// complete, and need the same number of bytes to complete it.
inline void compare(guideway::ExprPool& pool, guideway::ExprId found, guideway::ExprId expected, std::mt19937& random, Walks walks) {
    using namespace guideway;
    for (int walk = 0; walk < walks.count; ++walk) {
        ExprId a = found, b = expected;
        for (int step = 0; step < walks.bytes && CHECK((a == kNone) == (b == kNone)) && a != kNone; ++step) {
            const ByteSet live = pool.dfa.first(b);
            CHECK(pool.dfa.first(a) == live);
            CHECK(pool[a].nullable == pool[b].nullable);
            CHECK(pool.emptiness.shortest(a) == pool.emptiness.shortest(b));
            for (unsigned x = 0; x < 256; x += 1 + static_cast<unsigned>(random() % 8))
                CHECK(pool.dfa.has_derivative(a, static_cast<std::uint8_t>(x)) == live.contains(static_cast<std::uint8_t>(x)));
            if (live.empty()) break;
            int byte = live.from(static_cast<unsigned>(random() % 256));
            if (byte < 0) byte = live.from(0);
            a = pool.dfa.derivative(a, static_cast<std::uint8_t>(byte));
            b = pool.dfa.derivative(b, static_cast<std::uint8_t>(byte));
        }
    }
}

}  // namespace same_language
