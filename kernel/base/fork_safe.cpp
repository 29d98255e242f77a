#include "guideway/base/fork_safe.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "guideway/base/page_arena.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define GUIDEWAY_FORKS
#endif

namespace guideway {

namespace {

struct Registry {
    std::mutex lock;
    std::vector<ForkSafe*> all;
};

Registry& registry() {
    static auto* const made = new Registry;  // never destroyed: a process may fork until its end
    return *made;
}

std::atomic<unsigned> forks = 0;

#ifdef GUIDEWAY_FORKS
void before() {
    Registry& known = registry();
    known.lock.lock();
    for (ForkSafe* one : known.all) one->before_fork();
}

void after(bool in_child) {
    Registry& known = registry();
    for (ForkSafe* one : known.all) one->after_fork(in_child);
    if (in_child) forks.fetch_add(1, std::memory_order_relaxed);
    known.lock.unlock();
}
#endif

// The handlers of memory (page_arena.cpp) are registered first, so that before a fork they run after these: a thread that holds
// one of these locks may need memory before it releases the lock.
void register_handlers() {
#ifdef GUIDEWAY_FORKS
    static const bool once = [] {
        constexpr std::size_t kSome = std::size_t{1} << 14;
        free_block(allocate_block(kSome), kSome);
        return pthread_atfork(before, [] { after(false); }, [] { after(true); }) == 0;
    }();
    (void)once;
#endif
}

}  // namespace

unsigned forks_so_far() { return forks.load(std::memory_order_relaxed); }

void ForkSafe::enter() {
    register_handlers();
    Registry& known = registry();
    const std::lock_guard guard(known.lock);
    known.all.push_back(this);
}

void ForkSafe::leave() {
    Registry& known = registry();
    const std::lock_guard guard(known.lock);
    known.all.erase(std::find(known.all.begin(), known.all.end(), this));
}

}  // namespace guideway
