#include "guideway/regex/encoding.h"

#include <algorithm>
#include <map>
#include <string>

#include "guideway/regex/characters.h"
#include "guideway/regex/string_trie.h"
#include "guideway/regex/structure.h"

namespace guideway {

namespace {

const Ranges& all_characters() {
    static const Ranges all{{0, kLastCharacter}};
    return all;
}
// The part of `ranges` inside [low, high].
Ranges clip(const Ranges& ranges, std::uint32_t low, std::uint32_t high) {
    Ranges kept;
    for (auto [a, b] : ranges)
        if (a <= high && b >= low) kept.emplace_back(std::max(a, low), std::min(b, high));
    return kept;
}

// Splits [low, high] into pieces in which all digits (of `bits` bits, `count` of them) after the first that differs have their
// whole range; calls f for each piece.
template <class F>
void split_digits(std::uint32_t low, std::uint32_t high, unsigned bits, unsigned count, F&& f) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> work{{low, high}};
    while (!work.empty()) {
        auto [a, b] = work.back();
        work.pop_back();
        bool whole = true;
        for (unsigned i = 1; i < count && whole; ++i) {
            const std::uint32_t m = (1u << (bits * i)) - 1;
            if ((a & ~m) == (b & ~m)) continue;
            if (a & m) {
                work.emplace_back((a | m) + 1, b);
                work.emplace_back(a, a | m);
                whole = false;
            } else if ((b & m) != m) {
                work.emplace_back(b & ~m, b);
                work.emplace_back(a, (b & ~m) - 1);
                whole = false;
            }
        }
        if (whole) f(a, b);
    }
}

}  // namespace

ExprId Encoder::join(const std::vector<std::pair<unsigned, unsigned>>& pieces) {
    ExprId made = kEmpty;
    for (auto i = pieces.rbegin(); i != pieces.rend(); ++i) made = exprs_.concat(exprs_.set(ByteSet::range(i->first, i->second)), made);
    return made;
}

ExprId Encoder::utf8(const Ranges& ranges) {
    std::map<ExprId, ByteSet> by_tail;  // lead bytes with the same tail are in one set
    auto add = [&](std::uint32_t low, std::uint32_t high) {
        const unsigned n = utf8_length(high);
        split_digits(low, high, 6, n, [&](std::uint32_t a, std::uint32_t b) {
            std::vector<std::pair<unsigned, unsigned>> tail;
            for (unsigned i = 1; i < n; ++i) tail.emplace_back(utf8_byte(a, i), utf8_byte(b, i));
            by_tail[join(tail)] |= ByteSet::range(utf8_byte(a, 0), utf8_byte(b, 0));
        });
    };
    constexpr std::pair<std::uint32_t, std::uint32_t> lengths[] = {
        {0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, kLastCharacter}};
    for (auto [low, high] : lengths)
        for (auto [a, b] : clip(ranges, low, high)) add(a, b);
    std::vector<ExprId> parts;
    for (const auto& [tail, leads] : by_tail) parts.push_back(exprs_.concat(exprs_.set(leads), tail));
    return exprs_.unite(std::move(parts));
}

ExprId Encoder::hex4(std::uint32_t low, std::uint32_t high) {
    auto digits = [&](unsigned a, unsigned b) {
        ByteSet set;
        for (unsigned d = a; d <= b; ++d) {
            set.insert(static_cast<std::uint8_t>("0123456789abcdef"[d]));
            set.insert(static_cast<std::uint8_t>("0123456789ABCDEF"[d]));
        }
        return exprs_.set(set);
    };
    std::vector<ExprId> parts;
    split_digits(low, high, 4, 4, [&](std::uint32_t a, std::uint32_t b) {
        ExprId made = kEmpty;
        for (unsigned shift = 0; shift < 16; shift += 4) made = exprs_.concat(digits(a >> shift & 15, b >> shift & 15), made);
        parts.push_back(made);
    });
    return exprs_.unite(std::move(parts));
}

ExprId Encoder::escapes(const Ranges& ranges, Encoding spelling) {
    const bool any = spelling == Encoding::escaped_any;
    std::vector<ExprId> parts;  // texts after the backslash
    ByteSet shorts;
    for (unsigned i = 0; i < 8; ++i)
        if (!clip(ranges, kShortTargets[i], kShortTargets[i]).empty() && (any || kShortNames[i] != '/'))
            shorts.insert(static_cast<std::uint8_t>(kShortNames[i]));
    parts.push_back(exprs_.set(shorts));
    const ExprId backslash = literal(exprs_, "\\"), u = literal(exprs_, "u");
    if (!any) {
        const auto digit = [](unsigned d) {
            const auto b = static_cast<unsigned>("0123456789abcdef"[d]);
            return std::pair<unsigned, unsigned>{b, b};
        };
        for (auto [low, high] : clip(ranges, 0, 0x1f))
            for (std::uint32_t c = low; c <= high; ++c)
                if (std::ranges::find(kShortTargets, c) == kShortTargets.end())
                    parts.push_back(exprs_.concat(u, join({digit(0), digit(0), digit(c >> 4), digit(c & 15)})));
        return exprs_.concat(backslash, exprs_.unite(std::move(parts)));
    }
    for (auto [low, high] : clip(ranges, 0, 0xd7ff)) parts.push_back(exprs_.concat(u, hex4(low, high)));
    for (auto [low, high] : clip(ranges, 0xe000, 0xffff)) parts.push_back(exprs_.concat(u, hex4(low, high)));
    const ExprId low_escape = literal(exprs_, "\\u");
    auto pair = [&](std::uint32_t h1, std::uint32_t h2, std::uint32_t l1, std::uint32_t l2) {
        if (h1 <= h2 && l1 <= l2)
            parts.push_back(
                exprs_.concat(u, exprs_.concat(hex4(0xd800 + h1, 0xd800 + h2), exprs_.concat(low_escape, hex4(0xdc00 + l1, 0xdc00 + l2)))));
    };
    for (auto [low, high] : clip(ranges, 0x10000, kLastCharacter)) {
        const std::uint32_t h1 = (low - 0x10000) >> 10, h2 = (high - 0x10000) >> 10, l1 = low & 0x3ff, l2 = high & 0x3ff;
        if (h1 == h2) {
            pair(h1, h1, l1, l2);
            continue;
        }
        pair(h1, h1, l1, 0x3ff);
        if (h2 > h1 + 1) pair(h1 + 1, h2 - 1, 0, 0x3ff);
        pair(h2, h2, 0, l2);
    }
    return exprs_.concat(backslash, exprs_.unite(std::move(parts)));
}

ExprId Encoder::characters(const Ranges& ranges, Encoding spelling) {
    const auto mode = static_cast<unsigned>(spelling);
    if (auto known = known_[mode].find(ranges); known != known_[mode].end()) return known->second;
    ExprId made;
    if (spelling == Encoding::text) made = utf8(ranges);
    else {
        Ranges raw;
        for (auto [low, high] : {std::pair<std::uint32_t, std::uint32_t>{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastCharacter}})
            for (auto r : clip(ranges, low, high)) raw.push_back(r);
        made = exprs_.unite({utf8(raw), escapes(ranges, spelling)});
    }
    if (made > kEmpty) exprs_.mark_within(made, mode);
    if (spelling == Encoding::escaped_any) exprs_.mark_encoding_closed(made);
    // Here, not in `universe`: repetitions of all characters can be constructed without a call of `universe`.
    if (ranges == all_characters()) exprs_.mark_universe(exprs_.repeat(made, 0, kInfinite), mode);
    exprs_.grew(80 + ranges.size() * sizeof ranges[0]);
    known_[mode].emplace(ranges, made);
    return made;
}

ExprId Encoder::universe(Encoding spelling) { return exprs_.repeat(characters(all_characters(), spelling), 0, kInfinite); }

ExprId Encoder::literals(std::vector<std::u32string> texts, Encoding spelling, ExprId tail) {
    if (texts.size() == 1 && texts[0].size() == 1) {  // a single character, such as a quote, is a set of bytes, as elsewhere
        const char32_t c = texts[0][0];
        return exprs_.concat(characters({{c, c}}, spelling), tail);
    }
    const bool ends = may_end_strings(exprs_[tail]);
    std::vector<StringTrie::Entry> all;
    all.reserve(texts.size());
    for (auto& text : texts) all.push_back({std::move(text), ends ? tail : kEmpty});
    const ExprId made = exprs_.string_state(exprs_.strings().make(std::move(all), spelling));
    return ends ? made : exprs_.concat(made, tail);
}

}  // namespace guideway
