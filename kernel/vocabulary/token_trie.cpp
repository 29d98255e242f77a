#include "guideway/vocabulary/token_trie.h"

#include <algorithm>
#include <cstring>

#include "guideway/base/error.h"
#include "guideway/base/simd.h"

namespace guideway {

namespace {

// A block has these counts, then the arrays in the order of `lay_out`, each padded to 8 bytes.
struct Counts {
    std::uint32_t nodes, tokens, wides, children;
};
static_assert(sizeof(Counts) == 16 && sizeof(TokenTrie::Wide) == 40);

std::size_t words_for(std::size_t bytes) { return (bytes + 7) / 8; }

std::size_t words_for(const Counts& n) {
    return 2 + words_for(std::size_t{n.nodes} * 4) + words_for((std::size_t{n.nodes} + 1) * 4) + words_for(std::size_t{n.tokens} * 4) +
           words_for(std::size_t{n.children} * 4) + std::size_t{n.wides} * 5 + 2 * words_for(std::size_t{n.nodes} * 2) + words_for(n.nodes);
}

// Vectorizable loops, since they run at the start of each process.
GUIDEWAY_WIDE bool rises(const std::uint32_t* numbers, std::size_t steps) {
    std::uint32_t bad = 0;
    for (std::size_t i = 0; i < steps; ++i) bad |= numbers[i] > numbers[i + 1];
    return !bad;
}

// Whether each subtree ends at the next node that is not deeper. If one ended before it, depth[end] would be too large. A node is in
// as many subtrees as its depth plus one, so if one ended after it, the sum of their sizes would be too large.
GUIDEWAY_WIDE bool nests(const std::uint32_t* end, const std::uint16_t* depth, std::int32_t n) {
    std::uint32_t bad = 0;
    std::uint64_t sizes = 0, depths = static_cast<std::uint64_t>(n);
    for (std::int32_t i = 0; i < n; ++i) {
        const auto to = static_cast<std::int32_t>(end[i]);
        bad |= (to <= i) | (to > n);
        sizes += end[i] - static_cast<std::uint32_t>(i);  // unsigned, since a damaged file can have any number
    }
    for (std::int32_t i = 0; i < n; ++i) depths += depth[i];
    for (std::int32_t i = 1; i < n; ++i) bad |= (depth[i] < 1) | (depth[i] > depth[i - 1] + 1);
    if (bad || sizes != depths) return false;
    for (std::int32_t i = 0; i < n; ++i) bad |= end[i] < static_cast<std::uint32_t>(n) && depth[end[i]] > depth[i];
    return !bad;
}

}  // namespace

void TokenTrie::lay_out(std::span<const std::uint64_t> block) {
    block_ = block;
    Counts n;
    std::memcpy(&n, block.data(), sizeof n);
    const std::uint64_t* at = block.data() + 2;
    auto take = [&]<class T>(std::span<const T>& view, std::size_t count) {
        view = {reinterpret_cast<const T*>(at), count};
        at += words_for(count * sizeof(T));
    };
    take(end, n.nodes);
    take(first_token, std::size_t{n.nodes} + 1);
    take(tokens, n.tokens);
    take(children, n.children);
    take(wides, n.wides);
    take(depth, n.nodes);
    take(wide_of, n.nodes);
    take(byte, n.nodes);
}

TokenTrie TokenTrie::over(std::span<const std::uint64_t> block, std::uint32_t vocabulary_size) {
    Counts n{};
    if (block.size() >= 2) std::memcpy(&n, block.data(), sizeof n);
    if (n.nodes == 0 || words_for(n) != block.size()) throw Error(ErrorKind::argument, "a trie of impossible size");
    TokenTrie made;
    made.lay_out(block);
    if (!made.is_valid(vocabulary_size)) throw Error(ErrorKind::argument, "a trie with an index out of range");
    return made;
}

// Checks all that walks rely on: the nesting of subtrees, index ranges, and the children of wide nodes.
bool TokenTrie::is_valid(std::uint32_t vocabulary_size) const {
    const std::size_t n = byte.size();
    if (n > 0x7fffffff || depth[0] != 0 || first_token[0] != 0 || first_token[n] != tokens.size()) return false;
    if (!tokens.empty() && largest(tokens) >= vocabulary_size) return false;
    if (largest(wide_of) > wides.size() || !rises(first_token.data(), n)) return false;
    return nests(end.data(), depth.data(), static_cast<std::int32_t>(n)) && has_valid_wides();
}

bool TokenTrie::has_valid_wides() const {
    std::size_t known = 0;
    for (const std::uint16_t wide : wide_of) known += wide != 0;
    bool good = known == wides.size();
    for (std::size_t i = 0; good && i < wides.size(); ++i) {
        const Wide& w = wides[i];
        const std::uint32_t width = w.bytes.size();
        good = w.node < size() && wide_of[w.node] == i + 1 && std::uint64_t{w.first} + width <= children.size();
        std::uint32_t k = 0;
        int before = -1;
        for (std::uint32_t c = w.node + 1; good && c < end[w.node]; c = end[c], ++k) {
            good = k < width && children[w.first + k] == c && w.bytes.contains(byte[c]) && byte[c] > before;
            before = byte[c];
        }
        good = good && k == width;
    }
    return good;
}

TokenTrie TokenTrieBuilder::build() {
    close(0);
    const auto n = static_cast<std::uint32_t>(byte_.size());
    std::vector<std::uint16_t> wide_of(n, 0);
    std::vector<std::uint32_t> children;
    std::vector<TokenTrie::Wide> wides;
    for (std::uint32_t i = 0; i < n; ++i) {
        std::uint32_t count = 0;
        for (std::uint32_t c = i + 1; c < end_[i] && count < TokenTrie::kWide; c = end_[c]) ++count;
        if (count < TokenTrie::kWide || wides.size() == 0xffff) continue;
        TokenTrie::Wide made{{}, static_cast<std::uint32_t>(children.size()), i};
        for (std::uint32_t c = i + 1; c < end_[i]; c = end_[c]) {
            made.bytes.insert(byte_[c]);
            children.push_back(c);
        }
        wides.push_back(made);
        wide_of[i] = static_cast<std::uint16_t>(wides.size());
    }
    first_token_.push_back(static_cast<std::uint32_t>(tokens_.size()));
    const Counts counts{n, static_cast<std::uint32_t>(tokens_.size()), static_cast<std::uint32_t>(wides.size()),
                        static_cast<std::uint32_t>(children.size())};
    TokenTrie made;
    made.owned_.assign(words_for(counts), 0);
    std::uint64_t* at = made.owned_.data();
    std::memcpy(at, &counts, sizeof counts);
    at += 2;
    auto put = [&](const auto& array) {
        const std::size_t bytes = array.size() * sizeof(array[0]);
        if (bytes) std::memcpy(at, array.data(), bytes);
        at += words_for(bytes);
    };
    put(end_);
    put(first_token_);
    put(tokens_);
    put(children);
    put(wides);
    put(depth_);
    put(wide_of);
    put(byte_);
    made.lay_out(made.owned_);
    return made;
}

TokenTrie TokenTrie::of(std::vector<Suffix>& suffixes) {
    std::sort(suffixes.begin(), suffixes.end(), [](const Suffix& x, const Suffix& y) {
        const int order = x.bytes.compare(y.bytes);
        return order != 0 ? order < 0 : x.token < y.token;
    });
    TokenTrieBuilder made;
    std::vector<std::uint32_t> path;  // nodes of the current string, without the root
    auto close_to = [&](std::size_t length) {
        for (; path.size() > length; path.pop_back()) made.close(path.back());
    };
    std::string_view before;
    for (const Suffix& suffix : suffixes) {
        std::size_t shared = 0;
        while (shared < before.size() && shared < suffix.bytes.size() && before[shared] == suffix.bytes[shared]) ++shared;
        close_to(shared);
        for (std::size_t i = shared; i < suffix.bytes.size(); ++i)
            path.push_back(made.open(static_cast<std::uint8_t>(suffix.bytes[i]), static_cast<std::uint32_t>(i + 1)));
        made.token(suffix.token);
        before = suffix.bytes;
    }
    close_to(0);
    return made.build();
}

}  // namespace guideway
