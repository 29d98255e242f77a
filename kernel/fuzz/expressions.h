// Regular expressions from bytes, as a program and as a tree for the reference matcher (tests/reference.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../tests/programs.h"
#include "../tests/reference.h"

namespace fuzz {

// Writes expressions to a program, and the same as a tree. Ids are those of the writer.
class Expressions {
public:
    explicit Expressions(programs::Writer& writer) : writer_(writer) {}

    std::uint32_t literal(const std::string& text) {
        reference::Text characters;
        for (const char c : text) characters.push_back(static_cast<std::uint8_t>(c));
        return add(writer_.literal(text), {reference::Op::literal, {}, {}, characters});
    }
    std::uint32_t chars(const std::vector<std::uint32_t>& bounds) {
        return add(writer_.chars(bounds), {reference::Op::chars, {}, bounds, {}});
    }
    std::uint32_t concat(const programs::Words& parts) { return add(writer_.concat(parts), {reference::Op::concat, parts, {}, {}}); }
    std::uint32_t either(const programs::Words& parts) { return add(writer_.either(parts), {reference::Op::either, parts, {}, {}}); }
    std::uint32_t both(const programs::Words& parts) { return add(writer_.both(parts), {reference::Op::both, parts, {}, {}}); }
    std::uint32_t without(std::uint32_t part) { return add(writer_.without(part), {reference::Op::without, {part}, {}, {}}); }
    std::uint32_t repeat(std::uint32_t part, std::uint32_t minimum, std::uint32_t maximum) {
        return add(writer_.repeat(part, minimum, maximum), {reference::Op::repeat, {part}, {minimum, maximum}, {}});
    }
    const reference::Tree& tree() const { return tree_; }

private:
    std::uint32_t add(std::uint32_t id, reference::Node node) {
        tree_.resize(id + 1);
        tree_[id] = std::move(node);
        return id;
    }

    programs::Writer& writer_;
    reference::Tree tree_;
};

// The expression that `data` describes, with a byte for each operation and operands on a stack. Sets `at` to the end of the
// description.
inline std::uint32_t expression(Expressions& w, const std::uint8_t* data, std::size_t size, std::size_t& at) {
    std::vector<std::uint32_t> stack{w.literal("a")};
    const auto pop = [&] {
        const std::uint32_t top = stack.back();
        if (stack.size() > 1) stack.pop_back();
        return top;
    };
    const auto pair = [&] {
        const std::uint32_t second = pop(), first = pop();
        return programs::Words{first, second};
    };
    for (; at < size && data[at] != 0xff && at < 64; ++at) {
        const std::uint32_t low = data[at] / 16, high = at + 1 < size ? data[at + 1] % 8u : 0u;
        switch (data[at] % 16) {
            case 0:
            case 1: stack.push_back(w.literal(std::string(1, static_cast<char>('a' + low % 4)))); break;
            case 2: stack.push_back(w.chars({'a', 'a' + low % 4})); break;
            case 3: stack.push_back(w.chars({0, 0xd7ff, 0xe000, 0x10ffff})); break;
            case 4: stack.push_back(w.chars({0xe9, 0xe9 + low * 300})); break;
            case 5: stack.push_back(w.literal(low % 2 ? "" : "abc")); break;
            case 6:
            case 7: stack.push_back(w.concat(pair())); break;
            case 8:
            case 9: stack.push_back(w.either(pair())); break;
            case 10: stack.push_back(w.both(pair())); break;
            case 11: stack.push_back(w.without(pop())); break;
            case 12: stack.push_back(w.repeat(pop(), 0, 0xffffffff)); break;
            case 13: stack.push_back(w.repeat(pop(), low % 3, low % 3 + high)); break;
            case 14: stack.push_back(w.repeat(pop(), 0, low * 5)); break;
            default: stack.push_back(w.repeat(pop(), 1, 0xffffffff)); break;
        }
    }
    return pop();
}

// The same, or inside a JSON string, depending on the byte after the expression.
struct Spelled {
    std::uint32_t expr;
    bool quoted;
};
inline Spelled spelled(programs::Writer& w, std::uint32_t expr, const std::uint8_t* data, std::size_t size, std::size_t& at) {
    if (at >= size || data[at] != 0xff || ++at >= size || data[at] % 3 == 0) return {expr, false};
    return {w.quoted(expr), true};
}

}  // namespace fuzz
