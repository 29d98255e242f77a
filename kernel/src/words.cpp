#include "guideway/words.h"

#include <algorithm>

namespace guideway {

namespace {

// How a character is spelled, as far as it came. utf8: so many bytes, which `bits` holds; escape: a backslash; unit: so
// many digits behind \u; pair: so many bytes of \uXXXX behind a high surrogate, of which `bits` holds ten bits, and
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

// The letter that a character has behind a backslash, or 0.
char short_name(Spelling spelling, char32_t c) {
    for (unsigned i = 0; i < 8; ++i)
        if (kShortTargets[i] == c && (spelling == Spelling::escaped_any || c != '/')) return kShortNames[i];
    return 0;
}
bool is_raw(Spelling spelling, char32_t c) { return spelling == Spelling::text || (c >= 0x20 && c != '"' && c != '\\'); }
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

// The bytes by which a part goes on to a character that fits it.
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

std::uint32_t Words::lower(std::uint32_t node, char32_t c) const {
    const Node& at = nodes_[node];
    const auto begin = edges_.begin() + at.first, end = begin + at.count;
    return static_cast<std::uint32_t>(std::lower_bound(begin, end, c, [](const Edge& e, char32_t value) { return e.first < value; }) - edges_.begin());
}

Words::Step Words::next(std::uint32_t node, Part part, std::uint8_t byte) const {
    const Read made = read(spelling(node), part, byte);
    if (made.part == 0) {
        if (made.character > kLast) return {};
        const std::uint32_t at = lower(node, made.character);
        const bool found = at < nodes_[node].first + nodes_[node].count && edges_[at].first == made.character;
        return {found ? edges_[at].second : kNowhere, 0};
    }
    bool some = false;
    each_child(node, made.part, [&](std::uint32_t, std::uint32_t) { some = true; });
    return some ? Step{node, made.part} : Step{};
}

void Words::live(std::uint32_t node, Part part, ByteSet& made) const {
    std::pair<char32_t, char32_t> spans[2];
    const unsigned count = spans_of(spelling(node), part, spans);
    for (unsigned i = 0; i < count; ++i)
        for (std::uint32_t at = lower(node, spans[i].first); at < nodes_[node].first + nodes_[node].count && edges_[at].first <= spans[i].second; ++at)
            if (fits(spelling(node), part, edges_[at].first)) put_next(spelling(node), part, edges_[at].first, made);
}

std::uint32_t Words::shortest(std::uint32_t node, Part part) const {
    if (part == 0) return nodes_[node].shortest;
    std::uint32_t least = kInfinite;
    each_child(node, part, [&](std::uint32_t child, std::uint32_t rest) { least = std::min(least, sum(rest, nodes_[child].shortest)); });
    return least;
}

std::uint32_t Words::last_label_below(std::uint32_t node, Part part) const {
    std::uint32_t made = part == 0 && nodes_[node].end != kNone ? pool_.last_label(nodes_[node].end, true) : kInfinite;
    each_child(node, part, [&](std::uint32_t child, std::uint32_t) { made = greatest(made, nodes_[child].label); });
    return made;
}

std::uint32_t Words::intern(ExprId end, std::span<const Edge> edges, Spelling spelling) {
    if (end == kNone && edges.empty()) return kNowhere;
    std::uint64_t h = mix(static_cast<std::uint64_t>(spelling), end);
    for (const auto& [c, below] : edges) h = mix(h, std::uint64_t{c} << 32 | below);
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) {
        const Node& n = nodes_[id];
        return n.end == end && n.spelling == static_cast<std::uint8_t>(spelling) && n.count == edges.size() &&
               std::equal(edges.begin(), edges.end(), edges_.begin() + n.first);
    });
    if (known != IdTable::kMissing) return known;
    Node made;
    made.end = end;
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
    for (const auto& [c, below] : edges) {
        const Node& n = nodes_[below];
        made.shortest = std::min(made.shortest, sum(rest(spelling, 0, c), n.shortest));
        made.label = greatest(made.label, n.label);
        made.plain &= n.plain;
        made.spelled &= n.spelled;
        made.depth = std::max(made.depth, n.depth);
        made.texts = sum(made.texts, n.texts);
        made.characters = sum(made.characters, sum(n.characters, n.texts));
    }
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    const auto id = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(made);
    ids_.add(h, id);
    return id;
}

// Along the path of the current text, from sorted ones.
std::uint32_t Words::make(std::vector<Text> texts, Spelling spelling) {
    std::erase_if(texts, [](const Text& text) {
        return std::any_of(text.characters.begin(), text.characters.end(), [](char32_t c) { return (c >= 0xd800 && c < 0xe000) || c > kLast; });
    });
    std::sort(texts.begin(), texts.end(), [](const Text& a, const Text& b) { return a.characters < b.characters; });
    struct Level {
        std::vector<ExprId> ends;
        std::vector<Edge> edges;
    };
    std::vector<Level> path(1);  // as deep as the longest text so far; closed levels wait empty, with their memory
    std::u32string_view current;
    auto close = [&](Level& last) {
        const std::uint32_t closed = intern(last.ends.size() == 1 ? last.ends[0] : pool_.alt(last.ends), last.edges, spelling);
        last.ends.clear();
        last.edges.clear();
        return closed;
    };
    auto close_to = [&](std::size_t depth) {
        for (std::size_t at = current.size(); at > depth; --at) path[at - 1].edges.emplace_back(current[at - 1], close(path[at]));
    };
    for (const Text& text : texts) {
        const auto apart = std::mismatch(text.characters.begin(), text.characters.end(), current.begin(), current.end()).first;
        close_to(static_cast<std::size_t>(apart - text.characters.begin()));
        current = text.characters;
        if (path.size() <= current.size()) path.resize(current.size() + 1);
        path[current.size()].ends.push_back(text.end);
    }
    close_to(0);
    return close(path[0]);
}

// Copies the path of the text, and shares the rest.
std::uint32_t Words::plus(std::uint32_t node, const std::u32string& text, ExprId end, Spelling spelling) {
    std::vector<std::uint32_t> path{node};
    for (char32_t c : text) {
        if ((c >= 0xd800 && c < 0xe000) || c > kLast) return node;
        const Node& n = nodes_[path.back()];
        const std::uint32_t at = lower(path.back(), c);
        path.push_back(at < n.first + n.count && edges_[at].first == c ? edges_[at].second : kNowhere);
    }
    std::uint32_t below = kNowhere;
    for (std::size_t depth = path.size(); depth-- > 0;) {
        const Node n = nodes_[path[depth]];
        std::vector<Edge> edges(edges_.begin() + n.first, edges_.begin() + n.first + n.count);
        if (depth == text.size()) below = intern(n.end == kNone ? end : pool_.alt({n.end, end}), edges, spelling);
        else {
            const auto at = std::lower_bound(edges.begin(), edges.end(), Edge{text[depth], 0});
            if (at != edges.end() && at->first == text[depth]) at->second = below;
            else edges.insert(at, {text[depth], below});
            below = intern(n.end, edges, spelling);
        }
    }
    return below;
}

Words::Text Words::only_text(std::uint32_t node) const {
    Text made{{}, kNone};
    for (; nodes_[node].count; node = edges_[nodes_[node].first].second) made.characters.push_back(edges_[nodes_[node].first].first);
    made.end = nodes_[node].end;
    return made;
}

std::vector<Words::Text> Words::texts(std::uint32_t node) const {
    struct Open {
        std::uint32_t node, edge;
    };
    std::vector<Text> made;
    std::vector<Open> path{{node, 0}};
    std::u32string current;
    if (nodes_[node].end != kNone) made.push_back({current, nodes_[node].end});
    while (!path.empty()) {
        Open& at = path.back();
        if (at.edge == nodes_[at.node].count) {
            path.pop_back();
            if (!current.empty()) current.pop_back();
            continue;
        }
        const auto [c, below] = edges_[nodes_[at.node].first + at.edge++];
        current.push_back(c);
        if (nodes_[below].end != kNone) made.push_back({current, nodes_[below].end});
        path.push_back({below, 0});
    }
    return made;
}

}  // namespace guideway
