#include "guideway/logits/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "guideway/base/error.h"
#include "guideway/base/simd.h"

namespace guideway {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr std::size_t kSlices = 4096;
constexpr double kNear = 1;     // a greedy draw with changed logits considers tokens within this distance of the best
constexpr double kReach = 100;  // logits further below the largest are in one slice: their weight is negligible

// e^x for x <= 0, within two units of the last place; 0 below -708. Vectorizable.
inline double power(double x) {
    constexpr double kLog2e = 1.4426950408889634, kHigh = 0x1.62e42fee00000p-1, kLow = 0x1.a39ef35793c76p-33, kShift = 0x1.8p52;
    const double y = x < -708 ? -708 : x;
    const double shifted = y * kLog2e + kShift, n = shifted - kShift;
    const double r = (y - n * kHigh) - n * kLow;
    double sum = 1.6059043836821613e-10;  // 1/13!, and so on down
    for (const double term :
         {2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06, 2.48015873015873e-05,
          0.0001984126984126984, 0.001388888888888889, 0.008333333333333333, 0.041666666666666664, 0.16666666666666666, 0.5, 1.0, 1.0})
        sum = sum * r + term;
    const double scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
    return x < -708 ? 0 : sum * scale;
}

constexpr std::size_t kChunk = 32;
constexpr float kLowest = -std::numeric_limits<float>::infinity(), kHighest = std::numeric_limits<float>::infinity();

// to[i] = e^(from[i] - top)
GUIDEWAY_WIDE void weigh_all(const double* from, double* to, std::size_t size, double top) {
    for (std::size_t i = 0; i < size; ++i) to[i] = power(from[i] - top);
}

GUIDEWAY_WIDE void heat_all(double* logits, std::size_t size, double top, double temperature) {
    for (std::size_t i = 0; i < size; ++i) logits[i] = (logits[i] - top) / temperature;
}

// The sum of the values whose key is at least `floor`.
GUIDEWAY_WIDE double sum_from(const double* values, const double* keys, double floor, std::size_t size) {
    double lanes[16] = {};
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
        for (std::size_t k = 0; k < 16; ++k) lanes[k] += keys[i + k] >= floor ? values[i + k] : 0;
    for (; i < size; ++i) lanes[i % 16] += keys[i] >= floor ? values[i] : 0;
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
}

GUIDEWAY_WIDE double largest_of(const double* values, std::size_t size) {
    double lanes[16];
    std::fill(lanes, lanes + 16, kNever);
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
        for (std::size_t k = 0; k < 16; ++k) lanes[k] = values[i + k] > lanes[k] ? values[i + k] : lanes[k];
    for (; i < size; ++i) lanes[0] = std::max(lanes[0], values[i]);
    return *std::max_element(lanes, lanes + 16);
}

GUIDEWAY_WIDE double smallest_of(const double* values, std::size_t size) {
    double lanes[16];
    std::fill(lanes, lanes + 16, -kNever);
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
        for (std::size_t k = 0; k < 16; ++k) lanes[k] = values[i + k] < lanes[k] ? values[i + k] : lanes[k];
    for (; i < size; ++i) lanes[0] = std::min(lanes[0], values[i]);
    return *std::min_element(lanes, lanes + 16);
}

// The largest logit of each chunk; +inf for a chunk that contains NaN or +inf.
GUIDEWAY_WIDE void chunk_tops(const float* logits, std::size_t chunks, float* tops) {
    for (std::size_t c = 0; c < chunks; ++c) {
        const float* at = logits + c * kChunk;
        float lanes[16], strange[16];
        for (std::size_t k = 0; k < 16; ++k) {
            lanes[k] = at[k] > at[k + 16] ? at[k] : at[k + 16];
            strange[k] = (at[k] < kHighest ? 0.0f : 1.0f) + (at[k + 16] < kHighest ? 0.0f : 1.0f);
        }
        float top = kLowest, odd = 0;
        for (std::size_t k = 0; k < 16; ++k) {
            top = lanes[k] > top ? lanes[k] : top;
            odd += strange[k];
        }
        tops[c] = odd > 0 ? kHighest : top;
    }
}

inline float top_of(const float (&lanes)[kChunk], const std::uint32_t (&strange)[kChunk]) {
    const bool odd = std::any_of(strange, strange + kChunk, [](std::uint32_t one) { return one != 0; });
    return odd ? kHighest : *std::max_element(lanes, lanes + kChunk);
}

// The largest logit of some chunks; +inf if one is NaN or +inf.
GUIDEWAY_WIDE float stretch_top(const float* logits, std::size_t chunks) {
    float lanes[kChunk];
    std::uint32_t strange[kChunk] = {};
    std::fill(lanes, lanes + kChunk, kLowest);
    for (std::size_t c = 0; c < chunks; ++c)
        for (std::size_t k = 0; k < kChunk; ++k) {
            const float logit = logits[c * kChunk + k];
            lanes[k] = logit > lanes[k] ? logit : lanes[k];
            strange[k] |= logit < kHighest ? 0u : 1u;
        }
    return top_of(lanes, strange);
}

// The same for the tokens that the mask allows.
GUIDEWAY_WIDE float stretch_top(const float* logits, const std::uint32_t* words, std::size_t chunks) {
    float lanes[kChunk];
    std::uint32_t strange[kChunk] = {};
    std::fill(lanes, lanes + kChunk, kLowest);
    for (std::size_t c = 0; c < chunks; ++c)
        for (std::uint32_t k = 0; k < kChunk; ++k) {
            const float logit = words[c] >> k & 1 ? logits[c * kChunk + k] : kLowest;
            lanes[k] = logit > lanes[k] ? logit : lanes[k];
            strange[k] |= logit < kHighest ? 0u : 1u;
        }
    return top_of(lanes, strange);
}

// The most probable token, with the lowest id among equals, and the difference to the next one; no value if `Pool::survey` would
// return false. One pass over the row.
std::optional<Drawn> best_of(std::span<const float> logits, std::span<const std::uint32_t> mask) {
    constexpr std::size_t kStretch = 16;
    const std::size_t reach = mask.empty() ? logits.size() : std::min(logits.size(), mask.size() * kChunk), whole = reach / kChunk;
    const auto allowed = [&](std::size_t i) { return mask.empty() || (mask[i / kChunk] >> (i % kChunk) & 1); };
    float top = kLowest, second = kLowest;  // of stretches
    std::size_t where = 0;
    const auto note = [&](float found, std::size_t word) {
        second = std::max(second, std::min(found, top));
        if (!(found > top)) return;
        top = found;
        where = word * kChunk;
    };
    for (std::size_t word = 0; word < whole; word += kStretch) {
        const std::size_t count = std::min(kStretch, whole - word);
        const auto words = mask.empty() ? mask : mask.subspan(word, count);
        const float* at = logits.data() + word * kChunk;
        if (std::all_of(words.begin(), words.end(), [](std::uint32_t bits) { return bits == ~0u; })) note(stretch_top(at, count), word);
        else if (std::any_of(words.begin(), words.end(), [](std::uint32_t bits) { return bits != 0; }))
            note(stretch_top(at, words.data(), count), word);
    }
    for (std::size_t i = whole * kChunk; i < reach; ++i)
        if (allowed(i)) note(logits[i] < kHighest ? logits[i] : kHighest, whole);
    if (!(top > kLowest && top < kHighest)) return std::nullopt;
    const std::size_t end = std::min(reach, where + kStretch * kChunk);
    std::size_t first = end;
    for (std::size_t i = where; i < end; ++i) {
        if (!allowed(i)) continue;
        if (first == end && logits[i] == top) first = i;
        else second = std::max(second, logits[i]);
    }
    return Drawn{static_cast<std::uint32_t>(first), static_cast<double>(top) - static_cast<double>(second)};
}

GUIDEWAY_WIDE void widen(const float* from, double* to, std::uint32_t* ids, std::uint32_t first) {
    for (std::uint32_t i = 0; i < kChunk; ++i) {
        to[i] = static_cast<double>(from[i]);
        ids[i] = first + i;
    }
}

// The tokens that stages have kept, by ascending id.
class Pool {
public:
    std::size_t size() const { return size_; }
    bool survey(std::span<const float> logits, std::span<const std::uint32_t> mask);
    void gather(float floor);
    void choose(const Sampling& how, Seen seen);
    bool cut(const Sampling& how, bool exclude_top);
    Drawn best() const;
    double largest() const { return largest_of(logits_.data(), size_); }
    Drawn draw(double number, double temperature);

private:
    float floor_for(std::size_t count);
    std::size_t change(const Sampling& how, Seen seen);
    void merge_changed();
    void weigh();
    double total() const { return sum_from(weights_.data(), weights_.data(), 0, size_); }
    template <class Keep>
    void keep_if(Keep&& keep);
    void keep_edge(const std::vector<double>& key, double edge, std::size_t last);
    void keep_count(std::size_t count);
    void keep_mass(const std::vector<double>& key, double mass);
    void within_sigma(double count);
    void heat(double temperature);
    void without_tail(double mass);
    void typical(double mass);
    void square(double factor);
    void without_top(double threshold);
    // The slice that contains the threshold, sorted, best first; `before`: the sum before it.
    struct Edge {
        double before = 0;
        std::vector<std::pair<double, std::size_t>> slice;
    };
    template <class Value>
    void find_edge(const std::vector<double>& key, double wanted, Value&& value, Edge& found);
    std::uint32_t bits_of(std::size_t word) const {
        std::uint32_t bits = mask_.empty() ? ~0u : word < mask_.size() ? mask_[word] : 0;
        if (const std::size_t left = row_.size() - word * kChunk; left < kChunk) bits &= (1u << left) - 1;
        return bits;
    }

    std::span<const float> row_;
    std::span<const std::uint32_t> mask_;
    std::vector<float> tops_, sampled_;  // by chunk: one for each word of the mask
    float top_ = kLowest;
    std::size_t allowed_ = 0;

    std::size_t size_ = 0;
    std::vector<std::uint32_t> ids_;
    std::vector<double> logits_, weights_, key_, sums_ = std::vector<double>(kSlices);
    bool weighed_ = false, keyed_ = false;  // keyed: `key_` has the keys of the tokens that are left
    Edge edge_;
    struct Changed {
        std::uint32_t id;
        double logit;
    };
    std::vector<Changed> changed_;
};

// Finds the largest logits of allowed tokens; returns false if there are no such tokens, all are -inf, or one is NaN or +inf.
bool Pool::survey(std::span<const float> logits, std::span<const std::uint32_t> mask) {
    row_ = logits;
    mask_ = mask;
    const std::size_t words = (logits.size() + kChunk - 1) / kChunk, whole = logits.size() / kChunk;
    if (ids_.size() < words * kChunk) {
        ids_.resize(words * kChunk);
        logits_.resize(words * kChunk);
        weights_.resize(words * kChunk);
    }
    tops_.resize(words);
    chunk_tops(logits.data(), whole, tops_.data());
    allowed_ = 0;
    top_ = kLowest;
    for (std::size_t word = 0; word < words; ++word) {
        std::uint32_t bits = bits_of(word);
        allowed_ += static_cast<std::size_t>(std::popcount(bits));
        if (bits == ~0u) {
            top_ = std::max(top_, tops_[word]);
            continue;
        }
        float top = kLowest;
        for (; bits; bits &= bits - 1) {
            const float logit = logits[word * kChunk + static_cast<std::size_t>(std::countr_zero(bits))];
            top = !(logit < kHighest) ? kHighest : std::max(top, logit);
        }
        tops_[word] = top;
        top_ = std::max(top_, top);
    }
    return top_ > kLowest && top_ < kHighest;
}

// Adds the allowed tokens with logits of at least `floor` and above -inf.
void Pool::gather(float floor) {
    size_ = 0;
    weighed_ = false;
    std::size_t n = 0;
    for (std::size_t word = 0; word < tops_.size(); ++word) {
        if (!(tops_[word] >= floor) || tops_[word] == kLowest) continue;
        std::uint32_t bits = bits_of(word);
        const std::size_t begin = word * kChunk;
        if (bits == ~0u && floor == kLowest) {
            widen(row_.data() + begin, logits_.data() + n, ids_.data() + n, static_cast<std::uint32_t>(begin));
            bool live = true;
            for (std::size_t i = 0; i < kChunk; ++i) live &= row_[begin + i] > kLowest;
            if (live) {
                n += kChunk;
                continue;
            }
        }
        for (; bits; bits &= bits - 1) {
            const std::size_t i = begin + static_cast<std::size_t>(std::countr_zero(bits));
            logits_[n] = static_cast<double>(row_[i]);
            ids_[n] = static_cast<std::uint32_t>(i);
            n += row_[i] >= floor && row_[i] > kLowest;
        }
    }
    size_ = n;
}

// A logit such that probably slightly more than `count` tokens have at least this one: estimated from a sample.
float Pool::floor_for(std::size_t count) {
    if (allowed_ < 4096 || count > allowed_ / 8) return kLowest;
    sampled_.clear();
    for (std::size_t word = 0; word < tops_.size(); ++word)
        if (const std::size_t k = word * 7 % kChunk; bits_of(word) >> k & 1) sampled_.push_back(row_[word * kChunk + k]);
    const std::size_t rank = sampled_.size() * count * 3 / (allowed_ * 2) + 8;
    if (rank >= sampled_.size()) return kLowest;
    const auto place = sampled_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(sampled_.begin(), place, sampled_.end(), std::greater<>());
    return *place;
}

// Gathers only the tokens that the stages can need: if the first truncation keeps a number of the best, or those not far below the
// best, most tokens are read only once.
void Pool::choose(const Sampling& how, Seen seen) {
    const bool heated = how.temperature > 0, first = heated && how.top_n_sigma == 0;
    const bool by_share =
        first && how.top_k == 0 && how.min_p > 0 && how.tail_free == 1 && how.typical_p == 1 && how.top_a == 0 && how.top_p == 1;
    float floor = kLowest;
    const auto below = [&](double top) {
        return static_cast<float>(top + how.temperature * std::log(how.min_p) - 1e-3 * (1 + std::abs(top)));
    };
    if (!heated) floor = top_ - static_cast<float>(kNear);
    else if (by_share) floor = below(static_cast<double>(top_));
    else if (first && how.top_k > 0) floor = floor_for(how.top_k);
    gather(floor);
    const std::size_t found = size_, changed = change(how, seen);
    if (floor == kLowest) return;
    // The floor may depend on tokens whose logits were changed.
    const bool enough = !heated || by_share ? size_ > 0 && largest() >= static_cast<double>(top_) : found >= how.top_k + changed;
    if (enough) return;
    gather(kLowest);
    change(how, seen);
}

// Applies biases and penalties. Tokens with a changed logit are then in the pool, if they are allowed. Returns their number.
std::size_t Pool::change(const Sampling& how, Seen seen) {
    changed_.clear();
    const auto note = [&](std::uint32_t id, auto&& act) {
        if (id >= row_.size() || !(bits_of(id / kChunk) >> (id % kChunk) & 1) || row_[id] == kLowest) return;
        changed_.push_back({id, 0});
        act(changed_.back());
    };
    for (const std::uint32_t id : how.bias_ids) note(id, [](Changed&) {});
    const bool penalised = how.repetition_penalty != 1 || how.presence_penalty != 0 || how.frequency_penalty != 0;
    if (penalised)
        for (const std::uint32_t id : seen.ids) note(id, [](Changed&) {});
    if (changed_.empty()) return 0;
    std::sort(changed_.begin(), changed_.end(), [](const Changed& a, const Changed& b) { return a.id < b.id; });
    changed_.erase(std::unique(changed_.begin(), changed_.end(), [](const Changed& a, const Changed& b) { return a.id == b.id; }),
                   changed_.end());
    for (Changed& one : changed_) one.logit = static_cast<double>(row_[one.id]);
    const auto logit_of = [&](std::uint32_t id) -> double* {
        const auto at = std::lower_bound(changed_.begin(), changed_.end(), id,
                                         [](const Changed& one, std::uint32_t wanted) { return one.id < wanted; });
        return at == changed_.end() || at->id != id ? nullptr : &at->logit;
    };
    for (std::size_t i = 0; i < how.bias_ids.size(); ++i)
        if (double* logit = logit_of(how.bias_ids[i])) *logit += how.biases[i];
    for (std::size_t i = 0; penalised && i < seen.ids.size(); ++i)
        if (double* logit = logit_of(seen.ids[i])) {
            *logit = *logit > 0 ? *logit / how.repetition_penalty : *logit * how.repetition_penalty;
            *logit -= how.presence_penalty;
            *logit -= how.frequency_penalty * seen.counts[i];
        }
    merge_changed();
    return changed_.size();
}

// Merges from the end, so that nothing is overwritten before it was moved.
void Pool::merge_changed() {
    std::size_t twice = 0;
    for (std::size_t i = 0, k = 0; i < size_ && k < changed_.size();)
        if (ids_[i] == changed_[k].id) ++twice, ++i, ++k;
        else ids_[i] < changed_[k].id ? ++i : ++k;
    std::size_t from = size_, k = changed_.size(), to = size_ + k - twice;
    const std::size_t all = to;
    while (k > 0) {
        if (from > 0 && ids_[from - 1] == changed_[k - 1].id) --from;
        --to;
        if (from > 0 && ids_[from - 1] > changed_[k - 1].id) {
            ids_[to] = ids_[from - 1];
            logits_[to] = logits_[from - 1];
            --from;
        } else {
            --k;
            ids_[to] = changed_[k].id;
            logits_[to] = changed_[k].logit;
        }
    }
    size_ = all;
    if (std::any_of(changed_.begin(), changed_.end(), [](const Changed& one) { return one.logit == kNever; }))
        keep_if([&](std::size_t i) { return logits_[i] > kNever; });
}

void Pool::weigh() {
    if (weighed_) return;
    weigh_all(logits_.data(), weights_.data(), size_, largest());
    weighed_ = true;
}

template <class Keep>
void Pool::keep_if(Keep&& keep) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        const bool stays = keep(i);
        ids_[n] = ids_[i];
        logits_[n] = logits_[i];
        weights_[n] = weights_[i];
        if (keyed_) key_[n] = key_[i];
        n += stays;
    }
    size_ = n;
}

// Keeps the tokens with a key above `edge`, and those with a key equal to it up to position `last`.
void Pool::keep_edge(const std::vector<double>& key, double edge, std::size_t last) {
    // `key` may be the array that `keep_if` compacts: element i is read before it is overwritten.
    keep_if([&](std::size_t i) { return key[i] > edge || (key[i] == edge && i <= last); });
}

template <class Value>
void Pool::find_edge(const std::vector<double>& key, double wanted, Value&& value, Edge& found) {
    const double top = largest_of(key.data(), size_), bottom = smallest_of(key.data(), size_);
    const double scale = static_cast<double>(kSlices - 1) / std::clamp(top - bottom, 1e-300, kReach);
    const auto slice_of = [&](std::size_t i) {
        return static_cast<std::size_t>(std::min(static_cast<double>(kSlices - 1), (top - key[i]) * scale));
    };
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (std::size_t i = 0; i < size_; ++i) sums_[slice_of(i)] += value(i);
    std::size_t slice = 0;
    found.before = 0;
    for (; slice + 1 < kSlices && found.before + sums_[slice] < wanted; ++slice) found.before += sums_[slice];
    found.slice.clear();
    for (std::size_t i = 0; i < size_; ++i)
        if (slice_of(i) == slice) found.slice.push_back({key[i], i});
}

constexpr auto better = [](const std::pair<double, std::size_t>& a, const std::pair<double, std::size_t>& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
};

void Pool::keep_count(std::size_t count) {
    if (count >= size_) return;
    find_edge(logits_, static_cast<double>(count), [](std::size_t) { return 1.0; }, edge_);
    const auto place = edge_.slice.begin() + static_cast<std::ptrdiff_t>(count - static_cast<std::size_t>(edge_.before) - 1);
    std::nth_element(edge_.slice.begin(), place, edge_.slice.end(), better);
    keep_edge(logits_, place->first, place->second);
}

void Pool::keep_mass(const std::vector<double>& key, double mass) {
    weigh();
    const double wanted = mass * total(), top = largest_of(key.data(), size_);
    for (const double reach : {8.0, 16.0})  // usually few tokens have most of the mass
        if (size_ > kSlices && sum_from(weights_.data(), key.data(), top - reach, size_) >= wanted) {
            keep_if([&](std::size_t i) { return key[i] >= top - reach; });
            break;
        }
    find_edge(key, wanted, [&](std::size_t i) { return weights_[i]; }, edge_);
    std::sort(edge_.slice.begin(), edge_.slice.end(), better);
    double reached = edge_.before;
    for (const auto& [edge, place] : edge_.slice) {
        reached += weights_[place];
        if (reached >= wanted) return keep_edge(key, edge, place);
    }
    if (!edge_.slice.empty()) keep_edge(key, edge_.slice.back().first, edge_.slice.back().second);
}

void Pool::within_sigma(double count) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < size_; ++i) sum += logits_[i];
    const double mean = sum / static_cast<double>(size_);
    for (std::size_t i = 0; i < size_; ++i) squares += (logits_[i] - mean) * (logits_[i] - mean);
    const double edge = largest() - count * std::sqrt(squares / static_cast<double>(size_));
    keep_if([&](std::size_t i) { return logits_[i] >= edge; });
}

void Pool::heat(double temperature) {
    heat_all(logits_.data(), size_, largest(), temperature);
    weighed_ = false;
}

void Pool::without_tail(double mass) {
    if (size_ < 3) return;
    weigh();
    const double sum = total();
    auto& order = edge_.slice;
    order.clear();
    for (std::size_t i = 0; i < size_; ++i) order.push_back({logits_[i], i});
    std::sort(order.begin(), order.end(), better);
    const auto share = [&](std::size_t i) { return weights_[order[i].second] / sum; };
    const auto bend = [&](std::size_t i) { return std::abs((share(i + 2) - share(i + 1)) - (share(i + 1) - share(i))); };
    double bends = 0, reached = 0;
    for (std::size_t i = 0; i + 2 < size_; ++i) bends += bend(i);
    if (!(bends > 0)) return;
    std::size_t last = 0;
    for (std::size_t i = 0; i + 2 < size_; ++i) {
        reached += bend(i) / bends;
        if (reached <= mass) last = i + 1;
    }
    keep_edge(logits_, order[last].first, order[last].second);
}

void Pool::typical(double mass) {
    weigh();
    const double top = largest(), sum = total(), log_sum = std::log(sum);
    double entropy = 0;
    for (std::size_t i = 0; i < size_; ++i)
        if (weights_[i] > 0) entropy += weights_[i] / sum * (log_sum - (logits_[i] - top));
    key_.resize(std::max(key_.size(), size_));
    for (std::size_t i = 0; i < size_; ++i)
        key_[i] = weights_[i] > 0 ? -std::abs(log_sum - (logits_[i] - top) - entropy) : -std::numeric_limits<double>::max();
    keyed_ = true;
    keep_mass(key_, mass);
    keyed_ = false;
}

void Pool::square(double factor) {
    weigh();
    const double sum = total(), most = *std::max_element(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(size_)) / sum;
    keep_if([&](std::size_t i) { return weights_[i] / sum >= factor * most * most; });
}

void Pool::without_top(double threshold) {
    weigh();
    const double sum = total();
    std::size_t above = 0, kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        if (weights_[i] / sum < threshold) continue;
        if (above == 0 || weights_[i] <= weights_[kept]) kept = i;  // the least probable; among equals, the highest id
        ++above;
    }
    if (above < 2) return;
    keep_if([&](std::size_t i) { return i == kept || weights_[i] / sum < threshold; });
}

// Applies the stages in the order of `ORDER` in src/guideway/sampling/sampler.py. Returns false if no token is left.
bool Pool::cut(const Sampling& how, bool exclude_top) {
    if (how.top_n_sigma > 0) within_sigma(how.top_n_sigma);
    if (how.temperature != 1) heat(how.temperature);
    if (how.top_k > 0) keep_count(how.top_k);
    if (how.tail_free < 1) without_tail(how.tail_free);
    if (how.typical_p < 1) typical(how.typical_p);
    if (how.top_a > 0) square(how.top_a);
    if (how.top_p < 1) keep_mass(logits_, how.top_p);
    if (how.min_p > 0) {
        const double edge = largest() + std::log(how.min_p);
        keep_if([&](std::size_t i) { return logits_[i] >= edge; });
    }
    if (exclude_top) without_top(how.xtc_threshold);
    return size_ > 0;
}

Drawn Pool::best() const {
    std::size_t best = 0;
    double second = logits_[0] - kNear;  // tokens outside the pool are not nearer
    for (std::size_t i = 1; i < size_; ++i) {
        second = std::max(second, std::min(logits_[i], logits_[best]));
        if (logits_[i] > logits_[best]) best = i;
    }
    return {ids_[best], std::min(kNear, logits_[best] - second)};
}

// The change of the log-odds of the tokens before an edge, against those after it, that would move the edge to `wanted`.
double odds_gap(double edge, double wanted, double sum) {
    const double before = edge / sum, after = 1 - before;
    return before > 0 && after > 0 ? std::abs(wanted - edge) / (sum * before * after) : std::numeric_limits<double>::infinity();
}

// Finds the token by cumulative weights in the order of ids, first for blocks of tokens.
Drawn Pool::draw(double number, double temperature) {
    constexpr std::size_t kStretch = 512;
    weigh();
    auto& sums = edge_.slice;
    sums.clear();
    double sum = 0;
    for (std::size_t i = 0; i < size_; i += kStretch) {
        sums.push_back({sum, i});  // the sum before it
        const std::size_t count = std::min(kStretch, size_ - i);
        sum += sum_from(weights_.data() + i, weights_.data() + i, 0, count);
    }
    const double wanted = number * sum;
    std::size_t at = sums.size() - 1;
    while (at > 0 && sums[at].first > wanted) --at;
    double reached = sums[at].first;
    for (std::size_t i = sums[at].second; i < size_; ++i) {
        const double before = reached;
        reached += weights_[i];
        if (reached > wanted) return {ids_[i], temperature * std::min(odds_gap(before, wanted, sum), odds_gap(reached, wanted, sum))};
    }
    std::size_t last = size_ - 1;  // by rounding, the number is above all sums
    while (last > 0 && weights_[last] == 0) --last;
    return {ids_[last], 0};
}

// Sums over the allowed tokens and over the others. Each is relative to the largest logit of its kind, so that a small sum is not
// lost by rounding.
struct Sums {
    double legal = 0, outside = 0;
};

GUIDEWAY_WIDE Sums sum_kinds(const float* logits, const std::uint32_t* words, std::size_t count, double legal_top, double top) {
    double legal[kChunk] = {}, all[kChunk] = {};
    for (std::size_t word = 0; word < count; ++word)
        for (std::uint32_t k = 0; k < kChunk; ++k) {
            const bool allowed = words[word] >> k & 1;
            const double term = power(static_cast<double>(logits[word * kChunk + k]) - (allowed ? legal_top : top));
            legal[k] += allowed ? term : 0;
            all[k] += allowed ? 0 : term;
        }
    Sums made;
    for (std::size_t k = 0; k < kChunk; ++k) {
        made.legal += legal[k];
        made.outside += all[k];
    }
    return made;
}

}  // namespace

std::optional<Drawn> sample(std::span<const float> logits, std::span<const std::uint32_t> mask, const Sampling& how, Seen seen,
                            double number, bool exclude_top) {
    if (how.temperature == 0 && how.bias_ids.empty() && seen.ids.empty()) return best_of(logits, mask);
    thread_local Pool pool;  // its arrays have the size of the vocabulary: new ones would need new pages
    if (!pool.survey(logits, mask)) return std::nullopt;
    pool.choose(how, seen);
    if (pool.size() == 0) return std::nullopt;
    if (how.temperature == 0) return pool.best();
    if (!pool.cut(how, exclude_top)) return std::nullopt;
    return pool.draw(number, how.temperature);
}

Shares shares(std::span<const float> logits, std::span<const std::uint32_t> mask, std::uint32_t token) {
    if (token >= logits.size()) throw Error(ErrorKind::argument, "the token " + std::to_string(token) + " has no logit");
    // A whole number of words, padded.
    const std::size_t count = (logits.size() + kChunk - 1) / kChunk;
    thread_local std::vector<std::uint32_t> words;
    words.assign(count, mask.empty() ? ~0u : 0);
    std::copy_n(mask.begin(), std::min(count, mask.size()), words.begin());
    float top = kLowest, legal_top = kLowest;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const float legal = words[i / kChunk] >> (i % kChunk) & 1 ? logits[i] : kLowest;
        top = logits[i] > top ? logits[i] : top;
        legal_top = legal > legal_top ? legal : legal_top;
    }
    const double highest = static_cast<double>(top), highest_legal = static_cast<double>(legal_top);
    const std::size_t whole = logits.size() / kChunk;
    Sums sums = sum_kinds(logits.data(), words.data(), whole, highest_legal, highest);
    float rest[kChunk];
    std::fill(rest, rest + kChunk, kLowest);
    if (whole < count) {
        std::copy(logits.begin() + static_cast<std::ptrdiff_t>(whole * kChunk), logits.end(), rest);
        const Sums more = sum_kinds(rest, words.data() + whole, 1, highest_legal, highest);
        sums.legal += more.legal;
        sums.outside += more.outside;
    }
    const double own = static_cast<double>(logits[token]), total = sums.legal * power(highest_legal - highest) + sums.outside;
    return {own - highest - std::log(total), own - highest_legal - std::log(sums.legal), sums.outside / total};
}

}  // namespace guideway
