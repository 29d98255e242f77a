#include "guideway/trie.h"

#include <algorithm>

namespace guideway {

Trie Trie::of(std::vector<Suffix>& suffixes) {
    std::sort(suffixes.begin(), suffixes.end(), [](const Suffix& x, const Suffix& y) {
        const int order = x.bytes.compare(y.bytes);
        return order != 0 ? order < 0 : x.token < y.token;
    });
    Trie made;
    std::vector<std::uint32_t> path{0};  // nodes on the way to the current string
    auto open = [&](std::uint8_t b) {
        made.byte.push_back(b);
        made.end.push_back(0);
        made.depth.push_back(static_cast<std::uint16_t>(path.size()));
        made.first_token.push_back(static_cast<std::uint32_t>(made.tokens.size()));
    };
    auto close_to = [&](std::size_t length) {
        for (; path.size() > length + 1; path.pop_back()) made.end[path.back()] = made.size();
    };
    open(0);
    made.depth[0] = 0;
    std::string_view before;
    for (const Suffix& suffix : suffixes) {
        std::size_t shared = 0;
        while (shared < before.size() && shared < suffix.bytes.size() && before[shared] == suffix.bytes[shared]) ++shared;
        close_to(shared);
        for (std::size_t i = shared; i < suffix.bytes.size(); ++i) {
            open(static_cast<std::uint8_t>(suffix.bytes[i]));
            path.push_back(made.size() - 1);
        }
        made.tokens.push_back(suffix.token);
        before = suffix.bytes;
    }
    close_to(0);
    made.end[0] = made.size();
    made.first_token.push_back(static_cast<std::uint32_t>(made.tokens.size()));
    return made;
}

}  // namespace guideway
