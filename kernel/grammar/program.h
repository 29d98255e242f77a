// The binary format of a grammar for the kernel: a list of 32-bit words. The reader checks each word, since programs are untrusted.
//
//   "GWP1" version n_exprs n_nodes root, then the expressions, then the nodes, in order.
//   expression: 0 chars n (low high)*n | 1 literals n (length code_point*)*n | 2 cat n id* | 3 either n id*
//             | 4 both n id* | 5 not id | 6 repeat id minimum maximum | 7 spelled id spelling
//             | 8 graph n (accepting m (id state)*m)*n : steps by characters (kind 0), from the first state
//             | 9 special n code_point*n : the special tokens with that name, or the name as text if there are none
//             | 10 id : the special token with that id; an error if it is not special
//             | 11 spelling others n (length code_point*)*n : a JSON string, quotes and all, of one of the texts, or (others: 1)
//               of none of them
//             | 12 empty n (4 * code_point + flags)*n ends m (variant code_point)*m : the substrings of a text
//               from a code point with the flag kBegins to before one with kEnds (`ends`: or to its end), and (`empty`) the
//               empty text; a variant may be written for its code point
//   node:       0 leaf expr | 1 sequence n node* | 2 alternative n node*
//             | 3 object punctuation ordered minimum maximum demands least most n entry*n m entry*m
//             | 4 array punctuation minimum maximum unique n (minimum maximum)*n m value*m value
//             | 5 number text n cell*n
//   punctuation: space, then open comma colon close, each: length byte*
//   entry:       expr flags [marks] value : flags 1 required, 2 with the marks that count if the entry is missing
//   value:       n (marks node)*n : its readings; n may be 0 in the last value of an array
//   demands, marks of objects: the low word; then the high word if `least` has kWideMarks
//   cell:        flags (1 has low, 2 has high, 4 low is excluded, 8 high is excluded), the bounds it has, then n decimal*n of which
//                it is a multiple, n decimal*n of which it is not
//   decimal:     sign exponent n digit*n : (-1)^sign * digits * 10^exponent, digits in 0..9, exponent signed
// Expressions refer to earlier ones only; nodes to any. 0xffffffff: no node, no maximum.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "guideway/base/id.h"
#include "guideway/base/small_list.h"
#include "guideway/grammar/readings.h"
#include "guideway/regex/decimal.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/substrings.h"

namespace guideway {

inline constexpr std::uint32_t kProgramMagic = 0x31505747;  // "GWP1", little endian
inline constexpr std::uint32_t kProgramVersion = 5;
inline constexpr std::uint32_t kWideMarks = 0x80000000;  // flag of `least`: the marks of the object have two words

class TokenTable;

enum class NodeKind : std::uint8_t { leaf, sequence, alternative, object, array, number };

struct Punctuation {
    bool space = false;
    std::string open, comma, colon, close;
};

// A property, which can occur once, or a class of open keys: a language of which each key can occur once (from JSON Schema:
// additional properties, or keys that match patterns). The label of an entry is its number in `entries`. The keys of the
// entries of an object must be disjoint. This is not checked: if they are not, a key can occur twice.
struct Entry {
    ExprId key;
    bool required;
    Readings value;
    std::uint64_t missing = 0;  // property: the marks that count if it does not occur
};

struct Count {  // limits on the number of items with a mark
    std::uint32_t minimum, maximum;
};

struct Node {
    NodeKind kind = NodeKind::leaf;
    bool ordered = true;                             // object
    bool unique = false;                             // array
    NumberText number = NumberText::any;             // number
    ExprId expr = kNone;                             // leaf
    std::uint32_t fixed = 0;                         // object: the first `fixed` entries are properties
    std::uint64_t demands = 0;                       // object: the marks that count,
    std::uint32_t least = 0, most = 0;               // and the limits on the number of different ones
    std::uint32_t minimum = 0, maximum = kInfinite;  // object, array
    List<NodeId> parts;                              // sequence, alternative
    std::shared_ptr<const Punctuation> punctuation;  // object, array: most nodes of a grammar share it
    List<Entry> entries;                             // object: `fixed` properties, then open classes
    List<Readings> prefix;                           // array
    Readings rest;                                   // array; empty: no items after the prefix
    List<Count> counts;
    List<Cell> cells;  // number
};

// Calls f(child) for each node that a node refers to.
template <class N, class F>
void each_child(N&& node, F&& f) {
    for (auto& part : node.parts) f(part);
    const auto each = [&](auto& value) {
        for (auto& reading : value) f(reading.node);
    };
    for (auto& entry : node.entries) each(entry.value);
    for (auto& value : node.prefix) each(value);
    each(node.rest);
}

struct Program {
    IdVector<NodeId, Node> nodes;
    NodeId root{};
};

// A small cache of program prefixes: programs of one frontend begin with the same expressions, whose checks, and expressions in the pool,
// are reused. It belongs to one pool.
class ProgramPrefixCache {
public:
    struct Expression {                     // an expression of a program
        std::uint32_t op = 0, at = 0;       // at: position of its operands
        std::uint8_t wanted = 0, made = 0;  // bits: spellings that are needed; spellings in which the pool has the expression
        ExprId lowered[3] = {kNone, kNone, kNone};
    };
    struct Beginning {
        std::vector<std::uint32_t> words;  // words of the expressions; `at` is relative to the first
        std::vector<Expression> expressions;
        std::vector<std::uint32_t> ends;  // by expression: end of its words
    };
    // The prefix with most expressions in common with a program whose expressions are these words, and their number; null: none.
    std::pair<Beginning*, std::uint32_t> find(std::span<const std::uint32_t> words, std::uint32_t count);
    void keep(Beginning&& made);

private:
    std::vector<Beginning> kept_;
    std::size_t next_ = 0;
};

// `vocabulary`: has the special tokens; null: they are text. `beginnings`: cache for this pool and vocabulary. Throws Error(invalid)
// for a malformed program, Error(limit) for one that is too large.
Program read_program(std::span<const std::uint32_t> words, ExprPool& pool, const TokenTable* vocabulary = nullptr,
                     ProgramPrefixCache* beginnings = nullptr);

}  // namespace guideway
