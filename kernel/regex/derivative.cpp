// Derivatives: rows of the lazy automaton, labels.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/stack_guard.h"
#include "guideway/regex/emptiness.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/external_language.h"
#include "guideway/regex/number_language.h"
#include "guideway/regex/string_trie.h"
#include "guideway/regex/substrings.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxHeads = 64;
constexpr std::size_t kMaxWays = 48;                                      // beyond these, each byte is followed alone
constexpr std::uint64_t kRowWork = 100, kByteWork = 20, kStateWork = 20;  // of a row; of a byte without one; of a search

// Of sets that share no byte: each becomes what is in `by` and what is not.
void split(std::vector<ByteSet>& sets, const ByteSet& by) {
    for (std::size_t i = 0, count = sets.size(); i < count; ++i) {
        ByteSet in = sets[i];
        in &= by;
        if (in.empty() || in == sets[i]) continue;
        sets[i] -= in;
        sets.push_back(in);
    }
}

}  // namespace

std::uint32_t ExprPool::class_id(const std::array<std::uint8_t, 256>& classes) {
    std::uint64_t h = 7;
    for (std::size_t i = 0; i < 256; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, classes.data() + i, 8);
        h = mix(h, word);
    }
    std::uint32_t id = class_ids_.find(h, [&](std::uint32_t known) { return classes_[known] == classes; });
    if (id == InternTable::kMissing) {
        id = static_cast<std::uint32_t>(classes_.size());
        classes_.push_back(classes);
        class_ids_.add(h, id);
    }
    return id;
}

std::uint32_t ExprPool::store_row(const Targets& targets) {
    std::array<std::uint8_t, 256> classes{};
    std::array<ExprId, 256> distinct;
    unsigned count = 0;
    ByteSet live;
    std::array<std::uint8_t, 257> other{};  // than the byte before
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
    rows_.push_back({class_id(classes), static_cast<std::uint32_t>(targets_.size()), set_id(live), static_cast<std::uint32_t>(count)});
    for (unsigned k = 0; k < count; ++k) targets_.push_back(distinct[k]);
    return static_cast<std::uint32_t>(rows_.size() - 1);
}

// Of what continues as its head does, before a tail: the head's row with other targets, and nothing is looked at byte by byte.
// Two of them might be equal.
std::uint32_t ExprPool::row_before(ExprId head, ExprId tail) {
    const Row from = rows_[raw_row(head)];
    std::vector<ExprId> made;
    for (std::uint32_t k = 0; k < from.count; ++k) made.push_back(concat(targets_[from.offset + k], tail));
    rows_.push_back({from.classes, static_cast<std::uint32_t>(targets_.size()), from.live, from.count});
    targets_.append(made);
    return static_cast<std::uint32_t>(rows_.size() - 1);
}

// The rows that a row is made from are made first, with a worklist: expressions may nest thousands of levels deep.
std::uint32_t ExprPool::raw_row(ExprId e) {
    if (found_[e].raw_row) return found_[e].raw_row;
    check_stack();
    std::vector<ExprId> todo{e};
    const auto need = [&](ExprId part) {
        if (found_[part].raw_row == 0) todo.push_back(part);
    };
    const auto is_product_after_set = [&](ExprId part) {
        return exprs_[part].op == Op::concatenation && exprs_[exprs_[part].a].op == Op::set;
    };
    while (!todo.empty()) {
        const ExprId at = todo.back();
        const std::size_t size = todo.size();
        const Expr x = exprs_[at];
        if (found_[at].raw_row) {
            todo.pop_back();
            continue;
        }
        if (x.op == Op::concatenation) {
            need(x.a);
            if (exprs_[x.a].nullable) need(x.b);
        } else if (x.op == Op::repetition || x.op == Op::complement) need(x.a);
        else if (x.op == Op::difference) {
            need(x.a);
            need(x.b);
        } else if (x.op == Op::alternation || x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.b; ++i)
                if (x.op == Op::intersection || !is_product_after_set(args_[x.a + i])) need(args_[x.a + i]);
        } else if (x.op == Op::state) {
            for (const auto& [step, after] : steps_[x.a]) need(step);
        }
        if (todo.size() > size) continue;
        fuel_.spend(kRowWork);
        std::uint32_t row = 0;
        if (x.op == Op::repetition) row = row_before(x.a, one_less(x));
        else if (x.op == Op::concatenation && !exprs_[x.a].nullable) row = row_before(x.a, x.b);
        else {
            auto out = std::make_unique<Targets>();
            out->fill(kNone);
            derive(at, *out);
            row = store_row(*out);
        }
        found_[at].raw_row = row;
        todo.pop_back();
    }
    return found_[e].raw_row;
}

std::uint32_t ExprPool::make_live_row(ExprId e) {
    const std::uint32_t raw = raw_row(e);
    std::uint32_t live = raw;
    if (exprs_[e].boolean) {
        fuel_.spend(kRowWork);
        const Row row = rows_[raw];
        std::vector<ExprId> kept;
        bool all = true;
        for (std::uint32_t k = 0; k < row.count; ++k) {
            const ExprId t = targets_[row.offset + k];
            const bool good = t == kNone || is_nonempty(t);
            kept.push_back(good ? t : kNone);
            all = all && good;
        }
        if (!all) {
            auto out = std::make_unique<Targets>();
            for (unsigned b = 0; b < 256; ++b) (*out)[b] = kept[classes_[row.classes][b]];
            live = store_row(*out);
        }
    }
    return found_[e].live_row = live;
}

// As `make_live_row`, if it takes no long search; else 0. A caller who asks for one byte is not to fail at another.
std::uint32_t ExprPool::find_live_row(ExprId e) {
    if (!exprs_[e].boolean) return make_live_row(e);
    std::uint32_t made = 0;
    if (!found_[e].expensive) found_[e].expensive = !with_short_searches([&] { made = make_live_row(e); });
    return made;
}

ExprId ExprPool::derivative_of_expensive(ExprId e, std::uint8_t byte) {
    const Row row = rows_[raw_row(e)];
    const ExprId to = targets_[row.offset + classes_[row.classes][byte]];
    return is_nonempty(to) ? to : kNone;
}

ExprId ExprPool::one_less(const Expr& repeated) {
    return repeat(repeated.a, repeated.b ? repeated.b - 1 : 0, repeated.c == kInfinite ? kInfinite : repeated.c - 1);
}

// A guess: what counts, or follows several patterns at once, is mostly another state with each byte. Where it is wrong,
// Tuning::row_lookups bounds what it costs.
bool ExprPool::is_transient(const Expr& x) { return x.boolean || (x.op == Op::repetition && x.c != kInfinite); }

// Decomposes e into pairs (head, tail) whose derivatives unite to that of e, and calls f for each. False if there are too
// many, if a head may be empty, or if e is Boolean and the result is not `searched`.
template <class F>
bool ExprPool::each_head(ExprId e, bool searched, F&& f) {
    const Expr x = exprs_[e];
    if (!x.rowless && ((x.boolean && !searched) || x.labelled)) return false;
    if (!x.rowless && x.op != Op::concatenation && x.op != Op::alternation) return false;
    const std::uint32_t count = x.op == Op::alternation ? x.b : 1;
    if (count > kMaxHeads) return false;
    std::uint32_t heads = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        ExprId part = x.op == Op::alternation ? args_[x.a + i] : e;
        for (bool behind = false; part != kEmpty; behind = true) {
            const Expr y = exprs_[part];
            if (y.rowless && y.op != Op::concatenation) {
                f(part, kEmpty);
                break;
            }
            if (y.op != Op::concatenation || (exprs_[y.a].nullable && !y.rowless && !is_transient(exprs_[y.a]))) {
                if (!behind) return false;
                f(part, kEmpty);  // what follows heads that may be empty
                break;
            }
            if (++heads > kMaxHeads) return false;
            f(y.a, y.b);
            part = exprs_[y.a].nullable ? y.b : kEmpty;
        }
    }
    return true;
}

ExprId ExprPool::derivative_of_strings(const Expr& x, std::uint8_t byte) {
    const StringTrie::Step step = strings_->next(x.a, x.b, byte);
    const ExprId made = string_state(step.node, step.part);
    const ExprId end = x.b == 0 ? strings_->end(x.a) : kNone;
    if (end <= kEmpty) return made;
    const ExprId after = derivative(end, byte);
    return made == kNone ? after : after == kNone ? made : unite({made, after});
}

ExprId ExprPool::derivative_of_substrings(const Expr& x, std::uint8_t byte) {
    const auto [state, part] = substrings_->next(x.a, x.b, byte);
    return substring(state, part);
}

ExprId ExprPool::derivative_of_difference(const Expr& x, std::uint8_t byte) {
    const ExprId left = derivative(x.a, byte);
    if (left == kNone) return kNone;
    const ExprId made = subtract(left, derivative(x.b, byte));
    return is_nonempty(made) ? made : kNone;
}

ExprId ExprPool::derivative_of_intersection(const Expr& x, std::uint8_t byte) {
    std::vector<ExprId> made;
    for (std::uint32_t i = 0; i < x.b; ++i) {
        const ExprId part = args_[x.a + i];
        const Expr y = exprs_[part];
        made.push_back(y.op == Op::complement ? complement(derivative(y.a, byte)) : derivative(part, byte));
        if (made.back() == kNone) return kNone;
    }
    return intersect(std::move(made));
}

ExprId ExprPool::raw_derivative(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (found_[e].live_row == 0 && x.op == Op::intersection) return derivative_of_intersection(x, byte);
    if (found_[e].live_row || x.op != Op::concatenation || exprs_[x.a].op != Op::intersection) return derivative(e, byte);
    const ExprId head = concat(derivative_of_intersection(exprs_[x.a], byte), x.b);
    return exprs_[x.a].nullable ? unite({head, derivative(x.b, byte)}) : head;
}

// The nodes of a trie of many texts are visited once or twice each: a row of 256 bytes would cost more than it saves. So
// it is with most intersections, of which each target of a row would be searched.
ExprId ExprPool::derivative_without_row(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (!x.rowless && stack_is_low()) return kUnknownExpr;  // rows are made without recursion
    check_stack();
    fuel_.spend(kByteWork);
    if (x.op == Op::strings) return derivative_of_strings(x, byte);
    if (x.op == Op::substring) return derivative_of_substrings(x, byte);
    if (x.op == Op::difference) return derivative_of_difference(x, byte);
    if (x.op == Op::composite) return composites_->next(x.a, byte);
    if (!x.rowless) {
        if (found_[e].lookups >= limits_.tuning.row_lookups) return kUnknownExpr;
        ++found_[e].lookups;
    }
    if (x.op == Op::intersection) {
        const ExprId to = derivative_of_intersection(x, byte);
        return is_nonempty(to) ? to : kNone;
    }
    ExprId only = kNone;
    std::vector<ExprId> several;
    auto step_head = [&](ExprId head, ExprId tail) {
        const ExprId left = derivative(head, byte);
        if (left == kNone) return;
        const ExprId made = left == kEmpty ? tail : concat(left, tail);
        if (only == kNone) only = made;
        else several.push_back(made);
    };
    const bool counts = x.op == Op::repetition && x.c != kInfinite;  // a state that is passed once; what comes round without end is not
    if (counts) step_head(x.a, one_less(x));
    const bool simple = counts || each_head(e, true, step_head);
    if (!simple) {
        found_[e].lookups = static_cast<std::uint8_t>(limits_.tuning.row_lookups & 127);
        return kUnknownExpr;
    }
    if (!several.empty()) {
        several.push_back(only);
        only = unite(std::move(several));
    }
    return !x.boolean || x.rowless || is_nonempty(only) ? only : kNone;
}

bool ExprPool::nonempty_after(ExprId e, std::string_view text) {
    const ExprId start = e;
    std::vector<ExprId> with, without;  // what must take the text, and what must not
    for (std::size_t at = 0; at < text.size() && e != kNone;) {
        const Expr x = exprs_[e];
        const ExprId head = x.op == Op::concatenation ? x.a : e, tail = x.op == Op::concatenation ? x.b : kEmpty;
        if (exprs_[head].op == Op::intersection) {
            split_intersection(head, with, without);
            const ByteSet behind = first(tail);
            const auto may_end = [&] {
                return std::all_of(with.begin(), with.end(), [&](ExprId p) { return exprs_[p].nullable; }) &&
                       std::none_of(without.begin(), without.end(), [&](ExprId p) { return exprs_[p].nullable; });
            };
            for (; at < text.size(); ++at) {
                const auto byte = static_cast<std::uint8_t>(text[at]);
                if (behind.contains(byte) && may_end()) break;
                for (ExprId& p : with)
                    if ((p = derivative(p, byte)) == kNone) return false;
                for (ExprId& p : without) p = derivative(p, byte);
            }
            std::vector<ExprId> parts = with;
            for (const ExprId p : without) parts.push_back(complement(p));
            e = concat(intersect(std::move(parts)), tail);
        }
        if (at < text.size()) e = derivative(e, static_cast<std::uint8_t>(text[at++]));
    }
    bool lives = false;
    const auto follow = [&] {
        ExprId to = start;
        for (std::size_t at = 0; at < text.size() && to != kNone; ++at) to = derivative(to, static_cast<std::uint8_t>(text[at]));
        lives = to != kNone;
    };
    // What is hard to tell from here is determined by what was found on the way: most texts end before.
    return with_short_searches([&] { lives = is_nonempty(e); }) || with_short_searches(follow) ? lives : is_nonempty(e);
}

void ExprPool::split_intersection(ExprId e, std::vector<ExprId>& with, std::vector<ExprId>& without) const {
    with.clear();
    without.clear();
    std::vector<ExprId> todo{e};
    while (!todo.empty()) {
        const ExprId part = todo.back();
        const Expr x = exprs_[part];
        todo.pop_back();
        if (x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.b; ++i) todo.push_back(args_[x.a + i]);
        } else if (x.op == Op::difference) {
            todo.push_back(x.a);
            without.push_back(x.b);
        } else if (x.op == Op::complement) without.push_back(x.a);
        else with.push_back(part);
    }
}

ExprId ExprPool::derivative_by(ExprId e, std::string_view text) {
    const Expr x = exprs_[e];
    if (x.op == Op::strings) {
        StringTrie::Step at{x.a, x.b};
        for (const char b : text) {
            if (at.part == 0 && strings_->end(at.node) != kNone) return kUnknownExpr;
            at = strings_->next(at.node, at.part, static_cast<std::uint8_t>(b));
            if (at.node == StringTrie::kNoEntries) return kNone;
        }
        return string_state(at.node, at.part);
    }
    if (x.op == Op::difference) {
        const ExprId left = derivative_by(x.a, text);
        if (left == kNone || left == kUnknownExpr) return left;
        const ExprId texts = derivative_by(x.b, text);
        if (texts == kUnknownExpr) return kUnknownExpr;
        const ExprId made = subtract(left, texts);
        return is_nonempty(made) ? made : kNone;
    }
    if (x.op == Op::concatenation && x.rowless) {
        const ByteSet end = first(x.b);
        if (std::ranges::any_of(text, [&](char b) { return end.contains(static_cast<std::uint8_t>(b)); })) return kUnknownExpr;
        const ExprId head = derivative_by(x.a, text);
        return head == kNone || head == kUnknownExpr ? head : concat(head, x.b);
    }
    for (const char b : text)
        if ((e = derivative(e, static_cast<std::uint8_t>(b))) == kNone) return kNone;
    return e;
}

ByteSet ExprPool::first_of_rowless(ExprId e) {
    const Expr x = exprs_[e];
    if (x.op == Op::composite) return composites_->begins(x.a);
    ByteSet made;
    if (x.op == Op::substring) substrings_->live(x.a, x.b, made);
    else if (x.op == Op::strings) {
        strings_->live(x.a, x.b, made);
        if (const ExprId end = x.b == 0 ? strings_->end(x.a) : kNone; end > kEmpty) made |= first(end);
    } else {
        made = first(x.a);
        ByteSet both = first(x.b);
        both &= made;
        both.each([&](std::uint8_t b) {
            if (!exprs_[derivative(x.a, b)].known_infinite && derivative_of_difference(x, b) == kNone) made.erase(b);
        });
    }
    return made;
}

ByteSet ExprPool::first(ExprId e) {
    if (exprs_[e].op == Op::repetition && !exprs_[e].boolean) return first(exprs_[e].a);
    if (found_[e].live_row == 0 && (exprs_[e].rowless || (found_[e].lookups < limits_.tuning.row_lookups && !stack_is_low()))) {
        check_stack();
        if (exprs_[e].op == Op::strings || exprs_[e].op == Op::difference || is_composite(e) || is_substring(e)) return first_of_rowless(e);
        ByteSet made;
        if (each_head(e, false, [&](ExprId head, ExprId) { made |= first(head); })) return made;
    }
    const std::uint32_t r = found_[e].live_row ? found_[e].live_row : make_live_row(e);
    return sets_[rows_[r].live];
}

const std::vector<ByteSet>& ExprPool::sets_of_classes(std::uint32_t classes) {
    if (class_sets_.size() <= classes) class_sets_.resize(classes_.size());
    std::vector<ByteSet>& known = class_sets_[classes];
    if (!known.empty()) return known;
    std::vector<ByteSet> made;  // kept once it is complete: an allocation may fail
    const auto& class_of = classes_[classes];
    for (unsigned b = 0, next; b < 256; b = next) {
        for (next = b + 1; next < 256 && class_of[next] == class_of[b]; ++next) {
        }
        if (made.size() <= class_of[b]) made.resize(class_of[b] + 1u);
        made[class_of[b]] |= ByteSet::range(b, next - 1);
    }
    return known = std::move(made);
}

// Bytes that none of the sets tells apart from which an expression is made, as far as its texts begin there.
std::vector<ByteSet> ExprPool::byte_classes(ExprId start, const ByteSet& some) {
    std::vector<ByteSet> made;
    if (!some.empty()) made.push_back(some);
    const auto split_all = [&](const ByteSet& bytes) { bytes.each([&](std::uint8_t b) { split(made, ByteSet::range(b, b)); }); };
    std::vector<ExprId> todo{start};
    while (!todo.empty() && made.size() < some.size()) {
        const ExprId e = todo.back();
        const Expr x = exprs_[e];
        todo.pop_back();
        if (const std::uint32_t row = found_[e].live_row ? found_[e].live_row : found_[e].raw_row) {
            for (const ByteSet& bytes : sets_of_classes(rows_[row].classes)) split(made, bytes);
        } else if (x.op == Op::set) split(made, sets_[x.a]);
        else if (x.op == Op::concatenation) {
            todo.push_back(x.a);
            if (exprs_[x.a].nullable) todo.push_back(x.b);
        } else if (x.op == Op::alternation || x.op == Op::intersection) {
            for (std::uint32_t i = 0; i < x.b; ++i) todo.push_back(args_[x.a + i]);
        } else if (x.op == Op::difference) todo.insert(todo.end(), {x.a, x.b});
        else if (x.op == Op::complement || x.op == Op::repetition) todo.push_back(x.a);
        else if (x.op == Op::strings) {
            ByteSet bytes;
            strings_->live(x.a, x.b, bytes);
            split_all(bytes);
            if (const ExprId end = x.b == 0 ? strings_->end(x.a) : kNone; end > kEmpty) todo.push_back(end);
        } else if (x.op == Op::substring) {
            ByteSet bytes;
            substrings_->live(x.a, x.b, bytes);
            split_all(bytes);
        } else if (x.op != Op::none && x.op != Op::empty && x.op != Op::label) split_all(some);
        if (made.size() > kMaxWays || todo.size() > kMaxHeads) split_all(some);
    }
    return made;
}

bool ExprPool::has_derivative(ExprId e, std::uint8_t byte) {
    const Expr x = exprs_[e];
    if (x.op == Op::repetition && !x.boolean) return has_derivative(x.a, byte);
    if (x.op == Op::strings && found_[e].live_row == 0) {
        if (strings_->next(x.a, x.b, byte).node != StringTrie::kNoEntries) return true;
        const ExprId end = x.b == 0 ? strings_->end(x.a) : kNone;
        return end > kEmpty && has_derivative(end, byte);
    }
    if (x.op != Op::difference && x.op != Op::composite && x.op != Op::substring && found_[e].live_row == 0 &&
        (x.rowless || (found_[e].lookups < limits_.tuning.row_lookups && !stack_is_low()))) {
        check_stack();
        bool some = false;
        if (each_head(e, false, [&](ExprId head, ExprId) { some = some || has_derivative(head, byte); })) return some;
    }
    return derivative(e, byte) != kNone;
}

// Of all but repetitions, and products whose head is never empty: `row_before`.
void ExprPool::derive(ExprId e, Targets& out) {
    const Expr x = exprs_[e];
    std::vector<Source> sources;
    switch (x.op) {
        case Op::none:
        case Op::empty:
        case Op::label:
        case Op::repetition: return;  // never requested
        case Op::set: sets_[x.a].each([&](std::uint8_t b) { out[b] = kEmpty; }); return;
        case Op::concatenation: {
            sources.push_back({raw_row(x.a), x.b});
            sources.push_back({raw_row(x.b), kEmpty});
            return derive_sum(sources, {}, out);
        }
        case Op::alternation: {
            std::vector<ExprId> heads;  // products that begin with a byte set need no separate row
            for (ExprId p : parts_of(e)) {
                const Expr part = exprs_[p];
                if (part.op == Op::concatenation && exprs_[part.a].op == Op::set) heads.push_back(p);
                else sources.push_back({raw_row(p), kEmpty});
            }
            return derive_sum(sources, heads, out);
        }
        case Op::state: {
            const auto steps = steps_[x.a];
            for (auto [step, after] : steps) sources.push_back({raw_row(step), after});
            return derive_sum(sources, {}, out);
        }
        case Op::number: return numbers_->derive(x.a, out);
        case Op::composite: return composites_->derive(x.a, out);
        case Op::strings: return first_of_rowless(e).each([&](std::uint8_t b) { out[b] = derivative_of_strings(x, b); });
        case Op::substring: return first_of_rowless(e).each([&](std::uint8_t b) { out[b] = derivative_of_substrings(x, b); });
        case Op::difference: {
            const Row from = rows_[raw_row(x.a)], texts = rows_[raw_row(x.b)];
            for (unsigned b = 0; b < 256; ++b)
                out[b] = subtract(targets_[from.offset + classes_[from.classes][b]], targets_[texts.offset + classes_[texts.classes][b]]);
            return;
        }
        case Op::intersection: return derive_intersection(e, out);
        case Op::complement: {
            const std::uint32_t row = raw_row(x.a);
            for (unsigned b = 0; b < 256; ++b) {
                const ExprId t = targets_[rows_[row].offset + classes_[rows_[row].classes][b]];
                out[b] = b && t == targets_[rows_[row].offset + classes_[rows_[row].classes][b - 1]] ? out[b - 1] : complement(t);
            }
            return;
        }
    }
}

void ExprPool::derive_sum(const std::vector<Source>& sources, const std::vector<ExprId>& heads, Targets& out) {
    // Mostly no byte leads two ways.
    ByteSet taken;
    bool clash = false;
    auto take = [&](const ByteSet& bytes) {
        clash |= taken.meets(bytes);
        taken |= bytes;
    };
    for (const Source& s : sources) take(sets_[rows_[s.row].live]);
    for (ExprId p : heads) take(sets_[exprs_[exprs_[p].a].a]);
    if (!clash) {
        for (const Source& s : sources) {
            const Row row = rows_[s.row];
            const auto& classes = classes_[row.classes];
            std::array<ExprId, 256> made;
            made.fill(kUnknownExpr);
            const ByteSet live = sets_[row.live];
            live.each([&](std::uint8_t b) {
                ExprId& product = made[classes[b]];
                if (product == kUnknownExpr) product = concat(targets_[row.offset + classes[b]], s.tail);
                out[b] = product;
            });
        }
        for (ExprId p : heads) sets_[exprs_[exprs_[p].a].a].each([&](std::uint8_t b) { out[b] = exprs_[p].b; });
        return;
    }
    fuel_.spend(50 * (sources.size() + heads.size()));
    std::vector<ByteSet> blocks{taken};  // of bytes that none tells apart
    std::vector<std::uint32_t> split_by;
    const auto split_all = [&](std::span<const ByteSet> by) {
        for (const ByteSet& bytes : by) split(blocks, bytes);
    };
    for (const Source& s : sources) {
        const std::uint32_t classes = rows_[s.row].classes;
        if (std::find(split_by.begin(), split_by.end(), classes) != split_by.end()) continue;
        split_by.push_back(classes);
        split_all(sets_of_classes(classes));
    }
    for (ExprId p : heads) split_all({&sets_[exprs_[exprs_[p].a].a], 1});
    std::vector<std::vector<ExprId>> products(sources.size());  // by class; kUnknownExpr: not made yet
    for (std::size_t i = 0; i < sources.size(); ++i) products[i].assign(rows_[sources[i].row].count, kUnknownExpr);
    for (const ByteSet& bytes : blocks) {
        fuel_.spend(2 * (sources.size() + heads.size()));
        const auto first = static_cast<std::uint8_t>(bytes.from(0));
        std::vector<ExprId> bucket;
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const Row row = rows_[sources[i].row];
            const std::uint8_t k = classes_[row.classes][first];
            ExprId& product = products[i][k];
            if (product == kUnknownExpr) product = concat(targets_[row.offset + k], sources[i].tail);
            if (product != kNone) bucket.push_back(product);
        }
        for (ExprId p : heads)
            if (sets_[exprs_[exprs_[p].a].a].contains(first)) bucket.push_back(exprs_[p].b);
        const ExprId target = bucket.empty() ? kNone : bucket.size() == 1 ? bucket[0] : unite(std::move(bucket));
        bytes.each([&](std::uint8_t b) { out[b] = target; });
    }
}

// Bytes that no part tells apart have one target.
void ExprPool::derive_intersection(ExprId e, Targets& out) {
    const std::vector<ExprId> parts = parts_of(e);
    fuel_.spend(kRowWork * parts.size());
    std::array<std::uint32_t, 256> together{};
    std::vector<std::vector<ExprId>> targets(1);  // by number in `together`: what each part reaches
    for (ExprId p : parts) {
        const Row row = rows_[raw_row(p)];
        const auto& classes = classes_[row.classes];
        std::vector<std::uint32_t> numbers(targets.size() * row.count, kInfinite);
        std::vector<std::vector<ExprId>> made;
        for (unsigned b = 0; b < 256; ++b) {
            std::uint32_t& number = numbers[together[b] * row.count + classes[b]];
            if (number == kInfinite) {
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
    fuel_.spend(4 * parts.size() * targets.size());
    for (auto& one : targets) results.push_back(intersect(std::move(one)));
    for (unsigned b = 0; b < 256; ++b) out[b] = results[together[b]];
}

ExprId ExprPool::delta_base(ExprId e) {
    if (!exprs_[e].unbounded) return kNone;
    if (const ExprId whole = taken_from(e); whole != kNone) return whole;
    const ExprId at = dominant_target(e);
    return at != kNone && dominant_target(at) == at ? at : kNone;
}

ExprId ExprPool::taken_from(ExprId e) {
    std::vector<ExprId> heads;  // sets before a difference: the quote that opens a key
    bool found = false;
    for (Expr x = exprs_[e];; x = exprs_[e]) {
        const bool product = x.op == Op::concatenation, difference = product && exprs_[x.a].op == Op::difference;
        if (x.op == Op::difference) e = x.a;
        else if (difference) e = concat(exprs_[x.a].a, x.b);
        else if (product && exprs_[x.a].op == Op::set) {
            heads.push_back(x.a);
            e = x.b;
        } else break;
        found |= x.op == Op::difference || difference;
    }
    if (!found) return kNone;
    for (; !heads.empty(); heads.pop_back()) e = concat(heads.back(), e);
    return e;
}

ExprId ExprPool::layers(ExprId e, std::vector<Layer>& made) {
    made.clear();
    while (true) {
        const Expr x = exprs_[e];
        if (x.op == Op::difference) {
            made.push_back({x.b, kEmpty, kNone});
            e = x.a;
        } else if (x.op == Op::concatenation && exprs_[x.a].op == Op::difference) {
            const Expr head = exprs_[x.a];
            made.push_back({head.b, x.b, head.a});
            e = concat(head.a, x.b);
        } else return e;
    }
}

// Of what can be completed; this is checked one by one, since it may need a search.
ExprId ExprPool::dominant_target(ExprId e) {
    const Row row = rows_[found_[e].live_row ? found_[e].live_row : raw_row(e)];
    std::vector<std::pair<unsigned, ExprId>> ways;
    const auto& sets = sets_of_classes(row.classes);
    for (std::size_t k = 0; k < row.count; ++k)
        if (const ExprId to = targets_[row.offset + k]; to != kNone) ways.emplace_back(sets[k].size(), to);
    std::stable_sort(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, to] : ways)
        if (is_nonempty(to)) return to;
    return kNone;
}

// What an ambiguous count has open may be thousands of alternatives, of which a shortest text needs one.
ExprId ExprPool::cheapest(ExprId e) {
    while (!exprs_[e].boolean) {
        const Expr whole = exprs_[e], x = whole.op == Op::concatenation ? exprs_[whole.a] : whole;
        if (x.op != Op::alternation) break;
        std::vector<ExprId> kept;
        for (std::uint32_t i = 0; i < x.b; ++i)
            if (exprs_[args_[x.a + i]].shortest == x.shortest) kept.push_back(args_[x.a + i]);
        if (kept.size() == x.b) break;
        const ExprId made = unite(std::move(kept));
        e = whole.op == Op::concatenation ? concat(made, whole.b) : made;
    }
    return e;
}

int ExprPool::best_byte(ExprId e) {
    if (found_[e].best_byte == -2) {
        const std::uint32_t target = shortest(e);
        int best = is_composite(e) && target != kInfinite ? composites_->best_byte(exprs_[e].a) : -1;
        if (target != 0 && target != kInfinite)
            for (unsigned b = 0; b < 256 && best < 0 && !is_composite(e); ++b) {
                const ExprId t = derivative(e, static_cast<std::uint8_t>(b));
                if (t != kNone && shortest(t) == target - 1) best = static_cast<int>(b);
            }
        found_[e].best_byte = static_cast<std::int16_t>(best);
    }
    return found_[e].best_byte;
}

bool ExprPool::has_more(ExprId e) {
    if (!exprs_[e].boolean) return e > kEmpty;
    for (unsigned b = 0; b < 256; ++b)
        if (derivative(e, static_cast<std::uint8_t>(b)) != kNone) return true;
    return false;
}

const std::vector<LabelDistance>& ExprPool::labels(ExprId e) {
    auto memo = labels_.find(e);
    if (memo != labels_.end()) return memo->second;
    std::vector<LabelDistance> found;
    struct Task {
        ExprId expr;
        std::uint32_t distance;
        bool further;
    };
    std::vector<Task> work{{e, 0, false}};
    while (!work.empty()) {
        const Task at = work.back();
        work.pop_back();
        fuel_.spend(kStateWork);
        const Expr expr = exprs_[at.expr];
        if (expr.op == Op::label) found.push_back({expr.a, at.distance, at.further});
        else if (expr.op == Op::alternation) {
            for (ExprId p : parts_of(at.expr)) work.push_back({p, at.distance, at.further});
        } else if (expr.op == Op::strings && expr.labelled) {
            std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes;  // below this one, and how far away
            auto take_end = [&](std::uint32_t node, std::uint32_t distance, bool further) {
                if (strings_->end(node) != kNone) work.push_back({strings_->end(node), distance, further});
            };
            auto go_on = [&](std::uint32_t node, std::uint32_t part, std::uint32_t distance) {
                strings_->each_child(node, part,
                                     [&](std::uint32_t child, std::uint32_t rest) { nodes.emplace_back(child, distance + rest); });
            };
            if (expr.b == 0) take_end(expr.a, at.distance, at.further);
            go_on(expr.a, expr.b, at.distance);
            while (!nodes.empty()) {
                const auto [node, distance] = nodes.back();
                nodes.pop_back();
                fuel_.spend(kStateWork);
                take_end(node, distance, true);
                go_on(node, 0, distance);
            }
        } else if (expr.op == Op::concatenation && expr.labelled) {
            const std::uint32_t head = shortest(expr.a);
            if (head != kInfinite) work.push_back({expr.b, at.distance + head, at.further || has_more(expr.a)});
        }
    }
    std::sort(found.begin(), found.end(), [](const LabelDistance& x, const LabelDistance& y) {
        return x.label != y.label ? x.label < y.label : x.distance < y.distance;
    });
    std::size_t kept = 0;
    for (const LabelDistance& next : found) {
        if (kept && found[kept - 1].label == next.label) found[kept - 1].further |= next.further;
        else found[kept++] = next;
    }
    found.resize(kept);
    grew(64 + found.capacity() * sizeof(LabelDistance));
    return labels_.emplace(e, std::move(found)).first->second;
}

std::uint32_t ExprPool::last_label(ExprId e, bool further) {
    const auto of_words = [&](const Expr& x, bool wanted) {
        return wanted || x.b ? strings_->last_label_below(x.a, x.b) : strings_->last_label(x.a);
    };
    if (exprs_[e].op == Op::strings) return of_words(exprs_[e], further);  // as most sets of names are: no list is needed
    std::uint32_t made = kNoLabel;
    std::vector<std::pair<ExprId, bool>> work{{e, further}};
    while (!work.empty()) {
        const auto [at, wanted] = work.back();
        work.pop_back();
        const Expr x = exprs_[at];
        std::uint32_t found = kNoLabel;
        if (!x.labelled) continue;
        if (x.op == Op::label && !wanted) found = x.a;
        else if (x.op == Op::strings) found = of_words(x, wanted);
        else if (x.op == Op::alternation)
            for (ExprId p : parts_of(at)) work.emplace_back(p, wanted);
        else if (x.op == Op::concatenation) work.emplace_back(x.b, wanted && !has_more(x.a));
        if (found != kNoLabel) made = made == kNoLabel ? found : std::max(made, found);
    }
    return made;
}

}  // namespace guideway
