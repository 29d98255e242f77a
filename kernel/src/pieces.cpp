#include "guideway/pieces.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#ifdef __linux__
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace guideway {

namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20, kLine = 64;
constexpr std::size_t kSmallest = 1024, kLargest = kChunk / 8;  // of what comes out of chunks

// Which piece was written beyond its end, or after it was given back, a sanitizer sees only of pieces of its own.
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

// Whole lines; of what comes out of chunks, one of four sizes for each doubling: what one table gives back fits another. Of odd sizes
// a quarter of all chunks lay idle.
constexpr std::size_t rounded(std::size_t bytes) {
    const std::size_t step = bytes < kSmallest || bytes > kLargest ? kLine : std::bit_floor(bytes) / 4;
    return (bytes + step - 1) / step * step;
}
constexpr bool is_plain(std::size_t bytes) { return kPlain || bytes < kSmallest; }
constexpr std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{bytes < kChunk ? kLine : kChunk}; }

void* take_alone(std::size_t bytes) {
    void* const place = ::operator new(bytes, alignment(bytes));
#ifdef MADV_HUGEPAGE
    if (bytes >= kChunk) madvise(place, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
#endif
    return place;
}
void give_alone(void* piece, std::size_t bytes) noexcept { ::operator delete(piece, alignment(bytes)); }

struct Chunk {  // stands at its own beginning
    std::size_t pieces = 0, used = kLine;  // pieces that somebody has; bytes that were given out once
};
static_assert(sizeof(Chunk) <= kLine);

struct Free {  // stands in a piece that nobody has
    Free *next, **back;  // of its size; back: what points to it
    std::size_t bytes;
};

class Chunks {
public:
    Chunks() {
#ifdef __linux__
        pthread_atfork([] { all().lock_.lock(); }, [] { all().lock_.unlock(); }, [] { all().lock_.unlock(); });  // a child would find it locked for good
#endif
    }

    static Chunks& all() {
        static auto* const made = new Chunks;  // never destroyed: whoever gives back last may be static too
        return *made;
    }

    void* take(std::size_t bytes) {
        const std::lock_guard guard(lock_);
        Free*& free = free_[bytes];
        void* made = free;
        if (made) unlink(free);
        else {
            if (!open_ || open_->used + bytes > kChunk) begin();
            made = reinterpret_cast<char*>(open_) + open_->used;
            open_->used += bytes;
        }
        ++chunk_of(made)->pieces;
        return made;
    }

    void give(void* piece, std::size_t bytes) noexcept {
        const std::lock_guard guard(lock_);
        Free*& first = free_.find(bytes)->second;  // it was taken
        first = new (piece) Free{first, &first, bytes};
        if (first->next) first->next->back = &first->next;
        Chunk* const chunk = chunk_of(piece);
        if (--chunk->pieces == 0 && chunk != open_) drop(chunk);
    }

private:
    static Chunk* chunk_of(void* piece) { return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(piece) & ~(kChunk - 1)); }

    static void unlink(Free* free) noexcept {
        if (free->next) free->next->back = free->back;
        *free->back = free->next;
    }

    void begin() {
        Chunk* const before = std::exchange(open_, new (take_alone(kChunk)) Chunk);
        if (before && before->pieces == 0) drop(before);
    }

    // All its pieces are free, and say how long they are.
    void drop(Chunk* chunk) noexcept {
        for (std::size_t at = kLine; at < chunk->used;) {
            auto* const free = reinterpret_cast<Free*>(reinterpret_cast<char*>(chunk) + at);
            at += free->bytes;
            unlink(free);
        }
        give_alone(chunk, kChunk);
    }

    std::mutex lock_;
    Chunk* open_ = nullptr;
    std::unordered_map<std::size_t, Free*> free_;  // by size
};

}  // namespace

void* take_piece(std::size_t bytes) {
    bytes = rounded(bytes);
    if (is_plain(bytes)) return ::operator new(bytes);
    return bytes > kLargest ? take_alone(bytes) : Chunks::all().take(bytes);
}

void give_piece(void* piece, std::size_t bytes) noexcept {
    bytes = rounded(bytes);
    if (is_plain(bytes)) ::operator delete(piece);
    else if (bytes > kLargest) give_alone(piece, bytes);
    else Chunks::all().give(piece, bytes);
}

}  // namespace guideway
