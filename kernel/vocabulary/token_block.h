// The bytes of all tokens as one block: the form in which they are hashed, pickled and passed to the kernel.
//
// The number of ids (32 bits, little-endian); the length of each token (one byte, or 255 and then 32 bits); the bytes of all
// tokens. Different lists of tokens have different blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace guideway {

// Tokens in one text: token i is from starts[i] to starts[i + 1].
struct TokenView {
    std::span<const std::uint32_t> starts;
    const char* text = nullptr;
    std::uint32_t size() const { return static_cast<std::uint32_t>(starts.size() - 1); }
    std::string_view operator[](std::uint32_t id) const { return {text + starts[id], starts[id + 1] - starts[id]}; }
};

class TokenBlockWriter {
public:
    explicit TokenBlockWriter(std::size_t count);
    void add(std::string_view token);
    // Throws Error(argument) for more than 2^28 tokens or 4 GiB.
    std::string take() const;

private:
    friend struct TokenBlock;
    static constexpr std::size_t kLong = 255;
    std::size_t count_;
    std::string lengths_, text_;
};

struct TokenBlock {
    // `block` must outlive this. Throws Error(argument) if it is malformed.
    explicit TokenBlock(std::string_view block);
    TokenView view() const { return {starts, text.data()}; }

    std::vector<std::uint32_t> starts;
    std::string_view text;
};

}  // namespace guideway
