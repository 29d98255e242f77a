// Derivatives, and rows of the lazy DFA (lazy_dfa.h).
#include "guideway/regex/lazy_dfa.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "guideway/base/stack_guard.h"
#include "guideway/regex/emptiness.h"
#include "guideway/regex/external_language.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/string_trie.h"
#include "guideway/regex/structure.h"
#include "guideway/regex/substrings.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxHeads = 64;
constexpr std::size_t kMaxWays = 48;                     // above this number of classes, each byte is a separate class
constexpr std::uint64_t kRowWork = 100, kByteWork = 20;  // units of work: for a row; for a byte without one

// Splits each of several disjoint sets into the bytes that are in `by` and those that are not.
void split(std::vector<ByteSet>& sets, const ByteSet& by) {
    for (std::size_t i = 0, count = sets.size(); i < count; ++i) {
        ByteSet in = sets[i];
        in &= by;
        if (in.empty() || in == sets[i]) continue;
        sets[i] -= in;
        sets.push_back(in);
    }
}

// Splits the sets so that each is within one class. `classes`: the class of each byte; `of_class`: the bytes of each class.
void split(std::vector<ByteSet>& sets, const LazyDfa::Classes& classes, const std::vector<ByteSet>& of_class) {
    for (std::size_t i = 0, count = sets.size(); i < count; ++i)
        while (true) {
            ByteSet in = sets[i];
            in &= of_class[classes[static_cast<std::size_t>(sets[i].from(0))]];
            if (in == sets[i]) break;
            sets[i] -= in;
            sets.push_back(in);
        }
}

// Splits the sets so that each byte of `bytes` is alone.
void isolate(std::vector<ByteSet>& sets, ByteSet bytes) {
    ByteSet found;
    for (ByteSet& set : sets) {
        ByteSet in = set;
        in &= bytes;
        found |= in;
        set -= in;
    }
    std::erase_if(sets, [](const ByteSet& set) { return set.empty(); });
    found.each([&](std::uint8_t b) { sets.push_back(ByteSet::range(b, b)); });
}

// The rest of a repetition after the beginning of one iteration.
ExprId one_less(ExprTable& exprs, const Expr& repeated) {
    return exprs.repeat(repeated.body(), repeated.minimum() ? repeated.minimum() - 1 : 0,
                        repeated.maximum() == kInfinite ? kInfinite : repeated.maximum() - 1);
}

// A heuristic: counters and intersections mostly have a new state after each byte. If it is wrong, Tuning::row_lookups limits the
// cost.
bool is_transient(const Expr& x) { return x.boolean || (x.op == Op::repetition && x.maximum() != kInfinite); }

// The parts of an intersection that must match a text, and those that must not.
void split_intersection(const ExprTable& exprs, ExprId e, std::vector<ExprId>& with, std::vector<ExprId>& without) {
    with.clear();
    without.clear();
    std::vector<ExprId> todo{e};
    while (!todo.empty()) {
        const ExprId part = todo.back();
        const Expr x = exprs[part];
        todo.pop_back();
        if (x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.part_count(); ++i) todo.push_back(exprs.parts(x)[i]);
        } else if (x.op == Op::difference) {
            todo.push_back(x.minuend());
            without.push_back(x.excluded());
        } else if (x.op == Op::complement) without.push_back(x.operand());
        else with.push_back(part);
    }
}

}  // namespace

LazyDfa::LazyDfa(ExprTable& exprs, Emptiness& emptiness)
    : exprs_(exprs), emptiness_(emptiness), row_lookups_(std::min(exprs.limits().tuning.row_lookups, kMostLookups)) {
    rows_.push_back({});  // kNoRow
}

void LazyDfa::add_facts() {
    while (facts_.size() < exprs_.size()) facts_.push_back({});
}

std::size_t LazyDfa::bytes() const {
    return facts_.size() * sizeof(Facts) + rows_.size() * sizeof(Row) + targets_.size() * 4 + classes_.size() * sizeof(Classes) +
           class_ids_.bytes() + class_sets_.size() * 256;
}

ClassesId LazyDfa::class_id(const Classes& classes) {
    std::uint64_t h = 7;
    for (std::size_t i = 0; i < 256; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, classes.data() + i, 8);
        h = mix(h, word);
    }
    const std::uint32_t known = class_ids_.find(h, [&](std::uint32_t id) { return classes_[ClassesId{id}] == classes; });
    if (known != InternTable::kMissing) return ClassesId{known};
    const auto id = next_id<ClassesId>(classes_);
    classes_.push_back(classes);
    class_ids_.add(h, raw(id));
    return id;
}

RowId LazyDfa::store_row(const Targets& targets) {
    std::array<std::uint8_t, 256> classes{};
    std::array<ExprId, 256> distinct;
    unsigned count = 0;
    ByteSet live;
    std::array<std::uint8_t, 257> other{};  // whether the target differs from that of the byte before
    for (unsigned b = 1; b < 256; ++b) other[b] = targets[b] != targets[b - 1];
    other[256] = 1;
    for (unsigned b = 0, next; b < 256; b = next) {
        next = static_cast<unsigned>(static_cast<const std::uint8_t*>(std::memchr(&other[b + 1], 1, 256 - b)) - other.data());
        if (targets[b] != kNone) live |= ByteSet::range(static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(next - 1));
        unsigned k = 0;  // most rows have few targets
        while (k < count && distinct[k] != targets[b]) ++k;
        if (k == count) distinct[count++] = targets[b];
        std::fill(classes.begin() + b, classes.begin() + next, static_cast<std::uint8_t>(k));
    }
    const auto id = next_id<RowId>(rows_);
    rows_.push_back({class_id(classes), exprs_.set_id(live), static_cast<std::uint32_t>(targets_.size()), count});
    for (unsigned k = 0; k < count; ++k) targets_.push_back(distinct[k]);
    return id;
}

// The row of an expression whose derivatives are those of its head, each with a tail. It copies the classes of the head's row
// and changes only the targets, so it needs no loop over bytes. Two of the targets may be equal.
RowId LazyDfa::row_before(ExprId head, ExprId tail) {
    const Row from = rows_[raw_row(head)];
    std::vector<ExprId> made;
    for (std::uint32_t k = 0; k < from.count; ++k) made.push_back(exprs_.concat(targets_[from.offset + k], tail));
    const auto id = next_id<RowId>(rows_);
    rows_.push_back({from.classes, from.live, static_cast<std::uint32_t>(targets_.size()), from.count});
    targets_.append(made);
    return id;
}

// Computes the rows of the parts first, with a worklist: expressions can be nested thousands of levels deep.
RowId LazyDfa::raw_row(ExprId e) {
    if (facts(e).raw_row != kNoRow) return facts(e).raw_row;
    check_stack();
    std::vector<ExprId> todo{e};
    const auto need = [&](ExprId part) {
        if (facts(part).raw_row == kNoRow) todo.push_back(part);
    };
    const auto is_product_after_set = [&](ExprId part) {
        return exprs_[part].op == Op::concatenation && exprs_[exprs_[part].head()].op == Op::set;
    };
    while (!todo.empty()) {
        const ExprId at = todo.back();
        const std::size_t size = todo.size();
        const Expr x = exprs_[at];
        if (facts(at).raw_row != kNoRow) {
            todo.pop_back();
            continue;
        }
        if (x.op == Op::concatenation) {
            need(x.head());
            if (exprs_[x.head()].nullable) need(x.tail());
        } else if (x.op == Op::repetition || x.op == Op::complement) need(x.operand());
        else if (x.op == Op::difference) {
            need(x.minuend());
            need(x.excluded());
        } else if (x.op == Op::alternation || x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.part_count(); ++i)
                if (x.op == Op::intersection || !is_product_after_set(exprs_.parts(x)[i])) need(exprs_.parts(x)[i]);
        } else if (x.op == Op::state) {
            for (const auto& [step, after] : exprs_.steps(x)) need(step);
        }
        if (todo.size() > size) continue;
        exprs_.fuel().spend(kRowWork);
        RowId row = kNoRow;
        if (x.op == Op::repetition) row = row_before(x.body(), one_less(exprs_, x));
        else if (x.op == Op::concatenation && !exprs_[x.head()].nullable) row = row_before(x.head(), x.tail());
        else {
            auto out = std::make_unique<Targets>();
            out->fill(kNone);
            derive(at, *out);
            row = store_row(*out);
        }
        facts(at).raw_row = row;
        todo.pop_back();
    }
    return facts(e).raw_row;
}

RowId LazyDfa::make_live_row(ExprId e) {
    const RowId raw = raw_row(e);
    RowId live = raw;
    if (exprs_[e].boolean) {
        exprs_.fuel().spend(kRowWork);
        const Row row = rows_[raw];
        std::vector<ExprId> kept;
        bool all = true;
        for (std::uint32_t k = 0; k < row.count; ++k) {
            const ExprId t = targets_[row.offset + k];
            const bool good = t == kNone || emptiness_.is_nonempty(t);
            kept.push_back(good ? t : kNone);
            all = all && good;
        }
        if (!all) {
            auto out = std::make_unique<Targets>();
            for (unsigned b = 0; b < 256; ++b) (*out)[b] = kept[classes_[row.classes][b]];
            live = store_row(*out);
        }
    }
    return facts(e).live_row = live;
}

// As `make_live_row`, but returns kNoRow if a long search would be needed: the derivative by one byte must not fail because of another
// byte.
RowId LazyDfa::find_live_row(ExprId e) {
    if (!exprs_[e].boolean) return make_live_row(e);
    RowId made = kNoRow;
    if (!facts(e).expensive) facts(e).expensive = !emptiness_.with_short_searches([&] { made = make_live_row(e); });
    return made;
}

ExprId LazyDfa::derivative_of_expensive(ExprId e, std::uint8_t byte) {
    const Row row = rows_[raw_row(e)];
    const ExprId to = target(row, byte);
    return emptiness_.is_nonempty(to) ? to : kNone;
}

// Decomposes e into pairs (head, tail) whose derivatives unite to that of e, and calls f for each. False if there are too
// many, if a head is nullable, or if e is boolean and the result is not `searched`.
template <class F>
bool LazyDfa::each_head(ExprId e, bool searched, F&& f) {
    const Expr x = exprs_[e];
    if (!x.rowless && ((x.boolean && !searched) || x.labelled)) return false;
    if (!x.rowless && x.op != Op::concatenation && x.op != Op::alternation) return false;
    const std::uint32_t count = x.op == Op::alternation ? x.part_count() : 1;
    if (count > kMaxHeads) return false;
    std::uint32_t heads = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        ExprId part = x.op == Op::alternation ? exprs_.parts(x)[i] : e;
        for (bool after_head = false; part != kEmpty; after_head = true) {
            const Expr y = exprs_[part];
            if (y.rowless && y.op != Op::concatenation) {
                f(part, kEmpty);
                break;
            }
            if (y.op != Op::concatenation || (exprs_[y.head()].nullable && !y.rowless && !is_transient(exprs_[y.head()]))) {
                if (!after_head) return false;
                f(part, kEmpty);  // the rest after nullable heads
                break;
            }
            if (++heads > kMaxHeads) return false;
            f(y.head(), y.tail());
            part = exprs_[y.head()].nullable ? y.tail() : kEmpty;
        }
    }
    return true;
}

ExprId LazyDfa::derivative_of_strings(const Expr& x, std::uint8_t byte) {
    const StringTrie::Step step = exprs_.strings().next(x.string_node(), x.part(), byte);
    const ExprId made = exprs_.string_state(step.node, step.part);
    const ExprId end = x.part() == kBetween ? exprs_.strings().end(x.string_node()) : kNone;
    if (end <= kEmpty) return made;
    const ExprId after = derivative(end, byte);
    return made == kNone ? after : after == kNone ? made : exprs_.unite({made, after});
}

ExprId LazyDfa::derivative_of_substrings(const Expr& x, std::uint8_t byte) {
    const auto [state, part] = exprs_.substrings().next(x.substring_state(), x.part(), byte);
    return exprs_.substring(state, part);
}

ExprId LazyDfa::derivative_of_difference(const Expr& x, std::uint8_t byte) {
    const ExprId left = derivative(x.minuend(), byte);
    if (left == kNone) return kNone;
    const ExprId made = exprs_.subtract(left, derivative(x.excluded(), byte));
    return emptiness_.is_nonempty(made) ? made : kNone;
}

ExprId LazyDfa::derivative_of_intersection(const Expr& x, std::uint8_t byte) {
    std::vector<ExprId> made;
    for (std::uint32_t i = 0; i < x.part_count(); ++i) {
        const ExprId part = exprs_.parts(x)[i];
        const Expr y = exprs_[part];
        made.push_back(y.op == Op::complement ? exprs_.complement(derivative(y.operand(), byte)) : derivative(part, byte));
        if (made.back() == kNone) return kNone;
    }
    return exprs_.intersect(std::move(made));
}

ExprId LazyDfa::raw_derivative(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (facts(e).live_row == kNoRow && x.op == Op::intersection) return derivative_of_intersection(x, byte);
    if (facts(e).live_row != kNoRow || x.op != Op::concatenation || exprs_[x.head()].op != Op::intersection) return derivative(e, byte);
    const ExprId head = exprs_.concat(derivative_of_intersection(exprs_[x.head()], byte), x.tail());
    return exprs_[x.head()].nullable ? exprs_.unite({head, derivative(x.tail(), byte)}) : head;
}

// The nodes of a trie of many texts are visited once or twice each, so a row of 256 bytes would cost more than it saves. The same
// holds for most intersections, because a row needs a search for each target.
ExprId LazyDfa::derivative_without_row(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (!x.rowless && stack_is_low()) return kUnknownExpr;  // rows are computed without recursion
    check_stack();
    exprs_.fuel().spend(kByteWork);
    if (x.op == Op::strings) return derivative_of_strings(x, byte);
    if (x.op == Op::substring) return derivative_of_substrings(x, byte);
    if (x.op == Op::difference) return derivative_of_difference(x, byte);
    if (x.op == Op::composite) return exprs_.composites()->next(x.composite_state(), byte);
    if (!x.rowless) {
        if (facts(e).lookups >= row_lookups_) return kUnknownExpr;
        ++facts(e).lookups;
    }
    if (x.op == Op::intersection) {
        const ExprId to = derivative_of_intersection(x, byte);
        return emptiness_.is_nonempty(to) ? to : kNone;
    }
    ExprId only = kNone;
    std::vector<ExprId> several;
    auto step_head = [&](ExprId head, ExprId tail) {
        const ExprId left = derivative(head, byte);
        if (left == kNone) return;
        const ExprId made = left == kEmpty ? tail : exprs_.concat(left, tail);
        if (only == kNone) only = made;
        else several.push_back(made);
    };
    const bool counts = x.op == Op::repetition && x.maximum() != kInfinite;  // such a state is usually visited once
    if (counts) step_head(x.body(), one_less(exprs_, x));
    const bool simple = counts || each_head(e, true, step_head);
    if (!simple) {
        facts(e).lookups = row_lookups_ & kMostLookups;
        return kUnknownExpr;
    }
    if (!several.empty()) {
        several.push_back(only);
        only = exprs_.unite(std::move(several));
    }
    return !x.boolean || x.rowless || emptiness_.is_nonempty(only) ? only : kNone;
}

bool LazyDfa::nonempty_after(ExprId e, std::string_view text) {
    const ExprId start = e;
    std::vector<ExprId> with, without;  // parts that must match the text, and parts that must not
    for (std::size_t at = 0; at < text.size() && e != kNone;) {
        const Expr x = exprs_[e];
        const ExprId head = x.op == Op::concatenation ? x.head() : e, tail = x.op == Op::concatenation ? x.tail() : kEmpty;
        if (exprs_[head].op == Op::intersection) {
            split_intersection(exprs_, head, with, without);
            const ByteSet tail_first = first(tail);
            const auto may_end = [&] {
                return std::all_of(with.begin(), with.end(), [&](ExprId p) { return exprs_[p].nullable; }) &&
                       std::none_of(without.begin(), without.end(), [&](ExprId p) { return exprs_[p].nullable; });
            };
            for (; at < text.size(); ++at) {
                const auto byte = static_cast<std::uint8_t>(text[at]);
                if (tail_first.contains(byte) && may_end()) break;
                for (ExprId& p : with)
                    if ((p = derivative(p, byte)) == kNone) return false;
                for (ExprId& p : without) p = derivative(p, byte);
            }
            std::vector<ExprId> parts = with;
            for (const ExprId p : without) parts.push_back(exprs_.complement(p));
            e = exprs_.concat(exprs_.intersect(std::move(parts)), tail);
        }
        if (at < text.size()) e = derivative(e, static_cast<std::uint8_t>(text[at++]));
    }
    bool lives = false;
    const auto follow = [&] {
        ExprId to = start;
        for (std::size_t at = 0; at < text.size() && to != kNone; ++at) to = derivative(to, static_cast<std::uint8_t>(text[at]));
        lives = to != kNone;
    };
    // If a short search cannot decide it, the derivatives by each byte are computed: most texts have an earlier byte that is not
    // legal.
    return emptiness_.with_short_searches([&] { lives = emptiness_.is_nonempty(e); }) || emptiness_.with_short_searches(follow)
               ? lives
               : emptiness_.is_nonempty(e);
}

ExprId LazyDfa::derivative_by(ExprId e, std::string_view text) {
    const Expr x = exprs_[e];
    if (x.op == Op::strings) {
        StringTrie::Step at{x.string_node(), x.part()};
        for (const char b : text) {
            if (at.part == kBetween && exprs_.strings().end(at.node) != kNone) return kUnknownExpr;
            at = exprs_.strings().next(at.node, at.part, static_cast<std::uint8_t>(b));
            if (at.node == StringTrie::kNoEntries) return kNone;
        }
        return exprs_.string_state(at.node, at.part);
    }
    if (x.op == Op::difference) {
        const ExprId left = derivative_by(x.minuend(), text);
        if (left == kNone || left == kUnknownExpr) return left;
        const ExprId texts = derivative_by(x.excluded(), text);
        if (texts == kUnknownExpr) return kUnknownExpr;
        const ExprId made = exprs_.subtract(left, texts);
        return emptiness_.is_nonempty(made) ? made : kNone;
    }
    if (x.op == Op::concatenation && x.rowless) {
        const ByteSet end = first(x.tail());
        if (std::ranges::any_of(text, [&](char b) { return end.contains(static_cast<std::uint8_t>(b)); })) return kUnknownExpr;
        const ExprId head = derivative_by(x.head(), text);
        return head == kNone || head == kUnknownExpr ? head : exprs_.concat(head, x.tail());
    }
    for (const char b : text)
        if ((e = derivative(e, static_cast<std::uint8_t>(b))) == kNone) return kNone;
    return e;
}

bool LazyDfa::looked_up_rarely(ExprId e) { return facts(e).lookups < row_lookups_ && !stack_is_low(); }

ByteSet LazyDfa::first_of_rowless(ExprId e) {
    const Expr x = exprs_[e];
    if (x.op == Op::composite) return exprs_.composites()->begins(x.composite_state());
    ByteSet made;
    if (x.op == Op::substring) exprs_.substrings().live(x.substring_state(), x.part(), made);
    else if (x.op == Op::strings) {
        exprs_.strings().live(x.string_node(), x.part(), made);
        if (const ExprId end = x.part() == kBetween ? exprs_.strings().end(x.string_node()) : kNone; end > kEmpty) made |= first(end);
    } else {
        made = first(x.minuend());
        ByteSet both = first(x.excluded());
        both &= made;
        both.each([&](std::uint8_t b) {
            if (!exprs_[derivative(x.minuend(), b)].known_infinite && derivative_of_difference(x, b) == kNone) made.erase(b);
        });
    }
    return made;
}

ByteSet LazyDfa::first(ExprId e) {
    const Expr& x = exprs_[e];
    if (x.op == Op::repetition && !x.boolean) return first(x.body());
    if (x.op == Op::concatenation && exprs_[x.head()].op == Op::set && (x.known_nonempty || !x.boolean))
        return exprs_.bytes_of(exprs_[x.head()].byte_set());
    if (facts(e).live_row == kNoRow && (exprs_[e].rowless || looked_up_rarely(e))) {
        check_stack();
        if (exprs_[e].op == Op::strings || exprs_[e].op == Op::difference || exprs_[e].op == Op::composite || exprs_[e].op == Op::substring)
            return first_of_rowless(e);
        ByteSet made;
        if (each_head(e, false, [&](ExprId head, ExprId) { made |= first(head); })) return made;
    }
    const RowId known = facts(e).live_row;
    return exprs_.bytes_of(rows_[known != kNoRow ? known : make_live_row(e)].live);
}

const std::vector<ByteSet>& LazyDfa::sets_of_classes(ClassesId classes) {
    if (class_sets_.size() <= raw(classes)) class_sets_.resize(classes_.size());
    std::vector<ByteSet>& known = class_sets_[classes];
    if (!known.empty()) return known;
    std::vector<ByteSet> made;  // stored when it is complete: an allocation may fail
    const auto& class_of = classes_[classes];
    for (unsigned b = 0, next; b < 256; b = next) {
        for (next = b + 1; next < 256 && class_of[next] == class_of[b]; ++next) {
        }
        if (made.size() <= class_of[b]) made.resize(class_of[b] + 1u);
        made[class_of[b]] |= ByteSet::range(b, next - 1);
    }
    return known = std::move(made);
}

// Splits `some` into classes of bytes that the sets of bytes at the beginning of the expression do not distinguish.
std::vector<ByteSet> LazyDfa::byte_classes(ExprId start, const ByteSet& some) {
    std::vector<ByteSet> made;
    if (!some.empty()) made.push_back(some);
    std::vector<ExprId> todo{start};
    while (!todo.empty() && made.size() < some.size()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        todo.pop_back();
        if (const RowId row = facts(e).live_row != kNoRow ? facts(e).live_row : facts(e).raw_row; row != kNoRow) {
            split(made, classes_[rows_[row].classes], sets_of_classes(rows_[row].classes));
        } else if (x.op == Op::set) split(made, exprs_.bytes_of(x.byte_set()));
        else if (x.op == Op::concatenation) {
            todo.push_back(x.head());
            if (exprs_[x.head()].nullable) todo.push_back(x.tail());
        } else if (x.op == Op::alternation || x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.part_count(); ++i) todo.push_back(exprs_.parts(x)[i]);
        } else if (x.op == Op::difference) todo.insert(todo.end(), {x.minuend(), x.excluded()});
        else if (x.op == Op::complement || x.op == Op::repetition) todo.push_back(x.operand());
        else if (x.op == Op::strings) {
            ByteSet bytes;
            exprs_.strings().live(x.string_node(), x.part(), bytes);
            isolate(made, bytes);
            if (const ExprId end = x.part() == kBetween ? exprs_.strings().end(x.string_node()) : kNone; end > kEmpty) todo.push_back(end);
        } else if (x.op == Op::substring) {
            ByteSet bytes;
            exprs_.substrings().live(x.substring_state(), x.part(), bytes);
            isolate(made, bytes);
        } else if (x.op != Op::none && x.op != Op::empty && x.op != Op::label) isolate(made, some);
        if (made.size() > kMaxWays || todo.size() > kMaxHeads) isolate(made, some);
    }
    return made;
}

bool LazyDfa::has_derivative(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (x.op == Op::repetition && !x.boolean) return has_derivative(x.body(), byte);
    if (x.op == Op::strings && facts(e).live_row == kNoRow) {
        if (exprs_.strings().next(x.string_node(), x.part(), byte).node != StringTrie::kNoEntries) return true;
        const ExprId end = x.part() == kBetween ? exprs_.strings().end(x.string_node()) : kNone;
        return end > kEmpty && has_derivative(end, byte);
    }
    if (x.op != Op::difference && x.op != Op::composite && x.op != Op::substring && facts(e).live_row == kNoRow &&
        (x.rowless || looked_up_rarely(e))) {
        check_stack();
        bool some = false;
        if (each_head(e, false, [&](ExprId head, ExprId) { some = some || has_derivative(head, byte); })) return some;
    }
    return derivative(e, byte) != kNone;
}

// Computes the targets of a row. Repetitions, and concatenations whose head is not nullable, use `row_before` instead.
void LazyDfa::derive(ExprId e, Targets& out) {
    const Expr x = exprs_[e];
    std::vector<Source> sources;
    switch (x.op) {
        case Op::none:
        case Op::empty:
        case Op::label:
        case Op::repetition: return;  // not used
        case Op::set: exprs_.bytes_of(x.byte_set()).each([&](std::uint8_t b) { out[b] = kEmpty; }); return;
        case Op::concatenation: {
            sources.push_back({raw_row(x.head()), x.tail()});
            sources.push_back({raw_row(x.tail()), kEmpty});
            return derive_sum(sources, {}, out);
        }
        case Op::alternation: {
            std::vector<ExprId> heads;  // concatenations that begin with a byte set need no separate row
            for (ExprId p : parts_of(exprs_, e)) {
                const Expr part = exprs_[p];
                if (part.op == Op::concatenation && exprs_[part.head()].op == Op::set) heads.push_back(p);
                else sources.push_back({raw_row(p), kEmpty});
            }
            return derive_sum(sources, heads, out);
        }
        case Op::state: {
            const auto steps = exprs_.steps(x);
            for (auto [step, after] : steps) sources.push_back({raw_row(step), after});
            return derive_sum(sources, {}, out);
        }
        case Op::number: return exprs_.number_language().derive(x.number_state(), out);
        case Op::composite: return exprs_.composites()->derive(x.composite_state(), out);
        case Op::strings: return first_of_rowless(e).each([&](std::uint8_t b) { out[b] = derivative_of_strings(x, b); });
        case Op::substring: return first_of_rowless(e).each([&](std::uint8_t b) { out[b] = derivative_of_substrings(x, b); });
        case Op::difference: {
            const Row from = rows_[raw_row(x.minuend())], texts = rows_[raw_row(x.excluded())];
            for (unsigned b = 0; b < 256; ++b) out[b] = exprs_.subtract(target(from, b), target(texts, b));
            return;
        }
        case Op::intersection: return derive_intersection(e, out);
        case Op::complement: {
            const RowId row = raw_row(x.operand());
            for (unsigned b = 0; b < 256; ++b) {
                const ExprId t = target(rows_[row], b);
                out[b] = b && t == target(rows_[row], b - 1) ? out[b - 1] : exprs_.complement(t);
            }
            return;
        }
    }
}

void LazyDfa::derive_sum(const std::vector<Source>& sources, const std::vector<ExprId>& heads, Targets& out) {
    // In most alternations, at most one part can begin with a given byte.
    ByteSet taken;
    bool clash = false;
    auto take = [&](const ByteSet& bytes) {
        clash |= taken.meets(bytes);
        taken |= bytes;
    };
    for (const Source& s : sources) take(exprs_.bytes_of(rows_[s.row].live));
    for (ExprId p : heads) take(exprs_.bytes_of(exprs_[exprs_[p].head()].byte_set()));
    if (!clash) {
        for (const Source& s : sources) {
            const Row row = rows_[s.row];
            const auto& classes = classes_[row.classes];
            std::array<ExprId, 256> made;
            made.fill(kUnknownExpr);
            const ByteSet live = exprs_.bytes_of(row.live);
            live.each([&](std::uint8_t b) {
                ExprId& product = made[classes[b]];
                if (product == kUnknownExpr) product = exprs_.concat(targets_[row.offset + classes[b]], s.tail);
                out[b] = product;
            });
        }
        for (ExprId p : heads)
            exprs_.bytes_of(exprs_[exprs_[p].head()].byte_set()).each([&](std::uint8_t b) { out[b] = exprs_[p].tail(); });
        return;
    }
    exprs_.fuel().spend(50 * (sources.size() + heads.size()));
    std::vector<ByteSet> blocks{taken};  // of bytes that no summand distinguishes
    std::vector<ClassesId> split_by;
    for (const Source& s : sources) {
        const ClassesId classes = rows_[s.row].classes;
        if (std::find(split_by.begin(), split_by.end(), classes) != split_by.end()) continue;
        split_by.push_back(classes);
        split(blocks, classes_[classes], sets_of_classes(classes));
    }
    for (ExprId p : heads) split(blocks, exprs_.bytes_of(exprs_[exprs_[p].head()].byte_set()));
    std::vector<std::vector<ExprId>> products(sources.size());  // by class; kUnknownExpr: not computed yet
    for (std::size_t i = 0; i < sources.size(); ++i) products[i].assign(rows_[sources[i].row].count, kUnknownExpr);
    for (const ByteSet& bytes : blocks) {
        exprs_.fuel().spend(2 * (sources.size() + heads.size()));
        const auto first = static_cast<std::uint8_t>(bytes.from(0));
        std::vector<ExprId> bucket;
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const Row row = rows_[sources[i].row];
            const std::uint8_t k = classes_[row.classes][first];
            ExprId& product = products[i][k];
            if (product == kUnknownExpr) product = exprs_.concat(targets_[row.offset + k], sources[i].tail);
            if (product != kNone) bucket.push_back(product);
        }
        for (ExprId p : heads)
            if (exprs_.bytes_of(exprs_[exprs_[p].head()].byte_set()).contains(first)) bucket.push_back(exprs_[p].tail());
        const ExprId target = bucket.empty() ? kNone : bucket.size() == 1 ? bucket[0] : exprs_.unite(std::move(bucket));
        bytes.each([&](std::uint8_t b) { out[b] = target; });
    }
}

// Bytes that no part distinguishes have one target.
void LazyDfa::derive_intersection(ExprId e, Targets& out) {
    const std::vector<ExprId> parts = parts_of(exprs_, e);
    constexpr std::uint32_t kUnnumbered = 0xffffffff;
    exprs_.fuel().spend(kRowWork * parts.size());
    std::array<std::uint32_t, 256> together{};
    std::vector<std::vector<ExprId>> targets(1);  // by number in `together`: the target of each part
    for (ExprId p : parts) {
        const Row row = rows_[raw_row(p)];
        const auto& classes = classes_[row.classes];
        std::vector<std::uint32_t> numbers(targets.size() * row.count, kUnnumbered);
        std::vector<std::vector<ExprId>> made;
        for (unsigned b = 0; b < 256; ++b) {
            std::uint32_t& number = numbers[together[b] * row.count + classes[b]];
            if (number == kUnnumbered) {
                number = static_cast<std::uint32_t>(made.size());
                made.push_back(targets[together[b]]);
                made.back().push_back(targets_[row.offset + classes[b]]);
            }
            together[b] = number;
        }
        targets = std::move(made);
    }
    std::vector<ExprId> results;
    results.reserve(targets.size());
    exprs_.fuel().spend(4 * parts.size() * targets.size());
    for (auto& one : targets) results.push_back(exprs_.intersect(std::move(one)));
    for (unsigned b = 0; b < 256; ++b) out[b] = results[together[b]];
}

bool LazyDfa::goes_by_head(ExprId e, const ByteSet& bytes) {
    const Expr x = exprs_[e];
    return x.op == Op::repetition || (x.op == Op::concatenation && (!exprs_[x.head()].nullable || !first(x.tail()).meets(bytes)));
}

ExprId LazyDfa::delta_base(ExprId e) {
    if (!exprs_[e].unbounded) return kNone;
    if (const ExprId whole = minuend_of(exprs_, e); whole != kNone) return whole;
    const ExprId at = dominant_target(e);
    return at != kNone && dominant_target(at) == at ? at : kNone;
}

// The target of the most bytes among those that can be completed. Each target is checked only when needed: it may need a search.
ExprId LazyDfa::dominant_target(ExprId e) {
    const Row row = rows_[facts(e).live_row != kNoRow ? facts(e).live_row : raw_row(e)];
    std::vector<std::pair<unsigned, ExprId>> ways;
    const auto& sets = sets_of_classes(row.classes);
    for (std::size_t k = 0; k < row.count; ++k)
        if (const ExprId to = targets_[row.offset + k]; to != kNone) ways.emplace_back(sets[k].size(), to);
    std::stable_sort(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, to] : ways)
        if (emptiness_.is_nonempty(to)) return to;
    return kNone;
}

int LazyDfa::best_byte(ExprId e) {
    if (facts(e).best_byte == -2) {
        const std::uint32_t target = emptiness_.shortest(e);
        int best = exprs_[e].op == Op::composite && target != kInfinite ? exprs_.composites()->best_byte(exprs_[e].composite_state()) : -1;
        if (target != 0 && target != kInfinite)
            for (unsigned b = 0; b < 256 && best < 0 && exprs_[e].op != Op::composite; ++b) {
                const ExprId t = derivative(e, static_cast<std::uint8_t>(b));
                if (t != kNone && emptiness_.shortest(t) == target - 1) best = static_cast<int>(b);
            }
        facts(e).best_byte = static_cast<std::int16_t>(best);
    }
    return facts(e).best_byte;
}

}  // namespace guideway
