// The test framework of the kernel: named cases and checks. It has no dependency, so that a fresh machine needs nothing but
// a compiler.
//
//     int main(int argc, char** argv) {
//         check::begin(argc, argv);
//         RUN(test_something());
//         return check::report();
//     }
//
// The arguments of a test program select cases: one runs if its name contains one of them.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#if defined(__GNUC__) && !defined(_WIN32)
// If the fuzz targets are built too, the kernel calls this at every block. Only their driver defines it.
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {}
#endif

namespace check {

constexpr int kMostShown = 3;  // failures of one line that are printed

inline int failures = 0, count = 0, cases = 0;
inline std::vector<std::string> selected;
inline const char* current = "main";
inline std::map<std::pair<std::string, int>, int> failed_at;  // by file and line

inline bool that(bool held, const char* text, const char* file, int line) {
    ++count;
    if (held) return true;
    ++failures;
    if (++failed_at[{file, line}] <= kMostShown) std::fprintf(stderr, "%s:%d: %s: failed: %s\n", file, line, current, text);
    return false;
}

inline void begin(int argument_count, char** arguments) { selected.assign(arguments + (argument_count > 0), arguments + argument_count); }

// Runs a case. An exception that leaves it is a failure; the other cases still run.
template <class F>
void run(const char* name, F&& f) {
    bool wanted = selected.empty();
    for (const std::string& part : selected) wanted |= std::strstr(name, part.c_str()) != nullptr;
    if (!wanted) return;
    current = name;
    ++cases;
    try {
        f();
    } catch (const std::exception& error) {
        that(false, error.what(), name, 0);
    }
    current = "main";
}

// The exit status.
inline int report() {
    for (const auto& [place, times] : failed_at)
        if (times > kMostShown) std::fprintf(stderr, "%s:%d: failed %d times\n", place.first.c_str(), place.second, times);
    std::printf("%d cases, %d checks, %d failed\n", cases, count, failures);
    return failures == 0 && (selected.empty() || cases > 0) ? 0 : 1;
}

}  // namespace check

#define RUN(...) check::run(#__VA_ARGS__, [&] { __VA_ARGS__; })
#define CHECK(condition) check::that(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_THROWS(expression, Error)                                              \
    do {                                                                             \
        bool check_threw = false;                                                    \
        try {                                                                        \
            (void)(expression);                                                      \
        } catch (const Error&) {                                                     \
            check_threw = true;                                                      \
        }                                                                            \
        check::that(check_threw, #expression " throws " #Error, __FILE__, __LINE__); \
    } while (false)
