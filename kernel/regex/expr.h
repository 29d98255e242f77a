// Regular expressions over bytes, interned.
//
// For the user: an ExprId names a language; equal expressions (up to the laws that the constructors know) have equal
// ids. A label is an expression that matches the empty text and names it: keys of an object are distinguished by them.
// What is computed about an expression (its derivatives, for example) is in the classes that expr_pool.h lists.
//
// For the maintainer: the table only grows; ids stay valid for its life. Unions are sorted sets, concatenations lean
// right. Only expressions with intersection, complement or difference can denote the empty language, so only these
// (`boolean`) need an emptiness search; an infinite language minus a finite set is non-empty without one. Not thread safe:
// the lock of the store guards it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
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
    bool boolean : 1 = false;                 // holds an intersection, difference or complement: it may be empty
    bool labelled : 1 = false;                // holds a label
    bool bounded : 1 = false;                 // holds a repetition with bounds, or excludes long texts
    bool counted : 1 = false;                 // holds a bounded repetition of a unit (supersets.h), as far as was known when it was made
    bool unbounded : 1 = false;               // its texts may be of any length; only then can it come back to itself
    bool known_finite : 1 = false;            // has finitely many texts, as far as was seen
    bool known_infinite : 1 = false;          // has infinitely many, as far as was seen
    bool known_nonempty : 1 = false;          // has a text, as far as was seen
    bool rowless : 1 = false;                 // its derivatives are found without rows (lazy_dfa.h)
    bool measured : 1 = false;                // whether `shortest` is known; boolean ones are measured by a search
    bool encoding_closed : 1 = false;         // pieces of JSON strings: with each text all others that spell the same characters
    bool weakly_encoding_closed : 1 = false;  // the same, perhaps in addition to texts that are none
    std::uint8_t within = 0;                  // bit m: a subset of the texts of spelling m
    std::uint8_t universe = 0;                // bit m: all texts of spelling m
    std::uint16_t depth = 0;                  // how deep a derivative recurses
    std::uint32_t a = 0, b = 0, c = 0;
    std::uint32_t shortest = kInfinite;  // bytes of a shortest text
};

struct GraphEdge {  // a text of `step` leads to state `to`
    ExprId step;
    std::uint32_t to;
};
struct GraphState {
    bool accepting = false;
    std::vector<GraphEdge> edges;
};

inline constexpr std::uint32_t kNear = 16;                      // a bound is large beyond this (supersets.h)
inline constexpr std::size_t kMaxExprs = std::size_t{1} << 28;  // a state of the machine has 28 bits for an expression

struct ExprLimits {
    std::size_t max_exprs = 4'000'000;  // at most kMaxExprs
    std::size_t max_search = 100'000;   // states looked at to decide whether one is alive
    std::uint16_t max_depth = 400;
    std::uint64_t max_work = kDefaultFuel;  // of one call from outside (fuel.h)
    Tuning tuning{};
};

class ExternalLanguage;
class NumberLanguage;
class Encoder;
class Substrings;
class StringTrie;

class ExprTable {
public:
    // Throws Error(argument) where max_exprs is beyond kMaxExprs.
    explicit ExprTable(const ExprLimits& limits);
    ~ExprTable();

    // What is left of the allowance of the call that runs.
    Fuel& fuel() { return fuel_; }
    const ExprLimits& limits() const { return limits_; }

    const Expr& operator[](ExprId e) const { return exprs_[e]; }
    std::size_t size() const { return exprs_.size(); }
    // The parts of an alternation or intersection; valid until another expression is made.
    std::span<const ExprId> parts(const Expr& x) const { return {args_.data() + x.a, x.b}; }
    const ByteSet& bytes_of(std::uint32_t set) const { return sets_[set]; }
    std::uint32_t set_id(const ByteSet& bytes);
    // Of a state of a `graph`: a step, and the state after.
    const std::vector<std::pair<ExprId, ExprId>>& steps(const Expr& x) const { return steps_[x.a]; }

    // Numbers by their value (number_language.h): never boolean, never empty, but their shortest text is searched.
    NumberLanguage& number_language() { return *numbers_; }
    ExprId number(std::uint32_t state);
    // Characters as bytes (encoding.h): what it has written once is there for all grammars.
    Encoder& encoder() { return *encoder_; }
    // JSON arrays and objects, whose automata a higher layer implements (external_language.h). Null until it is installed.
    ExternalLanguage* composites() { return composites_.get(); }
    void install_composites(std::unique_ptr<ExternalLanguage> language);
    ExprId composite(std::uint32_t state);
    // Sets of texts, and what is left of one (0: nothing yet) inside a character.
    StringTrie& strings() { return *strings_; }
    ExprId string_state(std::uint32_t node, std::uint32_t part = 0);
    // Substrings of texts (substrings.h), and what is left of them inside a character.
    Substrings& substrings() { return *substrings_; }
    ExprId substring(std::uint32_t state, std::uint32_t part = 0);

    ExprId set(const ByteSet& bytes);
    ExprId concat(ExprId a, ExprId b);
    ExprId unite(std::vector<ExprId> parts);
    ExprId intersect(std::vector<ExprId> parts);
    ExprId complement(ExprId a);              // over all byte strings: intersect with a spelling's universe
    ExprId subtract(ExprId a, ExprId texts);  // what is not among finitely many texts
    ExprId repeat(ExprId a, std::uint32_t minimum, std::uint32_t maximum);
    ExprId label(std::uint32_t number);
    // An automaton drawn out, from its first state on; no step is boolean, nor holds the empty text or a label.
    ExprId graph(const std::vector<GraphState>& states);

    // All texts of e, and of its parts, are texts of a spelling. The parts, too: they become parts of other sums.
    void mark_within(ExprId e, unsigned spelling);
    // All spellings, inside a JSON string, of some characters.
    void mark_encoding_closed(ExprId e) { exprs_[e].encoding_closed = exprs_[e].weakly_encoding_closed = true; }
    void mark_universe(ExprId e, unsigned spelling) { exprs_[e].universe |= static_cast<std::uint8_t>(1u << spelling); }
    // What a search found (emptiness.h).
    void set_shortest(ExprId e, std::uint32_t bytes) {
        exprs_[e].measured = true;
        exprs_[e].shortest = bytes;
    }
    void set_nonempty(ExprId e) { exprs_[e].known_nonempty = true; }
    // The bodies of loops whose bounds were dropped, with their numbers from 1 on (supersets.h).
    FlatMap<ExprId, std::uint32_t, NumberHash>& loop_bodies() { return loop_bodies_; }

    // Of all tables; `grew`: what is counted as it grows, by those who keep it for this table.
    std::size_t bytes() const;
    void grew(std::size_t bytes) { grown_ += bytes; }

private:
    ExprId product(ExprId head, ExprId b);
    ExprId intern(Expr made, const std::vector<ExprId>* parts = nullptr);
    // The equal expression that is known, which learns what the new one is found to be; InternTable::kMissing.
    std::uint32_t find(std::uint64_t hash, const Expr& made, const std::vector<ExprId>* parts);

    ExprLimits limits_;
    Fuel fuel_;
    std::size_t grown_ = 0;
    std::unique_ptr<NumberLanguage> numbers_;
    std::unique_ptr<Encoder> encoder_;
    std::unique_ptr<ExternalLanguage> composites_;
    std::unique_ptr<StringTrie> strings_;
    std::unique_ptr<Substrings> substrings_;
    SegmentedVector<Expr> exprs_;
    ArenaVector<ExprId> args_;
    ArenaVector<ByteSet> sets_;
    InternTable set_ids_, interned_;
    std::vector<std::vector<std::pair<ExprId, ExprId>>> steps_;  // of `state` expressions: a step, and the state after
    std::map<std::vector<std::uint32_t>, ExprId> graphs_;        // by what they were made of
    FlatMap<ExprId, std::uint32_t, NumberHash> loop_bodies_;
};

}  // namespace guideway
