// The lazy DFA whose states are the derivatives of expressions.
//
// For the user: `derivative(e, b)` is the language of the rests of texts of e that begin with byte b; kNone (0) if there is none. So
// an id is an expression and a state of a deterministic automaton. Its rows are computed at first use, and each state other than
// kNone can be completed. After Brzozowski, "Derivatives of regular expressions" (1964), and Owens, Reppy and Turon,
// "Regular-expression derivatives re-examined" (2009).
//
// For the maintainer: a row has a target for each class of bytes. A raw row is computed from the rows of the parts; its targets
// may have empty languages. In a live row these are kNone, so the row of a boolean expression needs a search for each
// target. Sets of texts (string_trie.h), substrings, composite values and differences are `rowless`: a row of 256 bytes costs more
// than the few bytes that are used. A state that is probably visited once gets its row after `Tuning::row_lookups` look-ups.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "guideway/regex/expr.h"

namespace guideway {

class Emptiness;

enum class RowId : std::uint32_t {};
enum class ClassesId : std::uint32_t {};

class LazyDfa {
public:
    struct Row {
        ClassesId classes;
        ByteSetId live;
        std::uint32_t offset, count;  // `count` targets from `offset` on
    };
    using Classes = std::array<std::uint8_t, 256>;

    LazyDfa(ExprTable& exprs, Emptiness& emptiness);

    ExprId derivative(ExprId e, std::uint8_t byte) {
        RowId r = facts(e).live_row;
        if (r == kNoRow) [[unlikely]] {
            Recent& recent = recent_[(raw(e) * 31 + byte) % kRecent];
            if (recent.expr == e && recent.byte == byte && exprs_.limits().tuning.recent_derivatives) return recent.next;
            if (const ExprId known = derivative_without_row(e, byte); known != kUnknownExpr) {
                recent = {e, known, byte};
                return known;
            }
            r = find_live_row(e);
            if (r == kNoRow) return derivative_of_expensive(e, byte);
        }
        return target(rows_[r], byte);
    }
    // The derivative of a rowless state by several bytes, without states for the positions between. kUnknownExpr: not possible,
    // since a part of the expression may end inside the text.
    ExprId derivative_by(ExprId e, std::string_view text);
    // The derivative, which may have an empty language: an intersection is not searched.
    ExprId raw_derivative(ExprId e, std::uint8_t byte);
    // Calls f(bytes, derivative) for the bytes of `some` whose derivative is not kNone: once for each class of bytes, if it is known
    // that they have the same derivative.
    template <class F>
    void for_each_derivative(ExprId e, const ByteSet& some, F&& f) {
        for (const ByteSet& bytes : byte_classes(e, some))
            if (const ExprId to = derivative(e, static_cast<std::uint8_t>(bytes.from(0))); to != kNone) f(bytes, to);
    }
    // The same with `raw_derivative`.
    template <class F>
    void for_each_raw_derivative(ExprId e, const ByteSet& some, F&& f) {
        for (const ByteSet& bytes : byte_classes(e, some))
            if (const ExprId to = raw_derivative(e, static_cast<std::uint8_t>(bytes.from(0))); to != kNone) f(bytes, to);
    }
    // The bytes whose derivative is not kNone; for composite values, a superset of them.
    ByteSet first(ExprId e);
    // Whether the derivative is not kNone. Constructs an expression only if this cannot be determined without.
    bool has_derivative(ExprId e, std::uint8_t byte);
    // Whether e can be completed after a text. The parts of intersections are followed separately: no expression is constructed for
    // the states between, and only the last one is searched, unless this takes long.
    bool nonempty_after(ExprId e, std::string_view text);
    // A state that probably differs from e in few texts: the first operand of a difference; else the state that most bytes lead to,
    // if most bytes lead it back to itself; else kNone.
    ExprId delta_base(ExprId e);
    // Whether all texts of e that begin with these bytes are texts of its head (structure.h).
    bool goes_by_head(ExprId e, const ByteSet& bytes);
    // The smallest byte that begins a shortest text, -1 if the empty text is one or there is none.
    int best_byte(ExprId e);

    // Rows, for searches. Classes are the sets of bytes that a row does not distinguish.
    RowId raw_row(ExprId e);
    const Row& row(RowId id) const { return rows_[id]; }
    ExprId target(const Row& row, unsigned byte) const { return targets_[row.offset + classes_[row.classes][byte]]; }
    const Classes& classes(ClassesId id) const { return classes_[id]; }
    std::size_t class_count() const { return classes_.size(); }
    ClassesId class_id(const Classes& classes);
    std::size_t bytes() const;

private:
    using Targets = std::array<ExprId, 256>;
    static constexpr RowId kNoRow{0};  // not computed yet
    struct Facts {                     // of an expression
        RowId raw_row = kNoRow, live_row = kNoRow;
        std::int16_t best_byte = -2;   // -2: not known yet
        std::uint8_t lookups : 7 = 0;  // number of look-ups without a row
        bool expensive : 1 = false;    // a live row would need a long search
    };
    struct Recent {  // a recent derivative of a state without a row: a walk over the tokens and the next step need the same ones
        ExprId expr = kNone, next = kNone;
        std::uint8_t byte = 0;
    };
    static constexpr std::uint32_t kRecent = 4096;
    static constexpr unsigned kMostLookups = 127;  // of Facts::lookups
    struct Source {                                // a summand of a derivative: a row, and the tail after its targets
        RowId row;
        ExprId tail;
    };

    Facts& facts(ExprId e) {
        if (raw(e) >= facts_.size()) [[unlikely]]
            add_facts();
        return facts_[e];
    }
    void add_facts();
    bool looked_up_rarely(ExprId e);
    ExprId dominant_target(ExprId e);
    std::vector<ByteSet> byte_classes(ExprId e, const ByteSet& some);
    const std::vector<ByteSet>& sets_of_classes(ClassesId classes);
    ExprId derivative_of_strings(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_substrings(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_difference(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_intersection(const Expr& x, std::uint8_t byte);
    ExprId derivative_of_expensive(ExprId e, std::uint8_t byte);
    ExprId derivative_without_row(ExprId e, std::uint8_t byte);
    ByteSet first_of_rowless(ExprId e);
    template <class F>
    bool each_head(ExprId e, bool searched, F&& f);
    RowId row_before(ExprId head, ExprId tail);
    RowId make_live_row(ExprId e);
    RowId find_live_row(ExprId e);
    RowId store_row(const Targets& targets);
    void derive(ExprId e, Targets& out);
    void derive_sum(const std::vector<Source>& sources, const std::vector<ExprId>& heads, Targets& out);
    void derive_intersection(ExprId e, Targets& out);

    ExprTable& exprs_;
    Emptiness& emptiness_;
    const unsigned row_lookups_;  // Tuning::row_lookups
    SegmentedVector<Facts, 8, ExprId> facts_;
    ArenaVector<Recent> recent_ = ArenaVector<Recent>(kRecent);  // by a hash of expression and byte
    SegmentedVector<Row, 8, RowId> rows_;
    SegmentedVector<ExprId> targets_;
    SegmentedVector<Classes, 8, ClassesId> classes_;
    InternTable class_ids_;
    IdVector<ClassesId, std::vector<ByteSet>> class_sets_;  // the bytes of each class, if they were requested
};

}  // namespace guideway
