// Vectors that each thread keeps between calls, so that a call allocates no memory.
#pragma once

#include <vector>

namespace guideway {

// The vector of a thread for one owner, emptied. Callers keep the reference, because each access to a thread-local variable is a
// call. `Owner`: the type whose code uses the vector. It must not be requested again while it is in use.
template <class Owner, class T>
std::vector<T>& thread_scratch() {
    thread_local std::vector<T> kept;
    kept.clear();
    return kept;
}

}  // namespace guideway
