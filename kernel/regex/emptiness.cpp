// Whether a Boolean expression has a text, and how long a shortest one is.
//
// Products, sums and repetitions are measured by their parts. An intersection or difference is searched: its states are
// lists of what must take the text and what must not, followed by the rows of these parts, so that no expression is made
// for a state that is only passed. A language of JSON strings that holds with each text all its spellings is searched in
// the shortest spelling of each character. What was found empty is cached.
#include "guideway/regex/emptiness.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/regex/external_language.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

constexpr std::uint32_t kNot = 0x80000000;  // of a part that must not take the text
constexpr std::uint32_t kMaxSum = 200;      // parts of a sum whose bytes are looked at
constexpr std::uint64_t kStateWork = 20, kValueWork = 100, kJointWork = 1000;

// Where a search is inside the spelling of a character; or anywhere, where all spellings are looked at.
enum Place : std::uint32_t { between, backslash, unicode, zero, zeros, high_digit, anywhere };

const ByteSet kEscapes = ByteSet::of("\"\\bfnrt");
const ByteSet kAfter[] = {
    {}, ByteSet::of("\"\\bfnrtu"), ByteSet::of("0"), ByteSet::of("0"), ByteSet::of("01"), ByteSet::of("0123456789abcdef")};

std::uint32_t place_after(std::uint32_t place, std::uint8_t byte) {
    switch (place) {
        case between: return byte == '\\' ? backslash : between;
        case backslash: return byte == 'u' ? unicode : between;
        case high_digit: return between;
        case anywhere: return anywhere;
        default: return place + 1;
    }
}

}  // namespace

std::uint32_t Emptiness::joint(std::uint32_t a, std::uint32_t b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    const std::uint64_t both = std::uint64_t{a} << 32 | b;
    if (const auto known = joint_.find(both); known != joint_.end()) return known->second;
    pool_.fuel_.spend(kJointWork);
    const auto& x = pool_.classes_[a];
    const auto& y = pool_.classes_[b];
    // A row for each class of `a`. Mostly these are few, so the table is much smaller than 256 * 256.
    const std::size_t width = std::size_t{1} + *std::max_element(y.begin(), y.end());
    std::vector<std::int16_t> numbers((std::size_t{1} + *std::max_element(x.begin(), x.end())) * width, -1);
    std::array<std::uint8_t, 256> made{};
    std::int16_t count = 0;
    for (unsigned i = 0; i < 256; ++i) {
        std::int16_t& number = numbers[x[i] * width + y[i]];
        if (number < 0) number = count++;
        made[i] = static_cast<std::uint8_t>(number);
    }
    return joint_[both] = pool_.class_id(made);
}

// A byte of each class, none a backslash where there is another.
const std::vector<std::uint8_t>& Emptiness::bytes_of_classes(std::uint32_t classes) {
    if (bytes_.size() <= classes) bytes_.resize(pool_.classes_.size());
    std::vector<std::uint8_t>& known_bytes = bytes_[classes];
    if (known_bytes.empty()) {
        std::vector<std::uint8_t> made;  // kept once it is complete: an allocation may fail
        std::array<bool, 256> met{};
        for (unsigned i = 0; i < 256; ++i) {
            const unsigned b = i < '\\' ? i : i < 255 ? i + 1 : '\\';
            bool& known = met[pool_.classes_[classes][b]];
            if (!known) made.push_back(static_cast<std::uint8_t>(b));
            known = true;
        }
        known_bytes = std::move(made);
    }
    return known_bytes;
}

ExprId Emptiness::after(ExprId part, std::uint8_t byte) {
    const auto& row = pool_.rows_[pool_.raw_row(part)];
    return pool_.targets_[row.offset + pool_.classes_[row.classes][byte]];
}

// Calls f(bytes, what follows) for each way to continue from heads_, inside a character's escape; what is after the
// character is left out. Other expressions than sets, their products and sums count as any byte.
template <class F>
void Emptiness::for_each_derivative(F&& f) {
    std::vector<ExprId> todo;
    todo.swap(heads_);
    while (!todo.empty()) {
        const ExprId e = todo.back();
        todo.pop_back();
        const Expr x = pool_.exprs_[e];
        pool_.fuel_.spend(4);
        if (x.op == Op::alternation) {
            for (std::uint32_t i = 0; i < x.b; ++i) todo.push_back(pool_.args_[x.a + i]);
        } else if (x.op == Op::set) f(pool_.sets_[x.a], kEmpty);
        else if (x.op == Op::concatenation && pool_.exprs_[x.a].op == Op::set) f(pool_.sets_[pool_.exprs_[x.a].a], x.b);
        else if (x.op == Op::concatenation && !x.nullable && !pool_.exprs_[x.a].nullable) todo.push_back(x.a);
        else if (x.op == Op::strings) {
            bool some = false;
            pool_.strings_->each_character(x.a, x.b, [&](char32_t c) { some = some || must_escape(c); });
            if (some) f(ByteSet::range(0, 255), e);
        } else if (e != kNone) f(ByteSet::range(0, 255), e);
    }
}

bool Emptiness::begins(const ByteSet& bytes) {
    const std::vector<ExprId> heads = heads_;
    bool some = false;
    for_each_derivative([&](const ByteSet& here, ExprId) { some = some || here.meets(bytes); });
    heads_ = heads;
    return some;
}

void Emptiness::follow(const ByteSet& bytes) {
    std::vector<ExprId> made;
    for_each_derivative([&](const ByteSet& here, ExprId behind) {
        if (here.meets(bytes)) made.push_back(behind);
    });
    heads_ = std::move(made);
}

bool Emptiness::has_escapes(ExprId part) {
    std::uint8_t& known = pool_.found_[part].escapes;
    if (known == 0) {
        heads_.assign(1, after(part, '\\'));
        bool some = begins(kAfter[backslash]);
        if (some && !begins(kEscapes)) {
            for (const char* b : {"u", "0", "0"}) follow(ByteSet::of(b));
            some = begins(kAfter[zeros]);
        }
        known = some ? 2 : 1;
    }
    return known == 2;
}

// `parts_` becomes sorted, without intersections and differences; false: no text is left.
bool Emptiness::flatten() {
    flat_.clear();
    while (!parts_.empty()) {
        const std::uint32_t part = parts_.back();
        parts_.pop_back();
        pool_.fuel_.spend(2);
        const ExprId e = part & ~kNot;
        const Expr x = pool_.exprs_[e];
        if (part & kNot) {
            if (e == kNone) continue;
            if (x.op == Op::complement) parts_.push_back(x.a);
            else flat_.push_back(part);
        } else if (x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.b; ++i) parts_.push_back(pool_.args_[x.a + i]);
        } else if (x.op == Op::difference) {
            parts_.push_back(x.a);
            parts_.push_back(x.b | kNot);
        } else if (x.op == Op::complement) parts_.push_back(x.a | kNot);
        else if (e == kNone) return false;
        else flat_.push_back(part);
    }
    std::sort(flat_.begin(), flat_.end());
    flat_.erase(std::unique(flat_.begin(), flat_.end()), flat_.end());
    parts_.swap(flat_);
    for (const std::uint32_t part : parts_)
        if ((part & kNot) && std::binary_search(parts_.begin(), parts_.end(), part & ~kNot)) return false;
    return true;
}

// Whether one of `parts_`, not inside an escape, needs a byte that another never takes. This decides many
// searches at their start, such as that for a date with a wrong letter (decision 7). Large sums are not examined: that costs
// more than to follow them.
bool Emptiness::lacks_bytes() {
    if (!pool_.limits_.tuning.needed_bytes) return false;
    ByteSet common = ByteSet::range(0, 255), needed;
    unsigned count = 0;
    for (const std::uint32_t part : parts_) {
        if (part & kNot) continue;
        const Expr &x = pool_.exprs_[part], &head = x.op == Op::concatenation ? pool_.exprs_[x.a] : x;
        if (head.op == Op::alternation && head.b > kMaxSum) return false;
        ++count;
    }
    if (count < 2) return false;
    for (const std::uint32_t part : parts_) {
        if (part & kNot) continue;
        common &= pool_.alphabet(part);
        needed |= pool_.needed(part);
    }
    pool_.fuel_.spend(4 * count);
    return !needed.within(common);
}

// Takes `parts_` at a place as a state, if it is new, nearer than before, and not known to be empty.
void Emptiness::see(std::uint32_t place, std::uint32_t depth, std::uint32_t parent) {
    if (!flatten()) return;
    parts_.push_back(place);
    std::uint64_t h = place;
    for (const std::uint32_t part : parts_) h = mix(h, part);
    pool_.fuel_.spend(kStateWork + 4 * parts_.size());
    const auto same = [&](const Listed& list, const std::vector<std::uint32_t>& in) {
        return list.count == parts_.size() &&
               std::equal(parts_.begin(), parts_.end(), in.begin() + static_cast<std::ptrdiff_t>(list.begin));
    };
    std::uint32_t number = states_.find(h, [&](std::uint32_t id) { return same(lists_[id], listed_); });
    bool alive = false;
    if (number == InternTable::kMissing) {
        if (const std::uint32_t known = known_ids_.find(h, [&](std::uint32_t id) { return same(known_[id].list, known_parts_); });
            known != InternTable::kMissing) {
            if (!known_[known].alive) return;
            alive = any_;
        }
        parts_.pop_back();
        const bool dead = place == between && lacks_bytes();
        parts_.push_back(place);
        if (dead) return;
        number = static_cast<std::uint32_t>(lists_.size());
        lists_.push_back({static_cast<std::uint32_t>(listed_.size()), static_cast<std::uint32_t>(parts_.size()), h});
        listed_.insert(listed_.end(), parts_.begin(), parts_.end());
        depths_.push_back(kInfinite);
        states_.add(h, number);
    }
    if (depths_[number] <= depth || (any_ && depths_[number] != kInfinite)) return;
    depths_[number] = depth;
    parts_.pop_back();
    bool nullable = true;
    std::uint32_t least = 0, all = 0;  // bytes at least; those of all parts together
    for (const std::uint32_t part : parts_) {
        const Expr& x = pool_.exprs_[part & ~kNot];
        nullable = nullable && x.nullable != ((part & kNot) != 0);
        if (part & kNot) continue;
        std::uint32_t own = x.nullable ? 0 : x.shortest;
        if (x.op == Op::number && !x.nullable && !x.measured) own = std::max(own, pool_.numbers_->least(x.a));
        least = std::max(least, own);
        all = sum(all, own);
    }
    if (!nullable) least = std::max(least, 1u);
    const bool single = parts_.size() == 1 && !(parts_[0] & kNot) && pool_.exprs_[parts_[0]].measured;
    alive = alive || (any_ && parts_.size() == 1 && !(parts_[0] & kNot) && pool_.exprs_[parts_[0]].known_nonempty);
    const std::uint32_t total = nullable || alive ? depth : sum(depth, least);
    if (total >= best_) return;
    seen_.push_back({number, depth, parent});
    const auto at = static_cast<std::uint32_t>(seen_.size() - 1);
    if (nullable || single || alive) {
        best_ = total;
        best_at_ = at;
    } else {
        tasks_.push_back({any_ ? all : total, at});
        std::push_heap(tasks_.begin(), tasks_.end(), later);
    }
}

void Emptiness::go_on(const Seen& here, std::uint32_t at) {
    const Listed list = lists_[here.list];
    const std::uint32_t place = listed_[list.begin + list.count - 1];
    std::vector<std::uint32_t> parts(listed_.begin() + list.begin, listed_.begin() + list.begin + list.count - 1);
    bool escapes = place == between;
    std::uint32_t classes = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::uint32_t own = pool_.rows_[pool_.raw_row(parts[i] & ~kNot)].classes;
        classes = i == 0 ? own : joint(classes, own);
        escapes = escapes && ((parts[i] & kNot) || has_escapes(parts[i]));
    }
    auto take = [&](std::uint8_t byte) {
        parts_.clear();
        for (const std::uint32_t part : parts) {
            const ExprId to = after(part & ~kNot, byte);
            if (to == kNone && !(part & kNot)) return;
            if (to != kNone) parts_.push_back(to | (part & kNot));
        }
        see(place_after(place, byte), here.depth + 1, at);
    };
    if (place != between && place != anywhere) return kAfter[place].each(take);
    const std::vector<std::uint8_t> some = bytes_of_classes(classes);
    for (const std::uint8_t byte : some)
        if (byte != '\\' || place == anywhere || escapes) take(byte);
}

// Continues until the goal is found or nothing is left; false: more than `most` states were seen.
bool Emptiness::search(ExprId start, bool any, std::size_t most) {
    lists_.clear();
    listed_.clear();
    depths_.clear();
    seen_.clear();
    tasks_.clear();
    states_ = {};
    best_ = kInfinite;
    any_ = any;
    parts_.assign(1, start);
    see(pool_.exprs_[start].encoding_closed ? between : anywhere, 0, 0);
    while (!tasks_.empty() && (any ? best_ == kInfinite : tasks_.front().least < best_)) {
        const std::uint32_t at = tasks_.front().at;
        std::pop_heap(tasks_.begin(), tasks_.end(), later);
        tasks_.pop_back();
        const Seen here = seen_[at];
        if (depths_[here.list] < here.depth) continue;
        if (seen_.size() > most) return false;
        go_on(here, at);
    }
    if (best_ == kInfinite)
        for (const Listed& list : lists_) keep(list, false);
    return true;
}

std::uint32_t Emptiness::shortest(ExprId start) {
    const Turn turn(*this);
    if (!search(start, false, pool_.limits_.max_search))
        throw SearchLimit(over_limit(pool_.limits_.max_search, "states in the search for a text of an intersection or complement",
                                     "use fewer or simpler patterns that apply to the same text")
                              .what());
    if (best_ != kInfinite) keep_path();
    return best_;
}

bool Emptiness::alive(ExprId start) {
    const Turn turn(*this);
    if (!search(start, true, pool_.limits_.max_search / 4)) return shortest(start) != kInfinite;
    if (best_ == kInfinite) return false;
    std::uint32_t at = best_at_;
    do {
        at = seen_[at].parent;
        keep(lists_[seen_[at].list], true);
    } while (at != 0);
    return true;
}

// A state that is known already stays as it is.
void Emptiness::keep(const Listed& list, bool alive) {
    const auto first = listed_.begin() + list.begin, last = first + list.count;
    const auto same = [&](std::uint32_t id) {
        const Listed& known = known_[id].list;
        return known.count == list.count && std::equal(first, last, known_parts_.begin() + known.begin);
    };
    if (known_ids_.find(list.hash, same) != InternTable::kMissing) return;
    known_ids_.add(list.hash, static_cast<std::uint32_t>(known_.size()));
    known_.push_back({{static_cast<std::uint32_t>(known_parts_.size()), list.count, list.hash}, alive});
    known_parts_.insert(known_parts_.end(), first, last);
}

// A caller who follows a shortest text asks again after each byte.
void Emptiness::keep_path() {
    for (std::uint32_t at = best_at_;; at = seen_[at].parent) {
        const Seen here = seen_[at];
        const Listed list = lists_[here.list];
        std::vector<ExprId> parts(listed_.begin() + list.begin, listed_.begin() + list.begin + list.count - 1);
        for (std::uint32_t& part : parts)
            if (part & kNot) part = pool_.complement(part & ~kNot);
        const ExprId made = pool_.intersect(std::move(parts));
        pool_.exprs_[made].measured = true;
        pool_.exprs_[made].shortest = best_ - here.depth;
        if (at == 0) break;
    }
}

namespace {

struct SeenDifference {
    ExprId expr;
    std::uint32_t depth, parent;  // bytes; a place in the list of those that were seen
};

// Calls f for a state and those that led there, up to the first.
template <class F>
void each_on_path(const std::vector<SeenDifference>& seen, std::uint32_t at, F&& f) {
    for (;; at = seen[at].parent) {
        f(seen[at]);
        if (at == 0) return;
    }
}

}  // namespace

// A value that is none of some others: A*, since what is left of it without them is hardly longer, and mostly the next byte
// tells them apart (Hart, Nilsson and Raphael, "A formal basis for the heuristic determination of minimum cost paths", 1968).
void ExprPool::search_other_composite(ExprId start) {
    // A shortest text of the value is none of the others where all of theirs are longer.
    const auto settled_by_length = [&](ExprId e) {
        const Expr x = exprs_[e];
        const std::uint32_t bytes = shortest(x.a);
        if (bytes >= shortest(x.b)) return false;
        measure(e, bytes);
        return true;
    };
    if (settled_by_length(start)) return;
    std::vector<SeenDifference> seen{{start, 0, 0}};
    std::unordered_map<ExprId, std::uint32_t> depths{{start, 0}};
    using Task = std::pair<std::uint32_t, std::uint32_t>;  // bytes at least, a place in `seen`; of equals the last
    auto later = [](const Task& x, const Task& y) { return x.first != y.first ? x.first > y.first : x.second < y.second; };
    std::priority_queue<Task, std::vector<Task>, decltype(later)> tasks(later);
    tasks.emplace(shortest(exprs_[start].a), 0);
    std::uint32_t best = kInfinite, best_at = 0, most = 0;  // most: bytes until the others would be known to be all
    each_part(exprs_[start].b, [&](ExprId other) {
        if (is_composite(other))
            most = std::max(most, sum(composites_->reach(exprs_[other].a), composites_->reach(exprs_[exprs_[start].a].a)));
        return false;
    });
    while (!tasks.empty() && tasks.top().first < best) {
        const std::uint32_t at = tasks.top().second;
        tasks.pop();
        const SeenDifference here = seen[at];
        if (depths[here.expr] < here.depth || here.depth >= most) continue;
        if (seen.size() > limits_.max_search)
            throw SearchLimit(over_limit(limits_.max_search, "states in the search for an item that differs from all others",
                                         "use a smaller schema for the items")
                                  .what());
        fuel_.spend(kValueWork);
        const Expr x = exprs_[here.expr];
        ExprId left = kNone, others = kNone;  // after the byte before
        first(x.a).each([&](std::uint8_t b) {
            const ExprId a = derivative(x.a, b), o = derivative(x.b, b);
            if (a == left && o == others) return;
            left = a;
            others = o;
            const ExprId made = subtract(a, o);
            if (made == kNone) return;
            const Expr y = exprs_[made];
            if (y.op != Op::difference || y.measured || settled_by_length(made)) {
                const std::uint32_t total = sum(here.depth + 1, shortest(made));
                if (total >= best) return;
                best = total;
                best_at = at;
                return;
            }
            auto [place, fresh] = depths.emplace(made, here.depth + 1);
            if (!fresh && place->second <= here.depth + 1) return;
            place->second = here.depth + 1;
            tasks.emplace(sum(here.depth + 1, shortest(y.a)), static_cast<std::uint32_t>(seen.size()));
            seen.push_back({made, here.depth + 1, at});
        });
    }
    if (best == kInfinite) {
        for (const SeenDifference& state : seen) measure(state.expr, kInfinite);
    } else each_on_path(seen, best_at, [&](const SeenDifference& state) { measure(state.expr, best - state.depth); });
}

void ExprPool::measure(ExprId e, std::uint32_t bytes) {
    exprs_[e].measured = true;
    exprs_[e].shortest = bytes;
}

// Of products, sums and repetitions by their parts, which wait in a list; of a sum those that may be the shortest.
std::uint32_t ExprPool::shortest(ExprId start) {
    auto known = [&](ExprId e) { return exprs_[e].nullable || exprs_[e].measured; };
    auto length = [&](ExprId e) { return exprs_[e].nullable ? 0 : exprs_[e].shortest; };
    if (known(start)) return length(start);
    std::vector<ExprId> todo{start};
    while (!todo.empty()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        ExprId missing = kNone;
        fuel_.spend(x.op == Op::alternation ? 4 + 2 * std::uint64_t{x.b} : 4);
        if (known(e)) {
            todo.pop_back();
            continue;
        }
        if (x.op == Op::concatenation) {
            if (!known(x.a)) missing = x.a;
            else if (length(x.a) == kInfinite) measure(e, kInfinite);
            else if (!known(x.b)) missing = x.b;
            else measure(e, sum(length(x.a), length(x.b)));
        } else if (x.op == Op::repetition) {
            if (!known(x.a)) missing = x.a;
            else measure(e, multiply(length(x.a), x.b));
        } else if (x.op == Op::alternation) {
            std::uint32_t best = kInfinite, least = kInfinite;
            each_part(e, [&](ExprId part) {
                if (known(part)) best = std::min(best, length(part));
                else if (exprs_[part].shortest < least) {
                    least = exprs_[part].shortest;
                    missing = part;
                }
                return false;
            });
            if (missing == kNone || least >= best) {
                missing = kNone;
                measure(e, best);
            }
        } else if (is_composite(e)) measure(e, composites_->shortest(x.a));
        else if (x.op == Op::difference && is_composite(x.a)) search_other_composite(e);
        else measure(e, liveness_->shortest(e));
        if (missing != kNone) todo.push_back(missing);
    }
    return length(start);
}

// A string has finitely many spellings, so endlessly many texts are endlessly many strings. A number has endlessly many.
std::uint32_t ExprPool::values_at_least(ExprId e) {
    if (e == kNone) return 0;
    if (is_composite(e)) return composites_->at_least(exprs_[e].a);
    if (is_number(e)) return numbers_->has_endless_values(exprs_[e].a) ? kInfinite : 1;
    const ExprId string = derivative(e, '"');
    return string != kNone && is_infinite(string) ? kInfinite : exprs_[e].known_nonempty ? 1 : 0;
}

// As `shortest`, but any text will do, which takes less to find.
bool ExprPool::search_nonempty(ExprId start) {
    auto told = [&](ExprId e) {
        return e == kNone || exprs_[e].known_nonempty || exprs_[e].nullable || !exprs_[e].boolean || exprs_[e].measured;
    };
    auto lives = [&](ExprId e) {
        return e != kNone && (exprs_[e].known_nonempty || exprs_[e].nullable || !exprs_[e].boolean || exprs_[e].shortest != kInfinite);
    };
    auto settle = [&](ExprId e, bool found) {
        if (found) exprs_[e].known_nonempty = true;
        else measure(e, kInfinite);
    };
    std::vector<ExprId> todo{start};
    while (!todo.empty()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        ExprId missing = kNone;
        if (told(e)) {
            todo.pop_back();
            continue;
        }
        fuel_.spend(x.op == Op::alternation ? 4 + 2 * std::uint64_t{x.b} : 4);
        if (x.op == Op::concatenation || x.op == Op::repetition) {
            if (!told(x.a)) missing = x.a;
            else if (x.op == Op::repetition || !lives(x.a)) settle(e, lives(x.a));
            else if (!told(x.b)) missing = x.b;
            else settle(e, lives(x.b));
        } else if (x.op == Op::alternation) {
            bool found = false;
            each_part(e, [&](ExprId part) {
                if (!told(part)) missing = part;
                else found = lives(part);
                return found;
            });
            if (found) missing = kNone;
            if (missing == kNone) settle(e, found);
        } else if (x.op == Op::difference && is_composite(x.a)) search_other_composite(e);
        else settle(e, liveness_->alive(e));
        if (missing != kNone) todo.push_back(missing);
    }
    return lives(start);
}

}  // namespace guideway
