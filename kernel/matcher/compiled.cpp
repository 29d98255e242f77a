#include "guideway/matcher/compiled.h"

#include <mutex>
#include <utility>

namespace guideway {

Compiled::Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program)
    : vocabulary_(std::move(vocabulary)), program_(packed(program)), standing_(std::make_shared<CurrentAutomaton>()) {
    standing_->automaton = Automaton::compile(vocabulary_, program_);
    vocabulary_->keep(standing_);
    if (standing_->automaton->is_apart()) vocabulary_->keep_apart(standing_);
}

// Threads that find it worn at once each make one; the last stays.
std::shared_ptr<const Automaton> Compiled::automaton() const {
    std::shared_ptr<const Automaton> now;
    {
        const std::lock_guard guard(vocabulary_->lock());
        now = standing_->automaton;
    }
    if (now) now = now->newest();
    if (now && !now->is_outgrown()) return now;
    const auto made = Automaton::compile(vocabulary_, program_);
    {
        const std::lock_guard guard(vocabulary_->lock());
        now = std::exchange(standing_->automaton, made);
    }
    if (made->is_apart()) vocabulary_->keep_apart(standing_);
    return made;
}

}  // namespace guideway
