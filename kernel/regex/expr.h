// Regular expressions over bytes, interned.
//
// For the user: an ExprId denotes a language; equal expressions (up to the laws that the constructors apply) have equal
// ids. A label is an expression of the empty text with a number: it distinguishes the keys of an object. Properties of an expression
// such as its derivatives are computed by the classes that expr_pool.h lists.
//
// For the maintainer: the table only grows; ids are valid as long as it exists. Alternations are sorted sets, concatenations
// are nested to the right. Only expressions with intersection, complement or difference can denote the empty language, so only
// these (`boolean`) need an emptiness search; an infinite language minus a finite set is nonempty without one. Not thread safe:
// the lock of the store protects it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/dcheck.h"
#include "guideway/base/flat_map.h"
#include "guideway/base/fuel.h"
#include "guideway/base/id.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/lengths.h"
#include "guideway/base/page_arena.h"
#include "guideway/base/segmented_vector.h"
#include "guideway/base/tuning.h"

namespace guideway {

enum class ExprId : std::uint32_t {};
inline constexpr ExprId kNone{0};                  // no text
inline constexpr ExprId kEmpty{1};                 // the empty text
inline constexpr ExprId kUnknownExpr{0xffffffff};  // an expression that was not determined
inline constexpr std::uint32_t kNoLabel = 0xffffffff;

enum class ByteSetId : std::uint32_t {};       // an interned set of bytes
enum class StringNode : std::uint32_t {};      // a state of string_trie.h
enum class SubstringState : std::uint32_t {};  // of substrings.h
enum class NumberState : std::uint32_t {};     // of number_language.h
enum class CompositeState : std::uint32_t {};  // of external_language.h
enum class DecoderState : std::uint32_t {};    // the state inside a character (characters.h)
inline constexpr DecoderState kBetween{0};     // between two characters

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
    bool boolean : 1 = false;          // contains an intersection, difference or complement: it may be empty
    bool labelled : 1 = false;         // contains a label
    bool bounded : 1 = false;          // contains a repetition with bounds, or excludes long texts
    bool counted : 1 = false;          // contains a bounded repetition of a loop body (supersets.h), known as one at its construction
    bool unbounded : 1 = false;        // its texts may have any length; only then can derivatives return to it
    bool known_finite : 1 = false;     // has finitely many texts; false: not known
    bool known_infinite : 1 = false;   // has infinitely many texts; false: not known
    bool known_nonempty : 1 = false;   // has a text; false: not known
    bool rowless : 1 = false;          // its derivatives are computed without rows (lazy_dfa.h)
    bool measured : 1 = false;         // `shortest` is exact; boolean expressions need a search for this
    bool encoding_closed : 1 = false;  // a language of pieces of JSON strings: with each text, it has all spellings of the same characters
    bool weakly_encoding_closed : 1 = false;  // the same, but it may also contain other byte strings
    std::uint8_t within = 0;                  // bit m: a subset of the texts of spelling m
    std::uint8_t universe = 0;                // bit m: all texts of spelling m
    std::uint16_t depth = 0;                  // depth of recursion of a derivative
    std::uint32_t shortest = kInfinite;       // length of a shortest text, or a lower bound (`measured`)

    Expr() = default;
    template <class First = std::uint32_t, class Second = std::uint32_t>
    explicit Expr(Op kind, First first = {}, Second second = {}, std::uint32_t third = 0)
        : op(kind), operands_{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second), third} {}

    // `parts`: of an alternation or intersection; null for others.
    std::uint64_t hash(const std::vector<ExprId>* parts = nullptr) const;

    // The operands of each kind of expression.
    ExprId head() const { return ExprId{operand_of(0, op == Op::concatenation)}; }
    ExprId tail() const { return ExprId{operand_of(1, op == Op::concatenation)}; }
    ExprId body() const { return ExprId{operand_of(0, op == Op::repetition)}; }
    std::uint32_t minimum() const { return operand_of(1, op == Op::repetition); }
    std::uint32_t maximum() const { return operand_of(2, op == Op::repetition); }
    ExprId minuend() const { return ExprId{operand_of(0, op == Op::difference)}; }
    ExprId excluded() const { return ExprId{operand_of(1, op == Op::difference)}; }
    // The operand of a complement; the first one of a concatenation, repetition or difference.
    ExprId operand() const {
        return ExprId{operand_of(0, op == Op::complement || op == Op::concatenation || op == Op::repetition || op == Op::difference)};
    }
    std::uint32_t part_count() const { return operand_of(1, op == Op::alternation || op == Op::intersection); }
    ByteSetId byte_set() const { return ByteSetId{operand_of(0, op == Op::set)}; }
    std::uint32_t label() const { return operand_of(0, op == Op::label); }
    NumberState number_state() const { return NumberState{operand_of(0, op == Op::number)}; }
    CompositeState composite_state() const { return CompositeState{operand_of(0, op == Op::composite)}; }
    SubstringState substring_state() const { return SubstringState{operand_of(0, op == Op::substring)}; }
    StringNode string_node() const { return StringNode{operand_of(0, op == Op::strings)}; }
    DecoderState part() const { return DecoderState{operand_of(1, op == Op::strings || op == Op::substring)}; }

private:
    friend class ExprTable;
    std::uint32_t operand_of(std::size_t number, [[maybe_unused]] bool has_it) const {
        GUIDEWAY_DCHECK(has_it);
        return operands_[number];
    }
    std::array<std::uint32_t, 3> operands_{};  // of an alternation or intersection: the first part and the number of parts
};

struct GraphEdge {  // a text of `step` leads to state `to`
    ExprId step;
    std::uint32_t to;
};
struct GraphState {
    bool accepting = false;
    std::vector<GraphEdge> edges;
};

inline constexpr std::uint32_t kNear = 16;                      // bounds above this count as large (supersets.h)
inline constexpr std::size_t kMaxExprs = std::size_t{1} << 28;  // a state of the machine has 28 bits for an expression

struct ExprLimits {
    std::size_t max_exprs = 4'000'000;  // at most kMaxExprs
    std::size_t max_search = 100'000;   // maximum number of states of one emptiness search
    std::uint16_t max_depth = 400;
    std::uint64_t max_work = kDefaultFuel;  // of one external call (fuel.h)
    Tuning tuning{};
};

class ExternalLanguage;
class NumberLanguage;
class Encoder;
class Substrings;
class StringTrie;

class ExprTable {
public:
    // Throws Error(argument) if max_exprs is above kMaxExprs.
    explicit ExprTable(const ExprLimits& limits);
    ~ExprTable();

    // The rest of the work that the current call may do.
    Fuel& fuel() { return fuel_; }
    const ExprLimits& limits() const { return limits_; }

    const Expr& operator[](ExprId e) const { return exprs_[e]; }
    std::size_t size() const { return exprs_.size(); }
    // The parts of an alternation or intersection; valid until another expression is constructed.
    std::span<const ExprId> parts(const Expr& x) const { return {args_.data() + x.operands_[0], x.part_count()}; }
    const ByteSet& bytes_of(ByteSetId set) const { return sets_[set]; }
    ByteSetId set_id(const ByteSet& bytes);
    // Transitions of a state of a `graph`: an expression, and the state after it.
    const std::vector<std::pair<ExprId, ExprId>>& steps(const Expr& x) const { return steps_[x.operands_[0]]; }

    // Numbers by their value (number_language.h): never boolean, never empty, but their shortest text needs a search.
    NumberLanguage& number_language() { return *numbers_; }
    ExprId number(NumberState state);
    // Characters as bytes (encoding.h). Its results are cached for all grammars.
    Encoder& encoder() { return *encoder_; }
    // JSON arrays and objects, whose automata a higher layer implements (external_language.h). Null until it is installed.
    ExternalLanguage* composites() { return composites_.get(); }
    void install_composites(std::unique_ptr<ExternalLanguage> language);
    ExprId composite(CompositeState state);
    // Sets of texts (string_trie.h).
    StringTrie& strings() { return *strings_; }
    ExprId string_state(StringNode node, DecoderState part = kBetween);
    // Substrings of texts (substrings.h).
    Substrings& substrings() { return *substrings_; }
    ExprId substring(SubstringState state, DecoderState part = kBetween);

    ExprId set(const ByteSet& bytes);
    ExprId concat(ExprId a, ExprId b);
    ExprId unite(std::vector<ExprId> parts);
    ExprId intersect(std::vector<ExprId> parts);
    ExprId complement(ExprId a);              // relative to all byte strings: callers intersect it with the universe of a spelling
    ExprId subtract(ExprId a, ExprId texts);  // without finitely many texts
    ExprId repeat(ExprId a, std::uint32_t minimum, std::uint32_t maximum);
    ExprId label(std::uint32_t number);
    // An explicit automaton that starts in its first state. No step may be boolean, nullable or labelled.
    ExprId graph(const std::vector<GraphState>& states);

    // Notes that all texts of e are texts of a spelling; also for the parts of e, since they become parts of other alternations.
    void mark_within(ExprId e, unsigned spelling);
    // Notes that e contains all spellings, in a JSON string, of some characters.
    void mark_encoding_closed(ExprId e) { exprs_[e].encoding_closed = exprs_[e].weakly_encoding_closed = true; }
    void mark_universe(ExprId e, unsigned spelling) { exprs_[e].universe |= static_cast<std::uint8_t>(1u << spelling); }
    // Results of a search (emptiness.h).
    void set_shortest(ExprId e, std::uint32_t bytes) {
        exprs_[e].measured = true;
        exprs_[e].shortest = bytes;
    }
    void set_nonempty(ExprId e) { exprs_[e].known_nonempty = true; }
    // Bodies of repetitions whose bounds were dropped, numbered from 1 (supersets.h).
    FlatMap<ExprId, std::uint32_t, NumberHash>& loop_bodies() { return loop_bodies_; }

    // Bytes of all tables. `grew` adds bytes that other classes keep for this table.
    std::size_t bytes() const;
    void grew(std::size_t bytes) { grown_ += bytes; }

private:
    ExprId product(ExprId head, ExprId b);
    // `missing`: the hash of an expression that `find` did not find.
    ExprId intern(Expr made, const std::vector<ExprId>* parts = nullptr, std::optional<std::uint64_t> missing = std::nullopt);
    // An equal expression that exists, which gets the properties that are known of the new one; else kUnknownExpr.
    ExprId find(std::uint64_t hash, const Expr& made, const std::vector<ExprId>* parts = nullptr);

    ExprLimits limits_;
    Fuel fuel_;
    std::size_t grown_ = 0;
    std::unique_ptr<NumberLanguage> numbers_;
    std::unique_ptr<Encoder> encoder_;
    std::unique_ptr<ExternalLanguage> composites_;
    std::unique_ptr<StringTrie> strings_;
    std::unique_ptr<Substrings> substrings_;
    SegmentedVector<Expr, 8, ExprId> exprs_;
    ArenaVector<ExprId> args_;
    IdVector<ByteSetId, ByteSet, ArenaAllocator<ByteSet>> sets_;
    InternTable set_ids_, interned_;
    std::vector<std::vector<std::pair<ExprId, ExprId>>> steps_;  // transitions of `state` expressions
    std::map<std::vector<std::uint32_t>, ExprId> graphs_;        // by their transitions
    FlatMap<ExprId, std::uint32_t, NumberHash> loop_bodies_;
};

}  // namespace guideway
