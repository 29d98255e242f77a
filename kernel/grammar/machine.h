// The machine: walks a grammar byte by byte.
//
// For the user: a state of the text so far is a set of configurations; `start` makes the first ones, `step` moves one
// by a byte. Every configuration that exists can be completed. A configuration is a component (grammar node), the
// state and the register it is in, and the frame to return to. kDone is the configuration of "nothing more".
//
// For the maintainer: frames are interned, so equal stacks have equal ids and a configuration is four words. A leaf
// that can end no text further is left at once; one that might continue is left when the next byte can follow it
// (`follow`), so both paths are kept where both are open. A sequence's last part gets the sequence's own return
// frame: right recursion needs no stack. Objects and arrays keep what they have seen in the register: bits, or the
// number of an interned record. In grammars that call themselves frames fork where paths meet (gss.cpp).
//
// Where a key may come there is one configuration for the trie of fixed names, and a leaf for each class of open
// keys, above a frame that waits for the name. Such a leaf has the read text of what it read in its register; what came
// before is taken out of the class's expression. A walk that does not start at a leaf's beginning knows no read text, and
// says so (`context_dependent`) where the text would matter.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"
#include "guideway/grammar/completion_cost.h"
#include "guideway/grammar/counters.h"
#include "guideway/grammar/program.h"
#include "guideway/grammar/used_values.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

// What the fields of a configuration or frame mean, by the kind of its node:
//
//   node          state                                     regs
//   leaf          its expression                            the text read so far (ReadTexts); 0: not known
//   sequence      number of the part that comes next        0
//   alternative   never a configuration
//   object        phase_state(phase, rest); rest: the       where `direct`: a position (ordered) or the bits of the
//                 label or the bytes of punctuation read    properties that came; else a record (CounterRecords)
//   array         the same; rest: bytes of punctuation      where `direct`: the number of items; else a record
//   kDone         0                                         0
//   kGssNode      a record: the frames that it unites       their number
//
// `parent` is the frame to return to, kBottom at the end.
struct Config {
    std::uint32_t node, state, regs, parent;
    friend bool operator==(const Config&, const Config&) = default;
    friend auto operator<=>(const Config&, const Config&) = default;
};

struct ConfigHash {
    std::size_t operator()(const Config& c) const {
        return static_cast<std::size_t>(mix(mix(std::uint64_t{c.node} << 32 | c.state, c.regs), c.parent));
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

inline constexpr std::uint32_t kDone = 0xffffffff;
inline constexpr std::uint32_t kGssNode = 0xfffffffe;  // a frame that represents several: record `state`, of `regs` frames

// Whether a configuration came before. Looked up only once there were many: in an ambiguous grammar many paths lead to
// the same few configurations, and each must be gone once.
class VisitedSet {
public:
    bool before(const Config& c) { return ++count_ > kFew && !add(c); }

private:
    static constexpr std::size_t kFew = 64;
    static constexpr Config kFree{kGssNode, 0, 0, 0};  // no configuration has this node

    // False: it was there.
    bool add(const Config& c) {
        if (2 * held_ >= slots_.size()) grow();
        Config& at = slot(c);
        if (at == c) return false;
        at = c;
        ++held_;
        return true;
    }
    Config& slot(const Config& c) {
        std::size_t at = ConfigHash{}(c) & (slots_.size() - 1);
        while (slots_[at] != kFree && slots_[at] != c) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    void grow() {
        const std::vector<Config> before = std::exchange(slots_, std::vector<Config>(slots_.empty() ? kFew : 4 * slots_.size(), kFree));
        for (const Config& c : before)
            if (c != kFree) slot(c) = c;
    }

    std::size_t count_ = 0, held_ = 0;
    std::vector<Config> slots_;  // a table of a power of two
};

inline constexpr std::uint32_t kUnknownCost = 0xfffffffe;
inline constexpr std::uint32_t kNoCounters = 0xffffffff;  // the counters of an item that may not come
inline constexpr std::uint32_t kAllTexts = 0xffffffff;    // instead of a set of texts: each text matters
inline constexpr std::uint32_t kBottom = 0;               // the frame below all frames

// What an object has before it, from an entry on.
struct EntrySuffixCost {
    std::uint32_t cost = kInfinite;                  // of the entry: key, colon and value; kInfinite: it cannot be completed
    std::uint32_t next_required = 0, next_live = 0;  // the first such property from here on
    std::uint32_t required_cost = 0;                 // of all required ones from here on, each with a comma
};

// A grammar node with what the analysis found out about it.
struct AnalysedNode : Node {
    std::uint32_t cost = kInfinite;  // bytes of a shortest text; kInfinite: there is none
    bool nullable = false;
    ByteSet first, follow;
    ByteSet alphabet;                              // object, array: what its configurations can continue with, but for names
    std::uint32_t id = 0;                          // names it in the memo of runs, across grammars
    bool direct = false;                           // object, array: the register is no record but position, bits or a count
    bool bounded = false;                          // object: number of entries or demands; array: counters
    bool misses = false;                           // object: marks count for properties that do not occur
    std::uint32_t record_words = 0;                // of a record
    List<std::uint32_t> open_leaf;                 // object: the leaf of each class of open keys
    List<std::vector<std::uint32_t>> item_leaves;  // unique array: leaves by position, those of the rest last
    std::shared_ptr<const ItemCosts> item_plan;    // array with counters
    List<EntrySuffixCost> ahead;                   // object: by entry, and one more
    List<std::uint32_t> tail_cost;                 // sequence: parts from i on; array: items of the prefix before i

    bool is_live(std::uint32_t entry) const { return ahead[entry].cost != kInfinite; }  // it can be completed
};

// Leaves that the machines of one store share: most grammars hold the same few.
class SharedLeaves {
public:
    // The one that equals a finished leaf; it stays where it is.
    const AnalysedNode* keep(AnalysedNode&& leaf);
    std::size_t bytes() const { return kept_.size() * sizeof(AnalysedNode) + ids_.bytes(); }

private:
    std::deque<AnalysedNode> kept_;
    InternTable ids_;
};

// The components of a machine, by number.
class AnalysedNodes {
public:
    // `leaves`: where leaves are kept, longer than this; null: all are its own.
    explicit AnalysedNodes(std::vector<AnalysedNode>&& all, SharedLeaves* leaves = nullptr);
    const AnalysedNode& operator[](std::uint32_t number) const { return *at_[number]; }
    std::size_t size() const { return at_.size(); }
    // Sets the ids of the nodes that it owns: f(component).
    template <class F>
    void name(F&& f) {
        for (AnalysedNode& c : own_) c.id = f(c);
    }

private:
    std::vector<AnalysedNode> own_;
    std::vector<const AnalysedNode*> at_;
};

// Checks the program (left recursion), finds what can be completed and at what cost. Throws Error.
std::vector<AnalysedNode> analyse(Program&& program, ExprPool& pool);

// The components of a machine that is made late (composite_language.h), and which of them is the root.
struct AnalysedGrammar {
    std::vector<AnalysedNode> components;
    std::uint32_t root;
};

struct MachineLimits {
    std::size_t max_heads = 4096;        // configurations followed at once
    std::size_t max_frames = 8'000'000;  // different stacks seen
    std::size_t max_parents = 1 << 16;   // frames that one may represent
};

// What else a step found out about a configuration that is on the bottom frame.
struct Outcome {
    bool popped = false;             // the component has ended: the frame below would have to take the byte
    bool context_dependent = false;  // it depends on text that a walk from here cannot know: step from the real configuration instead
};

// What finds stacks, records and texts, and what stacks cost.
struct MachineTables {
    DroppableIndex frames, records, read_texts;
    std::vector<std::uint32_t> costs;  // by frame; kUnknownCost: not computed yet

    void forget() {
        for (DroppableIndex* one : {&frames, &records, &read_texts}) one->forget();
        costs = {};
    }
};

class Machine {
public:
    // `tables` outlive this; they may be emptied between two calls.
    Machine(AnalysedNodes components, std::uint32_t root, ExprPool& pool, MachineTables& tables, MachineLimits limits = {});

    void start(Configs& out);
    // Adds what `config` becomes by `byte`.
    void step(const Config& config, std::uint8_t byte, Configs& out, Outcome& outcome);
    Outcome step_all(const Configs& from, std::uint8_t byte, Configs& out);
    // By a byte, in place, where it only stays in its leaf, of which nothing is noted; false: more happens, nothing has changed.
    bool step_within(Config& c, std::uint8_t byte) {
        if (!is_leaf(c) || (c.regs != ReadTexts::kUnknown && c.regs != ReadTexts::kOther)) return false;
        const ExprId next = pool_.dfa.derivative(c.state, byte);
        if (next <= kEmpty || (pool_[c.state].nullable && components_[c.node].follow.contains(byte))) return false;
        c.state = next;
        return true;
    }
    // Whether `step_inside` may be called (not where paths that meet are joined at each byte), and is worth it: for a leaf
    // alone that is not lean, `step_within` is as quick.
    bool may_step_inside(const Configs& configs) const {
        return !uses_gss_ && (configs.size() != 1 || !is_leaf(configs[0]) || pool_[configs[0].state].rowless);
    }
    // Only where `may_step_inside`: by several bytes where every configuration continues inside a leaf or a fixed name, or ends
    // for good; false: more may happen, nothing has changed.
    bool step_inside(Configs& configs, std::string_view text);
    // Forgets the text that key and item leaves have read if no shortest completion, now or within `further` bytes, could
    // collide with it. Costs do not change. Later steps record no text for these configurations.
    void settle(Configs& configs, std::uint32_t further);
    // Whether the cost of a configuration may exceed the length of its completion, because it does not know the text read.
    bool recalls() const { return recalls_; }
    // Adds what continues once the component above `frame` has ended; `read_text`: what it read, where that is known.
    void resume(std::uint32_t frame, Configs& out, std::uint32_t read_text = ReadTexts::kUnknown);
    // The same above many frames, joined; for grammars that call themselves.
    void resume_all(const std::vector<std::uint32_t>& frames, Configs& out);
    std::uint32_t size() const { return static_cast<std::uint32_t>(components_.size()); }
    bool forks() const { return uses_gss_; }
    // The number of a frame, and the frame; those that one represents.
    std::uint32_t push(const Config& frame);
    const Config& frame(std::uint32_t id) const { return frames_[id]; }
    void members(std::uint32_t frame, std::vector<std::uint32_t>& out);
    bool accepting(const Config& config);
    // Bytes of the shortest text that completes it.
    std::uint32_t cost(const Config& config);
    // The least cost of the set; `out`: those that have it, and of them what is needed for it.
    std::uint32_t cheapest(const Configs& configs, Configs& out);
    // The smallest byte that begins a shortest completion of the set; -1 if it is complete already.
    int best_byte(const Configs& configs);

    const AnalysedNode& component(std::uint32_t node) const { return components_[node]; }
    // Gives its components, if they are its own, their names in the memo of runs, once: f(component) -> id.
    template <class F>
    void name(F&& f) {
        if (std::exchange(named_, true)) return;
        components_.name(f);
    }
    // Whether it is where white space changes nothing but that values or keys may begin after it.
    bool is_spaced(const Config& c) const;
    // Adds the successors by white space of a configuration before a key, value or item, except itself.
    void after_space(const Config& c, Configs& out);
    // Whether an object or array that is before its first entry or after one may end there.
    bool may_close(const Config& c);
    // Whether an object may have this entry next.
    bool may_open(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    // The same of many with fixed names; good until something is cached.
    class AllowedKeys {
    public:
        AllowedKeys(Machine& machine, std::uint32_t node, std::uint32_t regs);
        AllowedKeys(const AllowedKeys&) = delete;  // it points into itself
        bool operator()(std::uint32_t label) const {
            if (k_.bounded) return machine_.may_open(node_, regs_, label);
            if (!k_.is_live(label)) return false;
            return k_.ordered ? label >= first_ && label <= last_ : !(bits_[label / 32] >> (label % 32) & 1);
        }

    private:
        Machine& machine_;
        const AnalysedNode& k_;
        std::uint32_t node_, regs_, first_ = 0, last_ = 0;
        const std::uint32_t* bits_ = nullptr;  // entries that came
    };
    // Where an object is after the value of an entry, if what its entries hold does not matter to it.
    Config after_value(const Config& c, std::uint32_t label);
    // The bytes that a configuration can continue with, and perhaps more.
    ByteSet begins(const Config& c);
    bool is_leaf(const Config& c) const { return c.node != kDone && components_[c.node].kind == NodeKind::leaf; }
    bool is_sequence(const Config& c) const { return c.node != kDone && components_[c.node].kind == NodeKind::sequence; }
    std::size_t frame_count() const { return frames_.size(); }
    // Stacks, records and bytes of texts that were met on the way; they only grow.
    std::size_t learned() const { return frames_.size() + records_.size() + read_texts_.size() + texts_.size() + used_.size(); }
    ExprPool& pool() { return pool_; }

private:
    static constexpr std::size_t kMostKept = std::size_t{1} << 16;  // entries of a table that is found anew when it was emptied
    // Adds what is at the first byte of a node, or (a sequence) of its part number `state`.
    void enter(Config start, Configs& out);
    // The same of a value or item after the byte of a step.
    void enter_after(std::uint32_t node, const Config& frame, Configs& out) {
        if (defers_) deferred_.emplace_back(node, push(frame));
        else enter({node, 0, 0, push(frame)}, out);
    }
    void leaf_becomes(const Config& c, ExprId state, std::string_view read, Configs& out);
    ExprId leaf_after(const Config& c, std::string_view text);
    void resume_entry(std::uint32_t frame, Configs& out, std::uint32_t read_text);

    // gss.cpp
    void prepare_forks();
    std::uint32_t fork(const std::vector<std::uint32_t>& frames, unsigned depth = 0);
    void end(std::uint32_t frame, std::uint32_t read_text, Configs& out);
    void wait(std::uint32_t node, std::uint32_t frame, int byte);
    void wait_part(std::uint32_t node, std::uint32_t part, std::uint32_t frame, int byte);
    void wait_sequences(int byte);
    void gss_close(int byte, Configs& out);  // `byte`: only what can begin with it; -1: everything
    void join(Configs& configs);
    Outcome gss_step(const Configs& from, std::uint8_t byte, Configs& out);
    bool may_end_at(std::uint32_t frame);
    void enter_rest(const Config& c, Configs& out);
    bool may_skip_rest(const Config& c) const;

    // object.cpp
    void step_object(const Config& c, std::uint8_t byte, Configs& out, Configs& todo, Outcome& outcome);
    void begin_value(const Config& c, std::uint32_t label, Configs& out);
    void step_colon(const Config& c, std::uint8_t byte, Configs& out);
    void step_key(const Config& c, ExprId state, std::uint8_t byte, Configs& out);
    bool name_goes_on(const Config& c, ExprId state, ExprId next);
    void enter_keys(const Config& c, Configs& out);
    void enter_keys_anew(const Config& c, Configs& out);
    void enter_value(const Config& c, std::uint32_t label, Configs& out);
    std::uint32_t after_entry(const AnalysedNode& k, std::uint32_t regs, const Entry& entry, std::uint64_t marks);
    std::uint32_t after_key(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label, std::uint32_t read_text);
    ExprId open_keys(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label);
    bool seen(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label);
    std::uint32_t position(const AnalysedNode& k, std::uint32_t regs);
    bool may_open_some(std::uint32_t node, std::uint32_t regs);
    ExprId keys(std::uint32_t node);
    bool may_continue(std::uint32_t node, std::uint32_t regs);
    bool may_close(const AnalysedNode& k, std::uint32_t regs);
    std::uint32_t watched_keys(const Config& named, std::uint32_t further);
    struct Cover {  // demands that entries can meet: all at once; by several entries each; perhaps
        std::uint64_t sure = 0, twice = 0, possible = 0;
    };
    Cover cover(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    std::optional<bool> can_complete(std::uint32_t node, std::uint32_t regs, std::uint32_t label, std::uint64_t marks);
    std::optional<bool> can_complete_by(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    LabelDistance best_label(std::uint32_t node, std::uint32_t regs, ExprId state);
    std::uint32_t value_and_rest(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    std::uint32_t key_and_rest(std::uint32_t node, std::uint32_t regs);
    std::uint32_t entries_cost(std::uint32_t node, std::uint32_t regs);
    std::uint32_t plan_entries(std::uint32_t node, std::uint32_t regs);
    struct Offer {                         // the entries that may still come, of an object without demands; each cost with a comma
        std::uint32_t need = 0, room = 0;  // how many must come, and may come
        std::uint32_t required = 0;        // how many of them by name
        std::uint64_t required_cost = 0;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> others;  // cost, label; open ones more than once
    };
    Offer offer(std::uint32_t node, std::uint32_t regs);
    std::uint32_t rest_after(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    void find_rests(const AnalysedNode& k, std::uint32_t from, Offer&& all);
    // `left`: entries that must come besides the one at hand; `space`: that may.
    void find_rests_in_any_order(const AnalysedNode& k, std::uint32_t from, Offer& all, std::uint32_t left, std::uint32_t space);
    void find_rests_in_order(const AnalysedNode& k, std::uint32_t from, const Offer& all, std::uint32_t left, std::uint32_t space);
    LabelDistance find_best_label(std::uint32_t node, std::uint32_t regs, ExprId state);
    std::uint32_t object_cost(const Config& c);
    int object_best_byte(const Config& c, Configs& instead);

    // array.cpp
    void step_array(const Config& c, std::uint8_t byte, Configs& out, Outcome& outcome);
    void enter_item(const Config& c, Configs& out);
    std::uint32_t after_item(const AnalysedNode& k, std::uint32_t regs, std::uint64_t marks);
    std::uint32_t used_with(std::uint32_t set, std::uint32_t read_text);
    std::uint32_t after_unique(const AnalysedNode& k, std::uint32_t regs, std::uint32_t read_text);
    std::uint32_t items_so_far(const AnalysedNode& k, std::uint32_t regs);
    const std::vector<std::uint32_t>& leaves_at(const AnalysedNode& k, std::uint32_t regs);
    std::uint32_t watched_items(const Config& named, std::uint32_t further);
    ExprId unused(const AnalysedNode& k, std::uint32_t regs, std::uint32_t leaf);
    bool may_have_item(const AnalysedNode& k, std::uint32_t regs);
    bool may_end(const AnalysedNode& k, std::uint32_t regs);
    std::uint32_t items_cost(const AnalysedNode& k, std::uint32_t regs);
    std::uint32_t item_and_rest(const AnalysedNode& k, std::uint32_t regs);
    std::uint32_t array_cost(const Config& c);
    int array_best_byte(const Config& c, Configs& instead);

    bool matters(std::uint32_t frame, std::uint32_t read_text, std::uint32_t further);
    std::uint32_t value_cost(const Readings& value) const;
    std::uint32_t local_cost(const Config& c);
    std::uint32_t frame_cost(std::uint32_t id);

    AnalysedNodes components_;
    std::uint32_t root_;
    bool recalls_ = false, named_ = false;
    ExprPool& pool_;
    MachineLimits limits_;
    std::vector<ExprId> keys_;  // by node: all fixed names of the object, each ending in the label of its entry; kUnknownExpr: not made yet
    MachineTables& tables_;
    ArenaVector<Config> frames_;
    CounterRecords records_;
    ReadTexts read_texts_;
    UsedValues texts_;
    std::unordered_map<std::uint64_t, std::uint32_t> used_;          // by set and read text: the set with that text
    std::unordered_map<std::uint64_t, std::uint32_t> entries_cost_;  // by node and register
    struct {
        std::uint32_t node = kDone, regs = 0;
        std::vector<std::uint32_t> costs;  // by label: of what is needed after that entry
    } rests_;                              // of the object that was looked at last
    struct {
        std::uint32_t node = kDone, regs = 0;
        Cover all;
        std::vector<std::uint64_t> sure;  // by label
    } cover_;                             // of the unordered object that was looked at last
    struct {
        std::uint32_t node = kDone, regs = 0;
        ExprId state = kNone;
        LabelDistance label{};
    } best_label_;                                              // the same
    std::unordered_map<std::uint32_t, std::uint32_t> watched_;  // by frame: the set of texts that matter, or kAllTexts
    KeyLengths key_lengths_;
    Configs todo_, entering_, inside_;
    Config keys_place_{kDone, 0, 0, 0};  // where keys were entered last, and as what
    Configs keys_entered_;
    bool uses_gss_ = false;  // the grammar calls itself in ways that meet: paths are followed together
    std::vector<std::uint32_t> topological_rank_, ranked_, worklist_;  // turns: a heap of ranks whose nodes wait
    std::vector<std::vector<std::uint32_t>> waiting_;                  // by rank: frames to enter the node above
    std::unordered_map<std::uint32_t, std::uint32_t> gss_node_ids_;    // by the record of what was to be forked
    unsigned factored_ = 0;
    bool defers_ = false;                                                    // values and items are entered when the step is done
    std::vector<std::pair<std::uint32_t, std::uint32_t>> deferred_;          // these: nodes, and the frames above which
    Configs sequences_;                                                      // frames of sequences to continue with
    struct GssScratch {                                                      // kept between steps, so that none has to ask for memory
        std::vector<std::pair<std::uint32_t, std::uint32_t>> before, after;  // frames to continue above, and what was read
        Configs waiting, entered;
        std::vector<std::uint32_t> frames;
    } gss_scratch_;
};

// States of objects and arrays: a phase, and what it needs.
// gap: where a key may come, and space before it; named: below the leaf of an open key; second: where an open key
// begins, but the one before it is not known.
enum class Phase : std::uint32_t { open, first, key, colon, value, after, comma, close, gap, named, second };
inline std::uint32_t phase_state(Phase phase, std::uint32_t rest = 0) {
    GUIDEWAY_DCHECK(rest >> 28 == 0);
    return static_cast<std::uint32_t>(phase) << 28 | rest;
}
inline Phase phase_of(std::uint32_t state) { return static_cast<Phase>(state >> 28); }
inline std::uint32_t rest_of(std::uint32_t state) { return state & 0x0fffffff; }
inline bool is_space(std::uint8_t b) { return b == ' ' || b == '\t' || b == '\n' || b == '\r'; }

// Punctuation: its length, its bytes.
inline std::uint32_t length(const std::string& text) { return static_cast<std::uint32_t>(text.size()); }
inline std::uint8_t byte_at(const std::string& text, std::uint32_t at) { return static_cast<std::uint8_t>(text[at]); }
inline bool takes(const std::string& text, std::uint32_t at, std::uint8_t b) { return byte_at(text, at) == b; }

}  // namespace guideway
