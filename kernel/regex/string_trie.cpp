#include "guideway/regex/string_trie.h"

#include <algorithm>

#include "guideway/base/dcheck.h"
#include "guideway/regex/labels.h"

namespace guideway {

namespace {

// Whether a text has a surrogate, or a number that is no character.
bool has_no_spelling(std::u32string_view text) { return !std::ranges::all_of(text, is_character); }

std::uint32_t greatest(std::uint32_t a, std::uint32_t b) { return a == kNoLabel ? b : b == kNoLabel ? a : std::max(a, b); }

}  // namespace

StringTrie::Step StringTrie::next_inside(StringNode node, DecoderState part, std::uint8_t byte) const {
    const CharacterRead made = read_character(spelling(node), part, byte);
    if (made.part == kBetween) return made.character > kLastCharacter ? Step{} : Step{child(node, made.character), kBetween};
    bool some = false;
    each_child(node, made.part, [&](char32_t, StringNode) { some = true; });
    return some ? Step{node, made.part} : Step{};
}

void StringTrie::live(StringNode node, DecoderState part, ByteSet& made) const {
    const Encoding how = spelling(node);
    if (part != kBetween) return each_edge(node, part, [&](const Edge& edge) { put_next(how, part, edge.first, made); });
    for (const Edge& edge : edges(node)) {
        if (edge.first >= 0x80 || !is_whole_character(static_cast<std::uint8_t>(edge.first))) put_next(how, kBetween, edge.first, made);
        else made.insert(static_cast<std::uint8_t>(edge.first));
        if (how == Encoding::escaped_any) made.insert('\\');
    }
}

std::uint32_t StringTrie::shortest(StringNode node, DecoderState part) const {
    if (part == kBetween) {
        const Node& end = below(node);
        std::uint32_t made = end.shortest;
        for (std::uint32_t i = 0, more = left(node); i < more; ++i)
            made = sum(made, shortest_spelling(static_cast<Encoding>(end.spelling), character(cell(node, i))));
        return made;
    }
    std::uint32_t least = kInfinite;
    each_child(node, part, [&](char32_t c, StringNode child) {
        least = std::min(least, sum(bytes_left(spelling(node), part, c), shortest(child, kBetween)));
    });
    return least;
}

std::uint32_t StringTrie::last_label_below(StringNode node, DecoderState part) const {
    const ExprId here = part == kBetween ? end(node) : kNone;
    std::uint32_t made = here != kNone ? guideway::last_label(exprs_, here, true, nullptr) : kNoLabel;
    each_child(node, part, [&](char32_t, StringNode child) { made = greatest(made, last_label(child)); });
    return made;
}

StringNode StringTrie::intern(ExprId end, std::span<const Edge> edges, Encoding spelling) {
    if (end == kNone && edges.empty()) return kNoEntries;
    std::uint64_t h = mix(static_cast<std::uint64_t>(spelling), raw(end));
    for (const auto& [c, child] : edges) h = mix(h, std::uint64_t{c} << 32 | raw(child));
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) {
        const Node& n = nodes_[cells_[StringNode{id}]];
        return n.end == end && n.spelling == static_cast<std::uint8_t>(spelling) && n.count == edges.size() &&
               std::equal(edges.begin(), edges.end(), edges_.begin() + n.first);
    });
    if (known != InternTable::kMissing) return StringNode{known};
    Node made;
    made.end = end;
    made.ends = end != kNone ? end : below(edges[0].second).ends;
    made.spelling = static_cast<std::uint8_t>(spelling);
    made.first = static_cast<std::uint32_t>(edges_.size());
    made.count = static_cast<std::uint32_t>(edges.size());
    if (end != kNone) {
        GUIDEWAY_DCHECK(exprs_[end].nullable || exprs_[end].measured);
        made.shortest = exprs_[end].nullable ? 0 : exprs_[end].shortest;
        made.label = guideway::last_label(exprs_, end, false, nullptr);
        made.depth = exprs_[end].depth;
        made.plain = end == kEmpty;
        made.spelled = exprs_[end].encoding_closed;
        made.texts = made.characters = 1;
    }
    for (const auto& [c, child] : edges) {
        const Node& n = below(child);
        made.shortest = std::min(made.shortest, sum(shortest_spelling(spelling, c), shortest(child, kBetween)));
        made.label = greatest(made.label, n.label);
        if (n.ends != made.ends) made.ends = kNone;
        made.plain &= n.plain;
        made.spelled &= n.spelled;
        made.depth = std::max(made.depth, n.depth);
        made.texts = sum(made.texts, n.texts);
        made.characters = sum(made.characters, sum(characters(child), n.texts));
    }
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    const auto id = next_id<StringNode>(cells_);
    cells_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back(made);
    ids_.add(h, raw(id));
    return id;
}

// The first position of a chain of 1 to kMostChained characters.
StringNode StringTrie::chained(std::u32string_view characters, StringNode below) {
    std::uint64_t h = mix(characters.size(), raw(below));
    for (const char32_t c : characters) h = (h ^ c) * 0x9e3779b97f4a7c15ULL;
    h = mix(h, h >> 32);
    const auto size = static_cast<std::uint32_t>(characters.size());
    const std::uint32_t known = chain_ids_.find(h, [&](std::uint32_t number) {
        const StringNode id{number};
        if (left(id) != size || cells_[cell(id, size)] != raw(below)) return false;
        for (std::uint32_t i = 0; i < size; ++i)
            if (character(cell(id, i)) != characters[i]) return false;
        return true;
    });
    if (known != InternTable::kMissing) return StringNode{known};
    const auto id = next_id<StringNode>(cells_);
    for (std::uint32_t i = 0; i < size; ++i) cells_.push_back(kInside | (size - i) << kCharacterBits | characters[i]);
    cells_.push_back(raw(below));
    chain_ids_.add(h, raw(id));
    return id;
}

// The edge of the first of these characters, on a path to the node `below`.
StringTrie::Edge StringTrie::chain(std::u32string_view characters, StringNode below, Encoding spelling) {
    while (characters.size() - 1 > kMostChained) {
        const Edge last{characters[characters.size() - kMostChained - 1],
                        chained(characters.substr(characters.size() - kMostChained), below)};
        below = intern(kNone, {&last, 1}, spelling);
        characters.remove_suffix(kMostChained + 1);
    }
    return {characters[0], characters.size() == 1 ? below : chained(characters.substr(1), below)};
}

StringNode StringTrie::make_one(const Entry& text, Encoding spelling) {
    if (has_no_spelling(text.characters)) return kNoEntries;
    exprs_.fuel().spend(10 * (1 + text.characters.size()));
    const StringNode end = intern(text.end, {}, spelling);
    if (text.characters.empty()) return end;
    const Edge edge = chain(text.characters, end, spelling);
    return intern(kNone, {&edge, 1}, spelling);
}

// Builds the trie from sorted texts. `path` has a level for each position of the current text where texts end or diverge.
StringNode StringTrie::make(std::vector<Entry> texts, Encoding spelling) {
    if (texts.size() == 1) return make_one(texts[0], spelling);
    std::erase_if(texts, [](const Entry& text) { return has_no_spelling(text.characters); });
    std::sort(texts.begin(), texts.end(), [](const Entry& a, const Entry& b) { return a.characters < b.characters; });
    struct Level {
        std::size_t depth;
        std::vector<ExprId> ends;
        std::vector<Edge> edges;
    };
    std::vector<Level> path(1);
    std::u32string_view current;
    const auto close = [&](const Level& last) {
        return intern(last.ends.empty() ? kNone : last.ends.size() == 1 ? last.ends[0] : exprs_.unite(last.ends), last.edges, spelling);
    };
    const auto close_to = [&](std::size_t depth) {
        while (path.back().depth > depth) {
            const StringNode closed = close(path.back());
            const std::size_t end = path.back().depth;
            path.pop_back();
            if (path.back().depth < depth) path.push_back({depth, {}, {}});
            const std::size_t begin = path.back().depth;
            path.back().edges.push_back(chain(current.substr(begin, end - begin), closed, spelling));
        }
    };
    for (const Entry& text : texts) {
        exprs_.fuel().spend(10 * (1 + text.characters.size()));
        const auto apart = std::mismatch(text.characters.begin(), text.characters.end(), current.begin(), current.end()).first;
        close_to(static_cast<std::size_t>(apart - text.characters.begin()));
        current = text.characters;
        if (path.back().depth < current.size()) path.push_back({current.size(), {}, {}});
        path.back().ends.push_back(text.end);
    }
    close_to(0);
    return close(path[0]);
}

// The characters of an edge up to the next node. Sets `at` to this node.
std::u32string StringTrie::path_of(const Edge& edge, StringNode& at) const {
    std::u32string made{edge.first};
    for (at = edge.second; left(at); at = edges(at).begin()->second) made.push_back(character(at));
    return made;
}

// Copies the nodes on the path of the text, and shares the others.
StringNode StringTrie::plus(StringNode node, const std::u32string& text, ExprId end, Encoding spelling) {
    if (has_no_spelling(text)) return node;
    const std::u32string_view all = text;
    std::vector<std::pair<StringNode, std::size_t>> path;  // nodes, and their positions in the text
    std::size_t depth = 0;
    const auto edges_of = [&](const Node& n) {
        exprs_.fuel().spend(10 + n.count);
        return std::vector<Edge>(edges_.begin() + n.first, edges_.begin() + n.first + n.count);
    };
    const auto edge_of = [&](std::vector<Edge>& edges, std::size_t at) {
        return std::lower_bound(edges.begin(), edges.end(), Edge{text[at], {}});
    };
    const auto rest = [&](std::size_t from) { return chain(all.substr(from), intern(end, {}, spelling), spelling); };
    StringNode grown = kNoEntries;
    for (StringNode at = node; grown == kNoEntries;) {
        const Node n = nodes_[cells_[at]];
        std::vector<Edge> edges = edges_of(n);
        if (depth == text.size()) {
            grown = intern(n.end == kNone ? end : exprs_.unite({n.end, end}), edges, spelling);
            break;
        }
        const auto edge = edge_of(edges, depth);
        if (edge == edges.end() || edge->first != text[depth]) {
            edges.insert(edge, rest(depth));
            grown = intern(n.end, edges, spelling);
            break;
        }
        StringNode next;
        const std::u32string passed = path_of(*edge, next);
        const std::u32string_view left = all.substr(depth);
        const auto common = static_cast<std::size_t>(std::ranges::mismatch(passed, left).in1 - passed.begin());
        if (common == passed.size()) {
            path.emplace_back(at, depth);
            depth += common;
            at = next;
            continue;
        }
        std::vector<Edge> both{chain(std::u32string_view(passed).substr(common), next, spelling)};  // the texts diverge inside a chain
        if (common < left.size()) both.push_back(rest(depth + common));
        std::sort(both.begin(), both.end());
        *edge = chain(left.substr(0, common), intern(common < left.size() ? kNone : end, both, spelling), spelling);
        grown = intern(n.end, edges, spelling);
    }
    for (; !path.empty(); path.pop_back()) {
        const auto [at, begin] = path.back();
        const Node n = nodes_[cells_[at]];
        std::vector<Edge> edges = edges_of(n);
        *edge_of(edges, begin) = chain(all.substr(begin, depth - begin), grown, spelling);
        grown = intern(n.end, edges, spelling);
        depth = begin;
    }
    return grown;
}

StringTrie::Entry StringTrie::only_text(StringNode node) const {
    Entry made{{}, kNone};
    for (; children(node); node = edges(node).begin()->second) made.characters.push_back(edges(node).begin()->first);
    made.end = end(node);
    return made;
}

std::vector<StringTrie::Entry> StringTrie::texts(StringNode node) const {
    struct Open {
        StringNode node;
        std::uint32_t edge;
    };
    std::vector<Entry> made;
    std::vector<Open> path{{node, 0}};
    std::u32string current;
    if (end(node) != kNone) made.push_back({current, end(node)});
    while (!path.empty()) {
        Open& at = path.back();
        if (at.edge == children(at.node)) {
            path.pop_back();
            if (!current.empty()) current.pop_back();
            continue;
        }
        const auto [c, child] = edges(at.node).begin()[at.edge++];
        current.push_back(c);
        if (end(child) != kNone) made.push_back({current, end(child)});
        path.push_back({child, 0});
    }
    return made;
}

}  // namespace guideway
