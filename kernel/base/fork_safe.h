// Locks that a child process can use after `fork`.
//
// Before a fork, the forking thread takes all such locks. So no other thread holds one, and the data that they protect are
// consistent in the child, where the other threads do not exist.
#pragma once

#include <mutex>

namespace guideway {

class ForkSafe {
public:
    ForkSafe(const ForkSafe&) = delete;
    ForkSafe& operator=(const ForkSafe&) = delete;

    virtual void before_fork() = 0;
    virtual void after_fork(bool in_child) = 0;

protected:
    ForkSafe() = default;
    ~ForkSafe() = default;
    // To call at the end of the last constructor and at the beginning of the destructor, but not while a lock of this kind is
    // held: a fork takes all of them.
    void enter();
    void leave();
};

// The number of forks between the first process and this one.
unsigned forks_so_far();

// For short sections only.
class ForkSafeMutex final : public ForkSafe {
public:
    ForkSafeMutex() { enter(); }
    ~ForkSafeMutex() { leave(); }
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

private:
    std::mutex mutex_;
};

}  // namespace guideway
