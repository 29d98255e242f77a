// Regular expressions over bytes, interned, and the lazy DFA that their derivatives are.
//
// For the user: an ExprId names a language; equal expressions (up to the laws that the constructors know) have equal
// ids. `next(e, b)` is what is left of e after byte b, none (0) if nothing can follow: so an id is at once an
// expression and a state of a deterministic automaton whose rows are made when first looked at, and a state that is
// not none can always be completed. After Brzozowski, "Derivatives of regular expressions" (1964), and Owens, Reppy
// and Turon, "Regular-expression derivatives re-examined" (2009).
//
// A label is an expression that matches the empty text and names it: keys of an object are distinguished by them.
//
// For the maintainer: the pool only grows; ids stay valid for its life. Unions are sorted sets, concatenations lean
// right. Only expressions with `both`, `negate` or `except` can denote the empty language, so only these (`boolean`) need
// an emptiness search; an infinite language minus a finite set is non-empty without one. Sets of texts (string_trie.h)
// and such differences are `rowless`: they have no transition rows, since a row of 256 bytes costs more than the few bytes
// that follow. Not thread safe: the lock of the store guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/error.h"
#include "guideway/base/flat_map.h"
#include "guideway/base/fuel.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/lengths.h"
#include "guideway/base/page_arena.h"
#include "guideway/base/segmented_vector.h"
#include "guideway/base/tuning.h"

namespace guideway {

using ExprId = std::uint32_t;
inline constexpr ExprId kNone = 0;                  // no text
inline constexpr ExprId kEmpty = 1;                 // the empty text
inline constexpr ExprId kUnknownExpr = 0xffffffff;  // an expression that was not determined
inline constexpr std::uint32_t kNoLabel = 0xffffffff;

enum class Op : std::uint8_t {
    none,
    empty,
    set,
    concatenation,
    alternation,
    intersection,
    complement,
    difference,
    repetition,
    label,
    state,
    number,
    strings,
    composite,
    substring
};

struct Expr {
    Op op = Op::none;
    bool nullable : 1 = false;
    bool boolean : 1 = false;    // holds both or negate: liveness needs a search
    bool labelled : 1 = false;   // holds a label
    bool bounded : 1 = false;    // holds a repetition with bounds, or excludes long texts
    bool counted : 1 = false;    // holds a bounded repetition of a unit (see `without_loop_bounds`), as far as was known when it was made
    bool unbounded : 1 = false;  // its texts may be of any length; only then can it come back to itself
    bool known_finite : 1 = false;            // has finitely many texts, as far as was seen
    bool known_infinite : 1 = false;          // has infinitely many, as far as was seen
    bool known_nonempty : 1 = false;          // has a text, as far as was seen
    bool rowless : 1 = false;                 // followed without rows
    bool measured : 1 = false;                // whether `shortest` is known; boolean ones are measured by a search
    bool encoding_closed : 1 = false;         // pieces of JSON strings: with each text all others that spell the same characters
    bool weakly_encoding_closed : 1 = false;  // the same, perhaps in addition to texts that are none
    std::uint8_t within = 0;                  // bit m: a subset of the texts of spelling m
    std::uint8_t universe = 0;                // bit m: all texts of spelling m
    std::uint16_t depth = 0;                  // how deep a derivative recurses
    std::uint32_t a = 0, b = 0, c = 0;
    std::uint32_t shortest = kInfinite;  // bytes of a shortest text
};

struct LabelDistance {
    std::uint32_t label;
    std::uint32_t distance;  // bytes of the shortest text that leads to it
    bool further;            // a text that is not empty leads to it
};

struct GraphEdge {  // a text of `step` leads to state `to`
    ExprId step;
    std::uint32_t to;
};
struct GraphState {
    bool accepting = false;
    std::vector<GraphEdge> edges;
};

inline constexpr std::size_t kMaxExprs = std::size_t{1} << 28;  // a state of the machine has 28 bits for an expression

struct ExprLimits {
    std::size_t max_exprs = 4'000'000;  // at most kMaxExprs
    std::size_t max_search = 100'000;   // states looked at to decide whether one is alive
    std::uint16_t max_depth = 400;
    std::uint64_t max_work = kDefaultFuel;  // of one call from outside (fuel.h)
    Tuning tuning{};
};

class ExternalLanguage;
class Emptiness;
class NumberLanguage;
class Encoder;
class Substrings;
class StringTrie;

class ExprPool {
public:
    // Throws Error(argument) where max_exprs is beyond kMaxExprs.
    explicit ExprPool(ExprLimits limits = {});
    ~ExprPool();

    // What is left of the allowance of the call that runs.
    Fuel& fuel() { return fuel_; }

    // Numbers by their value (number_language.h): never boolean, always alive, but their shortest text is searched.
    NumberLanguage& number_language() { return *numbers_; }
    ExprId number(std::uint32_t state);
    // Characters as bytes (encoding.h): what it has written once is there for all grammars.
    Encoder& encoder() { return *encoder_; }
    bool is_number(ExprId e) const { return exprs_[e].op == Op::number; }
    std::uint32_t number_state(ExprId e) const { return exprs_[e].a; }
    // JSON arrays and objects, whose automata a higher layer implements (external_language.h). Null until it is installed.
    ExternalLanguage* composites() { return composites_.get(); }
    void install_composites(std::unique_ptr<ExternalLanguage> language);
    ExprId composite(std::uint32_t state);
    bool is_composite(ExprId e) const { return exprs_[e].op == Op::composite; }
    std::uint32_t composite_state(ExprId e) const { return exprs_[e].a; }

    // Sets of texts, and what is left of one (0: nothing yet) inside a character.
    StringTrie& strings() { return *strings_; }
    ExprId string_state(std::uint32_t node, std::uint32_t part = 0);
    bool is_strings(ExprId e) const { return exprs_[e].op == Op::strings; }
    std::pair<std::uint32_t, std::uint32_t> node_and_part(ExprId e) const { return {exprs_[e].a, exprs_[e].b}; }

    // Substrings of texts (substrings.h), and what is left of them inside a character.
    Substrings& substrings() { return *substrings_; }
    ExprId substring(std::uint32_t state, std::uint32_t part = 0);
    bool is_substring(ExprId e) const { return exprs_[e].op == Op::substring; }
    std::pair<std::uint32_t, std::uint32_t> substring_and_part(ExprId e) const { return {exprs_[e].a, exprs_[e].b}; }
    std::pair<ExprId, ExprId> head_and_tail(ExprId e) const {
        return exprs_[e].op == Op::concatenation ? std::pair{ExprId{exprs_[e].a}, ExprId{exprs_[e].b}} : std::pair{e, kEmpty};
    }

    // What follows a byte that all texts begin with, if it is written so; else kNone. The number of a label, or kNoLabel.
    ExprId after_byte(std::uint8_t byte, ExprId e) const {
        const Expr& x = exprs_[e];
        return x.op == Op::concatenation && exprs_[x.a].op == Op::set && sets_[exprs_[x.a].a] == ByteSet::range(byte, byte) ? x.b : kNone;
    }
    bool is_byte(ExprId e, std::uint8_t byte) const { return exprs_[e].op == Op::set && sets_[exprs_[e].a] == ByteSet::range(byte, byte); }
    std::uint32_t label_of(ExprId e) const { return exprs_[e].op == Op::label ? exprs_[e].a : kNoLabel; }

    ExprId set(const ByteSet& bytes);
    ExprId concat(ExprId a, ExprId b);
    ExprId unite(std::vector<ExprId> parts);
    ExprId intersect(std::vector<ExprId> parts);
    ExprId complement(ExprId a);              // over all byte strings: intersect with a spelling's universe
    ExprId subtract(ExprId a, ExprId texts);  // what is not among finitely many texts
    ExprId repeat(ExprId a, std::uint32_t minimum, std::uint32_t maximum);
    ExprId label(std::uint32_t number);
    ExprId labelled(const std::vector<std::pair<ExprId, std::uint32_t>>& keys);  // any of them, each before its label
    // An automaton drawn out, from its first state on; no step is boolean, nor holds the empty text or a label.
    ExprId graph(const std::vector<GraphState>& states);
    // Its parts too: they become parts of other sums, and each of them is a text of the spelling.
    void mark_within(ExprId e, unsigned spelling) {
        const auto bit = static_cast<std::uint8_t>(1u << spelling);
        exprs_[e].within |= bit;
        each_part(e, [&](ExprId part) {
            exprs_[part].within |= bit;
            return false;
        });
    }
    // All spellings, inside a JSON string, of some characters.
    void mark_encoding_closed(ExprId e) { exprs_[e].encoding_closed = exprs_[e].weakly_encoding_closed = true; }
    bool encoding_closed(ExprId e) const { return exprs_[e].encoding_closed; }
    void mark_universe(ExprId e, unsigned spelling) { exprs_[e].universe |= static_cast<std::uint8_t>(1u << spelling); }

    bool is_unbounded(ExprId e) const { return exprs_[e].unbounded; }
    // How many different JSON values its texts spell at least, from the start of a value; kInfinite: endlessly many.
    std::uint32_t values_at_least(ExprId e);
    bool is_infinite(ExprId e) const { return exprs_[e].known_infinite; }  // has endlessly many texts, as far as was seen
    bool labelled(ExprId e) const { return exprs_[e].labelled; }
    std::uint16_t depth(ExprId e) const { return exprs_[e].depth; }
    // Whether it can be the end of texts (string_trie.h).
    bool may_end_strings(ExprId e) const {
        return exprs_[e].known_finite && !exprs_[e].boolean && !exprs_[e].bounded && !exprs_[e].rowless;
    }
    bool is_quote(ExprId e) const;  // one of a set of bytes, a label, or both: what may be after a single text
    bool nullable(ExprId e) const { return exprs_[e].nullable; }
    ExprId derivative(ExprId e, std::uint8_t byte) {
        std::uint32_t r = found_[e].live_row;
        if (r == 0) [[unlikely]] {
            Recent& lately = recent_[(e * 31 + byte) % kRecent];
            if (lately.expr == e && lately.byte == byte && limits_.tuning.recent_derivatives) return lately.next;
            if (const ExprId known = derivative_without_row(e, byte); known != kUnknownExpr) {
                lately = {e, known, byte};
                return known;
            }
            r = find_live_row(e);
            if (r == 0) return derivative_of_expensive(e, byte);
        }
        return targets_[rows_[r].offset + classes_[rows_[r].classes][byte]];
    }
    // What is left of a lean state after several bytes, inside which nothing of it ends: no states are made for what lies
    // between. kUnknownExpr: that cannot be seen.
    ExprId derivative_by(ExprId e, std::string_view text);
    bool is_rowless(ExprId e) const { return exprs_[e].rowless; }
    // The same as `next`, but what it gives may have no texts: of an intersection that is not searched.
    ExprId raw_derivative(ExprId e, std::uint8_t byte);
    // Calls f(bytes, what follows) for those of `some` that are live, at once for all that can be seen to lead to the same.
    template <class F>
    void for_each_derivative(ExprId e, const ByteSet& some, F&& f) {
        for (const ByteSet& bytes : byte_classes(e, some))
            if (const ExprId to = derivative(e, static_cast<std::uint8_t>(bytes.from(0))); to != kNone) f(bytes, to);
    }
    // With `step`.
    template <class F>
    void for_each_raw_derivative(ExprId e, const ByteSet& some, F&& f) {
        for (const ByteSet& bytes : byte_classes(e, some))
            if (const ExprId to = raw_derivative(e, static_cast<std::uint8_t>(bytes.from(0))); to != kNone) f(bytes, to);
    }
    // The bytes b for which next(e, b) is not none; of values perhaps more.
    ByteSet first(ExprId e);
    // Whether next(e, byte) is not none; makes no new expression where that can be determined without.
    bool has_derivative(ExprId e, std::uint8_t byte);
    // Whether e can be completed after a text. Intersections are followed by their parts: no expression is made of a state
    // that is only passed, and none is searched but the last, unless that takes long.
    bool nonempty_after(ExprId e, std::string_view text);
    // A state that is likely to differ from e in few texts: of a difference what it is taken from, else the state that
    // most of the live bytes lead to, if it comes back to itself; else none.
    ExprId delta_base(ExprId e);
    // What a difference, perhaps after sets of bytes, is taken from; none of others.
    ExprId taken_from(ExprId e);
    // Of nested differences, each perhaps before a tail: the texts taken away, what follows them, and (before a tail) what
    // they are taken from.
    struct Layer {
        ExprId texts, tail, head;
    };
    // What all of them are taken from; e itself, and no layers, where it is no difference.
    ExprId layers(ExprId e, std::vector<Layer>& made);
    bool is_difference(ExprId e) const {
        return exprs_[e].op == Op::difference || (exprs_[e].op == Op::concatenation && exprs_[exprs_[e].a].op == Op::difference);
    }
    // Calls f(part) for each part of a sum, f(e) where e is none, until f returns true.
    template <class F>
    void each_part(ExprId e, F&& f) const {
        const Expr x = exprs_[e];
        if (x.op != Op::alternation) f(e);
        else
            for (std::uint32_t i = 0; i < x.b && !f(args_[x.a + i]); ++i) {
            }
    }
    // The same of a product, too, that begins with a sum of few: each part with what follows the sum, which it makes.
    template <class F>
    void each_summand(ExprId e, F&& f) {
        const Expr x = exprs_[e], head = exprs_[x.op == Op::concatenation ? x.a : e];
        if (x.op != Op::concatenation || head.op != Op::alternation || head.b > kMaxSummands) return each_part(e, f);
        for (std::uint32_t i = 0; i < head.b && !f(concat(args_[head.a + i], x.b)); ++i) {
        }
    }
    bool has_summand(ExprId e, ExprId summand);       // or is it
    bool ends_in(ExprId e, std::uint8_t byte) const;  // whether all its texts do, as far as can be seen
    // A superset of the bytes of its texts.
    ByteSet alphabet(ExprId e);
    // Bytes that occur in every text of the expression, if each character has its shortest spelling. For pieces of JSON
    // strings. May omit some of them.
    ByteSet needed(ExprId e);
    // What a product begins with, of a repetition what is repeated; none of others.
    ExprId head(ExprId e) const {
        const Expr x = exprs_[e].op == Op::concatenation ? exprs_[exprs_[e].a] : exprs_[e];
        return x.op == Op::repetition ? x.a : exprs_[e].op == Op::concatenation ? exprs_[e].a : kNone;
    }
    // Whether all that these bytes begin in it is a text of its head.
    bool goes_by_head(ExprId e, const ByteSet& bytes) {
        const Expr x = exprs_[e];
        return x.op == Op::repetition || (x.op == Op::concatenation && (!exprs_[x.a].nullable || !first(x.b).meets(bytes)));
    }
    // Of a repetition, and a product that begins with one: the same without bounds, and how many more may come.
    struct Unbounded {
        ExprId expr;
        std::uint32_t left;
    };
    Unbounded unbounded(ExprId e);
    // An expression that no text of up to `reach` bytes can tell from e: whether it can be completed after it, and
    // whether it is complete. Bounds of repetitions out of its reach are the same for all; not for boolean ones.
    // `name_units`: what is no longer counted becomes a unit (below).
    ExprId saturate_counters(ExprId e, std::uint32_t reach, bool name_units);
    // A superset of e: repetition bounds above kNear, and complements of longer texts only, are dropped. Without
    // intersection and complement, both accept continuations of the same texts of up to min(`most`, `early`) bytes. With
    // them, the length of a shortest completion in the superset counts, too.
    struct Superset {
        ExprId expr;
        std::uint32_t exact_up_to = kInfinite, early = kInfinite;
        std::uint32_t loop_body = 0;  // of `without_loop_bounds`: the newest one whose bounds are gone
    };
    static constexpr std::uint32_t kNear = 16;
    Superset superset(ExprId e);
    // Units (loop bodies): the r of r{m,n} whose upper bound `clipped` removed, if its texts have two bytes or more;
    // numbered from 1. This replaces their bounds by none. Both accept the same continuations, and are complete, after a
    // text that begins at most `most` iterations.
    Superset without_loop_bounds(ExprId e);
    std::uint32_t loop_bodies() const { return static_cast<std::uint32_t>(loop_bodies_.size()); }
    // The bytes with which a round of a unit may begin next; all, where too much may begin.
    ByteSet iterations_begin(ExprId e);
    bool boolean(ExprId e) const { return exprs_[e].boolean; }
    // Bytes of a shortest text, kInfinite if there is none.
    std::uint32_t shortest(ExprId e);
    bool is_nonempty(ExprId e) { return e != kNone && (exprs_[e].known_nonempty || !exprs_[e].boolean || search_nonempty(e)); }
    // Calls f(); false where a search in it reached more than kShortSearch states (or the pool's own limit), and was left off.
    template <class F>
    bool with_short_searches(F&& f) {
        struct Limit {
            std::size_t &most, before;
            ~Limit() { most = before; }
        };
        const Limit limit{limits_.max_search, limits_.max_search};
        limits_.max_search = std::min(limit.before, kShortSearch);
        try {
            f();
            return true;
        } catch (const SearchLimit&) {
            return false;
        }
    }
    // The expression without alternatives at its beginning that no shortest text needs. May keep some of them.
    ExprId cheapest(ExprId e);
    // The smallest byte that begins a shortest text, -1 if the empty text is one or there is none.
    int best_byte(ExprId e);
    // Labels that can still be reached, in rising order.
    const std::vector<LabelDistance>& labels(ExprId e);
    // The greatest label that can still be reached, kNoLabel if there is none; `further`: by a text that is not empty.
    std::uint32_t last_label(ExprId e, bool further);
    // Whether a set of texts and what is left of it after a character hold the same ones: none has ended, none is left out.
    bool leads_as_far(ExprId e, ExprId next) const;
    // Calls f(label) for each label that e matches with the empty text.
    template <class F>
    void each_accepted_label(ExprId e, F&& f) {
        if (!nullable(e)) return;
        const auto each_part = [&](ExprId sum, auto&& g) {
            const Expr x = exprs_[sum];
            for (std::uint32_t i = 0; i < (x.op == Op::alternation ? x.b : 1); ++i) g(x.op == Op::alternation ? args_[x.a + i] : sum);
        };
        const auto own = [&](ExprId p) {
            const Expr x = exprs_[p];
            if (x.op == Op::label) f(x.a);
            else if (x.op == Op::concatenation && x.labelled)  // a key that may end here or continue
                for (const LabelDistance& reach : labels(p))
                    if (reach.distance == 0) f(reach.label);
        };
        each_part(e, [&](ExprId p) {
            own(p);
            if (const ExprId end = tail_of_string(p); end != kNone) each_part(end, own);  // a key without quotes
        });
    }

    std::size_t size() const { return exprs_.size(); }
    // Of all tables; `grew`: what is counted as it grows, by those who keep it for this pool.
    std::size_t bytes() const;
    void grew(std::size_t bytes) { grown_ += bytes; }

private:
    friend class Emptiness;
    ExprId product(ExprId head, ExprId b);
    // What follows the text that ends at a node of a trie; kNone where none ends, or it is no such node.
    ExprId tail_of_string(ExprId e) const;
    using Targets = std::array<ExprId, 256>;
    struct Found {                                // what was found out about an expression
        std::uint32_t raw_row = 0, live_row = 0;  // 0: not made yet
        std::uint32_t alphabet = 0;               // 1 + the number of a set; 0: not known yet
        std::int16_t best_byte = -2;              // -2: not known yet
        std::uint8_t lookups : 7 = 0;             // how often, while it has no row
        bool expensive : 1 = false;               // it takes long to see which of its targets live
        std::uint8_t escapes = 0;                 // emptiness.cpp; 0: not known yet
    };
    struct Recent {  // where a state without a row came lately; the walk over the tokens and the token taken go the same ways
        ExprId expr = kNone, next = kNone;
        std::uint8_t byte = 0;
    };
    static constexpr std::uint32_t kRecent = 4096;
    static constexpr std::uint32_t kMaxSummands = 8;
    static constexpr std::size_t kShortSearch = 2000;  // states
    struct Row {
        std::uint32_t classes, offset, live, count;  // `count` targets from `offset` on
    };
    struct Source {  // one summand of a derivative: a row, and what follows it
        std::uint32_t row;
        ExprId tail;
    };

    ExprId intern(Expr made, const std::vector<ExprId>* parts = nullptr);
    // The equal expression that is known, which learns what the new one is found to be; InternTable::kMissing.
    std::uint32_t find(std::uint64_t hash, const Expr& made, const std::vector<ExprId>* parts);
    void join_strings(std::vector<ExprId>& sum);
    ExprId dominant_target(ExprId e);
    std::vector<ByteSet> byte_classes(ExprId e, const ByteSet& some);
    const std::vector<ByteSet>& sets_of_classes(std::uint32_t classes);
    ExprId derivative_of_strings(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_substrings(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_difference(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_intersection(const Expr& x, std::uint8_t byte);
    void split_intersection(ExprId e, std::vector<ExprId>& with, std::vector<ExprId>& without) const;
    ByteSet first_of_rowless(ExprId e);
    bool same(const Expr& x, const Expr& y, const std::vector<ExprId>* parts) const;
    std::uint64_t hash(const Expr& x, const std::vector<ExprId>* parts) const;
    std::vector<ExprId> parts_of(ExprId e) const;
    void drop_tails(std::vector<ExprId>& sum);
    bool is_within(ExprId p, ExprId q) const;
    void drop_counts(std::vector<ExprId>& sum);
    std::uint32_t row_before(ExprId head, ExprId tail);
    std::uint32_t raw_row(ExprId e);
    std::uint32_t make_live_row(ExprId e);
    std::uint32_t find_live_row(ExprId e);
    ExprId derivative_of_expensive(ExprId e, std::uint8_t byte);
    static bool is_transient(const Expr& x);
    ExprId one_less(const Expr& repeated);  // what is left of a repetition, once one of its parts has begun
    template <class F>
    bool each_head(ExprId e, bool searched, F&& f);
    ExprId derivative_without_row(ExprId e, std::uint8_t byte);
    std::uint32_t store_row(const Targets& targets);
    std::uint32_t set_id(const ByteSet& bytes);
    std::uint32_t class_id(const std::array<std::uint8_t, 256>& classes);
    void derive(ExprId e, Targets& out);
    void derive_sum(const std::vector<Source>& sources, const std::vector<ExprId>& heads, Targets& out);
    void derive_intersection(ExprId e, Targets& out);
    void measure(ExprId e, std::uint32_t bytes);
    void search_other_composite(ExprId start);
    bool search_nonempty(ExprId start);
    bool has_more(ExprId e);                                         // a text that is not empty
    enum class Bounds : std::uint8_t { far, far_inside, of_units };  // far_inside: in a Boolean one
    Superset relax(ExprId e, Bounds which, const std::vector<Superset>& parts);
    Superset superset(ExprId e, Bounds which);
    template <class Fixed, class Known, class Make>
    void from_parts_up(ExprId e, Fixed&& fixed, Known&& known, Make&& make);

    ExprLimits limits_;
    Fuel fuel_;
    std::size_t grown_ = 0;
    std::unique_ptr<NumberLanguage> numbers_;
    std::unique_ptr<Encoder> encoder_;
    std::unique_ptr<ExternalLanguage> composites_;
    std::unique_ptr<StringTrie> strings_;
    std::unique_ptr<Substrings> substrings_;
    std::unique_ptr<Emptiness> liveness_;
    SegmentedVector<Expr> exprs_;
    ArenaVector<ExprId> args_;
    ArenaVector<ByteSet> sets_;
    InternTable set_ids_, interned_;
    SegmentedVector<Found> found_;                               // by expression
    ArenaVector<Recent> recent_ = ArenaVector<Recent>(kRecent);  // by a hash of expression and byte
    SegmentedVector<Row> rows_;
    SegmentedVector<ExprId> targets_;
    SegmentedVector<std::array<std::uint8_t, 256>> classes_;
    InternTable class_ids_;
    std::vector<std::vector<ByteSet>> class_sets_;               // by classes: the bytes of each, where they were requested
    std::vector<std::vector<std::pair<ExprId, ExprId>>> steps_;  // of `state` expressions: a step, and the state after
    std::map<std::vector<std::uint32_t>, ExprId> graphs_;        // by what they were made of
    std::unordered_map<ExprId, std::vector<LabelDistance>> labels_;
    FlatMap<std::uint64_t, ExprId, NumberHash> saturated_;      // by reach, whether units are named, and expression
    FlatMap<std::uint64_t, std::uint32_t, NumberHash> needed_;  // sets, by expression
    FlatMap<std::uint64_t, Superset, NumberHash> supersets_;    // by expression, and which bounds
    FlatMap<ExprId, std::uint32_t, NumberHash> loop_bodies_;
};

}  // namespace guideway
