// A grammar as the kernel takes it: one flat list of 32-bit words, checked word by word (it may come from anywhere).
//
//   "GWP1" version n_exprs n_nodes root, then the expressions, then the nodes, in order.
//   expression: 0 chars n (low high)*n | 1 literals n (length code_point*)*n | 2 cat n id* | 3 either n id*
//             | 4 both n id* | 5 not id | 6 repeat id minimum maximum | 7 spelled id spelling
//   node:       0 leaf expr | 1 sequence n node* | 2 alternative n node*
//             | 3 object punctuation ordered n (expr node required)*n m (expr node required)*m
//             | 4 array punctuation n node*n rest minimum maximum
//   punctuation: space, then open comma colon close, each: length byte*
// Expressions refer to earlier ones only; nodes to any. 0xffffffff: no node, no maximum.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guideway/expr.h"

namespace guideway {

inline constexpr std::uint32_t kProgramMagic = 0x31505747;  // "GWP1", little endian
inline constexpr std::uint32_t kProgramVersion = 1;

enum class NodeKind : std::uint8_t { leaf, sequence, alternative, object, array };

struct Punctuation {
    bool space = false;
    std::string open, comma, colon, close;
};

struct Entry {  // a property, or a class of open keys
    ExprId key;
    std::uint32_t value;
    bool required;
};

struct Node {
    NodeKind kind = NodeKind::leaf;
    ExprId expr = kNone;                // leaf
    std::vector<std::uint32_t> parts;   // sequence, alternative, array prefix
    Punctuation punctuation;            // object, array
    std::vector<Entry> entries;         // object: `fixed` properties, then open classes
    std::uint32_t fixed = 0;
    bool ordered = true;
    std::uint32_t rest = kInfinite;     // array
    std::uint32_t minimum = 0, maximum = kInfinite;
};

struct Program {
    std::vector<Node> nodes;
    std::uint32_t root = 0;
};

// Throws Error(invalid) for a malformed program, Error(limit) for one that is too large.
Program read_program(std::span<const std::uint32_t> words, ExprPool& pool);

}  // namespace guideway
