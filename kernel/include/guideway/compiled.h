// A constraint compiled for a vocabulary, to be used for as long as one likes.
//
// An automaton learns on its way: stacks, texts that were read, expressions in the vocabulary's store. None of it can be
// forgotten while a matcher may stand on it. So the limit of what one automaton learns is not an error here: matchers
// that begin later get a new automaton of the same program, and the old one goes with its last matcher. The same when
// the vocabulary begins a new store: an automaton that nobody walks does not keep the old one. Where sequences had to move
// to a store of their own (matcher.cpp), later matchers begin there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "guideway/matcher.h"

namespace guideway {

class Compiled {
public:
    // Throws what Automaton::compile does.
    Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program);

    // For a new matcher: the one of the call before, or, where that has learned too much, a new one.
    std::shared_ptr<const Automaton> automaton() const;

private:
    std::shared_ptr<const Vocabulary> vocabulary_;
    PackedProgram program_;
    std::shared_ptr<Standing> standing_;
};

}  // namespace guideway
