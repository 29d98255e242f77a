#include "guideway/base/page_arena.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#ifdef __linux__
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace guideway {

namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20, kLine = 64;
constexpr std::size_t kSmallest = 1024, kLargest = kChunk / 8;  // sizes of pieces of chunks
constexpr std::size_t kUnit = 256, kUnits = kChunk / kUnit;     // pieces of chunks have a whole number of units

// With the address sanitizer, all pieces are separate allocations: only then does it detect writes after their end or after free.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUIDEWAY_PLAIN_PIECES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GUIDEWAY_PLAIN_PIECES
#endif
#ifdef GUIDEWAY_PLAIN_PIECES
constexpr bool kPlain = true;
#else
constexpr bool kPlain = false;
#endif

// Sizes are rounded to whole cache lines; pieces of chunks to whole units.
constexpr std::size_t rounded(std::size_t bytes) {
    const std::size_t step = bytes < kSmallest || bytes > kLargest ? kLine : kUnit;
    return (bytes + step - 1) / step * step;
}
constexpr bool is_plain(std::size_t bytes) { return kPlain || bytes < kSmallest; }
constexpr std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{bytes < kChunk ? kLine : kChunk}; }

void* take_alone(std::size_t bytes) {
    void* const place = ::operator new(bytes, alignment(bytes));
#ifdef MADV_HUGEPAGE
    if (bytes >= kChunk) madvise(place, bytes, MADV_HUGEPAGE);  // only a hint
#endif
    return place;
}
void give_alone(void* piece, std::size_t bytes) noexcept { ::operator delete(piece, alignment(bytes)); }

// A bit for each unit of a chunk.
class Marks {
public:
    bool operator[](std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
    void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
    void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
    std::size_t last_before(std::size_t i) const {  // there must be one
        std::size_t word = (i - 1) / 64;
        std::uint64_t some = words_[word] & ~std::uint64_t{0} >> (63 - (i - 1) % 64);
        while (!some) some = words_[--word];
        return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(some));
    }

private:
    std::array<std::uint64_t, kUnits / 64> words_{};
};

// The header of a chunk. The rest is divided into pieces in use and free pieces between them.
struct Chunk {
    Marks begins, free;  // units where a piece begins; units where a free piece begins
};
constexpr std::size_t kFirst = (sizeof(Chunk) + kUnit - 1) / kUnit;

struct Free {            // at the begin of a free piece
    Free *next, **back;  // next: in the list of its class; back: the pointer to this one
    std::size_t units;
};

// Free pieces in lists by size class, four classes for each doubling; adjacent free pieces are joined: as in Masmano et al., "TLSF: a
// new dynamic memory allocator for real-time systems" (2004). With lists of exact sizes, a seventh of all chunks was unused.
class Chunks {
public:
    Chunks() {
#ifdef __linux__
        pthread_atfork([] { all().lock_.lock(); }, [] { all().lock_.unlock(); },
                       [] { all().lock_.unlock(); });  // else a child could find it locked forever
#endif
    }

    static Chunks& all() {
        static auto* const made = new Chunks;  // never destroyed: static objects may use it until the end
        return *made;
    }

    void* take(std::size_t bytes) {
        const std::size_t units = bytes / kUnit;
        const std::lock_guard guard(lock_);
        Free* const found = find(units);
        Chunk& chunk = chunk_of(found);
        const std::size_t at = unit_of(found), left = found->units - units;
        unlink(found);
        chunk.free.reset(at);
        if (left) link(chunk, at + units, left);
        if (&chunk == spare_) spare_ = nullptr;
        return found;
    }

    void give(void* piece, std::size_t bytes) noexcept {
        const std::lock_guard guard(lock_);
        Chunk& chunk = chunk_of(piece);
        std::size_t at = unit_of(piece), units = bytes / kUnit;
        if (const std::size_t next = at + units; next < kUnits && chunk.free[next]) units += join(chunk, next);
        if (at > kFirst) {
            const std::size_t before = chunk.begins.last_before(at);
            if (chunk.free[before]) {
                chunk.begins.reset(at);
                units += join(chunk, before);
                at = before;
            }
        }
        if (units == kUnits - kFirst) {
            // One unused chunk is kept: else a table that is created and destroyed again and again would call the system each time.
            if (spare_) return give_alone(&chunk, kChunk);
            spare_ = &chunk;
        }
        link(chunk, at, units);
    }

private:
    static constexpr std::size_t kLooks = 16;  // maximum number of pieces examined in the class of the wanted size: they may be too small

    static Chunk& chunk_of(void* piece) { return *reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(piece) & ~(kChunk - 1)); }
    static std::size_t unit_of(void* piece) { return (reinterpret_cast<std::uintptr_t>(piece) & (kChunk - 1)) / kUnit; }
    static std::size_t class_of(std::size_t units) {
        const auto length = static_cast<std::size_t>(std::bit_width(units)) - 1;
        return 4 * length + (length < 2 ? 0 : units >> (length - 2) & 3);
    }

    Free* find(std::size_t units) {
        const std::size_t own = class_of(units);
        std::size_t looks = kLooks;
        for (Free* one = lists_[own]; one && looks-- > 0; one = one->next)
            if (one->units >= units) return one;
        const std::uint64_t larger = filled_ & ~std::uint64_t{0} << (own + 1);
        if (larger) return lists_[static_cast<std::size_t>(std::countr_zero(larger))];
        return link(*new (take_alone(kChunk)) Chunk, kFirst, kUnits - kFirst);
    }

    Free* link(Chunk& chunk, std::size_t at, std::size_t units) noexcept {
        chunk.begins.set(at);
        chunk.free.set(at);
        Free*& first = lists_[class_of(units)];
        first = new (reinterpret_cast<char*>(&chunk) + at * kUnit) Free{first, &first, units};
        if (first->next) first->next->back = &first->next;
        filled_ |= std::uint64_t{1} << class_of(units);
        return first;
    }
    void unlink(Free* free) noexcept {
        if (free->next) free->next->back = free->back;
        *free->back = free->next;
        if (!lists_[class_of(free->units)]) filled_ &= ~(std::uint64_t{1} << class_of(free->units));
    }
    // Removes a free piece, which becomes part of an adjacent one; returns its units.
    std::size_t join(Chunk& chunk, std::size_t at) noexcept {
        auto* const free = reinterpret_cast<Free*>(reinterpret_cast<char*>(&chunk) + at * kUnit);
        unlink(free);
        chunk.begins.reset(at);
        chunk.free.reset(at);
        return free->units;
    }

    std::mutex lock_;
    std::array<Free*, 4 * std::bit_width(kUnits)> lists_{};
    std::uint64_t filled_ = 0;  // bits: classes that are not empty
    Chunk* spare_ = nullptr;    // a chunk without pieces in use
};

}  // namespace

void* allocate_block(std::size_t bytes) {
    bytes = rounded(bytes);
    if (is_plain(bytes)) return ::operator new(bytes);
    return bytes > kLargest ? take_alone(bytes) : Chunks::all().take(bytes);
}

void free_block(void* piece, std::size_t bytes) noexcept {
    bytes = rounded(bytes);
    if (is_plain(bytes)) ::operator delete(piece);
    else if (bytes > kLargest) give_alone(piece, bytes);
    else Chunks::all().give(piece, bytes);
}

}  // namespace guideway
