#include "guideway/grammar/composite_language.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/grammar/machine.h"
#include "guideway/grammar/used_values.h"
#include "guideway/regex/number_language.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxDigits = 400, kExponent = 24;
constexpr std::uint64_t kStateWork = 10;

// Converts a text to a grammar of its value, with a node for each of its parts. Iterative, since a text can be deeply nested.
class Copy {
public:
    Copy(std::string_view text, ExprPool& pool) : text_(text), pool_(pool) {}

    std::optional<Program> run() {
        do {
            if (at_ == text_.size()) return std::nullopt;
            const char c = text_[at_];
            if (is_space(static_cast<std::uint8_t>(c)) || c == ',' || c == ':') ++at_;
            else if (c == '{' || c == '[') open(c == '{');
            else if (open_.empty()) return std::nullopt;
            else if (c == '}' || c == ']') close();
            else scalar();
        } while (!open_.empty());
        return sound_ && at_ == text_.size() ? std::optional(std::move(made_)) : std::nullopt;
    }

private:
    struct Open {
        NodeId node;
        ExprId key;  // of an object: the key of the next value
    };

    void open(bool object) {
        ++at_;
        Node node;
        node.kind = object ? NodeKind::object : NodeKind::array;
        static const auto braces = std::make_shared<const Punctuation>(Punctuation{true, "{", ",", ":", "}"});
        static const auto brackets = std::make_shared<const Punctuation>(Punctuation{true, "[", ",", ":", "]"});
        node.punctuation = object ? braces : brackets;
        node.ordered = false;
        open_.push_back({attach(std::move(node)), kNone});
    }

    void close() {
        Node& node = made_.nodes[open_.back().node];
        sound_ &= open_.back().key == kNone && node.punctuation->close[0] == text_[at_++];
        node.fixed = static_cast<std::uint32_t>(node.entries.size());
        if (node.kind == NodeKind::array) node.minimum = node.maximum = static_cast<std::uint32_t>(node.prefix.size());
        open_.pop_back();
    }

    void scalar() {
        const std::size_t from = at_;
        if (text_[at_] == '"') {
            for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
            at_ = std::min(at_ + 1, text_.size());
        } else at_ = std::min(text_.find_first_of(",:]} \t\r\n", at_), text_.size());
        const ExprId spelled = UsedValues::spellings(pool_, text_.substr(from, at_ - from));
        Open& above = open_.back();
        if (made_.nodes[above.node].kind == NodeKind::object && above.key == kNone) {
            above.key = spelled;
            sound_ &= text_[from] == '"';
            return;
        }
        Node node;
        node.expr = spelled;
        attach(std::move(node));
    }

    NodeId attach(Node&& node) {
        const NodeId number = made_.nodes.next();
        made_.nodes.push_back(std::move(node));
        if (open_.empty()) return number;
        Open& above = open_.back();
        Node& parent = made_.nodes[above.node];
        if (parent.kind == NodeKind::array) parent.prefix.push_back({{0, number}});
        else if (above.key == kNone) sound_ = false;
        else parent.entries.push_back({std::exchange(above.key, kNone), true, {{0, number}}, 0});
        return number;
    }

    std::string_view text_;
    ExprPool& pool_;
    std::size_t at_ = 0;
    bool sound_ = true;
    Program made_;
    std::vector<Open> open_;
};

// Lower bounds of the numbers of values of grammar nodes. The bound of a node is computed from the nodes inside it, in passes over
// all nodes: each pass counts one more level of recursive nodes. If entries depend on each other by limits or demands, the bound
// is one.
class Counted {
public:
    Counted(const IdVector<NodeId, AnalysedNode>& nodes, ExprPool& pool) : nodes_(nodes), pool_(pool), values_(nodes.size(), 0) {}

    std::uint32_t at_least(NodeId root) {
        bool changed = true;
        for (unsigned pass = 0; changed && pass < kMaxPasses && values_[root] != kInfinite; ++pass) {
            changed = false;
            pool_.fuel().spend(nodes_.size());
            for (const NodeId i : nodes_.ids_backwards()) {  // most nodes are before the nodes inside them
                const AnalysedNode& c = nodes_[i];
                if (values_[i] == kInfinite || c.cost == kInfinite || (c.kind == NodeKind::leaf && values_[i])) continue;
                const std::uint32_t now = std::max({values_[i], std::uint32_t{1}, count(c)});
                changed |= now != values_[i];
                values_[i] = now;
            }
        }
        return std::max<std::uint32_t>(values_[root], 1);
    }

private:
    static constexpr unsigned kMaxPasses = 8;

    std::uint32_t count(const AnalysedNode& c) {
        switch (c.kind) {
            case NodeKind::leaf: return pool_.emptiness.values_at_least(c.expr);
            case NodeKind::alternative: {
                std::uint32_t most = 1;
                for (const NodeId part : c.parts) most = std::max(most, values_[part]);
                return most;
            }
            case NodeKind::object: return of_object(c);
            case NodeKind::array: return of_array(c);
            default: return 1;
        }
    }

    std::uint32_t of_value(const Readings& value) const {
        std::uint32_t most = 0;
        for (const Reading& r : value) most = std::max(most, values_[r.node]);
        return most;
    }

    std::uint32_t of_object(const AnalysedNode& c) {
        if (c.maximum != kInfinite) return 1;
        if (c.most < static_cast<std::uint32_t>(std::popcount(c.demands))) return 1;
        for (std::uint32_t i = c.fixed; i < c.entries.size(); ++i)  // one more entry keeps all demands met
            if (c.is_live(i) && pool_.emptiness.values_at_least(c.entries[i].key) == kInfinite) return kInfinite;
        if (c.demands) return 1;
        std::uint32_t fixed = 1, open = 1;
        for (std::uint32_t i = 0; i < c.entries.size(); ++i) {
            if (!c.is_live(i)) continue;
            const Entry& entry = c.entries[i];
            const std::uint32_t value = std::max<std::uint32_t>(of_value(entry.value), 1);
            if (i >= c.fixed) open = std::max(open, value);
            else fixed = multiply(fixed, entry.required ? value : sum(value, 1));
        }
        return std::max(fixed, open);
    }

    // The number of arrays that differ in one item.
    std::uint32_t of_array(const AnalysedNode& c) {
        if (!c.counts.empty() || c.maximum == 0) return 1;
        std::uint32_t most = 1;
        for (std::uint32_t i = 0; i < std::min<std::size_t>(c.prefix.size(), c.maximum); ++i) {
            const std::uint32_t one = of_value(c.prefix[i]);
            if (one == 0) return most;
            most = std::max(most, one);
        }
        return c.prefix.size() < c.maximum ? std::max(most, of_value(c.rest)) : most;
    }

    const IdVector<NodeId, AnalysedNode>& nodes_;
    ExprPool& pool_;
    IdVector<NodeId, std::uint32_t> values_;  // by node; 0: not counted yet
};

}  // namespace

// A machine that is constructed at its first use.
struct CompositeLanguage::Late {
    Build build;             // empty after construction
    std::uint32_t shortest;  // length of a shortest text
    ByteSet first;           // possible first bytes
    Configs configs;         // of its first state
};

CompositeLanguage::CompositeLanguage(ExprPool& pool) : pool_(pool) {}
CompositeLanguage::~CompositeLanguage() = default;

CompositeLanguage& CompositeLanguage::of(ExprPool& pool) {
    if (!pool.composites()) pool.install_composites(std::make_unique<CompositeLanguage>(pool));
    return static_cast<CompositeLanguage&>(*pool.composites());  // nothing else is installed
}

// `reach`: digits and exponent bytes that complete any beginning of a number to a value other than the given ones.
ExprId CompositeLanguage::start(IdVector<NodeId, AnalysedNode>&& components, NodeId root) {
    std::uint32_t digits = 0;
    for (const AnalysedNode& c : components)
        if (c.kind == NodeKind::leaf && pool_[c.expr].op == Op::number)
            digits = std::max(digits, pool_.number_language().digits(pool_[c.expr].number_state()));
    if (digits > kMaxDigits) throw over_limit(kMaxDigits, "digits in the numbers of unique items", "use bounds with fewer digits");
    return begin(std::move(components), root, false, digits + kExponent);
}

ExprId CompositeLanguage::later(Build build, std::uint32_t shortest, const ByteSet& first, std::uint32_t digits) {
    if (digits > kMaxDigits) throw over_limit(kMaxDigits, "digits in the numbers of unique items", "use bounds with fewer digits");
    const auto number = static_cast<std::uint32_t>(machines_.size());
    const CompositeState id = states_.next();
    bytes_ += sizeof(OwnedMachine) + sizeof(Late);
    machines_.push_back(
        {nullptr, nullptr, false, digits + kExponent, 1, 0, std::make_unique<Late>(Late{std::move(build), shortest, first, {}}), id});
    states_.push_back({number & 0x7fffffff, false, static_cast<std::uint32_t>(configs_.size())});
    return pool_.composite(id);
}

Machine& CompositeLanguage::machine_of(std::uint32_t number) {
    if (machines_[number].machine) return *machines_[number].machine;
    const Build build = machines_[number].late->build;
    auto [components, root] = at_node(-1, [&] { return build(); });  // this may add machines
    bytes_ += components.size() * sizeof(AnalysedNode);
    auto tables = std::make_unique<MachineTables>();
    auto machine = std::make_unique<Machine>(AnalysedNodes(std::move(components)), root, pool_, *tables);
    Configs configs;
    machine->start(configs);
    OwnedMachine& made = machines_[number];
    made.tables = std::move(tables);
    made.machine = std::move(machine);
    made.late->configs = std::move(configs);
    made.late->build = nullptr;
    return *made.machine;
}

std::optional<ExprId> CompositeLanguage::spelled(std::string_view text) {
    if (!text.starts_with('{') && !text.starts_with('[')) return std::nullopt;
    if (const auto known = spelled_.find(std::string(text)); known != spelled_.end()) return known->second;
    std::optional<Program> program = Copy(text, pool_).run();
    if (!program) return std::nullopt;
    return spelled_[std::string(text)] =
               begin(analyse(std::move(*program), pool_), NodeId{}, true, static_cast<std::uint32_t>(text.size()));
}

ExprId CompositeLanguage::begin(IdVector<NodeId, AnalysedNode>&& components, NodeId root, bool single, std::uint32_t reach) {
    bytes_ += components.size() * sizeof(AnalysedNode);
    const std::uint32_t values = single ? 1 : Counted(components, pool_).at_least(root);
    const auto number = static_cast<std::uint32_t>(machines_.size());
    auto tables = std::make_unique<MachineTables>();
    auto machine = std::make_unique<Machine>(AnalysedNodes(std::move(components)), root, pool_, *tables);
    machines_.push_back({std::move(tables), std::move(machine), single, reach, values, 0, nullptr});
    Configs configs;
    machines_[number].machine->start(configs);
    return intern(number, configs);
}

ExprId CompositeLanguage::intern(std::uint32_t number, const Configs& configs) {
    if (configs.empty()) return kNone;
    if (std::all_of(configs.begin(), configs.end(), [](const Config& c) { return c.node == kDone; })) return kEmpty;
    const std::uint64_t hash = mix(ConfigsHash{}(configs), number);
    const std::uint32_t known = ids_.find(hash, [&](std::uint32_t id) {
        return states_[CompositeState{id}].machine == number && std::ranges::equal(held(CompositeState{id}), configs);
    });
    if (known != InternTable::kMissing) return pool_.composite(CompositeState{known});
    Machine& machine = machine_of(number);
    bool accepting = false;
    for (const Config& c : configs) accepting |= machine.accepting(c);  // this may add states of other machines
    pool_.fuel().spend(kStateWork * configs.size());
    if (configs_.size() + configs.size() >= kInfinite)
        throw over_limit(kInfinite, "parser configurations of unique items", "use a smaller schema for the items");
    const CompositeState id = states_.next();
    states_.push_back({number & 0x7fffffff, accepting, static_cast<std::uint32_t>(configs_.size())});
    configs_.insert(configs_.end(), configs.begin(), configs.end());
    ids_.add(hash, raw(id));
    return pool_.composite(id);
}

std::size_t CompositeLanguage::bytes() const {
    return bytes_ + states_.size() * sizeof(State) + configs_.size() * sizeof(Config) + ids_.bytes();
}

Configs CompositeLanguage::configs(CompositeState state) {
    machine_of(states_[state].machine);
    return {held(state).begin(), held(state).end()};
}

std::span<const Config> CompositeLanguage::held(CompositeState state) const {
    if (is_late_start(state)) return machines_[states_[state].machine].late->configs;
    const CompositeState next{raw(state) + 1};
    const std::size_t begin = states_[state].begin, end = next < states_.next() ? states_[next].begin : configs_.size();
    return std::span(configs_).subspan(begin, end - begin);
}

int CompositeLanguage::best_byte(CompositeState state) {
    return at_node(-1, [&] { return machine(state).best_byte(configs(state)); });
}

// If the machine records read texts, a cost can be larger than the length of a shortest completion: then it is computed as a text.
std::uint32_t CompositeLanguage::shortest(CompositeState state) {
    if (is_late_start(state)) return machines_[states_[state].machine].late->shortest;
    Machine& machine = machine_of(states_[state].machine);
    Configs at = configs(state), next;
    std::uint32_t bytes = 0;
    if (!machine.cost_is_upper_bound()) {
        bytes = kInfinite;
        for (const Config& c : at) bytes = std::min(bytes, machine.cost(c));
        return bytes;
    }
    at_node(-1, [&] {
        for (int b; (b = machine.best_byte(at)) >= 0; ++bytes) {
            machine.step_all(at, static_cast<std::uint8_t>(b), next);
            at.swap(next);
        }
    });
    return std::any_of(at.begin(), at.end(), [&](const Config& c) { return machine.accepting(c); }) ? bytes : kInfinite;
}

void CompositeLanguage::count_stored(std::uint32_t number) {
    const std::size_t stored = machines_[number].machine->stored_items();
    bytes_ += (stored - machines_[number].stored) * 60;
    machines_[number].stored = stored;
}

ExprId CompositeLanguage::next(CompositeState state, std::uint8_t byte) {
    const std::uint32_t number = states_[state].machine;
    Configs made;
    Machine& machine = machine_of(number);
    const Configs from = configs(state);
    at_node(-1, [&] { machine.step_all(from, byte, made); });
    const ExprId after = intern(number, made);
    count_stored(number);
    return after;
}

ByteSet CompositeLanguage::begins(CompositeState state) {
    if (is_late_start(state)) return machines_[states_[state].machine].late->first;
    ByteSet made;
    for (const Config& c : configs(state)) made |= machine(state).begins(c);
    return made;
}

void CompositeLanguage::derive(CompositeState state, std::array<ExprId, 256>& out) {
    const std::uint32_t number = states_[state].machine;
    Machine& machine = machine_of(number);
    const Configs from = configs(state);
    Configs made;
    begins(state).each([&](std::uint8_t b) {
        at_node(-1, [&] { machine.step_all(from, b, made); });
        out[b] = intern(number, made);
    });
    count_stored(number);
}

}  // namespace guideway
