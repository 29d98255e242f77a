#include "guideway/regex/string_trie.h"

#include <algorithm>

namespace guideway {

namespace {

// How a character is spelled, as far as it came. utf8: this many bytes, which `bits` holds; escape: a backslash; unit: this
// many digits after \u; pair: this many bytes of \uXXXX after a high surrogate, of which `bits` holds ten bits, and
// below them the digits of the low one.
enum class Kind : std::uint32_t { none, utf8, escape, unit, pair };
constexpr char32_t kLast = 0x10ffff;
constexpr char kShortNames[] = "\"\\/bfnrt";
constexpr char32_t kShortTargets[] = {'"', '\\', '/', 8, 12, 10, 13, 9};

Part part_of(Kind kind, std::uint32_t count, std::uint32_t bits) { return static_cast<std::uint32_t>(kind) << 28 | count << 24 | bits; }
Kind kind_of(Part part) { return static_cast<Kind>(part >> 28); }
std::uint32_t count_of(Part part) { return part >> 24 & 15; }
std::uint32_t bits_of(Part part) { return part & 0xffffff; }

unsigned utf8_length(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }
unsigned length_of(std::uint32_t lead) { return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }
std::uint8_t utf8_byte(char32_t c, unsigned at) {
    const unsigned n = utf8_length(c);
    constexpr unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const std::uint32_t bits = c >> (6 * (n - 1 - at));
    return static_cast<std::uint8_t>(at ? 0x80 | (bits & 0x3f) : lead[n] | bits);
}

int digit_of(std::uint8_t b, bool upper) {
    if (b >= '0' && b <= '9') return b - '0';
    if (b >= 'a' && b <= 'f') return b - 'a' + 10;
    if (upper && b >= 'A' && b <= 'F') return b - 'A' + 10;
    return -1;
}

// The letter that a character has after a backslash, or 0.
char short_name(Spelling spelling, char32_t c) {
    for (unsigned i = 0; i < 8; ++i)
        if (kShortTargets[i] == c && (spelling == Spelling::escaped_any || c != '/')) return kShortNames[i];
    return 0;
}
bool is_raw(Spelling spelling, char32_t c) { return spelling == Spelling::text || !must_escape(c); }
bool has_unit(Spelling spelling, char32_t c) {
    return spelling == Spelling::escaped_any || (spelling == Spelling::escaped && c < 0x20 && !short_name(spelling, c));
}
char32_t high_of(char32_t c) { return 0xd800 + ((c - 0x10000) >> 10); }
char32_t low_of(char32_t c) { return 0xdc00 + ((c - 0x10000) & 0x3ff); }

std::uint32_t greatest(std::uint32_t a, std::uint32_t b) { return a == kInfinite ? b : b == kInfinite ? a : std::max(a, b); }

struct Read {  // what a byte makes of a part: another part, or a character
    Part part = 0;
    char32_t character = 0xffffffff;
};

Read read_first(Spelling spelling, std::uint8_t b) {
    if (spelling != Spelling::text && b == '\\') return {part_of(Kind::escape, 0, 0)};
    if (b < 0x80) return is_raw(spelling, b) ? Read{0, b} : Read{};
    return b >= 0xc2 && b <= 0xf4 ? Read{part_of(Kind::utf8, 1, b)} : Read{};
}

Read read_utf8(Part part, std::uint8_t b) {
    if ((b & 0xc0) != 0x80) return {};
    const std::uint32_t count = count_of(part), lead = bits_of(part) >> (8 * (count - 1)), n = length_of(lead);
    if (count + 1 < n) return {part_of(Kind::utf8, count + 1, bits_of(part) << 8 | b)};
    char32_t c = lead & (0x7fu >> n);
    for (std::uint32_t i = 1; i < count; ++i) c = c << 6 | (bits_of(part) >> (8 * (count - 1 - i)) & 0x3f);
    c = c << 6 | (b & 0x3f);
    return utf8_length(c) == n ? Read{0, c} : Read{};
}

Read read_unit(Spelling spelling, Part part, std::uint8_t b) {
    const int digit = digit_of(b, spelling == Spelling::escaped_any);
    if (digit < 0) return {};
    const std::uint32_t bits = bits_of(part) << 4 | static_cast<std::uint32_t>(digit);
    if (count_of(part) < 3) return {part_of(Kind::unit, count_of(part) + 1, bits)};
    if (bits >= 0xd800 && bits < 0xdc00 && spelling == Spelling::escaped_any) return {part_of(Kind::pair, 0, (bits & 0x3ff) << 12)};
    return has_unit(spelling, bits) ? Read{0, bits} : Read{};
}

Read read_pair(Part part, std::uint8_t b) {
    const std::uint32_t count = count_of(part), bits = bits_of(part);
    if (count < 2) return b == (count ? 'u' : '\\') ? Read{part_of(Kind::pair, count + 1, bits)} : Read{};
    const int digit = digit_of(b, true);
    if (digit < 0) return {};
    const std::uint32_t low = (bits & 0xfff) << 4 | static_cast<std::uint32_t>(digit), high = bits >> 12;
    if (count < 5) return {part_of(Kind::pair, count + 1, high << 12 | low)};
    return low >= 0xdc00 && low < 0xe000 ? Read{0, 0x10000 + (high << 10) + (low & 0x3ff)} : Read{};
}

Read read(Spelling spelling, Part part, std::uint8_t b) {
    switch (kind_of(part)) {
        case Kind::none: return read_first(spelling, b);
        case Kind::utf8: return read_utf8(part, b);
        case Kind::escape: {
            if (b == 'u') return {part_of(Kind::unit, 0, 0)};
            for (unsigned i = 0; i < 8; ++i)
                if (kShortNames[i] == static_cast<char>(b)) return short_name(spelling, kShortTargets[i]) ? Read{0, kShortTargets[i]} : Read{};
            return {};
        }
        case Kind::unit: return read_unit(spelling, part, b);
        case Kind::pair: return read_pair(part, b);
    }
    return {};
}

void put_digit(Spelling spelling, char32_t unit, std::uint32_t at, ByteSet& made) {
    const unsigned digit = unit >> (4 * (3 - at)) & 15;
    made.insert(static_cast<std::uint8_t>("0123456789abcdef"[digit]));
    if (spelling == Spelling::escaped_any) made.insert(static_cast<std::uint8_t>("0123456789ABCDEF"[digit]));
}

// The bytes by which a part continues to a character that fits it.
void put_next(Spelling spelling, Part part, char32_t c, ByteSet& made) {
    const std::uint32_t count = count_of(part);
    switch (kind_of(part)) {
        case Kind::none:
            if (is_raw(spelling, c)) made.insert(utf8_byte(c, 0));
            if (spelling != Spelling::text && (has_unit(spelling, c) || short_name(spelling, c))) made.insert('\\');
            return;
        case Kind::utf8: made.insert(utf8_byte(c, count)); return;
        case Kind::escape:
            if (const char name = short_name(spelling, c)) made.insert(static_cast<std::uint8_t>(name));
            if (has_unit(spelling, c)) made.insert('u');
            return;
        case Kind::unit: put_digit(spelling, c < 0x10000 ? c : high_of(c), count, made); return;
        case Kind::pair:
            if (count < 2) made.insert(count ? 'u' : '\\');
            else put_digit(spelling, low_of(c), count - 2, made);
            return;
    }
}

}  // namespace

// The characters that a part may become lie in these spans, two at most; not all of them need fit.
unsigned Words::spans_of(Spelling spelling, Part part, std::pair<char32_t, char32_t>* spans) {
    const std::uint32_t count = count_of(part), bits = bits_of(part);
    spans[0] = {0, kLast};
    switch (kind_of(part)) {
        case Kind::none: return 1;
        case Kind::utf8: {
            const std::uint32_t lead = bits >> (8 * (count - 1)), n = length_of(lead);
            char32_t c = lead & (0x7fu >> n);
            for (std::uint32_t i = 1; i < count; ++i) c = c << 6 | (bits >> (8 * (count - 1 - i)) & 0x3f);
            constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
            const std::uint32_t open = 6 * (n - count);
            spans[0] = {std::max<char32_t>(least[n], c << open), ((c + 1) << open) - 1};
            return 1;
        }
        case Kind::escape: return 1;
        case Kind::unit: {
            const std::uint32_t open = 4 * (4 - count), low = bits << open, high = ((bits + 1) << open) - 1;
            spans[0] = {low, high};
            if (spelling != Spelling::escaped_any || high < 0xd800 || low >= 0xdc00) return 1;
            spans[1] = {0x10000 + ((std::max(low, 0xd800u) & 0x3ff) << 10), 0x10000 + ((std::min(high, 0xdbffu) & 0x3ff) << 10) + 0x3ff};
            return 2;
        }
        case Kind::pair: {
            const char32_t first = 0x10000 + (bits >> 12 << 10);
            spans[0] = {first, first + 0x3ff};
            return 1;
        }
    }
    return 0;
}

bool Words::fits(Spelling spelling, Part part, char32_t c) {
    switch (kind_of(part)) {
        case Kind::none:
        case Kind::utf8: return true;
        case Kind::escape: return has_unit(spelling, c) || short_name(spelling, c);
        case Kind::unit: return has_unit(spelling, c);
        case Kind::pair: {
            const std::uint32_t count = count_of(part);
            return count < 3 || low_of(c) >> (4 * (6 - count)) == (bits_of(part) & 0xfff);
        }
    }
    return false;
}

// Bytes of the shortest spelling of a character that fits, less those that came.
std::uint32_t Words::rest(Spelling spelling, Part part, char32_t c) {
    const std::uint32_t count = count_of(part);
    switch (kind_of(part)) {
        case Kind::none: return is_raw(spelling, c) ? utf8_length(c) : short_name(spelling, c) ? 2 : 6;
        case Kind::utf8: return utf8_length(c) - count;
        case Kind::escape: return short_name(spelling, c) ? 1 : c < 0x10000 ? 5 : 11;
        case Kind::unit: return 4 - count + (c < 0x10000 ? 0 : 6);
        case Kind::pair: return 6 - count;
    }
    return 0;
}

Words::Step Words::next(std::uint32_t node, Part part, std::uint8_t byte) const {
    const Read made = read(spelling(node), part, byte);
    if (made.part == 0) {
        if (made.character > kLast) return {};
        const Edges all = edges(node);
        const Edge* const at = all.from(made.character);
        return {at != all.end() && at->first == made.character ? at->second : kNowhere, 0};
    }
    bool some = false;
    each_child(node, made.part, [&](std::uint32_t, std::uint32_t) { some = true; });
    return some ? Step{node, made.part} : Step{};
}

void Words::live(std::uint32_t node, Part part, ByteSet& made) const {
    each_character(node, part, [&](char32_t c) { put_next(spelling(node), part, c, made); });
}

std::uint32_t Words::shortest(std::uint32_t node, Part part) const {
    std::uint32_t least = below(node).shortest;
    if (part == 0) {
        for (std::uint32_t at = node, more = left(node); more > 0; --more, ++at) least = sum(least, rest(spelling(node), 0, character(at)));
        return least;
    }
    least = kInfinite;
    each_child(node, part, [&](std::uint32_t child, std::uint32_t rest) { least = std::min(least, sum(rest, shortest(child, 0))); });
    return least;
}

std::uint32_t Words::last_label_below(std::uint32_t node, Part part) const {
    const ExprId here = part == 0 ? end(node) : kNone;
    std::uint32_t made = here != kNone ? pool_.last_label(here, true) : kInfinite;
    each_child(node, part, [&](std::uint32_t child, std::uint32_t) { made = greatest(made, last_label(child)); });
    return made;
}

std::uint32_t Words::intern(ExprId end, std::span<const Edge> edges, Spelling spelling) {
    if (end == kNone && edges.empty()) return kNowhere;
    std::uint64_t h = mix(static_cast<std::uint64_t>(spelling), end);
    for (const auto& [c, child] : edges) h = mix(h, std::uint64_t{c} << 32 | child);
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) {
        const Node& n = nodes_[cells_[id]];
        return n.end == end && n.spelling == static_cast<std::uint8_t>(spelling) && n.count == edges.size() &&
               std::equal(edges.begin(), edges.end(), edges_.begin() + n.first);
    });
    if (known != IdTable::kMissing) return known;
    Node made;
    made.end = end;
    made.ends = end != kNone ? end : below(edges[0].second).ends;
    made.spelling = static_cast<std::uint8_t>(spelling);
    made.first = static_cast<std::uint32_t>(edges_.size());
    made.count = static_cast<std::uint32_t>(edges.size());
    if (end != kNone) {
        made.shortest = pool_.shortest(end);
        made.label = pool_.last_label(end, false);
        made.depth = pool_.depth(end);
        made.plain = end == kEmpty;
        made.spelled = pool_.spelled(end);
        made.texts = made.characters = 1;
    }
    for (const auto& [c, child] : edges) {
        const Node& n = below(child);
        made.shortest = std::min(made.shortest, sum(rest(spelling, 0, c), shortest(child, 0)));
        made.label = greatest(made.label, n.label);
        if (n.ends != made.ends) made.ends = kNone;
        made.plain &= n.plain;
        made.spelled &= n.spelled;
        made.depth = std::max(made.depth, n.depth);
        made.texts = sum(made.texts, n.texts);
        made.characters = sum(made.characters, sum(characters(child), n.texts));
    }
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    const auto id = static_cast<std::uint32_t>(cells_.size());
    cells_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back(made);
    ids_.add(h, id);
    return id;
}

// The first place of a chain of at least one character, kMostChained at most.
std::uint32_t Words::chained(std::u32string_view characters, std::uint32_t below) {
    std::uint64_t h = mix(characters.size(), below);
    for (const char32_t c : characters) h = (h ^ c) * 0x9e3779b97f4a7c15ULL;
    h = mix(h, h >> 32);
    const auto size = static_cast<std::uint32_t>(characters.size());
    const std::uint32_t known = chain_ids_.find(h, [&](std::uint32_t id) {
        if (left(id) != size || cells_[id + size] != below) return false;
        for (std::uint32_t i = 0; i < size; ++i)
            if (character(id + i) != characters[i]) return false;
        return true;
    });
    if (known != IdTable::kMissing) return known;
    const auto id = static_cast<std::uint32_t>(cells_.size());
    for (std::uint32_t i = 0; i < size; ++i) cells_.push_back(kInside | (size - i) << kCharacterBits | characters[i]);
    cells_.push_back(below);
    chain_ids_.add(h, id);
    return id;
}

// The edge by the first of these characters, which lead to the node.
Words::Edge Words::chain(std::u32string_view characters, std::uint32_t below, Spelling spelling) {
    while (characters.size() - 1 > kMostChained) {
        const Edge last{characters[characters.size() - kMostChained - 1], chained(characters.substr(characters.size() - kMostChained), below)};
        below = intern(kNone, {&last, 1}, spelling);
        characters.remove_suffix(kMostChained + 1);
    }
    return {characters[0], characters.size() == 1 ? below : chained(characters.substr(1), below)};
}

// Along the path of the current text, from sorted ones: a level for each place where texts end or part.
std::uint32_t Words::make(std::vector<Text> texts, Spelling spelling) {
    std::erase_if(texts, [](const Text& text) {
        return std::any_of(text.characters.begin(), text.characters.end(), [](char32_t c) { return (c >= 0xd800 && c < 0xe000) || c > kLast; });
    });
    std::sort(texts.begin(), texts.end(), [](const Text& a, const Text& b) { return a.characters < b.characters; });
    struct Level {
        std::size_t depth;
        std::vector<ExprId> ends;
        std::vector<Edge> edges;
    };
    std::vector<Level> path(1);
    std::u32string_view current;
    const auto close = [&](const Level& last) {
        return intern(last.ends.size() == 1 ? last.ends[0] : pool_.alt(last.ends), last.edges, spelling);
    };
    const auto close_to = [&](std::size_t depth) {
        while (path.back().depth > depth) {
            const std::uint32_t closed = close(path.back());
            const std::size_t end = path.back().depth;
            path.pop_back();
            if (path.back().depth < depth) path.push_back({depth, {}, {}});
            const std::size_t begin = path.back().depth;
            path.back().edges.push_back(chain(current.substr(begin, end - begin), closed, spelling));
        }
    };
    for (const Text& text : texts) {
        pool_.work().spend(10 * (1 + text.characters.size()));
        const auto apart = std::mismatch(text.characters.begin(), text.characters.end(), current.begin(), current.end()).first;
        close_to(static_cast<std::size_t>(apart - text.characters.begin()));
        current = text.characters;
        if (path.back().depth < current.size()) path.push_back({current.size(), {}, {}});
        path.back().ends.push_back(text.end);
    }
    close_to(0);
    return close(path[0]);
}

// Of an edge: the characters up to the next node, which `at` becomes.
std::u32string Words::way(const Edge& edge, std::uint32_t& at) const {
    std::u32string made{edge.first};
    for (at = edge.second; left(at); at = edges(at).begin()->second) made.push_back(character(at));
    return made;
}

// Copies the nodes on the way of the text, and shares the rest.
std::uint32_t Words::plus(std::uint32_t node, const std::u32string& text, ExprId end, Spelling spelling) {
    if (std::ranges::any_of(text, [](char32_t c) { return (c >= 0xd800 && c < 0xe000) || c > kLast; })) return node;
    const std::u32string_view all = text;
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // nodes, and where in the text they are
    std::size_t depth = 0;
    const auto edges_of = [&](const Node& n) {
        pool_.work().spend(10 + n.count);
        return std::vector<Edge>(edges_.begin() + n.first, edges_.begin() + n.first + n.count);
    };
    const auto edge_of = [&](std::vector<Edge>& edges, std::size_t at) { return std::lower_bound(edges.begin(), edges.end(), Edge{text[at], 0}); };
    const auto rest = [&](std::size_t from) { return chain(all.substr(from), intern(end, {}, spelling), spelling); };
    std::uint32_t grown = kNowhere;
    for (std::uint32_t at = node; grown == kNowhere;) {
        const Node n = nodes_[cells_[at]];
        std::vector<Edge> edges = edges_of(n);
        if (depth == text.size()) {
            grown = intern(n.end == kNone ? end : pool_.alt({n.end, end}), edges, spelling);
            break;
        }
        const auto edge = edge_of(edges, depth);
        if (edge == edges.end() || edge->first != text[depth]) {
            edges.insert(edge, rest(depth));
            grown = intern(n.end, edges, spelling);
            break;
        }
        std::uint32_t next;
        const std::u32string passed = way(*edge, next);
        const std::u32string_view left = all.substr(depth);
        const auto common = static_cast<std::size_t>(std::ranges::mismatch(passed, left).in1 - passed.begin());
        if (common == passed.size()) {
            path.emplace_back(at, depth);
            depth += common;
            at = next;
            continue;
        }
        std::vector<Edge> both{chain(std::u32string_view(passed).substr(common), next, spelling)};  // the ways part inside a chain
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

Words::Text Words::only_text(std::uint32_t node) const {
    Text made{{}, kNone};
    for (; children(node); node = edges(node).begin()->second) made.characters.push_back(edges(node).begin()->first);
    made.end = end(node);
    return made;
}

std::vector<Words::Text> Words::texts(std::uint32_t node) const {
    struct Open {
        std::uint32_t node, edge;
    };
    std::vector<Text> made;
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
