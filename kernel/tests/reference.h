// A reference matcher: the texts that an expression accepts, by definition. It shares no code with the kernel and has no
// automaton: for each position of a text, each node returns the positions where a match that begins there can end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace reference {

using Text = std::u32string;
enum class Op { literal, chars, concat, either, both, without, repeat };
struct Node {
    Op op = Op::either;
    std::vector<std::uint32_t> parts;   // nodes
    std::vector<std::uint32_t> bounds;  // chars: pairs, inclusive; repeat: minimum and maximum, 0xffffffff for none
    Text text;                          // literal
};
using Tree = std::vector<Node>;

class Matcher {
public:
    Matcher(const Tree& tree, const Text& text) : tree_(tree), text_(text) {}
    bool accepts(std::uint32_t node) { return ends(node, 0).contains(text_.size()); }

private:
    using Ends = std::set<std::size_t>;

    const Ends& ends(std::uint32_t node, std::size_t from) {
        const auto key = std::pair(node, from);
        if (const auto known = known_.find(key); known != known_.end()) return known->second;
        return known_[key] = find(tree_[node], from);
    }
    Ends find(const Node& node, std::size_t from) {
        Ends made;
        switch (node.op) {
            case Op::literal:
                if (text_.compare(from, node.text.size(), node.text) == 0) made.insert(from + node.text.size());
                break;
            case Op::chars:
                for (std::size_t i = 0; from < text_.size() && i < node.bounds.size(); i += 2)
                    if (node.bounds[i] <= text_[from] && text_[from] <= node.bounds[i + 1]) made.insert(from + 1);
                break;
            case Op::concat:
                made.insert(from);
                for (const std::uint32_t part : node.parts) made = after(made, part);
                break;
            case Op::either:
                for (const std::uint32_t part : node.parts) made.merge(Ends(ends(part, from)));
                break;
            case Op::both:
                made = ends(node.parts.at(0), from);
                for (const std::uint32_t part : node.parts)
                    std::erase_if(made, [&](std::size_t end) { return !ends(part, from).contains(end); });
                break;
            case Op::without:
                for (std::size_t end = from; end <= text_.size(); ++end)
                    if (!ends(node.parts.at(0), from).contains(end)) made.insert(end);
                break;
            case Op::repeat: {
                Ends now{from};
                std::set<Ends> seen;  // after the minimum: the same set leads to the same sets again
                for (std::uint32_t count = 0; !now.empty() && count <= node.bounds[1]; ++count, now = after(now, node.parts[0])) {
                    if (count < node.bounds[0]) continue;
                    if (!seen.insert(now).second) break;
                    made.insert(now.begin(), now.end());
                }
            }
        }
        return made;
    }
    Ends after(const Ends& begins, std::uint32_t node) {
        Ends made;
        for (const std::size_t from : begins) made.merge(Ends(ends(node, from)));
        return made;
    }

    const Tree& tree_;
    const Text& text_;
    std::map<std::pair<std::uint32_t, std::size_t>, Ends> known_;
};

// The characters of UTF-8; nothing where it is none.
inline std::optional<Text> decoded(std::string_view bytes) {
    Text made;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto lead = static_cast<std::uint8_t>(bytes[at++]);
        const unsigned more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 4;
        if (more == 4 || bytes.size() - at < more) return std::nullopt;
        char32_t c = more == 0 ? lead : lead & (0x3fu >> more);
        for (unsigned i = 0; i < more; ++i) {
            const auto next = static_cast<std::uint8_t>(bytes[at++]);
            if (next >> 6 != 2) return std::nullopt;
            c = c << 6 | (next & 0x3f);
        }
        static constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
        if (c < kLeast[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return std::nullopt;
        made.push_back(c);
    }
    return made;
}

inline std::string encoded(const Text& text) {
    std::string made;
    for (const char32_t c : text) {
        const unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
        made.push_back(static_cast<char>(kLead[more] | c >> 6 * more));
        for (unsigned i = more; i-- > 0;) made.push_back(static_cast<char>(0x80 | (c >> 6 * i & 0x3f)));
    }
    return made;
}

// A JSON string with quote, backslash and control characters escaped in the shortest way, and nothing else.
inline std::string quoted(const Text& text) {
    static constexpr char32_t kTargets[] = {'"', '\\', '\b', '\f', '\n', '\r', '\t'};
    static constexpr char kNames[] = "\"\\bfnrt";
    std::string made = "\"";
    for (const char32_t c : text) {
        const auto* const at = std::find(std::begin(kTargets), std::end(kTargets), c);
        if (at != std::end(kTargets)) made += {'\\', kNames[at - std::begin(kTargets)]};
        else if (c < 0x20) made += {'\\', 'u', '0', '0', static_cast<char>('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
        else made += encoded({c});
    }
    return made + "\"";
}

}  // namespace reference
