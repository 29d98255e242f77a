#include "guideway/vocabulary/token_block.h"

#include "guideway/base/error.h"

namespace guideway {

namespace {

constexpr std::size_t kMostTokens = std::size_t{1} << 28;

void put32(std::string& to, std::uint64_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) to.push_back(static_cast<char>(value >> shift & 255));
}

std::uint32_t get32(std::string_view from, std::size_t at) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<std::uint8_t>(from[at + i])} << (8 * i);
    return value;
}

}  // namespace

TokenBlockWriter::TokenBlockWriter(std::size_t count) : count_(count) {
    lengths_.reserve(count);
    text_.reserve(8 * count);
}

void TokenBlockWriter::add(std::string_view token) {
    if (token.size() < kLong) lengths_.push_back(static_cast<char>(token.size()));
    else {
        if (token.size() > 0xffffffff) throw Error(ErrorKind::argument, "a token of more than 4 GiB");
        lengths_.push_back(static_cast<char>(kLong));
        put32(lengths_, token.size());
    }
    text_.append(token);
}

std::string TokenBlockWriter::take() const {
    if (count_ > kMostTokens || text_.size() > 0xffffffff) throw Error(ErrorKind::argument, "a vocabulary of more than 4 GiB");
    std::string made;
    made.reserve(4 + lengths_.size() + text_.size());
    put32(made, count_);
    return made += lengths_ + text_;
}

TokenBlock::TokenBlock(std::string_view block) {
    const auto wrong = [] { return Error(ErrorKind::argument, "not the bytes of tokens"); };
    if (block.size() < 4) throw wrong();
    const std::size_t count = get32(block, 0);
    if (count > block.size() - 4) throw wrong();
    starts.resize(count + 1);
    std::size_t at = 4;
    std::uint64_t total = 0;
    for (std::size_t id = 0; id < count; ++id) {
        if (at >= block.size()) throw wrong();
        std::uint64_t length = static_cast<std::uint8_t>(block[at++]);
        if (length == TokenBlockWriter::kLong) {
            if (block.size() - at < 4) throw wrong();
            length = get32(block, at);
            at += 4;
        }
        starts[id + 1] = static_cast<std::uint32_t>(total += length);
    }
    text = block.substr(at);
    if (total != text.size() || total > 0xffffffff) throw wrong();
}

}  // namespace guideway
