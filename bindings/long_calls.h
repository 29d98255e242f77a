// Calls of the kernel that release the interpreter's lock (the GIL) if they take long: before they wait for a lock, and after a
// piece of work. Most calls are short and keep it: releasing and taking it costs a tenth of a step, and can cost milliseconds
// while other threads run Python. In a round of a generation loop, calls keep it longer (`LongCall`).
//
// While it is released, another thread could call the same matcher. That call waits until the first one has ended.
#pragma once

#include <chrono>
#include <thread>

#include "bindings.h"
#include "guideway/base/store_lock.h"
#include "guideway/matcher/matcher.h"

namespace guideway {

// Waits, with the GIL released, until no other thread uses the matcher.
inline void wait_for_use(const Matcher& matcher) {
    while (matcher.uses.count) {
        const nb::gil_scoped_release release;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

class ReleasedWhenLong final : LongCall {
public:
    explicit ReleasedWhenLong(const Matcher* matcher = nullptr) : matcher_(matcher) {
        if (matcher_ && matcher_->uses.count) [[unlikely]]
            wait_for_use(*matcher_);
    }
    ~ReleasedWhenLong() {
        if (!has_begun()) return;
        PyEval_RestoreThread(state_);
        if (matcher_) --matcher_->uses.count;
    }

private:
    void begin() noexcept override {
        if (matcher_) ++matcher_->uses.count;
        state_ = PyEval_SaveThread();
    }

    const Matcher* matcher_;
    PyThreadState* state_ = nullptr;
};

// Calls f(), which may take long.
template <class F>
auto released_when_long(const Matcher& matcher, F&& f) {
    const ReleasedWhenLong call(&matcher);
    return f();
}

// Marks the matchers of a call as in use, for a call that releases the GIL for its whole time. Construct and destroy it with the
// GIL held.
template <class M>
class InUse {
public:
    explicit InUse(const std::vector<M*>& matchers) : matchers_(matchers) {
        for (std::size_t i = 0; i < matchers_.size();) {  // during a wait, other threads may have begun to use earlier matchers
            if (matchers_[i] && matchers_[i]->uses.count) {
                wait_for_use(*matchers_[i]);
                i = 0;
            } else ++i;
        }
        for (M* one : matchers_)
            if (one) ++one->uses.count;
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() {
        for (M* one : matchers_)
            if (one) --one->uses.count;
    }

private:
    const std::vector<M*>& matchers_;
};

}  // namespace guideway
