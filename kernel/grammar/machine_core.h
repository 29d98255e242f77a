// What the parts of a machine share: its components, and tables of stacks, records and texts that occurred.
//
// For the maintainer: frames are interned, so equal stacks have equal ids and a configuration is four words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/flat_map.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"
#include "guideway/grammar/completion_cost.h"
#include "guideway/grammar/counters.h"
#include "guideway/grammar/program.h"
#include "guideway/grammar/used_values.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

// The fields of a configuration or frame, by the kind of its node:
//
//   node          state                                     regs
//   leaf          the expression of the rest (`expr`)       the text read so far (`read_text`)
//   sequence      number of the next part                   0
//   alternative   not used
//   object        phase_state(phase, rest), see below       where `direct`: a position (ordered) or the bits of the
//                                                           properties read; else a record (CounterRecords)
//   array         the same                                  where `direct`: the number of items; else a record
//   kDone         0                                         0
//   kGssNode      number of frames that it unites           a record of these frames
//
// `parent` is the frame to return to, kBottom at the end. `rest` of an object or array, by phase:
//
//   open, comma, close   number of bytes read of the punctuation
//   key                  an expression: the rest of the fixed keys
//   colon                label << 8 | number of bytes read of the colon
//   below_leaf (frames)  label << 8; array: 0
//   value, undecided     label; array: 0
//   first, gap, after    0
enum class NodeState : std::uint32_t {};
enum class FrameId : std::uint32_t {};

struct Config {
    NodeId node;
    NodeState state;
    Register regs;
    FrameId parent;

    // Of a leaf.
    static Config at_leaf(NodeId leaf, ExprId rest, ReadText text, FrameId frame) {
        return {leaf, NodeState{raw(rest)}, Register{raw(text)}, frame};
    }
    ExprId expr() const { return ExprId{raw(state)}; }
    ReadText read_text() const { return ReadText{raw(regs)}; }
    void set_expr(ExprId rest) { state = NodeState{raw(rest)}; }
    void set_read_text(ReadText text) { regs = Register{raw(text)}; }
    friend bool operator==(const Config&, const Config&) = default;
    friend auto operator<=>(const Config&, const Config&) = default;
};

struct ConfigHash {
    std::size_t operator()(const Config& c) const {
        return static_cast<std::size_t>(mix(mix(std::uint64_t{raw(c.node)} << 32 | raw(c.state), raw(c.regs)), raw(c.parent)));
    }
};

using Configs = std::vector<Config>;

struct ConfigsHash {
    std::size_t operator()(const Configs& all) const {
        std::size_t h = all.size();
        for (const Config& c : all) h = static_cast<std::size_t>(mix(h, ConfigHash{}(c)));
        return h;
    }
};

inline constexpr NodeId kDone{0xffffffff};     // the end of the text
inline constexpr NodeId kGssNode{0xfffffffe};  // a frame that represents several
inline constexpr FrameId kBottom{0};           // the frame below all frames

// Detects configurations that were visited before. It begins to store them only after the first few: in an ambiguous grammar many
// paths lead to the same few configurations, and each must be followed only once.
class VisitedSet {
public:
    // In the first `kFew` calls: false, and nothing is stored. After that: stores c, and returns whether it was stored already.
    bool repeats(const Config& c) {
        if (++count_ <= kFew) return false;
        if (visited_.find(c)) return true;
        visited_.add(c, true);
        return false;
    }

private:
    static constexpr std::size_t kFew = 64;

    std::size_t count_ = 0;
    FlatMap<Config, bool, ConfigHash> visited_;
};

inline constexpr std::uint32_t kUnknownCost = 0xfffffffe;
inline constexpr Register kNoCounters{0xffffffff};  // instead of a register: the item is not allowed

// Costs of an entry of an object, and of the entries after it.
struct EntrySuffixCost {
    std::uint32_t cost = kInfinite;                  // of the entry: key, colon and value; kInfinite: it cannot be completed
    std::uint32_t next_required = 0, next_live = 0;  // the first such property at or after this one; `fixed`: none
    std::uint32_t required_cost = 0;                 // of all required ones from here on, each with a comma
};

enum class ComponentId : std::uint32_t {};  // in the keys of cached results (mask/leaf_results.h)

// A grammar node with the results of `analyse`.
struct AnalysedNode : Node {
    std::uint32_t cost = kInfinite;  // bytes of a shortest text; kInfinite: there is none
    bool nullable = false;
    ByteSet first, follow;
    ByteSet alphabet;  // object, array: bytes that its configurations can continue with, except inside fixed keys
    // Leaves with equal follow bytes share one, since the state is in the key too; each other node has its own.
    ComponentId id{};
    // Object, array: the register is a position, bits or a count, not a record. Object: it has no open keys, no bounds and no demands,
    // and is ordered or has at most 32 properties. Array: it has neither unique items nor counters.
    bool direct = false;
    bool bounded = false;                        // object: it limits the number of entries, or has demands; arrays: always false
    bool has_absence_marks = false;              // object: the absence of a property can count marks (`Entry::missing`)
    std::uint32_t record_words = 0;              // size of a record in words
    List<NodeId> open_leaf;                      // object: the leaf of each class of open keys
    List<std::vector<NodeId>> item_leaves;       // unique array: leaves by position, those of the rest last
    std::shared_ptr<const ItemCosts> item_plan;  // array with counters
    List<EntrySuffixCost> ahead;                 // object: by entry, and one for the end
    List<std::uint32_t> tail_cost;               // sequence: cost of the parts from i on; array: cost of the first i items of the prefix

    bool is_live(std::uint32_t entry) const { return ahead[entry].cost != kInfinite; }  // it can be completed
};

// The number of parts of a node that can be the first in a text.
template <class Nodes>
std::size_t leftmost_parts(const Nodes& nodes, const AnalysedNode& node) {
    if (node.kind != NodeKind::sequence) return node.parts.size();
    std::size_t n = 0;
    while (n < node.parts.size() && nodes[node.parts[n]].nullable) ++n;
    return std::min(n + 1, node.parts.size());
}

// Visits nodes depth-first: calls after(node) when all its parts were visited; `leftmost`: only those that can be first. Returns
// a node that refers to itself in this way, if there is one.
template <class Nodes, class F>
std::optional<NodeId> visit_parts(const Nodes& nodes, bool leftmost, F&& after) {
    enum Colour : std::uint8_t { unseen, on_path, visited };
    std::optional<NodeId> cyclic;
    IdVector<NodeId, std::uint8_t> colour(nodes.size(), unseen);
    struct Step {
        NodeId node;
        std::size_t next, end;  // parts to visit
    };
    std::vector<Step> path;
    const auto enter = [&](NodeId node) {
        if (colour[node] == on_path && !cyclic) cyclic = node;
        if (colour[node] != unseen) return;
        colour[node] = on_path;
        path.push_back({node, 0, leftmost ? leftmost_parts(nodes, nodes[node]) : nodes[node].parts.size()});
    };
    for (const NodeId start : colour.ids())
        for (enter(start); !path.empty();) {
            auto& [node, next, end] = path.back();
            if (next < end) {
                enter(nodes[node].parts[next++]);
                continue;
            }
            colour[node] = visited;
            after(node);
            path.pop_back();
        }
    return cyclic;
}

// Length of a shortest value in any of its readings.
template <class Nodes>
std::uint32_t least_cost(const Nodes& nodes, const Readings& value) {
    std::uint32_t least = kInfinite;
    for (const Reading& r : value) least = std::min(least, nodes[r.node].cost);
    return least;
}

// Leaves that the machines of one store share: most grammars have the same few.
class SharedLeaves {
public:
    // The stored leaf that is equal to an analysed leaf; its address does not change.
    const AnalysedNode* keep(AnalysedNode&& leaf);
    std::size_t bytes() const { return kept_.size() * sizeof(AnalysedNode) + ids_.bytes(); }

private:
    std::deque<AnalysedNode> kept_;
    InternTable ids_;
};

// The components of a machine, by number.
class AnalysedNodes {
public:
    // `leaves`: store of shared leaves, which must outlive this; null: it owns all leaves.
    explicit AnalysedNodes(IdVector<NodeId, AnalysedNode>&& all, SharedLeaves* leaves = nullptr);
    const AnalysedNode& operator[](NodeId id) const { return *at_[id]; }
    std::size_t size() const { return at_.size(); }
    IdRange<NodeId> ids() const { return at_.ids(); }
    // Sets the ids of the nodes that it owns: f(component).
    template <class F>
    void set_ids(F&& f) {
        for (AnalysedNode& c : own_) c.id = f(c);
    }

private:
    std::vector<AnalysedNode> own_;
    IdVector<NodeId, const AnalysedNode*> at_;
};

// Checks the program (left recursion), and computes which nodes can be completed and their costs. Throws Error.
IdVector<NodeId, AnalysedNode> analyse(Program&& program, ExprPool& pool);

// The components of a machine that is constructed later (composite_language.h), and the number of the root.
struct AnalysedGrammar {
    IdVector<NodeId, AnalysedNode> components;
    NodeId root;
};

struct MachineLimits {
    std::size_t max_heads = 4096;        // configurations at the same time
    std::size_t max_frames = 8'000'000;  // different stacks
    std::size_t max_parents = 1 << 16;   // frames that one represents
};

// Results of a step from a configuration on the bottom frame, in addition to its successors.
struct Outcome {
    bool popped = false;  // the component has ended before the byte: the frame below must read it
    // The result depends on text that was read before the configuration and is not known: the whole token must be stepped from the
    // configuration of the matcher.
    bool context_dependent = false;
};

// Indexes of stacks, records and texts, and the costs of stacks.
struct MachineTables {
    DroppableIndex<FrameId> frames;
    DroppableIndex<Register> records;
    DroppableIndex<ReadText> read_texts;
    IdVector<FrameId, std::uint32_t> costs;  // kUnknownCost: not computed yet

    void empty_except_large() {
        frames.drop_if_small();
        records.drop_if_small();
        read_texts.drop_if_small();
        costs = {};
    }
};

struct MachineCore {
    static constexpr std::size_t kMostKept = std::size_t{1} << 16;  // maximum number of entries of a table that is emptied when it is full

    MachineCore(AnalysedNodes nodes, ExprPool& expressions, MachineTables& found, MachineLimits most);

    bool is_leaf(const Config& c) const { return c.node != kDone && components[c.node].kind == NodeKind::leaf; }
    bool is_sequence(const Config& c) const { return c.node != kDone && components[c.node].kind == NodeKind::sequence; }
    // The number of a frame.
    FrameId push(const Config& frame);
    // Appends the frames that one represents.
    void members(FrameId frame, std::vector<FrameId>& out);
    // A set of texts with one more, the read text.
    ValueSet used_with(ValueSet set, ReadText read_text);
    std::uint32_t value_cost(const Readings& value) const { return least_cost(components, value); }
    // Throws Error(limit) if there are more configurations than the limit.
    void check_heads(std::size_t count, NodeId node = kDone) const;
    // Numbers of stacks, records, bytes of texts and sets of texts so far, added up. Only `known_used_with` can become smaller.
    std::size_t stored_items() const {
        return frames.size() + records.size() + read_texts.size() + used_values.size() + known_used_with.size();
    }

    AnalysedNodes components;
    ExprPool& pool;
    MachineLimits limits;
    MachineTables& tables;
    IdVector<FrameId, Config, ArenaAllocator<Config>> frames;
    CounterRecords records;
    ReadTexts read_texts;
    UsedValues used_values;
    std::unordered_map<std::uint64_t, ValueSet> known_used_with;  // by set and read text: the set with that text
    KeyLengths key_lengths;
};

// The state of an object or array is a phase and its `rest`. gap: after a comma, where a key or item can begin, or white space before
// it; below_leaf: of the frame below the leaf of an open key or unique item; undecided: where an open key or unique item begins, but the
// text of an earlier one is not known.
enum class Phase : std::uint32_t { open, first, key, colon, value, after, comma, close, gap, below_leaf, undecided };
inline NodeState phase_state(Phase phase, std::uint32_t rest = 0) {
    GUIDEWAY_DCHECK(rest >> 28 == 0);
    return NodeState{static_cast<std::uint32_t>(phase) << 28 | rest};
}
inline Phase phase_of(NodeState state) { return static_cast<Phase>(raw(state) >> 28); }
inline std::uint32_t rest_of(NodeState state) { return raw(state) & 0x0fffffff; }
inline NodeState key_state(ExprId rest) { return phase_state(Phase::key, raw(rest)); }
inline ExprId keys_of(NodeState state) { return ExprId{rest_of(state)}; }  // in phase key
// States with the label of an entry and, in phase colon, the number of bytes read of the colon.
inline NodeState entry_state(Phase phase, std::uint32_t label, std::uint32_t colon_bytes = 0) {
    return phase_state(phase, label << 8 | colon_bytes);
}
inline std::uint32_t label_of_entry(NodeState state) { return rest_of(state) >> 8; }  // in phases colon and below_leaf
inline std::uint32_t colon_bytes_read(NodeState state) { return raw(state) & 0xff; }  // in phase colon
inline constexpr ByteSet kSpace = ByteSet::of(" \t\n\r");
inline bool is_space(std::uint8_t b) { return b == ' ' || b == '\t' || b == '\n' || b == '\r'; }

// Length and bytes of punctuation.
inline std::uint32_t length(const std::string& text) { return static_cast<std::uint32_t>(text.size()); }
inline std::uint8_t byte_at(const std::string& text, std::uint32_t at) { return static_cast<std::uint8_t>(text[at]); }
inline bool takes(const std::string& text, std::uint32_t at, std::uint8_t b) { return byte_at(text, at) == b; }

}  // namespace guideway
