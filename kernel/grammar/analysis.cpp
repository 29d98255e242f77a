// The properties of grammar nodes: cost of a shortest text, emptiness, first and follow bytes. Left recursion is an error.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/grammar/composite_language.h"
#include "guideway/grammar/machine.h"
#include "guideway/regex/number_language.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxEntries = 1u << 20;  // a state has a phase (4 bits), an entry (20), and a position in the colon (8)

constexpr std::size_t kMaxCopied = 200'000;  // nodes in the machines of items of unique arrays
constexpr std::uint64_t kNodeWork = 20;
constexpr std::size_t kMaxInside = 16;  // nesting of unique arrays in each other in a grammar
constexpr std::size_t kMaxDeep = 100;   // the same in a text, if the grammar nests them recursively

// A program with recursively nested unique arrays. It is the source of the machines of their items: one for each level of a text.
struct Whole {
    IdVector<NodeId, Node> nodes;
    IdVector<NodeId, std::uint32_t> costs;  // length of the shortest text of each node
    std::uint32_t digits = 0;               // maximum number of digits that its numbers distinguish
};

// Thrown when unique arrays are nested recursively.
struct Endless {};

// Expressions of the arrays and objects that are items of unique arrays, by their numbers in the whole program.
struct Composites {
    using Nodes = std::vector<NodeId>;  // the arrays and objects that an item can be, in order
    std::map<Nodes, ExprId> known;
    std::vector<Nodes> open;  // those under construction
    std::size_t copied = 0;
    std::shared_ptr<const Whole> whole;  // not null: machines are constructed when a text needs them
    std::size_t depth = 0;               // nesting of such machines
};

AnalysedGrammar analyse_part(const std::shared_ptr<const Whole>& whole, const Composites::Nodes& roots, ExprPool& pool, std::size_t depth);

// A first-in, first-out queue of nodes to process. A node that is in the queue is not added again.
class Queue {
public:
    explicit Queue(std::size_t nodes) : waiting_(nodes), queued_(nodes, 0) {}
    bool empty() const { return count_ == 0; }
    void add(NodeId node) {
        if (std::exchange(queued_[node], 1)) return;
        waiting_[(first_ + count_++) % waiting_.size()] = node;
    }
    NodeId take() {
        const NodeId node = waiting_[first_];
        first_ = (first_ + 1) % waiting_.size();
        --count_;
        queued_[node] = 0;
        return node;
    }

private:
    std::vector<NodeId> waiting_;
    IdVector<NodeId, std::uint8_t> queued_;
    std::size_t first_ = 0, count_ = 0;
};

// The bytes that can follow the value of an entry or an item.
ByteSet after_value(const Punctuation& punctuation) {
    ByteSet made = punctuation.space ? kSpace : ByteSet{};
    made.insert(byte_at(punctuation.comma, 0));
    made.insert(byte_at(punctuation.close, 0));
    return made;
}

// Adds a root: an alternative of the first `count` nodes.
void add_root(Program& program, std::size_t count) {
    program.root = program.nodes.next();
    Node& any = program.nodes.emplace_back();
    any.kind = NodeKind::alternative;
    for (std::uint32_t i = 0; i < count; ++i) any.parts.push_back(NodeId{i});
}

class Analysis {
public:
    // `numbers`: of the nodes in the whole program; empty: this is the whole program.
    Analysis(Program&& program, ExprPool& pool, Composites& composites, IdVector<NodeId, NodeId> numbers = {})
        : pool_(pool), texts_(pool), key_lengths_(pool, texts_), composites_(composites), numbers_(std::move(numbers)),
          root_(program.root) {
        std::size_t open = 0;  // classes of open keys, each of which becomes a leaf
        for (const Node& node : program.nodes) open += node.entries.size() - node.fixed;
        nodes_.reserve(program.nodes.size() + open);
        for (Node& node : program.nodes) {
            AnalysedNode& c = nodes_.emplace_back();
            static_cast<Node&>(c) = std::move(node);
            if (c.kind == NodeKind::number) as_leaf(c);
        }
        find_users();
    }

    IdVector<NodeId, AnalysedNode> run() {
        for (const NodeId i : nodes_.ids())  // without the nodes that are added
            if (nodes_[i].kind == NodeKind::array) prepare_unique(i);
        settle_costs();
        settle([&](AnalysedNode& c) {
            const bool before = c.nullable;
            c.nullable = before || nullable(c);
            return c.nullable != before;
        });
        refuse_left_recursion();
        settle([&](AnalysedNode& c) {
            const ByteSet before = c.first;
            first_into(c, c.first);
            return !(c.first == before);
        });
        follow();
        if (nodes_[root_].cost == kInfinite) throw Error(ErrorKind::unsatisfiable, "no text can fit the constraint", raw(blame()));
        for (const NodeId i : nodes_.ids()) {
            at_node(raw(i), [&] {
                finish(nodes_[i], i);
                if (nodes_[i].kind == NodeKind::object) add_open_leaves(i);
            });
        }
        for (AnalysedNode& c : nodes_) c.alphabet = alphabet(c);
        return std::move(nodes_);
    }

private:
    // The bytes that configurations of a component can continue with, except those inside a fixed key: punctuation, and the first
    // bytes of keys and values.
    ByteSet alphabet(const AnalysedNode& c) const {
        ByteSet made;
        if (c.kind != NodeKind::object && c.kind != NodeKind::array) return ByteSet::range(0, 255);
        const Punctuation& punctuation = *c.punctuation;
        for (const std::string* text : {&punctuation.open, &punctuation.comma, &punctuation.colon, &punctuation.close})
            made |= ByteSet::of(*text);
        if (punctuation.space) made |= kSpace;
        auto begin = [&](const Readings& value) {
            for (const Reading& r : value) made |= nodes_[r.node].first;
        };
        for (const Entry& e : c.entries) {
            if (pool_.emptiness.is_nonempty(e.key)) made |= pool_.dfa.first(e.key);
            begin(e.value);
        }
        for (const Readings& v : c.prefix) begin(v);
        begin(c.rest);
        return made;
    }

    void as_leaf(AnalysedNode& c) {
        c.expr = at_node(raw(number_of(c)), [&] { return pool_.number_language().start(c.cells, c.number); });
        c.kind = NodeKind::leaf;
        c.cells = {};
    }

    // The leaves that an item of a unique array can be. All arrays and objects become one leaf: with a
    // separate machine for each, many nearly equal ones would multiply the states.
    std::vector<NodeId> item_leaves(const Readings value, NodeId array) {
        std::vector<NodeId> leaves, composites, work;
        IdVector<NodeId, std::uint8_t> seen(nodes_.size(), 0);
        for (const Reading& r : value) work.push_back(r.node);
        while (!work.empty()) {
            const NodeId at = work.back();
            work.pop_back();
            if (seen[at]) continue;
            seen[at] = 1;
            const AnalysedNode& c = nodes_[at];
            if (c.kind == NodeKind::alternative) work.insert(work.end(), c.parts.begin(), c.parts.end());
            else if (c.kind == NodeKind::leaf && !pool_[c.expr].nullable) leaves.push_back(at);
            else if (c.kind == NodeKind::object || c.kind == NodeKind::array) composites.push_back(at);
            else throw Error(ErrorKind::unsupported, "items that must all be different can only be JSON values", raw(array));
        }
        if (!composites.empty()) add_composite(std::move(composites), array, leaves);
        return leaves;
    }

    // Adds a leaf of arrays and objects with a separate machine. At its end, its text is compared as a whole.
    void add_composite(Composites::Nodes&& composites, NodeId array, std::vector<NodeId>& leaves) {
        AnalysedNode leaf;
        leaf.expr = composite(std::move(composites), array);
        if (leaf.expr == kNone) return;
        leaf.follow = after_value(*nodes_[array].punctuation);
        leaves.push_back(nodes_.next());
        nodes_.push_back(std::move(leaf));
    }

    // An expression of arrays and objects. If they are nested recursively, their machines are constructed later.
    ExprId composite(Composites::Nodes&& old, NodeId array) {
        const bool first = !composites_.whole && composites_.open.empty();
        if (!first) return composite_at(std::move(old), array);
        auto kept = old;
        try {
            return composite_at(std::move(old), array);
        } catch (const Endless&) {
            composites_.open.clear();
            find_whole(array);
        }
        return composite_at(std::move(kept), array);
    }

    // Sets `whole`, the source of the machines that are constructed when a text needs them. The cost of an array with a minimum of two
    // different items needs its shortest items now, so these cannot be arrays or objects.
    void find_whole(NodeId array) {
        auto made = std::make_shared<Whole>();
        std::vector<NodeId> early;  // arrays whose `item_leaves` were set only for this
        IdVector<NodeId, std::uint32_t> costs(nodes_.size());
        IdVector<NodeId, std::uint8_t> unique(nodes_.size());
        for (const NodeId i : nodes_.ids()) {
            costs[i] = nodes_[i].cost;
            unique[i] = nodes_[i].unique;
            if (!unique[i] || nodes_[i].minimum < 2) nodes_[i].unique = false;
            else if (has_composite_items(nodes_[i]))
                throw Error(ErrorKind::unsupported,
                            "at least two different items, where arrays of such items may hold each other without end", raw(array));
            else if (nodes_[i].item_leaves.empty()) {
                auto leaves = item_leaves(nodes_[i].rest, i);
                nodes_[i].item_leaves.push_back(std::move(leaves));
                early.push_back(i);
            }
        }
        settle_costs();
        for (const NodeId i : nodes_.ids()) {
            AnalysedNode& c = nodes_[i];
            c.unique = unique[i] != 0;
            made->costs.push_back(c.cost);
            c.cost = costs[i];
            made->nodes.push_back(c);
            if (c.kind == NodeKind::leaf && pool_[c.expr].op == Op::number)
                made->digits = std::max(made->digits, pool_.number_language().digits(pool_[c.expr].number_state()));
        }
        for (const NodeId i : early) nodes_[i].item_leaves = {};
        composites_.whole = std::move(made);
    }

    // Whether an item of an array can be an array or object.
    bool has_composite_items(const AnalysedNode& c) const {
        IdVector<NodeId, std::uint8_t> seen(nodes_.size(), 0);
        std::vector<NodeId> work;
        for (const Reading& r : c.rest) work.push_back(r.node);
        for (const Readings& v : c.prefix)
            for (const Reading& r : v) work.push_back(r.node);
        while (!work.empty()) {
            const NodeId at = work.back();
            work.pop_back();
            if (std::exchange(seen[at], 1)) continue;
            if (nodes_[at].kind == NodeKind::object || nodes_[at].kind == NodeKind::array) return true;
            work.insert(work.end(), nodes_[at].parts.begin(), nodes_[at].parts.end());
        }
        return false;
    }

    ExprId late_composite(const Composites::Nodes& roots) {
        std::uint32_t shortest = kInfinite;
        ByteSet first;
        for (const NodeId i : roots) {
            if (composites_.whole->costs[i] == kInfinite) continue;
            shortest = std::min(shortest, composites_.whole->costs[i]);
            first.insert(static_cast<std::uint8_t>(composites_.whole->nodes[i].punctuation->open[0]));
        }
        if (shortest == kInfinite) return kNone;
        auto build = [whole = composites_.whole, roots, &pool = pool_, depth = composites_.depth + 1] {
            return analyse_part(whole, roots, pool, depth);
        };
        return CompositeLanguage::of(pool_).later(std::move(build), shortest, first, composites_.whole->digits);
    }

    ExprId composite_at(Composites::Nodes&& old, NodeId array) {
        auto number_in_all = [&](NodeId i) { return numbers_.empty() ? i : numbers_[i]; };
        Composites::Nodes key;
        for (const NodeId node : old) key.push_back(number_in_all(node));
        std::sort(key.begin(), key.end());
        if (const auto known = composites_.known.find(key); known != composites_.known.end()) return known->second;
        if (composites_.whole) return composites_.known[key] = late_composite(key);
        if (composites_.open.size() == kMaxInside ||
            std::find(composites_.open.begin(), composites_.open.end(), key) != composites_.open.end())
            throw Endless();
        std::unordered_map<NodeId, NodeId> moved;
        for (std::uint32_t i = 0; i < old.size(); ++i) moved.emplace(old[i], NodeId{i});
        const std::size_t roots = old.size();
        for (std::size_t i = 0; i < old.size(); ++i)
            each_child(nodes_[old[i]], [&](NodeId child) {
                if (moved.emplace(child, next_id<NodeId>(old)).second) old.push_back(child);
            });
        composites_.copied += old.size();
        if (composites_.copied > kMaxCopied)
            throw over_limit(kMaxCopied, "grammar nodes in items that must be unique", "use a smaller schema for the items", raw(array));
        Program program;
        IdVector<NodeId, NodeId> numbers;
        for (const NodeId i : old) {
            numbers.push_back(number_in_all(i));
            program.nodes.push_back(nodes_[i]);
            each_child(program.nodes.back(), [&](NodeId& child) { child = moved.at(child); });
        }
        if (roots > 1) {
            numbers.push_back(number_in_all(array));  // the node in its errors
            add_root(program, roots);
        }
        composites_.open.push_back(key);
        ExprId made = kNone;
        try {
            const NodeId root = program.root;
            made = CompositeLanguage::of(pool_).start(Analysis(std::move(program), pool_, composites_, std::move(numbers)).run(), root);
        } catch (const Error& error) {
            if (error.kind != ErrorKind::unsatisfiable) throw Error(error.kind, error.what(), raw(array));
        }
        composites_.open.pop_back();
        return composites_.known[key] = made;
    }

    void prepare_unique(NodeId number) {
        const AnalysedNode& c = nodes_[number];
        if (!c.unique || c.maximum <= 1) {
            nodes_[number].unique = false;
            return;
        }
        if (!c.counts.empty())
            throw Error(ErrorKind::unsupported, "items that must all be different and some of which are counted", raw(number));
        if (!c.prefix.empty() && c.minimum > 1)
            throw Error(ErrorKind::unsupported, "a minimum of items that differ by position and must all be different", raw(number));
        List<Readings> values = c.prefix;
        values.push_back(c.rest);
        for (const Readings& value : values) {
            auto leaves = item_leaves(value, number);
            nodes_[number].item_leaves.push_back(std::move(leaves));
        }
    }

    // The cost of the shortest different items of a unique array.
    std::uint32_t unique_cost(const AnalysedNode& c) {
        if (c.minimum < 2) {
            std::uint32_t least = c.minimum ? kInfinite : 0;
            for (const NodeId leaf : c.item_leaves[0]) least = std::min(least, pool_.emptiness.shortest(nodes_[leaf].expr));
            return c.minimum ? least : 0;
        }
        std::vector<ExprId> classes;
        for (const NodeId leaf : c.item_leaves[0]) classes.push_back(nodes_[leaf].expr);
        const auto lengths = key_lengths_.of(classes, UsedValues::kEmptySet, c.minimum);
        if (lengths.size() < c.minimum) return kInfinite;
        std::uint32_t total = multiply(length(c.punctuation->comma), c.minimum - (c.minimum ? 1 : 0));
        for (std::uint32_t i = 0; i < c.minimum; ++i) total = sum(total, lengths[i]);
        return total;
    }

    ItemCosts item_plan(const AnalysedNode& c) const {
        return ItemCosts(c, length(c.punctuation->comma), number_of(c), pool_.fuel(), [&](std::uint32_t i) {
            std::vector<ItemCosts::Option> options;
            for (const Reading& r : i < c.prefix.size() ? c.prefix[i] : c.rest)
                options.push_back({static_cast<std::uint32_t>(r.marks), nodes_[r.node].cost});
            return options;
        });
    }

    // The nodes that refer to a node are in `users_`, from users_from_[node] to users_from_[node + 1].
    void find_users() {
        users_from_.assign(nodes_.size() + 1, 0);
        for (const AnalysedNode& c : nodes_) each_child(c, [&](NodeId child) { ++users_from_[raw(child)]; });
        std::uint32_t total = 0;
        for (std::uint32_t& from : users_from_) from = total += from;
        users_.resize(total);
        for (const NodeId i : nodes_.ids_backwards()) each_child(nodes_[i], [&](NodeId child) { users_[--users_from_[raw(child)]] = i; });
    }

    // Computes a fixed point: applies `change` to all nodes, and again to the users of each changed node.
    template <class F>
    void settle(F&& change) {
        Queue work(nodes_.size());
        for (const NodeId i : nodes_.ids_backwards()) work.add(i);
        while (!work.empty()) {
            const NodeId i = work.take();
            pool_.fuel().spend(kNodeWork + nodes_[i].entries.size() + nodes_[i].parts.size());
            if (!at_node(raw(i), [&] { return change(nodes_[i]); }) || raw(i) + 1 >= users_from_.size())
                continue;  // added nodes have no users
            for (std::uint32_t at = users_from_[raw(i)]; at < users_from_[raw(i) + 1]; ++at) work.add(users_[at]);
        }
    }

    void settle_costs() {
        settle([&](AnalysedNode& c) {
            const std::uint32_t before = std::exchange(c.cost, std::min(c.cost, cost(c)));
            return c.cost != before;
        });
    }

    std::uint32_t value_cost(const Readings& value) const { return least_cost(nodes_, value); }

    std::uint32_t entry_cost(const AnalysedNode& c, const Entry& e) {
        return sum(sum(pool_.emptiness.shortest(e.key), length(c.punctuation->colon)), value_cost(e.value));
    }

    std::uint32_t item_cost(const AnalysedNode& c, std::uint32_t i) const { return value_cost(i < c.prefix.size() ? c.prefix[i] : c.rest); }

    std::uint32_t cost(AnalysedNode& c) {
        std::uint32_t total = 0;
        switch (c.kind) {
            case NodeKind::leaf: return pool_.emptiness.shortest(c.expr);
            case NodeKind::number: return kInfinite;  // not used: `as_leaf`
            case NodeKind::sequence:
                for (const NodeId p : c.parts) total = sum(total, nodes_[p].cost);
                return total;
            case NodeKind::alternative:
                total = kInfinite;
                for (const NodeId p : c.parts) total = std::min(total, nodes_[p].cost);
                return total;
            case NodeKind::object: {
                if (bounded(c)) {
                    total = entries_cost(c);
                    if (total != kInfinite && total) total -= length(c.punctuation->comma);
                    break;
                }
                std::uint32_t count = 0;
                for (const Entry& e : c.entries)
                    if (e.required) {
                        total = sum(total, entry_cost(c, e));
                        if (count++) total = sum(total, length(c.punctuation->comma));
                    }
                break;
            }
            case NodeKind::array: {
                if (c.minimum > c.maximum) return kInfinite;
                if (c.unique || !c.counts.empty()) {
                    total = c.unique ? unique_cost(c) : item_plan(c).cost(ItemCosts::Point(1 + c.counts.size(), 0));
                    if (!c.unique && total != kInfinite && total) total -= length(c.punctuation->comma);
                    break;
                }
                const auto known = static_cast<std::uint32_t>(std::min<std::size_t>(c.minimum, c.prefix.size()));
                for (std::uint32_t i = 0; i < known; ++i) total = sum(total, item_cost(c, i));
                if (c.minimum > known) total = sum(total, multiply(item_cost(c, known), c.minimum - known));
                if (c.minimum > 1) total = sum(total, multiply(length(c.punctuation->comma), c.minimum - 1));
                break;
            }
        }
        return sum(total, length(c.punctuation->open) + length(c.punctuation->close));
    }

    static bool bounded(const AnalysedNode& c) { return c.minimum > 0 || c.maximum != kInfinite || c.demands; }

    // The cost of the entries of a bounded object, each with a comma.
    std::uint32_t entries_cost(const AnalysedNode& c) {
        std::vector<CostItem> items;
        std::uint32_t required = 0;
        std::uint64_t lost = 0;  // marks of properties that cannot occur
        auto add = [&](const Entry& e, std::uint32_t key) {
            CostItem item{e.required, e.missing, {}};
            const std::uint32_t around = sum(key, length(c.punctuation->colon) + length(c.punctuation->comma));
            for (const Reading& r : e.value)
                if (const std::uint32_t cost = sum(around, nodes_[r.node].cost); cost != kInfinite) item.ways.emplace_back(r.marks, cost);
            if (item.required || !item.ways.empty()) items.push_back(std::move(item));
            else lost |= e.missing;
        };
        for (std::uint32_t i = 0; i < c.fixed; ++i) {
            if (c.entries[i].required && entry_cost(c, c.entries[i]) == kInfinite) return kInfinite;
            if (const std::uint32_t key = pool_.emptiness.shortest(c.entries[i].key); key != kInfinite) add(c.entries[i], key);
            else lost |= c.entries[i].missing;
            required += c.entries[i].required;
        }
        const std::uint32_t most = most_needed(required, c.minimum, c.maximum, c.demands);
        for (std::uint32_t i = c.fixed; i < c.entries.size(); ++i) {
            if (most <= required || value_cost(c.entries[i].value) == kInfinite) continue;
            const auto lengths = key_lengths_.of({c.entries[i].key}, UsedValues::kEmptySet, most - required);
            for (std::size_t n = 0; n < std::min<std::size_t>(lengths.size(), most - required); ++n) add(c.entries[i], lengths[n]);
        }
        return plan(items, c.minimum, c.maximum, {c.demands, c.least, c.most, lost}, number_of(c), pool_.fuel());
    }

    NodeId number_of(const AnalysedNode& c) const { return NodeId{static_cast<std::uint32_t>(&c - nodes_.data())}; }

    bool nullable(const AnalysedNode& c) {
        const auto is = [&](NodeId p) { return nodes_[p].nullable; };
        switch (c.kind) {
            case NodeKind::leaf: return pool_[c.expr].nullable;
            case NodeKind::sequence: return std::all_of(c.parts.begin(), c.parts.end(), is);
            case NodeKind::alternative: return std::any_of(c.parts.begin(), c.parts.end(), is);
            default: return false;
        }
    }

    void refuse_left_recursion() {
        if (const auto node = visit_parts(nodes_, true, [](NodeId) {}))
            throw Error(ErrorKind::invalid, "it refers to itself before any text", raw(*node));
    }

    void first_into(const AnalysedNode& c, ByteSet& bytes) {
        if (c.kind == NodeKind::leaf) bytes |= pool_.dfa.first(c.expr);
        else if (c.kind == NodeKind::object || c.kind == NodeKind::array) bytes.insert(static_cast<std::uint8_t>(c.punctuation->open[0]));
        else
            for (std::size_t i = 0, end = leftmost_parts(nodes_, c); i < end; ++i) bytes |= nodes_[c.parts[i]].first;
    }

    void follow() {
        Queue work(nodes_.size());
        work.add(root_);
        IdVector<NodeId, std::uint8_t> reached(nodes_.size(), 0);
        reached[root_] = 1;
        if (!numbers_.empty()) nodes_[root_].follow = ByteSet::range(0, 255);  // the bytes after an item are not known here
        auto give = [&](NodeId child, const ByteSet& bytes) {
            const ByteSet before = nodes_[child].follow;
            nodes_[child].follow |= bytes;
            if (reached[child] && before == nodes_[child].follow) return;
            reached[child] = 1;
            work.add(child);
        };
        while (!work.empty()) {
            const NodeId i = work.take();
            const AnalysedNode& c = nodes_[i];
            if (c.kind == NodeKind::sequence) {
                ByteSet after = c.follow;
                for (std::size_t p = c.parts.size(); p-- > 0;) {
                    const NodeId child = c.parts[p];
                    give(child, after);
                    if (!nodes_[child].nullable) after = ByteSet{};
                    after |= nodes_[child].first;
                }
            } else if (c.kind == NodeKind::alternative) {
                const ByteSet after = c.follow;
                for (NodeId child : c.parts) give(child, after);
            } else {
                const ByteSet after = c.kind == NodeKind::leaf ? ByteSet{} : after_value(*c.punctuation);
                each_child(c, [&](NodeId child) { give(child, after); });
            }
        }
    }

    void finish(AnalysedNode& c, NodeId number) {
        if (c.kind == NodeKind::alternative) {
            List<NodeId> live;
            for (const NodeId p : c.parts)
                if (nodes_[p].cost != kInfinite) live.push_back(p);
            c.parts = std::move(live);
        }
        if (c.kind == NodeKind::sequence) {
            c.tail_cost.assign(c.parts.size() + 1, 0);
            for (std::size_t i = c.parts.size(); i-- > 0;) c.tail_cost[i] = sum(c.tail_cost[i + 1], nodes_[c.parts[i]].cost);
        }
        if (c.kind == NodeKind::object) finish_object(c, number);
        if (c.kind == NodeKind::array) finish_array(c);
    }

    void finish_object(AnalysedNode& c, NodeId number) {
        const auto n = static_cast<std::uint32_t>(c.entries.size());
        if (n > kMaxEntries) throw over_limit(kMaxEntries, "properties in one object", "use fewer properties", raw(number));
        c.ahead.assign(n + 1, {kInfinite, c.fixed, c.fixed, 0});
        for (std::uint32_t i = 0; i < n; ++i) {
            c.ahead[i].cost = entry_cost(c, c.entries[i]);
            if (pool_[c.entries[i].key].nullable) throw Error(ErrorKind::invalid, "an object key must not be empty text", raw(number));
        }
        c.bounded = bounded(c);
        for (const Entry& e : c.entries) c.has_absence_marks |= e.missing != 0;
        c.direct = !c.bounded && c.fixed == n && (c.ordered || c.fixed <= 32);
        // Count, two words of marks, two words for each class, then position or bits.
        c.record_words = 3 + 2 * (n - c.fixed) + (c.ordered ? 1 : (c.fixed + 31) / 32);
        for (std::uint32_t i = c.fixed; i-- > 0;) {
            EntrySuffixCost &at = c.ahead[i], &after = c.ahead[i + 1];
            const bool required = c.entries[i].required;
            at.next_required = required ? i : after.next_required;
            at.next_live = c.is_live(i) ? i : after.next_live;
            at.required_cost = required ? sum(after.required_cost, sum(at.cost, length(c.punctuation->comma))) : after.required_cost;
        }
    }

    // Adds a leaf for each class of open keys (machine.h).
    void add_open_leaves(NodeId number) {
        for (std::uint32_t i = nodes_[number].fixed; i < nodes_[number].entries.size(); ++i) {
            const AnalysedNode& object = nodes_[number];
            AnalysedNode leaf;
            leaf.kind = NodeKind::leaf;
            leaf.expr = object.entries[i].key;
            leaf.cost = pool_.emptiness.shortest(leaf.expr);
            leaf.follow = object.punctuation->space ? kSpace : ByteSet{};
            leaf.follow.insert(byte_at(object.punctuation->colon, 0));
            nodes_[number].open_leaf.push_back(nodes_.next());
            nodes_.push_back(std::move(leaf));
        }
    }

    // An array ends before the first item that cannot be completed: this becomes its maximum.
    void finish_array(AnalysedNode& c) {
        std::uint32_t usable = kInfinite;
        for (std::uint32_t i = 0; i < c.prefix.size() && usable == kInfinite; ++i)
            if (item_cost(c, i) == kInfinite) usable = i;
        const auto known = static_cast<std::uint32_t>(c.prefix.size());
        if (usable == kInfinite && item_cost(c, known) == kInfinite) usable = known;
        c.maximum = std::min(c.maximum, usable);
        c.direct = !c.unique && c.counts.empty();
        c.record_words = c.unique ? 3 : static_cast<std::uint32_t>(1 + c.counts.size());
        if (!c.counts.empty()) c.item_plan = std::make_shared<const ItemCosts>(item_plan(c));
        c.tail_cost.assign(known + 1, 0);
        for (std::uint32_t i = 0; i < known; ++i) c.tail_cost[i + 1] = sum(c.tail_cost[i], item_cost(c, i));
    }

    // The innermost node that causes emptiness of the root, for the error.
    NodeId blame() const {
        NodeId at = root_;
        for (std::size_t steps = 0; steps < nodes_.size(); ++steps) {
            const AnalysedNode& c = nodes_[at];
            std::optional<NodeId> down;
            auto look = [&](NodeId p) {
                if (!down && nodes_[p].cost == kInfinite) down = p;
            };
            if (c.kind == NodeKind::sequence || (c.kind == NodeKind::alternative && c.parts.size() == 1))
                for (const NodeId p : c.parts) look(p);
            auto look_into = [&](const Readings& value) {
                if (value_cost(value) == kInfinite)
                    for (const Reading& r : value) look(r.node);
            };
            for (const Entry& e : c.entries)
                if (e.required) look_into(e.value);
            if (c.kind == NodeKind::array) {
                for (std::size_t i = 0; i < std::min<std::size_t>(c.minimum, c.prefix.size()); ++i) look_into(c.prefix[i]);
                if (c.minimum > c.prefix.size()) look_into(c.rest);
            }
            if (!down) break;
            at = *down;
        }
        return at;
    }

    ExprPool& pool_;
    UsedValues texts_;
    KeyLengths key_lengths_;
    Composites& composites_;
    IdVector<NodeId, NodeId> numbers_;
    NodeId root_;
    IdVector<NodeId, AnalysedNode> nodes_;
    std::vector<std::uint32_t> users_from_;
    std::vector<NodeId> users_;
};

}  // namespace

namespace {

// The components of the machine of some arrays and objects. Machines of unique arrays in them are constructed later.
AnalysedGrammar analyse_part(const std::shared_ptr<const Whole>& whole, const Composites::Nodes& roots, ExprPool& pool, std::size_t depth) {
    if (depth > kMaxDeep) throw over_limit(kMaxDeep, "arrays of unique items nested in each other", "use uniqueItems at fewer levels");
    IdVector<NodeId, NodeId> numbers(roots.begin(), roots.end());
    std::unordered_map<NodeId, NodeId> moved;
    for (const NodeId i : numbers.ids()) moved.emplace(numbers[i], i);
    Program program;
    for (NodeId i{}; i != numbers.next(); i = program.nodes.next()) {  // numbers are added in the loop
        program.nodes.push_back(whole->nodes[numbers[i]]);
        each_child(program.nodes.back(), [&](NodeId& child) {
            const auto [place, fresh] = moved.emplace(child, numbers.next());
            if (fresh) numbers.push_back(child);
            child = place->second;
        });
    }
    numbers.push_back(roots[0]);
    add_root(program, roots.size());
    Composites composites;
    composites.whole = whole;
    composites.depth = depth;
    const NodeId root = program.root;
    return {Analysis(std::move(program), pool, composites, std::move(numbers)).run(), root};
}

}  // namespace

IdVector<NodeId, AnalysedNode> analyse(Program&& program, ExprPool& pool) {
    Composites composites;
    return Analysis(std::move(program), pool, composites).run();
}

}  // namespace guideway
