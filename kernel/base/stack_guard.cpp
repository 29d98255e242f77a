#include "guideway/base/stack_guard.h"

#include <cstddef>
#include <cstdint>

#include "guideway/base/error.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace guideway {

namespace {

constexpr std::uintptr_t kReserve = 32 << 10;  // for the calls below a check, and for unwinding the exception
constexpr std::uintptr_t kLow = 16 << 10;      // more than the reserve: for calls that need no recursion

// The lowest address that may be used by a caller of `check_stack`; 0 if it is unknown.
std::uintptr_t find_limit() {
#if defined(_WIN32)
    ULONG_PTR low = 0, high = 0;
    GetCurrentThreadStackLimits(&low, &high);
    return low + kReserve;
#elif defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    void* low = nullptr;
    std::size_t size = 0, guard = 0;
    const bool found = pthread_attr_getstack(&attributes, &low, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0;
    pthread_attr_destroy(&attributes);
    return found ? reinterpret_cast<std::uintptr_t>(low) + guard + kReserve : 0;
#elif defined(__APPLE__)
    const auto high = reinterpret_cast<std::uintptr_t>(pthread_get_stackaddr_np(pthread_self()));
    return high - pthread_get_stacksize_np(pthread_self()) + kReserve;
#else
    return 0;
#endif
}

// The number of bytes left before the reserve. Negative if the reserve is in use.
std::intptr_t stack_left() {
    thread_local const std::uintptr_t limit = find_limit();
    const char here = 0;
    return static_cast<std::intptr_t>(reinterpret_cast<std::uintptr_t>(&here) - limit);
}

}  // namespace

void check_stack() {
    if (stack_left() < 0) {
        throw Error(ErrorKind::limit, "the constraint nests too deeply for the stack of this thread: use a thread with a larger stack");
    }
}

bool stack_is_low() { return stack_left() < static_cast<std::intptr_t>(kLow); }

}  // namespace guideway
