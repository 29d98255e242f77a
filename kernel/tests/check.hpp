// The whole test framework of the kernel: CHECK counts, report() ends a test program.
#pragma once

#include <cstdio>

#ifdef __GNUC__
// Where the fuzz targets are built too, the kernel calls this from every block; only their driver listens.
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {}
#endif

namespace check {

inline int failures = 0;
inline int count = 0;

inline bool that(bool held, const char* text, const char* file, int line) {
  ++count;
  if (!held) {
    ++failures;
    std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
  }
  return held;
}

// For main: return check::report();
inline int report() {
  std::printf("%d checks, %d failed\n", count, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace check

#define CHECK(condition) check::that(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_THROWS(expression, Error)                                        \
  do {                                                                         \
    bool check_threw = false;                                                  \
    try {                                                                      \
      (void)(expression);                                                      \
    } catch (const Error&) {                                                   \
      check_threw = true;                                                      \
    }                                                                          \
    check::that(check_threw, #expression " throws " #Error, __FILE__, __LINE__); \
  } while (false)
