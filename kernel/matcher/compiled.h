// A constraint compiled for a vocabulary. It can be used without a limit on time.
//
// An automaton grows in use: by stacks, texts that were read, and expressions in the vocabulary's store. None of this
// can be released while a matcher may refer to it. An automaton above its limit is no error: later matchers get a new
// automaton of the same program, and the old one is deleted with its last matcher. The same happens when the vocabulary begins a
// new store, so that an unused automaton does not keep the old store alive. If matchers had to move to a separate store
// (matcher.cpp), later matchers begin there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "guideway/matcher/matcher.h"

namespace guideway {

class Compiled {
public:
    // Throws the errors of Automaton::compile.
    Compiled(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> program);

    // The automaton for a new matcher: that of the previous call, or a new one if that is too large.
    std::shared_ptr<const Automaton> automaton() const;

private:
    std::shared_ptr<const Vocabulary> vocabulary_;
    PackedProgram program_;
    std::shared_ptr<CurrentAutomaton> current_;
};

}  // namespace guideway
