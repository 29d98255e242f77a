#include "guideway/regex/substrings.h"

#include <algorithm>
#include <unordered_map>

#include "guideway/base/fuel.h"
#include "guideway/base/sort_unique.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/suffix_array.h"

namespace guideway {

namespace {

constexpr std::uint32_t kScanned = 2048;      // maximum size of an interval that is scanned
constexpr std::uint64_t kCharacterWork = 20;  // for a character of a text: about 0.2 us

}  // namespace

std::uint32_t Substrings::bytes_of(const Source& source, char32_t c) {
    std::uint32_t least = bytes_left(source.spelling, kBetween, c);
    for (auto at = std::lower_bound(source.variants_of.begin(), source.variants_of.end(), std::pair{c, char32_t{0}});
         at != source.variants_of.end() && at->first == c; ++at)
        least = std::min(least, bytes_left(source.spelling, kBetween, at->second));
    return least;
}

void Substrings::fill(Source& source, const Text& text, Fuel& fuel) {
    std::size_t size = text.characters.size();
    while (size > 0 && !(text.flags[size] & kEnds)) --size;
    fuel.spend(kCharacterWork * (text.characters.size() + 1));
    source.text = text.characters.substr(0, size);
    source.text.shrink_to_fit();
    source.length = text.characters.size();
    source.empty = text.empty;
    source.variants = text.variants;
    for (const auto& [variant, character] : text.variants) source.variants_of.emplace_back(character, variant);
    std::sort(source.variants_of.begin(), source.variants_of.end());
    std::vector<std::uint32_t> symbols(source.text.begin(), source.text.end());
    sort_unique(symbols);
    std::unordered_map<std::uint32_t, std::uint32_t> ranks, costs;
    for (const std::uint32_t c : symbols) {
        ranks.emplace(c, static_cast<std::uint32_t>(ranks.size()));
        costs.emplace(c, bytes_of(source, c));
    }
    source.cost.assign(size + 1, 0);
    for (std::size_t i = size; i-- > 0;) source.cost[i] = text.flags[i] & kEnds ? 0 : sum(costs.at(source.text[i]), source.cost[i + 1]);
    std::vector<std::uint32_t> ranked(size);
    for (std::size_t i = 0; i < size; ++i) ranked[i] = ranks.at(source.text[i]);
    for (const std::uint32_t place : suffix_array(ranked, static_cast<std::uint32_t>(symbols.size())))
        if (text.flags[place] & kBegins) source.beginnings.push_back(place);
    source.beginnings.shrink_to_fit();
    for (std::uint32_t k = 0; k < source.beginnings.size(); ++k)
        if (const char32_t c = source.text[source.beginnings[k]]; source.firsts.empty() || source.firsts.back().first != c)
            source.firsts.emplace_back(c, k);
}

bool Substrings::same(const Source& source, const Text& text, Encoding spelling) {
    if (source.spelling != spelling || source.empty != text.empty || source.length != text.characters.size() ||
        source.variants != text.variants)
        return false;
    const std::size_t size = source.text.size();
    if (text.characters.compare(0, size, source.text) != 0) return false;
    for (std::size_t i = 0; i < text.flags.size(); ++i)
        if (i > 0 && (i <= size && source.cost[i] == 0) != ((text.flags[i] & kEnds) != 0)) return false;
    const auto begins = [&](std::uint8_t flags) { return (flags & kBegins) != 0; };
    const auto count = std::count_if(text.flags.begin(), text.flags.begin() + static_cast<std::ptrdiff_t>(size), begins);
    return static_cast<std::size_t>(count) == source.beginnings.size() &&
           std::all_of(source.beginnings.begin(), source.beginnings.end(), [&](std::uint32_t place) { return begins(text.flags[place]); });
}

SubstringState Substrings::make(Text&& text, Encoding spelling) {
    std::uint64_t hash = mix(static_cast<std::uint64_t>(spelling), text.characters.size());
    for (const char32_t c : text.characters) hash = (hash ^ c) * 0x9e3779b97f4a7c15ULL;
    for (const std::uint8_t f : text.flags) hash = (hash ^ f) * 0x9e3779b97f4a7c15ULL;
    std::uint32_t number = 0;
    while (number < sources_.size() && !(sources_[number].hash == hash && same(sources_[number], text, spelling))) ++number;
    if (number == sources_.size()) {
        Source made{spelling, {}, {}, {}, {}, {}, {}, hash, 0, false};
        fill(made, text, fuel_);
        sources_.push_back(std::move(made));
    }
    const auto count = static_cast<std::uint32_t>(sources_[number].beginnings.size());
    return count == 0 ? kNowhere : intern({number, 0, count, 0});
}

SubstringState Substrings::intern(const Interval& at) {
    if (nowhere(at)) return kNowhere;
    const std::uint64_t h = mix(mix(mix(at.source, at.low), at.high), at.depth);
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) { return states_[SubstringState{id}] == at; });
    if (known != InternTable::kMissing) return SubstringState{known};
    const auto id = next_id<SubstringState>(states_);
    states_.push_back(at);
    ids_.add(h, raw(id));
    return id;
}

// The part of an interval whose next character is in a span.
std::pair<std::uint32_t, std::uint32_t> Substrings::narrowed(const Source& source, const Interval& at, char32_t first,
                                                             char32_t last) const {
    if (at.depth == 0) {
        const auto place = [&](char32_t c) {
            const auto found = std::lower_bound(source.firsts.begin(), source.firsts.end(), std::pair{c, std::uint32_t{0}});
            return found == source.firsts.end() ? at.high : found->second;
        };
        return {place(first), last >= kLastCharacter ? at.high : place(last + 1)};
    }
    const std::uint32_t* const all = source.beginnings.data();
    const auto place = [&](std::uint32_t low, std::uint32_t high, std::uint32_t wanted) {
        while (low < high) {
            const std::uint32_t middle = low + (high - low) / 2;
            if (symbol(source, all[middle], at.depth) < wanted) low = middle + 1;
            else high = middle;
        }
        return low;
    };
    const std::uint32_t low = place(at.low, at.high, static_cast<std::uint32_t>(first) + 1);
    if (low == at.high || symbol(source, all[low], at.depth) > static_cast<std::uint32_t>(last) + 1) return {low, low};
    // Usually few occurrences have the same next character: an exponential search finds the end near the begin.
    const std::uint32_t beyond = static_cast<std::uint32_t>(last) + 2;
    std::uint32_t step = 1, from = low;
    while (from + step < at.high && symbol(source, all[from + step], at.depth) < beyond) {
        from += step;
        step *= 2;
    }
    return {low, place(from + 1, std::min(from + step, at.high), beyond)};
}

Substrings::Interval Substrings::after(const Interval& at, char32_t written) const {
    const Source& source = source_of(at);
    char32_t c = written;
    if (!source.variants.empty()) {
        const auto found = std::lower_bound(source.variants.begin(), source.variants.end(), std::pair{written, char32_t{0}});
        if (found != source.variants.end() && found->first == written) c = found->second;
    }
    if (at.high == 0) return at.low < source.text.size() && source.text[at.low] == c ? alone(at.source, at.low + 1) : Interval{};
    const auto [low, high] = narrowed(source, at, c, c);
    if (low == high) return {};
    return high - low == 1 ? alone(at.source, source.beginnings[low] + at.depth + 1) : Interval{at.source, low, high, at.depth + 1};
}

template <class F>
bool Substrings::each_next(const Interval& at, char32_t first, char32_t last, F&& f) const {
    const Source& source = source_of(at);
    if (at.high == 0) {
        if (at.low >= source.text.size()) return false;  // at the end of the text
        const char32_t c = source.text[at.low];
        return c >= first && c <= last && f(c);
    }
    if (at.depth == 0) {
        for (auto found = std::lower_bound(source.firsts.begin(), source.firsts.end(), std::pair{first, std::uint32_t{0}});
             found != source.firsts.end() && found->first <= last; ++found)
            if (f(found->first)) return true;
        return false;
    }
    Interval rest = at;
    while (rest.low < rest.high && first <= last) {
        const auto [low, high] = narrowed(source, rest, first, last);
        if (low == high) return false;
        const char32_t c = symbol(source, source.beginnings[low], at.depth) - 1;
        if (f(c)) return true;
        rest.low = low;
        rest.high = high;
        rest.low = narrowed(source, rest, c, c).second;
        first = c + 1;
    }
    return false;
}

template <class F>
bool Substrings::each_written(const Interval& at, char32_t first, char32_t last, F&& f) const {
    if (each_next(at, first, last, f)) return true;
    const Source& source = source_of(at);
    for (auto v = std::lower_bound(source.variants.begin(), source.variants.end(), std::pair{first, char32_t{0}});
         v != source.variants.end() && v->first <= last; ++v)
        if (!nowhere(after(at, v->first)) && f(v->first)) return true;
    return false;
}

std::pair<Substrings::Interval, DecoderState> Substrings::next(const Interval& at, DecoderState part, std::uint8_t byte) const {
    const Encoding how = source_of(at).spelling;
    const CharacterRead made = read_character(how, part, byte);
    if (made.part == kBetween) return {made.character > kLastCharacter ? Interval{} : after(at, made.character), kBetween};
    std::pair<char32_t, char32_t> spans[2];
    const unsigned count = spans_of(how, made.part, spans);
    for (unsigned i = 0; i < count; ++i)
        if (each_written(at, spans[i].first, spans[i].second, [&](char32_t c) { return fits(how, made.part, c); })) return {at, made.part};
    return {{}, kBetween};
}

std::pair<SubstringState, DecoderState> Substrings::next(SubstringState state, DecoderState part, std::uint8_t byte) {
    const auto [at, made] = next(states_[state], part, byte);
    return {made == kBetween ? intern(at) : state, made};
}

void Substrings::live(const Interval& at, DecoderState part, ByteSet& made) const {
    const Encoding how = source_of(at).spelling;
    std::pair<char32_t, char32_t> spans[2];
    const unsigned count = spans_of(how, part, spans);
    for (unsigned i = 0; i < count; ++i)
        each_written(at, spans[i].first, spans[i].second, [&](char32_t c) {
            if (fits(how, part, c)) put_next(how, part, c, made);
            return false;
        });
}

void Substrings::live(SubstringState state, DecoderState part, ByteSet& made) const { live(states_[state], part, made); }

// Whether a substring can end here. Of occurrences with the same next character, all can end here or none: so few are examined.
bool Substrings::ends(const Interval& at) const {
    const Source& source = source_of(at);
    if (at.depth == 0) return source.empty;
    if (at.high == 0) return source.cost[at.low] == 0;
    for (std::uint32_t k = at.low; k < at.high;) {
        if (source.cost[source.beginnings[k] + at.depth] == 0) return true;
        if (at.high - at.low <= 64) {
            ++k;
            continue;
        }
        const std::uint32_t here = symbol(source, source.beginnings[k], at.depth);
        k = narrowed(source, {at.source, k, at.high, at.depth}, here - 1, here - 1).second;  // 0 is an end
    }
    return false;
}

bool Substrings::ends(SubstringState state) const { return ends(states_[state]); }

// The number of bytes to the nearest end. Large intervals are divided by their next character, breadth-first.
std::uint32_t Substrings::cheapest(const Source& source, const Interval& start) const {
    struct Open {
        Interval at;
        std::uint32_t cost;
    };
    std::uint32_t best = kInfinite;
    std::vector<Open> open{{start, 0}};
    for (std::size_t i = 0; i < open.size(); ++i) {
        const Interval at = open[i].at;
        const std::uint32_t cost = open[i].cost;
        if (cost >= best) continue;
        fuel_.spend(1 + std::min(at.high - at.low, kScanned) / 8);
        if (at.high - at.low <= kScanned && at.depth > 0) {
            for (std::uint32_t k = at.low; k < at.high; ++k) best = std::min(best, sum(cost, source.cost[source.beginnings[k] + at.depth]));
            continue;
        }
        if (ends(at)) {
            best = std::min(best, cost);
            continue;
        }
        each_next(at, 0, kLastCharacter, [&](char32_t c) {
            const Interval to = after(at, c);
            const std::uint32_t more = sum(cost, bytes_of(source, c));
            if (to.high == 0) best = std::min(best, sum(more, source.cost[to.low]));
            else open.push_back({to, more});
            return false;
        });
    }
    return best;
}

std::uint32_t Substrings::shortest(SubstringState state, DecoderState part) const {
    const Interval at = states_[state];
    const Source& source = source_of(at);
    if (part == kBetween) return at.high == 0 ? source.cost[at.low] : cheapest(source, at);
    std::uint32_t best = kInfinite;
    std::pair<char32_t, char32_t> spans[2];
    const unsigned count = spans_of(source.spelling, part, spans);
    for (unsigned i = 0; i < count; ++i)
        each_written(at, spans[i].first, spans[i].second, [&](char32_t c) {
            if (!fits(source.spelling, part, c)) return false;
            const Interval to = after(at, c);
            best = std::min(best, sum(bytes_left(source.spelling, part, c), to.high == 0 ? source.cost[to.low] : cheapest(source, to)));
            return false;
        });
    return best;
}

std::size_t Substrings::bytes() const {
    std::size_t made = states_.size() * sizeof(Interval) + ids_.bytes();
    for (const Source& one : sources_)
        made += one.text.size() * 4 + one.cost.size() * 4 + one.beginnings.size() * 4 + (one.firsts.size() + 2 * one.variants.size()) * 8;
    return made;
}

}  // namespace guideway
