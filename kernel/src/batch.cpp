#include "guideway/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "guideway/error.h"
#include "guideway/masks.h"

namespace guideway {

namespace {

constexpr std::size_t kRowsAtOnce = 8;  // taken by a worker

void check(std::span<const Matcher* const> matchers, std::size_t words, std::size_t width) {
    const std::size_t rows = width ? words / width : matchers.size();
    if (rows != matchers.size())
        throw Error(ErrorKind::argument, "there are " + std::to_string(matchers.size()) + " matchers, but " + std::to_string(rows) + " rows");
    for (const Matcher* m : matchers)
        if (m && m->automaton().vocabulary().words() != width) {
            const std::string needed = std::to_string(m->automaton().vocabulary().words());
            throw Error(ErrorKind::argument, "a mask row has " + needed + " words for this vocabulary, not " + std::to_string(width));
        }
}

}  // namespace

void fill_masks(std::span<const Matcher* const> matchers, std::span<std::uint32_t> rows, std::size_t width, unsigned threads) {
    check(matchers, rows.size(), width);
    std::size_t size = width * 32;
    for (const Matcher* m : matchers)
        if (m) size = m->automaton().vocabulary().size();
    std::atomic<std::size_t> next = 0;
    std::mutex lock;
    std::exception_ptr failed;
    auto work = [&] {
        for (std::size_t from; (from = next.fetch_add(kRowsAtOnce)) < matchers.size();)
            for (std::size_t i = from; i < std::min(from + kRowsAtOnce, matchers.size()); ++i) try {
                    const auto row = rows.subspan(i * width, width);
                    if (matchers[i]) matchers[i]->fill_mask(row);
                    else allow_all(row, size);
                } catch (...) {
                    const std::lock_guard guard(lock);
                    if (!failed) failed = std::current_exception();
                }
    };
    const std::size_t helpers = std::min<std::size_t>(std::max(threads, 1u), (matchers.size() + kRowsAtOnce - 1) / kRowsAtOnce);
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < helpers; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    if (failed) std::rethrow_exception(failed);
}

void advance_and_fill(std::span<Matcher* const> matchers, std::span<const std::int64_t> tokens, std::span<std::uint32_t> rows, std::size_t width,
                      unsigned threads) {
    if (tokens.size() != matchers.size())
        throw Error(ErrorKind::argument, "there are " + std::to_string(matchers.size()) + " matchers, but " + std::to_string(tokens.size()) + " tokens");
    std::vector<const Matcher*> all(matchers.begin(), matchers.end());
    check(all, rows.size(), width);
    std::vector<const Matcher*> sorted = all;
    std::erase(sorted, nullptr);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) throw Error(ErrorKind::argument, "one matcher stands in the batch twice");
    std::size_t moved = 0;
    try {
        for (; moved < matchers.size(); ++moved)
            if (matchers[moved]) matchers[moved]->advance(tokens[moved]);
    } catch (const Error& error) {
        const std::string place = "row " + std::to_string(moved) + ": ";
        while (moved-- > 0)
            if (matchers[moved]) matchers[moved]->rollback(1);
        throw Error(error.kind, place + error.what(), error.node);
    }
    fill_masks(all, rows, width, threads);
}

}  // namespace guideway
