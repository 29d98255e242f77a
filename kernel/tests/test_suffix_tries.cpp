// Suffix tries, compared with computations for single tokens.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/base/sort_unique.h"
#include "guideway/mask/suffix_tries.h"

using namespace guideway;

namespace {

// Wide nodes and others; tokens with a quote, and other bytes after it.
std::vector<std::string> tokens(std::mt19937& chance) {
    std::vector<std::string> made;
    for (unsigned b = 0; b < 256; ++b) made.push_back(std::string(1, static_cast<char>(b)));
    while (made.size() < 3000) {
        std::string one;
        for (std::size_t n = 1 + chance() % 6; n--;) one += "ab0123456789z\"\xc3"[chance() % 15];
        made.push_back(std::move(one));
    }
    sort_unique(made);
    return made;
}

bool is_of(const std::string& token, const ByteSet& bytes) {
    return std::all_of(token.begin(), token.begin() + static_cast<std::ptrdiff_t>(std::min(token.find('"'), token.size())),
                       [&](char c) { return bytes.contains(static_cast<std::uint8_t>(c)); });
}

void test_tokens_of_bytes() {
    std::mt19937 chance(3);
    const std::vector<std::string> all = tokens(chance);
    std::vector<Suffix> suffixes;
    for (std::uint32_t t = 0; t < all.size(); ++t) suffixes.push_back({all[t], t});
    const TokenTrie trie = TokenTrie::of(suffixes);
    for (const ByteSet& bytes :
         {ByteSet::of("0123456789"), ByteSet::of("ab"), ByteSet::of("\"z"), ByteSet::of("\xc3"), ByteSet::range(0, 0x7f), ByteSet{}}) {
        Fuel work;
        SuffixTries suffix_tries(trie, 6, work);
        const TokenTrie& made = *suffix_tries.forest(suffix_tries.of_alphabet(bytes, trie.size())).trie;
        std::vector<std::uint32_t> got(made.tokens.begin(), made.tokens.end()), wanted;
        std::sort(got.begin(), got.end());
        for (std::uint32_t t = 0; t < all.size(); ++t)
            if (is_of(all[t], bytes)) wanted.push_back(t);
        CHECK(got == wanted && !got.empty());
        const std::uint32_t nodes = made.size() - 1;  // without the root
        CHECK(!suffix_tries.alphabet_exceeds(bytes, nodes) && suffix_tries.alphabet_exceeds(bytes, nodes - 1));
        CHECK(suffix_tries.of_alphabet(bytes, nodes - 1) == kVocabularyTrie);
    }
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(test_tokens_of_bytes());
    return check::report();
}
