// Interning: the constructors of expressions and the laws they apply.
#include "guideway/regex/expr.h"

#include <algorithm>

#include "guideway/base/dcheck.h"
#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/base/sort_unique.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/external_language.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/string_trie.h"
#include "guideway/regex/structure.h"
#include "guideway/regex/substrings.h"

namespace guideway {

namespace {

constexpr std::uint8_t kAllSpellings = 7;
constexpr std::uint32_t kMaxJoined = 4096;  // maximum number of characters of sets of texts that are always joined
constexpr std::uint64_t kExprWork = 10;
constexpr std::size_t kLargeSum = 256;
constexpr std::size_t kNodeBytes = 80;  // of a node of a map, with the overhead of its allocation

// A concatenation with a nullable head contains all texts of its tail, so the tail is redundant in the same alternation. Without
// this law, the states of `a?a?a?...` are alternations of all its tails, with cubic cost.
void drop_tails(ExprTable& exprs, std::vector<ExprId>& sum) {
    constexpr int kSteps = 64;
    const std::uint64_t each = sum.size() > kLargeSum ? 4 : 2;  // per step
    std::vector<ExprId> dropped;
    for (ExprId p : sum) {
        const Expr* x = &exprs[p];
        int step = 0;
        for (; step < kSteps && x->op == Op::concatenation && exprs[x->head()].nullable; ++step) {
            const ExprId tail = x->tail();
            if (std::binary_search(sum.begin(), sum.end(), tail)) {  // its own tails are checked in its own iteration
                dropped.push_back(tail);
                break;
            }
            x = &exprs[tail];
        }
        if (step) exprs.fuel().spend(each * static_cast<std::uint64_t>(step));
    }
    if (dropped.empty()) return;
    std::sort(dropped.begin(), dropped.end());
    std::erase_if(sum, [&](ExprId p) { return std::binary_search(dropped.begin(), dropped.end(), p); });
}

// Whether p is a subset of q, by a sufficient condition: they are concatenations of equal parts, but q repeats some with wider
// bounds.
bool is_within(const ExprTable& exprs, ExprId p, ExprId q) {
    constexpr unsigned kSteps = 16;
    for (unsigned step = 0; step < kSteps && p != q; ++step) {
        const Expr &x = exprs[p], &y = exprs[q];
        const ExprId a = x.op == Op::concatenation ? x.head() : p, b = y.op == Op::concatenation ? y.head() : q;
        if (a != b) {
            const Expr &few = exprs[a], &many = exprs[b];
            if (many.op != Op::repetition) return false;
            const bool repeats = few.op == Op::repetition && few.body() == many.body();
            if (!repeats && a != many.body()) return false;
            if ((repeats ? few.minimum() : 1) < many.minimum() || (repeats ? few.maximum() : 1) > many.maximum()) return false;
        }
        p = x.op == Op::concatenation ? x.tail() : kEmpty;
        q = y.op == Op::concatenation ? y.tail() : kEmpty;
    }
    return p == q;
}

// Of summands that differ only in their repetition bounds, those with the widest bounds suffice. Otherwise a text of n dots
// has about n * n / 2 open counters in `(.{1,63}\.){1,127}`.
void drop_counts(ExprTable& exprs, std::vector<ExprId>& sum) {
    constexpr std::size_t kMostCounts = 32;
    std::vector<ExprId> counts;
    for (const ExprId p : sum) {
        const Expr& x = exprs[p];
        if (x.bounded && !x.labelled && (x.op == Op::concatenation || x.op == Op::repetition)) counts.push_back(p);
    }
    if (counts.size() < 2 || counts.size() > kMostCounts) return;
    exprs.fuel().spend(counts.size());
    std::vector<ExprId> dropped;
    for (const ExprId p : counts) {
        const auto holds = [&](ExprId q) {
            return q != p && std::find(dropped.begin(), dropped.end(), q) == dropped.end() && is_within(exprs, p, q);
        };
        if (std::any_of(counts.begin(), counts.end(), holds)) dropped.push_back(p);
    }
    if (!dropped.empty()) std::erase_if(sum, [&](ExprId p) { return std::find(dropped.begin(), dropped.end(), p) != dropped.end(); });
}

// Joins sets of texts in the same spelling, except if a large one would be copied to add small ones.
void join_strings(ExprTable& exprs, std::vector<ExprId>& sum) {
    for (const Encoding spelling : {Encoding::text, Encoding::escaped, Encoding::escaped_any}) {
        std::uint32_t count = 0, total = 0, largest = 0;
        auto joins = [&](ExprId p) {
            return exprs[p].op == Op::strings && exprs[p].part() == kBetween &&
                   exprs.strings().spelling(exprs[p].string_node()) == spelling;
        };
        for (ExprId p : sum)
            if (joins(p)) {
                ++count;
                total = guideway::sum(total, exprs.strings().characters(exprs[p].string_node()));
                largest = std::max(largest, exprs.strings().characters(exprs[p].string_node()));
            }
        if (count < 2 || (total > kMaxJoined && largest > total / 2)) continue;
        std::vector<StringTrie::Entry> all;
        for (ExprId p : sum)
            if (joins(p)) {
                auto more = exprs.strings().texts(exprs[p].string_node());
                all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
            }
        std::erase_if(sum, joins);
        const ExprId made = exprs.string_state(exprs.strings().make(std::move(all), spelling));
        sum.insert(std::lower_bound(sum.begin(), sum.end(), made), made);
    }
}

}  // namespace

std::uint64_t Expr::hash(const std::vector<ExprId>* parts) const {
    std::uint64_t h = mix(0, static_cast<std::uint64_t>(op));
    if (parts)
        for (const ExprId p : *parts) h = mix(h, raw(p));
    else
        for (const std::uint32_t operand : operands_) h = mix(h, operand);
    return h;
}

ExprTable::~ExprTable() = default;

ExprTable::ExprTable(const ExprLimits& limits)
    : limits_(limits), fuel_(limits.max_work), numbers_(std::make_unique<NumberLanguage>(*this)),
      encoder_(std::make_unique<Encoder>(*this)), strings_(std::make_unique<StringTrie>(*this)),
      substrings_(std::make_unique<Substrings>(fuel_)) {
    if (limits.max_exprs > kMaxExprs)
        throw Error(ErrorKind::argument,
                    "max_states is " + std::to_string(limits.max_exprs) + "; it can be at most " + std::to_string(kMaxExprs));
    Expr none;
    none.encoding_closed = none.weakly_encoding_closed = true;
    intern(none);
    Expr empty(Op::empty);
    empty.nullable = true;
    empty.within = kAllSpellings;
    empty.shortest = 0;
    empty.known_nonempty = empty.known_finite = empty.encoding_closed = empty.weakly_encoding_closed = true;
    intern(empty);
}

ExprId ExprTable::find(std::uint64_t h, const Expr& made, const std::vector<ExprId>* wanted) {
    static_assert(raw(kUnknownExpr) == InternTable::kMissing);
    const ExprId known{interned_.find(h, [&](std::uint32_t id) {
        const Expr& x = exprs_[ExprId{id}];
        return x.op == made.op && (wanted ? std::ranges::equal(*wanted, parts(x)) : x.operands_ == made.operands_);
    })};
    if (known != kUnknownExpr) {
        exprs_[known].encoding_closed |= made.encoding_closed;
        exprs_[known].weakly_encoding_closed |= made.weakly_encoding_closed;
        exprs_[known].within |= made.within;
        exprs_[known].counted |= made.counted;
    }
    return known;
}

ExprId ExprTable::intern(Expr made, const std::vector<ExprId>* parts, std::optional<std::uint64_t> missing) {
    GUIDEWAY_DCHECK(!parts || std::ranges::all_of(*parts, [&](ExprId part) { return raw(part) < exprs_.size(); }));
    GUIDEWAY_DCHECK(made.op != Op::concatenation ||
                    (raw(made.head()) < exprs_.size() && raw(made.tail()) < exprs_.size() && exprs_[made.head()].op != Op::concatenation));
    GUIDEWAY_DCHECK((made.op != Op::alternation && made.op != Op::intersection) ||
                    (parts && parts->size() > 1 && std::ranges::is_sorted(*parts)));
    const std::uint64_t h = missing ? *missing : made.hash(parts);
    if (!missing)
        if (const ExprId known = find(h, made, parts); known != kUnknownExpr) return known;
    fuel_.spend(kExprWork);
    if (exprs_.size() >= limits_.max_exprs)
        throw Error(ErrorKind::limit,
                    "the constraint needs more than max_states = " + std::to_string(limits_.max_exprs) + " automaton states");
    if (made.depth > limits_.max_depth) throw over_limit(limits_.max_depth, "levels of nested regular expressions", "nest fewer groups");
    if (parts) {
        made.operands_ = {static_cast<std::uint32_t>(args_.size()), static_cast<std::uint32_t>(parts->size()), 0};
        args_.insert(args_.end(), parts->begin(), parts->end());
    }
    const auto id = next_id<ExprId>(exprs_);
    made.measured = !made.boolean && made.op != Op::number && (made.op != Op::composite || made.known_finite);
    made.known_nonempty |= !made.boolean && made.op != Op::none;
    exprs_.push_back(made);
    interned_.add(h, raw(id));
    return id;
}

ByteSetId ExprTable::set_id(const ByteSet& bytes) {
    const std::uint64_t h = ByteSetHash{}(bytes);
    const std::uint32_t known = set_ids_.find(h, [&](std::uint32_t id) { return sets_[ByteSetId{id}] == bytes; });
    if (known != InternTable::kMissing) return ByteSetId{known};
    const ByteSetId id = sets_.next();
    sets_.push_back(bytes);
    set_ids_.add(h, raw(id));
    return id;
}

ExprId ExprTable::set(const ByteSet& bytes) {
    if (bytes.empty()) return kNone;
    static const ByteSet ascii = ByteSet::range(0, 0x7f);
    static const ByteSet unescaped = [] {
        ByteSet plain = ByteSet::range(0x20, 0x7f);
        plain.words[0] &= ~(std::uint64_t{1} << '"');
        plain.words[1] &= ~(std::uint64_t{1} << ('\\' - 64));
        return plain;
    }();
    Expr made(Op::set, set_id(bytes));
    made.shortest = 1;
    made.known_nonempty = made.known_finite = true;
    made.encoding_closed = made.weakly_encoding_closed = bytes == ByteSet::range('"', '"');  // the end of a string
    made.within = bytes.within(unescaped) ? kAllSpellings : bytes.within(ascii) ? 1 : 0;
    return intern(made);
}

ExprId ExprTable::concat(ExprId a, ExprId b) {
    if (a == kNone || b == kNone) return kNone;
    if (a == kEmpty) return b;
    if (b == kEmpty) return a;
    std::vector<ExprId> heads;
    while (exprs_[a].op == Op::concatenation) {
        heads.push_back(exprs_[a].head());
        a = exprs_[a].tail();
    }
    fuel_.spend(4 * heads.size());
    b = product(a, b);
    for (; !heads.empty(); heads.pop_back()) b = product(heads.back(), b);
    return b;
}

// `head` is no concatenation.
ExprId ExprTable::product(ExprId head, ExprId b) {
    Expr made(Op::concatenation, head, b);
    const Expr x = exprs_[head], y = exprs_[b];
    made.encoding_closed = made.weakly_encoding_closed = x.encoding_closed && y.encoding_closed;
    made.within = x.within & y.within;
    made.counted = x.counted || y.counted;
    const std::uint64_t hash = made.hash();
    if (const ExprId known = find(hash, made); known != kUnknownExpr) return known;
    // A quote or a label after one text becomes its end, so that sets of such texts can be joined.
    if (x.op == Op::strings && x.part() == kBetween && strings_->count(x.string_node()) == 1 && is_quote(*this, b)) {
        StringTrie::Entry text = strings_->only_text(x.string_node());
        text.end = concat(text.end, b);
        return string_state(strings_->make({std::move(text)}, strings_->spelling(x.string_node())));
    }
    made.nullable = x.nullable && y.nullable;
    made.boolean = x.boolean || y.boolean;
    made.bounded = x.bounded || y.bounded;
    made.unbounded = x.unbounded || y.unbounded;
    made.labelled = x.labelled || y.labelled;
    made.known_nonempty = x.known_nonempty && y.known_nonempty;
    made.known_finite = x.known_finite && y.known_finite;
    made.known_infinite = made.known_nonempty && (x.known_infinite || y.known_infinite);
    made.rowless = x.rowless;
    const auto after = static_cast<std::uint16_t>(x.nullable ? y.depth + (y.op == Op::concatenation ? 0 : 1) : 0);
    made.depth = std::max<std::uint16_t>(x.op == Op::set ? 0 : static_cast<std::uint16_t>(x.depth + 1), after);
    made.shortest = sum(x.shortest, y.shortest);
    return intern(made, nullptr, hash);
}

ExprId ExprTable::unite(std::vector<ExprId> parts) {
    std::vector<ExprId> flat;
    ByteSet bytes;
    std::uint8_t universe = 0;
    bool encoding_closed = true,
         weakly_encoding_closed = true;  // also for parts that are alternations, whose own parts may not have the property
    const ExprId everything = complement(kNone);
    auto take = [&](ExprId p) {
        if (exprs_[p].op == Op::set) bytes |= sets_[exprs_[p].byte_set()];
        else if (p != kNone) flat.push_back(p);
        universe |= exprs_[p].universe;
    };
    for (ExprId p : parts) {
        if (p == everything) return everything;
        encoding_closed &= exprs_[p].encoding_closed;
        weakly_encoding_closed &= exprs_[p].weakly_encoding_closed;
        if (exprs_[p].op == Op::alternation)
            for (const ExprId part : this->parts(exprs_[p])) take(part);
        else take(p);
    }
    if (!bytes.empty()) flat.push_back(set(bytes));
    fuel_.spend((flat.size() > kLargeSum ? 20 : 4) * flat.size());  // a large sum does not fit in the processor's cache
    sort_unique(flat);
    if (universe)  // all texts of a spelling absorb every other text of it
        std::erase_if(flat, [&](ExprId p) { return !exprs_[p].universe && (exprs_[p].within & universe); });
    join_strings(*this, flat);
    drop_tails(*this, flat);
    drop_counts(*this, flat);
    if (flat.empty()) return kNone;
    if (flat.size() == 1) {
        exprs_[flat[0]].encoding_closed |= encoding_closed;
        exprs_[flat[0]].weakly_encoding_closed |= weakly_encoding_closed;
        return flat[0];
    }
    Expr made(Op::alternation);
    made.within = kAllSpellings;
    made.known_finite = true;
    made.encoding_closed = encoding_closed;
    made.weakly_encoding_closed = weakly_encoding_closed;
    for (ExprId p : flat) {
        const Expr& x = exprs_[p];
        made.nullable |= x.nullable;
        made.boolean |= x.boolean;
        made.bounded |= x.bounded;
        made.counted |= x.counted;
        made.unbounded |= x.unbounded;
        made.labelled |= x.labelled;
        made.within &= x.within;
        made.known_nonempty |= x.known_nonempty;
        made.known_finite &= x.known_finite;
        made.known_infinite |= x.known_infinite;
        made.shortest = std::min(made.shortest, x.shortest);
        const bool flat_head = x.op == Op::set || (x.op == Op::concatenation && exprs_[x.head()].op == Op::set);
        made.depth = std::max<std::uint16_t>(made.depth, flat_head ? 0 : static_cast<std::uint16_t>(x.depth + 1));
    }
    return intern(made, &flat);
}

ExprId ExprTable::intersect(std::vector<ExprId> parts) {
    std::vector<ExprId> flat;
    const ExprId everything = complement(kNone);
    for (ExprId p : parts) {
        if (p == kNone) return kNone;
        if (p == everything) continue;
        if (exprs_[p].op == Op::intersection)
            for (ExprId q : this->parts(exprs_[p])) flat.push_back(q);
        else flat.push_back(p);
    }
    fuel_.spend(4 * flat.size());
    sort_unique(flat);
    for (ExprId p : flat)  // all texts of a spelling are neutral next to a subset of them
        if (exprs_[p].universe &&
            std::any_of(flat.begin(), flat.end(), [&](ExprId q) { return q != p && (exprs_[q].within & exprs_[p].universe); })) {
            std::erase(flat, p);
            break;
        }
    for (ExprId p : flat)  // a subset of a spelling without all texts of the spelling is empty
        if (exprs_[p].op == Op::complement && exprs_[exprs_[p].operand()].universe &&
            std::any_of(flat.begin(), flat.end(), [&](ExprId q) { return (exprs_[q].within & exprs_[exprs_[p].operand()].universe) != 0; }))
            return kNone;
    if (flat.empty()) return everything;
    if (flat.size() == 1) return flat[0];
    Expr made(Op::intersection);
    made.boolean = made.unbounded = true;
    made.nullable = made.weakly_encoding_closed = true;
    made.shortest = 0;
    for (ExprId p : flat) {
        made.nullable &= exprs_[p].nullable;
        made.unbounded &= exprs_[p].unbounded;
        made.bounded |= exprs_[p].bounded;
        made.shortest = std::max(made.shortest, exprs_[p].shortest);
        made.within |= exprs_[p].within;
        made.encoding_closed |= exprs_[p].encoding_closed;
        made.weakly_encoding_closed &= exprs_[p].weakly_encoding_closed;
        made.depth = std::max<std::uint16_t>(made.depth, static_cast<std::uint16_t>(exprs_[p].depth + 1));
    }
    made.encoding_closed &= made.weakly_encoding_closed;
    if (std::binary_search(flat.begin(), flat.end(), kEmpty)) return made.nullable ? kEmpty : kNone;
    std::vector<ExprId> taken, left;
    for (ExprId p : flat) {
        if (exprs_[p].op == Op::complement && exprs_[exprs_[p].operand()].known_finite) taken.push_back(exprs_[p].operand());
        else left.push_back(p);
    }
    if (!taken.empty() && !left.empty()) return subtract(intersect(std::move(left)), unite(std::move(taken)));
    // One infinite language without several finite sets of texts is infinite.
    const auto minuend_of = [&](ExprId p) { return exprs_[p].op == Op::difference ? exprs_[p].minuend() : p; };
    const ExprId base = minuend_of(flat[0]);
    if (exprs_[base].known_infinite && std::all_of(flat.begin(), flat.end(), [&](ExprId p) {
            return minuend_of(p) == base && (p == base || exprs_[exprs_[p].excluded()].known_finite);
        }))
        made.known_infinite = made.known_nonempty = true;
    return intern(made, &flat);
}

ExprId ExprTable::subtract(ExprId a, ExprId texts) {
    if (exprs_[a].op == Op::difference) {
        texts = unite({exprs_[a].excluded(), texts});
        a = exprs_[a].minuend();
    }
    if (a == kNone || texts == kNone) return a;
    if (a == kEmpty) return exprs_[texts].nullable ? kNone : kEmpty;
    const Expr x = exprs_[a], y = exprs_[texts];
    Expr made(Op::difference, a, texts);
    made.boolean = made.rowless = true;
    made.bounded = x.bounded;
    made.unbounded = x.unbounded;
    made.known_finite = x.known_finite;
    made.shortest = x.shortest;  // a lower bound, as for all Booleans until they are measured
    made.known_infinite = made.known_nonempty = x.known_infinite;
    made.nullable = x.nullable && !y.nullable;
    made.weakly_encoding_closed = x.weakly_encoding_closed && y.weakly_encoding_closed;
    made.encoding_closed = x.encoding_closed && y.weakly_encoding_closed;
    made.within = x.within;
    made.depth = static_cast<std::uint16_t>(std::max(x.depth, y.depth) + 1);
    return intern(made);
}

ExprId ExprTable::string_state(StringNode node, DecoderState part) {
    if (node == StringTrie::kNoEntries) return kNone;
    if (part == kBetween && strings_->is_end(node)) return strings_->end(node);
    Expr made(Op::strings, node, part);
    const std::uint64_t hash = made.hash();
    if (const ExprId known = find(hash, made); known != kUnknownExpr) return known;
    const ExprId end = part == kBetween ? strings_->end(node) : kNone;
    made.nullable = end != kNone && exprs_[end].nullable;
    made.labelled = strings_->last_label(node) != kNoLabel;
    made.known_nonempty = made.known_finite = made.rowless = true;
    made.encoding_closed = made.weakly_encoding_closed =
        part == kBetween && strings_->spelling(node) == Encoding::escaped_any && strings_->ends_spelled(node);
    if (part == kBetween && strings_->is_plain(node)) {
        made.within = static_cast<std::uint8_t>(1u << static_cast<unsigned>(strings_->spelling(node)));
    }
    made.depth = static_cast<std::uint16_t>(strings_->depth(node) + 1);
    made.shortest = strings_->shortest(node, part);
    return intern(made, nullptr, hash);
}

ExprId ExprTable::substring(SubstringState state, DecoderState part) {
    if (state == Substrings::kNowhere) return kNone;
    Expr made(Op::substring, state, part);
    if (const ExprId known = find(made.hash(), made); known != kUnknownExpr) return known;
    const Encoding spelling = substrings_->spelling(state);
    made.nullable = part == kBetween && substrings_->ends(state);
    made.known_nonempty = made.known_finite = made.rowless = true;
    made.encoding_closed = made.weakly_encoding_closed = part == kBetween && spelling == Encoding::escaped_any;
    if (part == kBetween) made.within = static_cast<std::uint8_t>(1u << static_cast<unsigned>(spelling));
    made.depth = 1;
    made.shortest = made.nullable ? 0 : substrings_->shortest(state, part);
    return intern(made);
}

ExprId ExprTable::complement(ExprId a) {
    if (exprs_[a].op == Op::complement) return exprs_[a].operand();
    Expr made(Op::complement, a);
    made.boolean = made.unbounded = true;
    made.known_infinite = made.known_nonempty = exprs_[a].known_finite;
    made.bounded = !exprs_[a].boolean && exprs_[a].shortest > kNear;
    made.shortest = exprs_[a].nullable ? 1 : 0;
    made.weakly_encoding_closed = exprs_[a].weakly_encoding_closed;
    made.nullable = !exprs_[a].nullable;
    made.depth = static_cast<std::uint16_t>(exprs_[a].depth + 1);
    return intern(made);
}

ExprId ExprTable::repeat(ExprId a, std::uint32_t minimum, std::uint32_t maximum) {
    if (a == kEmpty || maximum == 0) return kEmpty;
    if (a == kNone) return minimum == 0 ? kEmpty : kNone;
    if (exprs_[a].nullable) minimum = 0;
    if (minimum == 1 && maximum == 1) return a;
    const Expr x = exprs_[a];
    if (x.op == Op::repetition && x.minimum() == 0 && x.maximum() == kInfinite) return a;
    Expr made(Op::repetition, a, minimum, maximum);
    made.nullable = minimum == 0;
    made.boolean = x.boolean;
    made.unbounded = x.unbounded || maximum == kInfinite;
    made.bounded = x.bounded || minimum > 1 || (maximum != kInfinite && maximum > 1);
    made.counted = x.counted || (maximum != kInfinite && loop_bodies_.find(a));
    made.within = x.within;
    made.known_nonempty = x.known_nonempty || minimum == 0;
    made.encoding_closed = made.weakly_encoding_closed = x.encoding_closed;
    made.known_finite = x.known_finite && maximum != kInfinite;
    made.known_infinite = x.known_nonempty && (x.known_infinite || (maximum == kInfinite && !x.labelled));
    made.depth = static_cast<std::uint16_t>(x.depth + 1);
    made.shortest = multiply(x.shortest, minimum);
    return intern(made);
}

ExprId ExprTable::label(std::uint32_t number) {
    Expr made(Op::label, number);
    made.nullable = made.labelled = made.known_nonempty = made.known_finite = made.encoding_closed = made.weakly_encoding_closed = true;
    made.shortest = 0;
    return intern(made);
}

ExprId ExprTable::graph(const std::vector<GraphState>& states) {
    std::vector<std::uint32_t> key;
    for (const GraphState& state : states) {
        key.push_back(state.accepting);
        key.push_back(static_cast<std::uint32_t>(state.edges.size()));
        for (const GraphEdge& edge : state.edges) key.insert(key.end(), {raw(edge.step), edge.to});
    }
    auto known = graphs_.find(key);
    if (known != graphs_.end()) return known->second;

    // Distances to acceptance, computed backwards; states that cannot reach it are left out.
    std::vector<std::uint32_t> shortest(states.size(), kInfinite), queue;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> into(states.size());
    std::uint8_t within = kAllSpellings;
    bool encoding_closed = true;
    std::uint16_t depth = 0;
    for (std::uint32_t i = 0; i < states.size(); ++i) {
        for (const GraphEdge& edge : states[i].edges)
            if (edge.step != kNone) {
                into[edge.to].emplace_back(i, exprs_[edge.step].shortest);
                within &= exprs_[edge.step].within;
                encoding_closed &= exprs_[edge.step].encoding_closed;
                depth = std::max<std::uint16_t>(depth, static_cast<std::uint16_t>(exprs_[edge.step].depth + 1));
            }
        if (states[i].accepting) shortest[i] = 0, queue.push_back(i);
    }
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (auto [from, length] : into[queue[i]])
            if (sum(shortest[queue[i]], length) < shortest[from]) {
                shortest[from] = sum(shortest[queue[i]], length);
                queue.push_back(from);
            }

    std::vector<ExprId> ids(states.size(), kNone);
    auto leads_on = [&](const GraphEdge& edge) { return edge.step != kNone && shortest[edge.to] != kInfinite; };
    for (std::uint32_t i = 0; i < states.size(); ++i) {
        if (shortest[i] == kInfinite) continue;
        Expr made(Op::state, static_cast<std::uint32_t>(steps_.size()));
        made.unbounded = true;
        made.nullable = states[i].accepting;
        made.within = within;
        made.encoding_closed = made.weakly_encoding_closed = encoding_closed;
        made.depth = depth;
        made.shortest = shortest[i];
        const bool ends = std::none_of(states[i].edges.begin(), states[i].edges.end(), leads_on);
        ids[i] = ends ? kEmpty : intern(made);
        steps_.emplace_back();
        grew(sizeof steps_[0] + states[i].edges.size() * sizeof steps_[0][0]);
    }
    for (std::uint32_t i = 0; i < states.size(); ++i)
        if (ids[i] > kEmpty)
            for (const GraphEdge& edge : states[i].edges)
                if (leads_on(edge)) steps_[exprs_[ids[i]].operands_[0]].emplace_back(edge.step, ids[edge.to]);
    const ExprId first = ids.empty() ? kNone : ids[0];
    grew(kNodeBytes + key.size() * sizeof key[0]);
    graphs_.emplace(std::move(key), first);
    return first;
}

ExprId ExprTable::number(NumberState state) {
    Expr made(Op::number, state);
    made.nullable = numbers_->accepting(state);
    made.shortest = made.nullable ? 0 : 1;  // a lower bound
    return intern(made);
}

void ExprTable::mark_within(ExprId e, unsigned spelling) {
    const auto bit = static_cast<std::uint8_t>(1u << spelling);
    exprs_[e].within |= bit;
    each_part(*this, e, [&](ExprId part) {
        exprs_[part].within |= bit;
        return false;
    });
}

void ExprTable::install_composites(std::unique_ptr<ExternalLanguage> language) { composites_ = std::move(language); }

ExprId ExprTable::composite(CompositeState state) {
    Expr made(Op::composite, state);
    made.nullable = composites_->accepting(state);
    made.rowless = true;
    made.known_finite = composites_->single(state);  // as a value: `search_other_composite` handles its spellings
    made.depth = 1;
    made.shortest = made.known_finite ? composites_->shortest(state) : made.nullable ? 0 : 1;
    return intern(made);
}

std::size_t ExprTable::bytes() const {
    return exprs_.size() * sizeof(Expr) + interned_.bytes() + args_.size() * 4 + sets_.size() * sizeof(ByteSet) + set_ids_.bytes() +
           loop_bodies_.bytes() + grown_ + strings_->bytes() + substrings_->bytes() + (composites_ ? composites_->bytes() : 0);
}

}  // namespace guideway
