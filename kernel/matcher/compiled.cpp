#include "guideway/matcher/compiled.h"

#include <mutex>
#include <utility>

namespace guideway {

Compiled::Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program)
    : vocabulary_(std::move(vocabulary)), program_(packed(program)), current_(std::make_shared<CurrentAutomaton>()) {
    current_->automaton = Automaton::compile(vocabulary_, program_);
    vocabulary_->keep(current_);
    if (current_->automaton->is_apart()) vocabulary_->keep_apart(current_);
}

// Several threads can each compile a new automaton at the same time; the last one is kept.
std::shared_ptr<const Automaton> Compiled::automaton() const {
    std::shared_ptr<const Automaton> now;
    {
        const std::lock_guard guard(vocabulary_->lock());
        now = current_->automaton;
    }
    if (now) now = now->newest();
    if (now && !now->needs_replacement()) return now;
    const auto made = Automaton::compile(vocabulary_, program_);
    {
        const std::lock_guard guard(vocabulary_->lock());
        now = std::exchange(current_->automaton, made);
    }
    if (made->is_apart()) vocabulary_->keep_apart(current_);
    return made;
}

}  // namespace guideway
