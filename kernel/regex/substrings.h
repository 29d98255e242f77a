// The substrings of a text as an automaton over bytes, in every spelling of their characters.
//
// For the user: `make` returns the state before the first character. A state is an expression of the pool (Op::substring), with
// the functions that `LazyDfa` needs: `next`, `live`, `shortest`, `ends`. Every state can be completed.
//
// A substring begins at a position with `kBegins` and ends at a position with `kEnds`: these flags express word boundaries.
// The text after the last end is left out, so each beginning of a substring can be completed. Characters may have
// variants, which count as the same character (letters of the other case).
//
// For the maintainer: the start positions are kept in the lexicographical order of their suffixes (a sparse suffix array). The
// start positions of all occurrences of a text are an interval of them, and a character narrows it by binary search. A single
// occurrence is stored as the next position in the text. The shortest completion of a state with many occurrences is computed once:
// the interval is searched breadth-first, and scanned if it is small. Memory is 4 bytes for a character of the text, 4 for its
// cost, and 4 for each start position. Not thread safe, like the pool.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/segmented_vector.h"
#include "guideway/regex/characters.h"

namespace guideway {

// Flags of the characters of a text: a substring can begin at it, or end before it.
inline constexpr std::uint32_t kBegins = 1, kEnds = 2;

class Fuel;

class Substrings {
public:
    static constexpr SubstringState kNowhere{0};  // the state without texts

    struct Text {
        std::u32string characters;
        std::vector<std::uint8_t> flags;                      // kBegins, kEnds: for each character, and for the end of the text
        std::vector<std::pair<char32_t, char32_t>> variants;  // sorted pairs: a variant, and the character of the text
        bool empty = false;                                   // whether the empty text is one of the substrings
    };
    // The occurrences [low, high) in the suffix array, after `depth` characters; `high` 0: one occurrence, with `low` as the next
    // position in the text.
    struct Interval {
        std::uint32_t source, low, high, depth;
        bool operator==(const Interval&) const = default;
    };

    explicit Substrings(Fuel& fuel) : fuel_(fuel) { states_.push_back({}); }

    // kNowhere: there are no substrings.
    SubstringState make(Text&& text, Encoding spelling);
    // The step by a byte of a character.
    std::pair<SubstringState, DecoderState> next(SubstringState state, DecoderState part, std::uint8_t byte);
    void live(SubstringState state, DecoderState part, ByteSet& made) const;
    // Length of the shortest completion.
    std::uint32_t shortest(SubstringState state, DecoderState part) const;
    bool ends(SubstringState state) const;
    Encoding spelling(SubstringState state) const { return source_of(states_[state]).spelling; }
    std::size_t bytes() const;

    // The same without interned states, for walks. `nowhere`: an interval without occurrences.
    const Interval& interval(SubstringState state) const { return states_[state]; }
    static bool nowhere(const Interval& at) { return at.high == 0 && at.depth == 0; }
    std::pair<Interval, DecoderState> next(const Interval& at, DecoderState part, std::uint8_t byte) const;
    void live(const Interval& at, DecoderState part, ByteSet& made) const;
    bool ends(const Interval& at) const;

private:
    struct Source {
        Encoding spelling;
        std::u32string text;                    // up to its last end
        std::vector<std::uint32_t> cost;        // number of bytes from a position to the next end; 0: a substring can end there
        std::vector<std::uint32_t> beginnings;  // start positions in the order of their suffixes
        std::vector<std::pair<char32_t, std::uint32_t>> firsts;  // first characters, and the first index in `beginnings` of each
        std::vector<std::pair<char32_t, char32_t>> variants;     // by variant
        std::vector<std::pair<char32_t, char32_t>> variants_of;  // by the character of the text
        std::uint64_t hash = 0;
        std::size_t length = 0;  // of the whole text
        bool empty = false;
    };

    const Source& source_of(const Interval& at) const { return sources_[at.source]; }
    SubstringState intern(const Interval& at);
    // The character after `depth` others, plus 1; 0 at the end.
    static std::uint32_t symbol(const Source& source, std::uint32_t beginning, std::uint32_t depth) {
        const std::uint64_t place = std::uint64_t{beginning} + depth;
        return place < source.text.size() ? static_cast<std::uint32_t>(source.text[place]) + 1 : 0;
    }
    static Interval alone(std::uint32_t source, std::uint32_t place) { return {source, place, 0, 1}; }
    static bool same(const Source& source, const Text& text, Encoding spelling);
    static void fill(Source& source, const Text& text, Fuel& fuel);
    std::pair<std::uint32_t, std::uint32_t> narrowed(const Source& source, const Interval& at, char32_t first, char32_t last) const;
    Interval after(const Interval& at, char32_t c) const;
    // Calls f(character of the text) for each next character in a span, until it returns true.
    template <class F>
    bool each_next(const Interval& at, char32_t first, char32_t last, F&& f) const;
    // Calls f(character) for each next character or variant in a span, until it returns true.
    template <class F>
    bool each_written(const Interval& at, char32_t first, char32_t last, F&& f) const;
    std::uint32_t cheapest(const Source& source, const Interval& at) const;
    static std::uint32_t bytes_of(const Source& source, char32_t c);

    Fuel& fuel_;
    std::deque<Source> sources_;
    SegmentedVector<Interval, 8, SubstringState> states_;
    InternTable ids_;
};

}  // namespace guideway
