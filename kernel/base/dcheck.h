// Assertions of invariants. They are active in the sanitizer builds, which define GUIDEWAY_DCHECKS, and cost nothing elsewhere.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace guideway {

#ifdef GUIDEWAY_DCHECKS
inline constexpr bool kDchecks = true;
#else
inline constexpr bool kDchecks = false;
#endif

[[noreturn]] inline void dcheck_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: invariant violated: %s\n", file, line, condition);
    std::abort();
}

}  // namespace guideway

// The condition is compiled in every build; it is evaluated only where invariants are checked.
#define GUIDEWAY_DCHECK(...) (!guideway::kDchecks || (__VA_ARGS__) ? void() : guideway::dcheck_failed(#__VA_ARGS__, __FILE__, __LINE__))
