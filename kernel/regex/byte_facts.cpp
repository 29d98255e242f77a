// Alphabets and needed bytes, computed from the parts of expressions (byte_facts.h).
#include "guideway/regex/byte_facts.h"

#include <algorithm>
#include <vector>

#include "guideway/regex/emptiness.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/parts_up.h"
#include "guideway/regex/structure.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxCharacters = 64;  // maximum number of characters of a set of texts that is examined

// A superset of the bytes in all spellings of a character.
ByteSet bytes_of_spellings(char32_t c, Encoding spelling) {
    static const ByteSet numbered = ByteSet::of("\\u0123456789abcdefABCDEF"), shorts = ByteSet::of("\"\\/bfnrt");
    if (c >= 0x80) return ByteSet::range(0, 255);
    ByteSet made;
    made.insert(static_cast<std::uint8_t>(c));
    const bool any = spelling == Encoding::escaped_any, must = spelling != Encoding::text && must_escape(c);
    if (must || any) made |= numbered;
    if (must) made |= shorts;
    return made;
}

}  // namespace

ByteSet ByteFacts::alphabet(ExprId e) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (x.op == Op::strings) return exprs_.strings().characters(x.string_node()) > kMaxCharacters;
        return x.op != Op::concatenation && x.op != Op::alternation && x.op != Op::intersection && x.op != Op::difference &&
               x.op != Op::repetition;
    };
    auto of = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (!fixed(p)) return exprs_.bytes_of(*alphabets_.find(p));
        if (x.op == Op::set) return exprs_.bytes_of(x.byte_set());
        return x.op == Op::none || x.op == Op::empty || x.op == Op::label ? ByteSet{} : ByteSet::range(0, 255);
    };
    from_parts_up(
        exprs_, e, fixed, [&](ExprId p) { return alphabets_.find(p) != nullptr; },
        [&](ExprId at, const std::vector<ExprId>& parts) {
            const Expr x = exprs_[at];
            ByteSet made = of(parts[0]);
            for (std::size_t i = 1; i < parts.size(); ++i)
                if (x.op == Op::intersection) made &= of(parts[i]);
                else made |= of(parts[i]);
            if (x.op == Op::strings)
                exprs_.strings().each_character_below(
                    x.string_node(), [&](char32_t c) { made |= bytes_of_spellings(c, exprs_.strings().spelling(x.string_node())); });
            alphabets_.add(at, exprs_.set_id(made));
        });
    return of(e);
}

// An alternation needs the bytes that all its parts need. Parts that begin with an escape do not count: the others contain a
// shorter spelling, unless a character can only be escaped.
ByteSet ByteFacts::needed(ExprId e) {
    auto fixed = [&](ExprId p) {
        const Expr& x = exprs_[p];
        if (!x.encoding_closed) return true;
        if (x.op == Op::strings)
            return exprs_.strings().count(x.string_node()) != 1 || exprs_.strings().characters(x.string_node()) > kMaxCharacters;
        if (x.op == Op::concatenation) return !exprs_[x.head()].encoding_closed || !exprs_[x.tail()].encoding_closed;  // inside an escape
        return x.op != Op::alternation && x.op != Op::intersection && x.op != Op::difference && (x.op != Op::repetition || x.nullable);
    };
    auto of = [&](ExprId p) {
        if (const ByteSetId* known = needed_.find(p)) return exprs_.bytes_of(*known);
        return exprs_[p].op == Op::set && exprs_.bytes_of(exprs_[p].byte_set()).size() == 1 ? exprs_.bytes_of(exprs_[p].byte_set())
                                                                                            : ByteSet{};
    };
    auto escaped = [&](ExprId p) { return is_byte(exprs_, p, '\\') || after_byte(exprs_, '\\', p) != kNone; };
    from_parts_up(
        exprs_, e, fixed, [&](ExprId p) { return needed_.find(p) != nullptr; },
        [&](ExprId at, const std::vector<ExprId>& parts) {
            const Expr x = exprs_[at];
            ByteSet made;
            if (x.op == Op::alternation) {
                const bool shorter = std::any_of(parts.begin(), parts.end(), escaped) && !emptiness_.has_escapes(at);
                made = ByteSet::range(0, 255);
                for (const ExprId p : parts)
                    if (!shorter || !escaped(p)) made &= of(p);
            } else {
                for (const ExprId p : parts) made |= of(p);
            }
            if (x.op == Op::strings)
                for (const char32_t c : exprs_.strings().only_text(x.string_node()).characters)
                    if (c < 0x80 && !must_escape(c)) made.insert(static_cast<std::uint8_t>(c));
            needed_.add(at, exprs_.set_id(made));
        });
    return of(e);
}

}  // namespace guideway
