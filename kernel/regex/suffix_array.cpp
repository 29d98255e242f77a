#include "guideway/regex/suffix_array.h"

#include <algorithm>
#include <utility>

namespace guideway {

namespace {

constexpr std::uint32_t kNoPlace = 0xffffffff;

// One level of the algorithm. Only the last symbol is 0. A suffix is small if it is less than the one
// after it, and leftmost small if the suffix before it is not.
class Sorter {
public:
    Sorter(std::span<const std::uint32_t> symbols, std::uint32_t count, std::span<std::uint32_t> places)
        : symbols_(symbols), places_(places), small_(symbols.size()), ends_(count + 1, 0), next_(count) {
        const std::size_t n = symbols_.size();
        small_[n - 1] = true;
        for (std::size_t i = n - 1; i-- > 0;)
            small_[i] = symbols_[i] < symbols_[i + 1] || (symbols_[i] == symbols_[i + 1] && small_[i + 1]);
        for (const std::uint32_t s : symbols_) ++ends_[s + 1];
        for (std::size_t s = 1; s < ends_.size(); ++s) ends_[s] += ends_[s - 1];
    }

    bool is_leftmost(std::size_t i) const { return i > 0 && small_[i] && !small_[i - 1]; }

    // Sorts the substrings between leftmost small suffixes, and numbers them. Returns the number of different ones.
    // The last places contain the numbers, in the order of the text.
    std::uint32_t name() {
        std::fill(places_.begin(), places_.end(), kNoPlace);
        begin_at_ends();
        for (std::size_t i = symbols_.size(); i-- > 0;)
            if (is_leftmost(i)) places_[--next_[symbols_[i]]] = static_cast<std::uint32_t>(i);
        induce();
        count_ = 0;
        for (const std::uint32_t place : places_)
            if (is_leftmost(place)) places_[count_++] = place;
        std::fill(places_.begin() + count_, places_.end(), kNoPlace);
        std::uint32_t names = 0, before = kNoPlace;
        for (std::uint32_t k = 0; k < count_; ++k) {
            const std::uint32_t place = places_[k];
            if (before == kNoPlace || !same(before, place)) ++names;
            before = place;
            places_[count_ + place / 2] = names - 1;
        }
        std::uint32_t at = static_cast<std::uint32_t>(places_.size());
        for (std::uint32_t i = at; i-- > count_;)
            if (places_[i] != kNoPlace) places_[--at] = places_[i];
        return names;
    }

    std::uint32_t leftmost() const { return count_; }

    // Sorts all suffixes. The first places contain the order of the leftmost small suffixes.
    void finish() {
        std::vector<std::uint32_t> starts;
        starts.reserve(count_);
        for (std::size_t i = 1; i < symbols_.size(); ++i)
            if (is_leftmost(i)) starts.push_back(static_cast<std::uint32_t>(i));
        for (std::uint32_t k = 0; k < count_; ++k) places_[k] = starts[places_[k]];
        std::fill(places_.begin() + count_, places_.end(), kNoPlace);
        begin_at_ends();
        for (std::uint32_t k = count_; k-- > 0;) {
            const std::uint32_t place = std::exchange(places_[k], kNoPlace);
            places_[--next_[symbols_[place]]] = place;
        }
        induce();
    }

private:
    void begin_at_ends() { std::copy(ends_.begin() + 1, ends_.end(), next_.begin()); }

    // Sorts the other suffixes from the leftmost small ones: first those that are not small, then the small ones.
    void induce() {
        std::copy(ends_.begin(), ends_.end() - 1, next_.begin());
        for (std::size_t k = 0; k < places_.size(); ++k)
            if (const std::uint32_t place = places_[k]; place != kNoPlace && place > 0 && !small_[place - 1])
                places_[next_[symbols_[place - 1]]++] = place - 1;
        begin_at_ends();
        for (std::size_t k = places_.size(); k-- > 0;)
            if (const std::uint32_t place = places_[k]; place != kNoPlace && place > 0 && small_[place - 1])
                places_[--next_[symbols_[place - 1]]] = place - 1;
    }

    // Whether two of these substrings are equal.
    bool same(std::uint32_t a, std::uint32_t b) const {
        const std::size_t n = symbols_.size();
        if (a == n - 1 || b == n - 1) return a == b;
        for (std::size_t i = 0;; ++i) {
            if (symbols_[a + i] != symbols_[b + i] || small_[a + i] != small_[b + i]) return false;
            if (i > 0 && (is_leftmost(a + i) || is_leftmost(b + i))) return is_leftmost(a + i) && is_leftmost(b + i);
        }
    }

    std::span<const std::uint32_t> symbols_;
    std::span<std::uint32_t> places_;
    std::vector<bool> small_;
    std::vector<std::uint32_t> ends_, next_;  // of the ranges of places, by first symbol
    std::uint32_t count_ = 0;                 // number of leftmost small suffixes
};

// Each level has at most half as many symbols as the one above it.
void sort(std::span<const std::uint32_t> symbols, std::uint32_t count, std::span<std::uint32_t> places) {
    if (symbols.size() == 1) {
        places[0] = 0;
        return;
    }
    Sorter sorter(symbols, count, places);
    const std::uint32_t names = sorter.name(), leftmost = sorter.leftmost();
    const std::span<std::uint32_t> reduced = places.last(leftmost), order = places.first(leftmost);
    if (names < leftmost) {
        const std::vector<std::uint32_t> shorter(reduced.begin(), reduced.end());
        sort(shorter, names, order);
    } else {
        for (std::uint32_t i = 0; i < leftmost; ++i) order[reduced[i]] = i;
    }
    sorter.finish();
}

}  // namespace

std::vector<std::uint32_t> suffix_array(std::span<const std::uint32_t> symbols, std::uint32_t count) {
    std::vector<std::uint32_t> ended(symbols.size() + 1);
    for (std::size_t i = 0; i < symbols.size(); ++i) ended[i] = symbols[i] + 1;
    std::vector<std::uint32_t> places(ended.size());
    sort(ended, count + 1, places);
    places.erase(places.begin());  // the suffix of the added end symbol
    return places;
}

}  // namespace guideway
