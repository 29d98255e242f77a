// Steps of objects, byte by byte: punctuation, keys, and the values that they enter.
#pragma once

#include <array>
#include <cstdint>

#include "guideway/grammar/object_rules.h"

namespace guideway {

class Machine;

class ObjectSteps {
public:
    ObjectSteps(MachineCore& core, Machine& machine, ObjectRules& rules) : core_(core), machine_(machine), rules_(rules) {}

    // Adds the successors of a configuration by a byte to `out`, and to `todo` the configurations that must read the byte instead.
    void step(const Config& c, std::uint8_t byte, Configs& out, Configs& todo, Outcome& outcome);
    // The byte that begins a shortest completion; -1: the byte is that of a configuration in `instead`.
    int best_byte(const Config& c, Configs& instead);
    void enter_keys(const Config& c, Configs& out);
    void enter_value(const Config& c, std::uint32_t label, Configs& out);
    Config after_value(const Config& c, std::uint32_t label);
    // Whether a key that leads through `next` is allowed, if one that leads through `state` is.
    bool is_key_prefix(const Config& c, ExprId state, ExprId next);

private:
    void begin_value(const Config& c, std::uint32_t label, Configs& out);
    void step_colon(const Config& c, std::uint8_t byte, Configs& out);
    void step_key(const Config& c, ExprId state, std::uint8_t byte, Configs& out);
    void enter_keys_anew(const Config& c, Configs& out);

    MachineCore& core_;
    Machine& machine_;
    ObjectRules& rules_;
    struct Entered {  // the configurations at the beginning of a key, at one place (node, register and frame)
        Config place{kDone, {}, {}, kBottom};
        Configs keys;
    };
    std::array<Entered, 8> entered_;  // by a hash of the place: nested objects alternate
};

}  // namespace guideway
