#include "guideway/compiled.h"

#include <utility>

namespace guideway {

Compiled::Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program)
    : vocabulary_(std::move(vocabulary)), program_(program.begin(), program.end()), standing_(std::make_shared<Standing>()) {
    standing_->automaton = Automaton::compile(vocabulary_, program_);
    vocabulary_->keep(standing_);
}

// Threads that find it worn at once each make one; the last stays.
std::shared_ptr<const Automaton> Compiled::automaton() const {
    std::shared_ptr<const Automaton> now;
    {
        const std::lock_guard guard(standing_->lock);
        now = standing_->automaton;
    }
    if (now && !now->is_worn()) return now;
    now = Automaton::compile(vocabulary_, program_);
    const std::lock_guard guard(standing_->lock);
    standing_->automaton.swap(now);
    return standing_->automaton;
}

}  // namespace guideway
