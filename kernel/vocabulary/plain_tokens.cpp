#include "guideway/vocabulary/plain_tokens.h"

#include <algorithm>

#include "guideway/base/flat_file.h"
#include "guideway/base/simd.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr std::uint64_t kStructural[2] = {0x00000004ffffffff, std::uint64_t{1} << ('\\' - 64)};  // controls and quote; backslash

constexpr std::size_t kLong = 12;  // bytes

bool is_structural(std::uint8_t b) { return kStructural[b >> 6] >> (b & 63) & 1; }

struct Character {  // the incomplete character at a node
    std::uint8_t bytes[4];
    std::uint8_t have, size;  // number of bytes read, and of all bytes; 0 and 0: none
};

// Reads a byte. Returns false if the text is not plain any more.
bool take(const SubtreeAlphabets& subtrees, Character& open, std::uint8_t b) {
    if (open.size == 0) {
        if (b < 0x80) return !is_structural(b);
        open.size = b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;
        if (open.size == 0) return false;
    } else if (!is_continuation(b)) return false;
    open.bytes[open.have++] = b;
    if (open.have < open.size) return subtrees.has_block(open.bytes, open.have, open.have + 1 < open.size);
    open.have = open.size = 0;
    return true;
}

}  // namespace

bool PlainTokens::accepted_by(const SelfLoops& loops) {
    const std::uint64_t missing = (~loops.ascii[0] & ~kStructural[0]) | (~loops.ascii[1] & ~kStructural[1]);
    return missing == 0 && loops.all_blocks;
}

PlainTokens::PlainTokens(const TokenTable& vocabulary) {
    const TokenTrie& trie = vocabulary.trie();
    const SubtreeAlphabets& subtrees = vocabulary.subtrees();
    std::vector<Suffix> structural[kinds];
    std::vector<Character> path{{}};
    std::vector<std::vector<std::uint32_t>> by_length;
    auto refuse = [&](std::uint32_t begin, std::uint32_t end, bool controls) {
        for (std::uint32_t p = begin; p < end; ++p) {
            const std::string_view token = vocabulary.token(trie.tokens[p]);
            structural[controls ? control : token.size() > kLong ? longer : rest].push_back({token, trie.tokens[p]});
        }
    };
    for (std::uint32_t i = 1; i < trie.size();) {
        const std::size_t depth = trie.depth[i];
        path.resize(depth + 1);
        path[depth] = path[depth - 1];
        if (!take(subtrees, path[depth], trie.byte[i])) {
            refuse(trie.first_token[i], trie.first_token[trie.end[i]], path[depth - 1].size == 0 && trie.byte[i] < 0x20);
            i = trie.end[i];
            continue;
        }
        for (std::uint32_t p = trie.first_token[i]; p < trie.first_token[i + 1]; ++p) {
            const std::size_t n = subtrees.characters(p);
            if (n == 255) refuse(p, p + 1, false);  // 255 or more: the exact number is not known
            else {
                if (by_length.size() <= n) by_length.resize(n + 1);
                by_length[n].push_back(trie.tokens[p]);
            }
        }
        ++i;
    }
    std::vector<std::uint32_t> first(by_length.size()), all;
    for (std::size_t n = by_length.size(); n-- > 0;) {
        first[n] = static_cast<std::uint32_t>(all.size());
        all.insert(all.end(), by_length[n].begin(), by_length[n].end());
    }
    FlatWriter made;
    made.put(all);
    made.put(first);
    for (auto& suffixes : structural) made.put(TokenTrie::of(suffixes).block());
    owned_ = made.take();
    file_ = owned_;
    lay_out(vocabulary.size());
}

PlainTokens::PlainTokens(std::span<const std::uint64_t> file, std::uint32_t vocabulary_size) : file_(file) { lay_out(vocabulary_size); }

void PlainTokens::lay_out(std::uint32_t vocabulary_size) {
    FlatReader reader(file_);
    by_length_ = reader.view<std::uint32_t>();
    first_ = reader.view<std::uint32_t>();
    for (TokenTrie& trie : structural_) trie = TokenTrie::over(reader.view<std::uint64_t>(), vocabulary_size);
    const bool good = reader.done() && (by_length_.empty() || largest(by_length_) < vocabulary_size) &&
                      std::is_sorted(first_.rbegin(), first_.rend()) && (first_.empty() || first_[0] <= by_length_.size());
    if (!good) throw Error(ErrorKind::argument, "a table of plain tokens with an index out of range");
}

}  // namespace guideway
