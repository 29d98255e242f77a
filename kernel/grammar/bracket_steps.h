// What objects and arrays have in common: brackets, commas, and the white space around them.
#pragma once

#include <cstdint>

#include "guideway/grammar/machine.h"

namespace guideway {

// Adds the successors of a configuration by a byte. `enter` adds the configurations of the next key or item; `may_continue`, `may_end`:
// whether there may be a next one, and whether the object or array may end.
template <class Enter, class MayContinue, class MayEnd>
void step_brackets(Machine& machine, const Config& c, std::uint8_t byte, Configs& out, Enter&& enter, MayContinue&& may_continue,
                   MayEnd&& may_end) {
    const Punctuation& punctuation = *machine.component(c.node).punctuation;
    const std::uint32_t rest = rest_of(c.state);
    const bool spaced = punctuation.space && is_space(byte);
    const auto becomes = [&](Phase phase, std::uint32_t more) { out.push_back({c.node, phase_state(phase, more), c.regs, c.parent}); };
    const auto enter_or = [&](Phase phase) {  // the beginning of a key or item, or white space before it
        becomes(phase, 0);
        enter();
    };
    const auto close_from = [&](std::uint32_t at) {
        if (!takes(punctuation.close, at, byte)) return;
        if (at + 1 == punctuation.close.size()) machine.resume(c.parent, out);
        else becomes(Phase::close, at + 1);
    };
    const auto comma_from = [&](std::uint32_t at) {
        if (!takes(punctuation.comma, at, byte)) return;
        if (at + 1 != punctuation.comma.size()) becomes(Phase::comma, at + 1);
        else if (punctuation.space) enter_or(Phase::gap);
        else enter();
    };
    switch (phase_of(c.state)) {
        case Phase::open:
            if (!takes(punctuation.open, rest, byte)) return;
            if (rest + 1 == punctuation.open.size()) enter_or(Phase::first);
            else becomes(Phase::open, rest + 1);
            return;
        case Phase::first:
            if (spaced) enter_or(Phase::first);
            if (may_end()) close_from(0);
            return;
        case Phase::gap:
            if (spaced) enter_or(Phase::gap);
            return;
        case Phase::after:
            if (spaced) out.push_back(c);
            if (takes(punctuation.comma, 0, byte) && may_continue()) comma_from(0);
            if (takes(punctuation.close, 0, byte) && may_end()) close_from(0);
            return;
        case Phase::comma: return comma_from(rest);
        case Phase::close: return close_from(rest);
        default: return;
    }
}

// The byte that begins a shortest completion; -1: it is that of a configuration that `enter` adds.
template <class Enter, class MayEnd>
int best_bracket(const Punctuation& punctuation, NodeState state, Enter&& enter, MayEnd&& may_end) {
    const std::uint32_t rest = rest_of(state);
    switch (phase_of(state)) {
        case Phase::open: return byte_at(punctuation.open, rest);
        case Phase::first:
            if (may_end()) return byte_at(punctuation.close, 0);
            [[fallthrough]];
        case Phase::gap: enter(); return -1;
        case Phase::after: return byte_at(may_end() ? punctuation.close : punctuation.comma, 0);
        case Phase::comma: return byte_at(punctuation.comma, rest);
        case Phase::close: return byte_at(punctuation.close, rest);
        default: return -1;
    }
}

}  // namespace guideway
