// The search for a text of an intersection or difference (part_search.h).
//
// A state of the search is a list of expressions: those that must match the text, and those that must not. Its successors come
// from the rows of these expressions, so the search constructs no expression for the state itself. If a language of JSON strings
// contains with each text all its spellings, the search uses only the shortest spelling of each character. Empty states are cached.
#include "guideway/regex/part_search.h"

#include <algorithm>
#include <span>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/base/sort_unique.h"
#include "guideway/regex/byte_facts.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxSum = 200;  // maximum number of parts of an alternation whose bytes are examined
constexpr std::uint64_t kStateWork = 20, kJointWork = 1000;

constexpr std::uint32_t kNot = 0x80000000;  // the bit of a part that must not match the text
constexpr SearchPart with(ExprId e) { return SearchPart{raw(e)}; }
constexpr SearchPart without(ExprId e) { return SearchPart{raw(e) | kNot}; }
constexpr bool is_without(SearchPart part) { return raw(part) & kNot; }
constexpr ExprId expr_of(SearchPart part) { return ExprId{raw(part) & ~kNot}; }

// The position inside the spelling of a character. `anywhere`: the search tries all spellings and does not track the position.
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

ClassesId PartSearch::joint(ClassesId a, ClassesId b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    const std::uint64_t both = std::uint64_t{raw(a)} << 32 | raw(b);
    if (const auto known = joint_.find(both); known != joint_.end()) return known->second;
    exprs_.fuel().spend(kJointWork);
    const auto& x = dfa_.classes(a);
    const auto& y = dfa_.classes(b);
    // One row for each class of `a`. There are usually few classes, so the table is much smaller than 256 * 256.
    const std::size_t width = std::size_t{1} + *std::max_element(y.begin(), y.end());
    std::vector<std::int16_t> numbers((std::size_t{1} + *std::max_element(x.begin(), x.end())) * width, -1);
    std::array<std::uint8_t, 256> made{};
    std::int16_t count = 0;
    for (unsigned i = 0; i < 256; ++i) {
        std::int16_t& number = numbers[x[i] * width + y[i]];
        if (number < 0) number = count++;
        made[i] = static_cast<std::uint8_t>(number);
    }
    return joint_[both] = dfa_.class_id(made);
}

// One byte of each class. It is a backslash only if the class has no other byte.
const std::vector<std::uint8_t>& PartSearch::bytes_of_classes(ClassesId classes) {
    if (bytes_.size() <= raw(classes)) bytes_.resize(dfa_.class_count());
    std::vector<std::uint8_t>& known_bytes = bytes_[classes];
    if (known_bytes.empty()) {
        std::vector<std::uint8_t> made;  // stored when it is complete: an allocation may fail
        std::array<bool, 256> met{};
        for (unsigned i = 0; i < 256; ++i) {
            const unsigned b = i < '\\' ? i : i < 255 ? i + 1 : '\\';
            bool& known = met[dfa_.classes(classes)[b]];
            if (!known) made.push_back(static_cast<std::uint8_t>(b));
            known = true;
        }
        known_bytes = std::move(made);
    }
    return known_bytes;
}

ExprId PartSearch::after(ExprId part, std::uint8_t byte) { return dfa_.target(dfa_.row(dfa_.raw_row(part)), byte); }

// Calls f(bytes, rest) for each continuation of `heads_`, which are inside the escape of a character. Texts after the character are
// ignored. For expressions other than sets, their concatenations and alternations, f gets all bytes.
template <class F>
void PartSearch::for_each_derivative(F&& f) {
    std::vector<ExprId> todo;
    todo.swap(heads_);
    while (!todo.empty()) {
        const ExprId e = todo.back();
        todo.pop_back();
        const Expr x = exprs_[e];
        exprs_.fuel().spend(4);
        if (x.op == Op::alternation) {
            for (std::uint32_t i = 0; i < x.part_count(); ++i) todo.push_back(exprs_.parts(x)[i]);
        } else if (x.op == Op::set) f(exprs_.bytes_of(x.byte_set()), kEmpty);
        else if (x.op == Op::concatenation && exprs_[x.head()].op == Op::set) f(exprs_.bytes_of(exprs_[x.head()].byte_set()), x.tail());
        else if (x.op == Op::concatenation && !x.nullable && !exprs_[x.head()].nullable) todo.push_back(x.head());
        else if (x.op == Op::strings) {
            bool some = false;
            exprs_.strings().each_child(x.string_node(), x.part(), [&](char32_t c, StringNode) { some = some || must_escape(c); });
            if (some) f(ByteSet::range(0, 255), e);
        } else if (e != kNone) f(ByteSet::range(0, 255), e);
    }
}

bool PartSearch::begins(const ByteSet& bytes) {
    const std::vector<ExprId> heads = heads_;
    bool some = false;
    for_each_derivative([&](const ByteSet& here, ExprId) { some = some || here.meets(bytes); });
    heads_ = heads;
    return some;
}

void PartSearch::follow(const ByteSet& bytes) {
    std::vector<ExprId> made;
    for_each_derivative([&](const ByteSet& here, ExprId rest) {
        if (here.meets(bytes)) made.push_back(rest);
    });
    heads_ = std::move(made);
}

bool PartSearch::has_escapes(ExprId part) {
    if (const bool* const known = escapes_.find(part)) return *known;
    heads_.assign(1, after(part, '\\'));
    bool some = begins(kAfter[backslash]);
    if (some && !begins(kEscapes)) {
        for (const char* b : {"u", "0", "0"}) follow(ByteSet::of(b));
        some = begins(kAfter[zeros]);
    }
    escapes_.add(part, some);
    return some;
}

// Replaces intersections and differences in `parts_` by their parts, and sorts. Returns false if no text can match.
bool PartSearch::flatten() {
    flat_.clear();
    while (!parts_.empty()) {
        const SearchPart part = parts_.back();
        parts_.pop_back();
        exprs_.fuel().spend(2);
        const ExprId e = expr_of(part);
        const Expr x = exprs_[e];
        if (is_without(part)) {
            if (e == kNone) continue;
            if (x.op == Op::complement) parts_.push_back(with(x.operand()));
            else flat_.push_back(part);
        } else if (x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.part_count(); ++i) parts_.push_back(with(exprs_.parts(x)[i]));
        } else if (x.op == Op::difference) {
            parts_.push_back(with(x.minuend()));
            parts_.push_back(without(x.excluded()));
        } else if (x.op == Op::complement) parts_.push_back(without(x.operand()));
        else if (e == kNone) return false;
        else flat_.push_back(part);
    }
    sort_unique(flat_);
    parts_.swap(flat_);
    for (const SearchPart part : parts_)
        if (is_without(part) && std::ranges::binary_search(parts_, with(expr_of(part)))) return false;
    return true;
}

// Whether one of `parts_`, outside of escapes, needs a byte that another never matches. This decides many searches at their
// start, for example the search for a date with a wrong letter (decision 7). Large alternations are not examined: this would cost
// more than the search.
bool PartSearch::lacks_bytes() {
    if (!exprs_.limits().tuning.needed_bytes) return false;
    ByteSet common = ByteSet::range(0, 255), needed;
    unsigned count = 0;
    for (const SearchPart part : parts_) {
        if (is_without(part)) continue;
        const Expr &x = exprs_[expr_of(part)], &head = x.op == Op::concatenation ? exprs_[x.head()] : x;
        if (head.op == Op::alternation && head.part_count() > kMaxSum) return false;
        ++count;
    }
    if (count < 2) return false;
    for (const SearchPart part : parts_) {
        if (is_without(part)) continue;
        common &= byte_facts_.alphabet(expr_of(part));
        needed |= byte_facts_.needed(expr_of(part));
    }
    exprs_.fuel().spend(4 * count);
    return !needed.within(common);
}

// Adds `parts_` at a place as a state, unless it is known to be empty or was reached before by a text that is not longer.
void PartSearch::see(std::uint32_t place, std::uint32_t depth, std::uint32_t parent) {
    if (!flatten()) return;
    parts_.push_back(SearchPart{place});
    std::uint64_t h = place;
    for (const SearchPart part : parts_) h = mix(h, raw(part));
    exprs_.fuel().spend(kStateWork + 4 * parts_.size());
    const auto same = [&](const Listed& list, const std::vector<SearchPart>& in) {
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
        parts_.push_back(SearchPart{place});
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
    std::uint32_t least = 0, all = 0;  // lower bounds in bytes: of the text; the sum over all parts
    for (const SearchPart part : parts_) {
        const Expr& x = exprs_[expr_of(part)];
        nullable = nullable && x.nullable != is_without(part);
        if (is_without(part)) continue;
        std::uint32_t own = x.nullable ? 0 : x.shortest;
        if (x.op == Op::number && !x.nullable && !x.measured) own = std::max(own, exprs_.number_language().least(x.number_state()));
        least = std::max(least, own);
        all = sum(all, own);
    }
    if (!nullable) least = std::max(least, 1u);
    const Expr* const single = parts_.size() == 1 && !is_without(parts_[0]) ? &exprs_[expr_of(parts_[0])] : nullptr;
    alive = alive || (any_ && single && single->known_nonempty);
    const std::uint32_t total = nullable || alive ? depth : sum(depth, least);
    if (total >= best_) return;
    seen_.push_back({number, depth, parent});
    const auto at = static_cast<std::uint32_t>(seen_.size() - 1);
    if (nullable || alive || (single && single->measured)) {
        best_ = total;
        best_at_ = at;
    } else {
        tasks_.push_back({any_ ? all : total, at});
        std::push_heap(tasks_.begin(), tasks_.end(), later);
    }
}

// Adds the successors of a state.
void PartSearch::expand(const Seen& here, std::uint32_t at) {
    const Listed list = lists_[here.list];
    const std::uint32_t place = raw(listed_[list.begin + list.count - 1]);
    const std::vector<SearchPart> parts(listed_.begin() + list.begin, listed_.begin() + list.begin + list.count - 1);
    bool escapes = place == between;
    ClassesId classes{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ClassesId own = dfa_.row(dfa_.raw_row(expr_of(parts[i]))).classes;
        classes = i == 0 ? own : joint(classes, own);
        escapes = escapes && (is_without(parts[i]) || has_escapes(expr_of(parts[i])));
    }
    auto take = [&](std::uint8_t byte) {
        parts_.clear();
        for (const SearchPart part : parts) {
            const ExprId to = after(expr_of(part), byte);
            if (to == kNone && !is_without(part)) return;
            if (to != kNone) parts_.push_back(is_without(part) ? without(to) : with(to));
        }
        see(place_after(place, byte), here.depth + 1, at);
    };
    if (place != between && place != anywhere) return kAfter[place].each(take);
    const std::vector<std::uint8_t> some = bytes_of_classes(classes);
    for (const std::uint8_t byte : some)
        if (byte != '\\' || place == anywhere || escapes) take(byte);
}

// Searches until a text is found or no states are left. Returns false after more than `most` states.
bool PartSearch::search(ExprId start, bool any, std::size_t most) {
    lists_.clear();
    listed_.clear();
    depths_.clear();
    seen_.clear();
    tasks_.clear();
    states_ = {};
    best_ = kInfinite;
    any_ = any;
    parts_.assign(1, with(start));
    see(exprs_[start].encoding_closed ? between : anywhere, 0, 0);
    while (!tasks_.empty() && (any ? best_ == kInfinite : tasks_.front().least < best_)) {
        const std::uint32_t at = tasks_.front().at;
        std::pop_heap(tasks_.begin(), tasks_.end(), later);
        tasks_.pop_back();
        const Seen here = seen_[at];
        if (depths_[here.list] < here.depth) continue;
        if (seen_.size() > most) return false;
        expand(here, at);
    }
    if (best_ == kInfinite)
        for (const Listed& list : lists_) keep(list, false);
    return true;
}

std::uint32_t PartSearch::shortest(ExprId start, std::size_t most) {
    const Session session(*this);
    if (!search(start, false, most))
        throw SearchLimit(over_limit(most, "states in the search for a text of an intersection or complement",
                                     "use fewer or simpler patterns that apply to the same text")
                              .what());
    if (best_ != kInfinite) keep_path();
    return best_;
}

bool PartSearch::is_nonempty(ExprId start, std::size_t most) {
    const Session session(*this);
    if (!search(start, true, most / 4)) return shortest(start, most) != kInfinite;
    if (best_ == kInfinite) return false;
    std::uint32_t at = best_at_;
    do {
        at = seen_[at].parent;
        keep(lists_[seen_[at].list], true);
    } while (at != 0);
    return true;
}

// Caches whether a state has a text. A state that is already cached does not change.
void PartSearch::keep(const Listed& list, bool alive) {
    const auto first = listed_.begin() + list.begin, last = first + list.count;
    const auto same = [&](std::uint32_t id) {
        const Listed& known = known_[id].list;
        return known.count == list.count && std::equal(first, last, known_parts_.begin() + known.begin);
    };
    if (known_ids_.find(list.hash, same) != InternTable::kMissing) return;
    // The id is added last, because each of these calls can throw.
    const auto begin = static_cast<std::uint32_t>(known_parts_.size());
    known_parts_.insert(known_parts_.end(), first, last);
    known_.push_back({{begin, list.count, list.hash}, alive});
    known_ids_.add(list.hash, static_cast<std::uint32_t>(known_.size() - 1));
}

// Stores the lengths of all states on the path: a caller that follows a shortest text needs them after each byte.
void PartSearch::keep_path() {
    for (std::uint32_t at = best_at_;; at = seen_[at].parent) {
        const Seen here = seen_[at];
        const Listed list = lists_[here.list];
        std::vector<ExprId> parts;
        for (const SearchPart part : std::span(listed_).subspan(list.begin, list.count - 1))
            parts.push_back(is_without(part) ? exprs_.complement(expr_of(part)) : expr_of(part));
        const ExprId made = exprs_.intersect(std::move(parts));
        exprs_.set_shortest(made, best_ - here.depth);
        if (at == 0) break;
    }
}

}  // namespace guideway
