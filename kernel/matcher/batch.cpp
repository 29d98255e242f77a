#include "guideway/matcher/batch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fork_safe.h"
#include "guideway/logits/mask_logits.h"

namespace guideway {

namespace {

constexpr std::size_t kRowsAtOnce = 8;    // rows that a thread takes at a time
constexpr std::size_t kMostThreads = 64;  // of one call; to start more takes longer than the rows

void check(std::span<const Matcher* const> matchers, std::size_t words, std::size_t width) {
    const std::size_t rows = width ? words / width : matchers.size();
    if (rows != matchers.size())
        throw Error(ErrorKind::argument,
                    "there are " + std::to_string(matchers.size()) + " matchers, but " + std::to_string(rows) + " rows");
    for (const Matcher* m : matchers)
        if (m && m->automaton().vocabulary().words() != width) {
            const std::string needed = std::to_string(m->automaton().vocabulary().words());
            throw Error(ErrorKind::argument, "a mask row has " + needed + " words for this vocabulary, not " + std::to_string(width));
        }
}

bool are_apart(std::vector<const Matcher*> all) {
    std::erase(all, nullptr);
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
}

void check_apart(const std::vector<const Matcher*>& all) {
    if (!are_apart(all)) throw Error(ErrorKind::argument, "a matcher occurs twice in the batch");
}

// Threads that the destructor joins.
class Helpers {
public:
    Helpers() = default;
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;
    ~Helpers() {
        for (std::thread& one : threads_) one.join();
    }
    std::size_t size() const { return threads_.size(); }
    // Returns false if the system has no thread or no memory for another one.
    template <class F>
    bool start(F& work) noexcept {
        try {
            threads_.reserve(threads_.size() + 1);
            threads_.emplace_back(std::ref(work));
            return true;
        } catch (...) {
            return false;
        }
    }

private:
    std::vector<std::thread> threads_;
};

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
    // One matcher in two rows is not used by two threads at once.
    const bool alone = threads < 2 || !are_apart({matchers.begin(), matchers.end()});
    const std::size_t helpers =
        alone ? 1 : std::min({std::size_t{threads}, kMostThreads, (matchers.size() + kRowsAtOnce - 1) / kRowsAtOnce});
    {
        Helpers others;
        while (others.size() + 1 < helpers && others.start(work)) {
        }
        work();
    }
    if (failed) std::rethrow_exception(failed);
}

void advance_and_fill(std::span<Matcher* const> matchers, std::span<const std::int64_t> tokens, std::span<std::uint32_t> rows,
                      std::size_t width, unsigned threads) {
    if (tokens.size() != matchers.size())
        throw Error(ErrorKind::argument,
                    "there are " + std::to_string(matchers.size()) + " matchers, but " + std::to_string(tokens.size()) + " tokens");
    std::vector<const Matcher*> all(matchers.begin(), matchers.end());
    check(all, rows.size(), width);
    check_apart(all);
    std::size_t moved = 0;
    try {
        for (; moved < matchers.size(); ++moved) try {
                if (matchers[moved]) matchers[moved]->advance(tokens[moved]);
            } catch (const Error& error) {
                throw Error(error.kind, "row " + std::to_string(moved) + ": " + error.what(), error.node);
            }
        fill_masks(all, rows, width, threads);
    } catch (...) {  // also Deferred and std::bad_alloc
        while (moved-- > 0)
            if (matchers[moved]) matchers[moved]->rollback(1);
        throw;
    }
}

std::optional<double> LoopClock::enter() {
    if (busy_.test_and_set(std::memory_order_acquire)) return std::nullopt;
    return left_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - *left_).count() : 0;
}

void LoopClock::leave() {
    left_ = std::chrono::steady_clock::now();
    busy_.clear(std::memory_order_release);
}

LoopRows::LoopRows(std::vector<LoopRow> rows) : rows_(std::move(rows)), grown_(rows_.size()) {
    for (const LoopRow& row : rows_) matchers_.push_back(row.matcher);
    check_apart(matchers_);
}

LoopRows::~LoopRows() { settle(); }

void LoopRows::grow(std::span<const std::int64_t> tokens) {
    if (tokens.size() != rows_.size()) throw Error(ErrorKind::argument, "not as many tokens as rows");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        LoopRow& row = rows_[i];
        const bool takes = row.matcher && row.taken == row.length && !row.matcher->is_finished();
        if (takes) grown_[i] = tokens[i];
        ++row.length;
    }
}

void LoopRows::know(const IdRows& ids) {
    if (ids.count != rows_.size()) throw Error(ErrorKind::argument, "not as many rows of tokens as rows");
    room_ = ids.width + ids.width / 2 + 64;
    known_.assign(ids.count * room_, 0);
    for (std::size_t i = 0; i < ids.count; ++i) std::ranges::copy(ids.row(i), known_.data() + i * room_);
    width_ = ids.width;
    is_known_ = true;
}

bool LoopRows::grow_to(const IdRows& ids) {
    if (!is_known_ || ids.count != rows_.size() || ids.width != width_ + 1) return false;
    for (std::size_t i = 0; i < ids.count; ++i)
        if (!std::ranges::equal(ids.row(i).first(width_), std::span(known_.data() + i * room_, width_))) return false;
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; i < ids.count; ++i) tokens.push_back(ids.row(i).back());
    grow(tokens);
    if (ids.width > room_) return know(ids), true;
    for (std::size_t i = 0; i < ids.count; ++i) known_[i * room_ + width_] = tokens[i];
    ++width_;
    return true;
}

std::vector<std::int64_t> LoopRows::known() const {
    std::vector<std::int64_t> made;
    for (std::size_t i = 0; is_known_ && i < rows_.size(); ++i) {
        const auto row = std::span(known_).subspan(i * room_, width_);
        made.insert(made.end(), row.begin(), row.end());
    }
    return made;
}

// Lets the matcher take the row's new token, if it is legal. Returns whether the row is held then.
bool LoopRows::take(std::size_t index) {
    LoopRow& row = rows_[index];
    if (const auto token = std::exchange(grown_[index], std::nullopt)) try {
            row.matcher->advance(*token);
            ++row.taken;
        } catch (const Error& error) {
            if (error.kind != ErrorKind::rejected && error.kind != ErrorKind::token) throw;
        }
    return row.is_held();
}

void LoopRows::fill(std::size_t index, std::span<std::uint32_t> mask) {
    const LoopRow& row = rows_[index];
    const std::size_t left = row.length < row.budget ? row.budget - row.length : 1;  // above the budget the engine ends the row
    if (!row.budget || !row.matcher->fill_mask_within(mask, static_cast<std::uint32_t>(left))) row.matcher->fill_mask(mask);
}

void LoopRows::run(std::span<std::uint32_t> masks, std::size_t width) {
    check(matchers_, masks.size(), width);
    const bool known = std::exchange(is_known_, false);  // after an error, nothing is known
    const auto some = std::find_if(rows_.begin(), rows_.end(), [](const LoopRow& row) { return row.matcher; });
    const std::size_t size = some == rows_.end() ? width * 32 : some->matcher->automaton().vocabulary().size();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const auto mask = masks.subspan(i * width, width);
        if (take(i)) fill(i, mask);
        else allow_all(mask, size);
    }
    is_known_ = known;
}

std::vector<std::size_t> LoopRows::run_on(const LogitRows& source, const LogitRows& target, LoopClock& clock) {
    if (source.count != rows_.size() || target.count != source.count || target.width != source.width)
        throw Error(ErrorKind::argument, "rows, logits and their target are of different sizes");
    const bool known = std::exchange(is_known_, false);
    std::vector<std::size_t> nothing;
    auto time = std::chrono::steady_clock::now();
    const auto spent = [&] {
        const auto before = std::exchange(time, std::chrono::steady_clock::now());
        return std::chrono::duration<double>(time - before).count();
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const float* const from = source.row(i);
        float* const to = target.row(i);
        const bool is_held = take(i);
        if (is_held) {
            mask_.resize(rows_[i].matcher->automaton().vocabulary().words());
            fill(i, mask_);
        }
        clock.mask += spent();
        if (!is_held) {
            if (from != to) std::copy_n(from, source.width, to);
        } else if (!mask_logits(from, to, source.width, mask_)) {
            nothing.push_back(i);
        }
        clock.copy += spent();
    }
    ++clock.calls;
    is_known_ = known;
    return nothing;
}

void LoopRows::begin(std::span<std::uint32_t> masks, std::size_t width) {
    wait();
    forks_at_begin_ = forks_so_far();
    thread_ = std::thread([this, masks, width] {
        const auto start = std::chrono::steady_clock::now();
        try {
            run(masks, width);
        } catch (...) {
            failed_ = std::current_exception();
        }
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });
}

void LoopRows::settle() {
    if (!thread_.joinable()) return;
    if (forks_at_begin_ == forks_so_far()) return thread_.join();
    thread_.detach();  // in a child process, where the thread does not run; rows may be partly computed
    failed_ = std::make_exception_ptr(
        Error(ErrorKind::argument, "a thread of the parent process was computing the masks; make new rows in this process"));
}

void LoopRows::wait() {
    settle();
    if (failed_) std::rethrow_exception(failed_);
}

}  // namespace guideway
