#include "guideway/compiled.h"

#include <utility>

namespace guideway {

namespace {

// Words as bytes, seven bits each, the low ones first: most are small.
std::vector<std::uint8_t> packed(std::span<const std::uint32_t> words) {
    std::vector<std::uint8_t> made;
    made.reserve(words.size() * 5 / 4);
    for (std::uint32_t w : words) {
        for (; w >= 0x80; w >>= 7) made.push_back(static_cast<std::uint8_t>(w | 0x80));
        made.push_back(static_cast<std::uint8_t>(w));
    }
    made.shrink_to_fit();
    return made;
}

std::vector<std::uint32_t> unpacked(std::span<const std::uint8_t> bytes) {
    std::vector<std::uint32_t> made;
    std::uint32_t word = 0;
    unsigned shift = 0;
    for (std::uint8_t b : bytes) {
        word |= std::uint32_t{b & 0x7fu} << shift;
        shift += 7;
        if (b & 0x80) continue;
        made.push_back(std::exchange(word, 0));
        shift = 0;
    }
    return made;
}

}  // namespace

Compiled::Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program)
    : vocabulary_(std::move(vocabulary)), program_(packed(program)), standing_(std::make_shared<Standing>()) {
    standing_->automaton = Automaton::compile(vocabulary_, program);
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
    now = Automaton::compile(vocabulary_, unpacked(program_));
    const std::lock_guard guard(standing_->lock);
    standing_->automaton.swap(now);
    return standing_->automaton;
}

}  // namespace guideway
