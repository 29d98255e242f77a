// A set of byte values as 256 bits; and `mix`, a step of a hash.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace guideway {

struct ByteSet {
    std::array<std::uint64_t, 4> words{};

    static constexpr ByteSet range(unsigned low, unsigned high) {
        ByteSet made;
        constexpr std::uint64_t all = ~std::uint64_t{0};
        for (unsigned i = low >> 6; low <= high && i <= high >> 6; ++i)
            made.words[i] = (i == low >> 6 ? all << (low & 63) : all) & (i == high >> 6 ? all >> (63 - (high & 63)) : all);
        return made;
    }
    static constexpr ByteSet of(std::string_view bytes) {
        ByteSet made;
        for (const char b : bytes) made.insert(static_cast<std::uint8_t>(b));
        return made;
    }
    constexpr void insert(std::uint8_t b) { words[b >> 6] |= std::uint64_t{1} << (b & 63); }
    void erase(std::uint8_t b) { words[b >> 6] &= ~(std::uint64_t{1} << (b & 63)); }
    bool contains(std::uint8_t b) const { return (words[b >> 6] >> (b & 63)) & 1; }
    bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
    bool within(const ByteSet& other) const {
        for (std::size_t i = 0; i < 4; ++i)
            if (words[i] & ~other.words[i]) return false;
        return true;
    }
    bool meets(const ByteSet& other) const {
        for (std::size_t i = 0; i < 4; ++i)
            if (words[i] & other.words[i]) return true;
        return false;
    }
    unsigned size() const {
        unsigned n = 0;
        for (auto w : words) n += static_cast<unsigned>(std::popcount(w));
        return n;
    }
    // The smallest member that is at least b, -1 if there is none.
    int from(unsigned b) const {
        for (unsigned i = b >> 6; i < 4; ++i) {
            const std::uint64_t w = words[i] & (i == b >> 6 ? ~std::uint64_t{0} << (b & 63) : ~std::uint64_t{0});
            if (w) return static_cast<int>(i * 64 + static_cast<unsigned>(std::countr_zero(w)));
        }
        return -1;
    }
    unsigned rank(unsigned b) const {  // number of members less than b
        unsigned n = static_cast<unsigned>(std::popcount(words[b >> 6] & ((std::uint64_t{1} << (b & 63)) - 1)));
        for (unsigned i = 0; i < b >> 6; ++i) n += static_cast<unsigned>(std::popcount(words[i]));
        return n;
    }
    constexpr ByteSet& operator|=(const ByteSet& other) {
        for (std::size_t i = 0; i < 4; ++i) words[i] |= other.words[i];
        return *this;
    }
    ByteSet& operator&=(const ByteSet& other) {
        for (std::size_t i = 0; i < 4; ++i) words[i] &= other.words[i];
        return *this;
    }
    ByteSet& operator-=(const ByteSet& other) {
        for (std::size_t i = 0; i < 4; ++i) words[i] &= ~other.words[i];
        return *this;
    }
    friend bool operator==(const ByteSet&, const ByteSet&) = default;

    // Calls f(byte) for each member in rising order.
    template <class F>
    void each(F&& f) const {
        for (unsigned i = 0; i < 4; ++i)
            for (std::uint64_t w = words[i]; w; w &= w - 1)
                f(static_cast<std::uint8_t>(i * 64 + static_cast<unsigned>(std::countr_zero(w))));
    }
};

inline bool is_continuation(std::uint8_t b) { return (b & 0xc0) == 0x80; }
inline constexpr ByteSet kContinuation = ByteSet::range(0x80, 0xbf), kBeyondAscii = ByteSet::range(0x80, 0xff);  // of UTF-8

inline std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdULL;
    return h ^ (h >> 32);
}

struct ByteSetHash {
    std::size_t operator()(const ByteSet& s) const {
        std::uint64_t h = 1;
        for (auto w : s.words) h = mix(h, w);
        return static_cast<std::size_t>(h);
    }
};

}  // namespace guideway
