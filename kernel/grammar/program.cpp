#include "guideway/grammar/program.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/regex/characters.h"
#include "guideway/regex/substrings.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr unsigned kSpellings = 3;

std::string utf8_of(const std::u32string& text) {
    std::string made;
    for (const char32_t c : text)
        for (unsigned i = 0; i < utf8_length(c); ++i) made.push_back(static_cast<char>(utf8_byte(c, i)));
    return made;
}

constexpr std::size_t kMaxKept = 32;  // maximum size of the cache of punctuation in a program

constexpr std::size_t kHeader = 5;  // words before the expressions
constexpr std::size_t kMaxBeginnings = 4;
constexpr std::uint32_t kMaxBeginning = 64;  // expressions
constexpr std::size_t kMaxBeginningWords = 4096;

using RawExpr = ProgramPrefixCache::Expression;

class Reader {
public:
    Reader(std::span<const std::uint32_t> words, ExprPool& pool, const TokenTable* vocabulary, ProgramPrefixCache* beginnings)
        : words_(words), pool_(pool), encoder_(pool.encoder()), vocabulary_(vocabulary), beginnings_(beginnings) {}

    Program read() {
        if (word() != kProgramMagic || word() != kProgramVersion) fail("not a program of this version");
        const std::uint32_t n_exprs = word();
        n_nodes_ = word();
        const std::uint32_t root = word();
        if (n_exprs > words_.size() || n_nodes_ > words_.size() || root >= n_nodes_) fail("impossible counts");
        exprs_.reserve(n_exprs);
        if (beginnings_) begin(n_exprs);
        for (auto i = static_cast<std::uint32_t>(exprs_.size()); i < n_exprs; ++i) scan_expr(i);
        const std::size_t end = at_;
        Program program;
        program.root = NodeId{root};
        program.nodes.reserve(n_nodes_);
        for (std::uint32_t i = 0; i < n_nodes_; ++i) program.nodes.push_back(read_node());
        if (at_ != words_.size()) fail("words left over");
        lower();
        for (Node& node : program.nodes) resolve(node);
        if (beginnings_) keep_beginning(end);
        return program;
    }

private:
    [[noreturn]] void fail(const char* what) const {
        throw Error(ErrorKind::invalid, std::string("malformed program: ") + what + " (word " + std::to_string(at_) + ")");
    }
    std::uint32_t word() {
        if (at_ >= words_.size()) fail("it ends too early");
        return words_[at_++];
    }
    std::uint32_t counted(std::uint32_t words_each) {
        const std::uint32_t n = word();
        if (static_cast<std::uint64_t>(n) * words_each > words_.size() - at_) fail("a count runs past the end");
        return n;
    }
    std::uint32_t below(std::uint32_t bound) {
        const std::uint32_t n = word();
        if (n >= bound) fail("a reference out of range");
        return n;
    }

    // Copies the expressions that a cached prefix has in common with the program.
    void begin(std::uint32_t n_exprs) {
        std::tie(beginning_, common_) = beginnings_->find(words_.subspan(at_), n_exprs);
        if (!beginning_) return;
        for (std::uint32_t i = 0; i < common_; ++i) {
            exprs_.push_back(beginning_->expressions[i]);
            exprs_.back().at += kHeader;
        }
        at_ += beginning_->ends[common_ - 1];
    }

    // `end`: of the words of the expressions.
    void keep_beginning(std::size_t end) {
        const auto n = std::min(static_cast<std::uint32_t>(exprs_.size()), kMaxBeginning);
        for (std::uint32_t i = 0; i < common_; ++i) {
            beginning_->expressions[i].made = exprs_[i].made;
            std::copy(exprs_[i].lowered, exprs_[i].lowered + kSpellings, beginning_->expressions[i].lowered);
        }
        if (2 * common_ >= n) return;
        ProgramPrefixCache::Beginning made;
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::size_t last = (i + 1 < exprs_.size() ? exprs_[i + 1].at - 1 : end) - kHeader;
            if (last > kMaxBeginningWords) break;
            made.expressions.push_back(exprs_[i]);
            made.expressions.back().at -= static_cast<std::uint32_t>(kHeader);
            made.expressions.back().wanted = 0;
            made.ends.push_back(static_cast<std::uint32_t>(last));
        }
        if (made.ends.empty()) return;
        made.words.assign(words_.begin() + kHeader, words_.begin() + kHeader + made.ends.back());
        beginnings_->keep(std::move(made));
    }

    void scan_expr(std::uint32_t index) {
        RawExpr expr;
        expr.op = word();
        expr.at = static_cast<std::uint32_t>(at_);
        switch (expr.op) {
            case 0: scan_ranges(); break;
            case 1: scan_texts(); break;
            case 2:
            case 3:
            case 4: {
                const std::uint32_t n = counted(1);
                if (expr.op == 4 && n == 0) fail("an intersection of nothing");
                for (std::uint32_t i = 0; i < n; ++i) below(index);
                break;
            }
            case 5: below(index); break;
            case 6: {
                below(index);
                const std::uint32_t minimum = word(), maximum = word();
                if (minimum > maximum || minimum == kInfinite) fail("a repetition with its bounds crossed");
                break;
            }
            case 7:
                below(index);
                below(kSpellings);
                break;
            case 8: scan_graph(index); break;
            case 9:
                for (std::uint32_t n = counted(1); n--;) code_point();
                break;
            case 10: word(); break;
            case 11:
                if (below(kSpellings) == 0) fail("a string without a spelling");
                below(2);
                scan_texts();
                break;
            case 12: scan_substrings(); break;
            default: fail("an unknown expression");
        }
        exprs_.push_back(expr);
    }

    void scan_graph(std::uint32_t index) {
        const std::uint32_t states = counted(2);
        for (std::uint32_t i = 0; i < states; ++i) {
            below(2);
            for (std::uint32_t n = counted(2); n--; below(states))
                if (exprs_[below(index)].op != 0) fail("a step of a graph that is not a set of characters");
        }
    }

    void scan_substrings() {
        below(2);
        const std::uint32_t size = counted(1);
        const auto text = words_.subspan(at_, size);
        for (std::uint32_t n = size; n--;)
            if (!is_character(word() >> 2)) fail("a text with a surrogate, or with no character");
        below(2);
        std::vector<std::uint32_t> variants;
        for (std::uint32_t n = counted(2); n--;) {
            const std::uint32_t variant = word();
            if (!is_character(variant) || (!variants.empty() && variant <= variants.back())) fail("variants out of order, or a surrogate");
            variants.push_back(variant);
            code_point();
        }
        if (variants.empty()) return;
        for (const std::uint32_t one : text)
            if (std::binary_search(variants.begin(), variants.end(), one >> 2)) fail("a variant that occurs in the text");
    }

    void scan_texts() {
        for (std::uint32_t n = counted(1); n--;)
            for (std::uint32_t length = counted(1); length--;) code_point();
    }

    void scan_ranges() {
        std::uint64_t next = 0;
        for (std::uint32_t n = counted(2); n--;) {
            const std::uint32_t low = code_point(), high = code_point();
            if (low < next || high < low) fail("character ranges out of order");
            next = std::uint64_t{high} + 1;
        }
    }
    std::uint32_t code_point() { return below(0x110000); }

    std::shared_ptr<const Punctuation> read_punctuation() {
        const auto left = words_.subspan(at_);
        for (const auto& [words, known] : punctuation_)
            if (words.size() <= left.size() && std::equal(words.begin(), words.end(), left.begin())) {
                at_ += words.size();
                return known;
            }
        Punctuation made;
        made.space = word() != 0;
        for (std::string* text : {&made.open, &made.comma, &made.colon, &made.close}) {
            for (std::uint32_t n = counted(1); n--;) text->push_back(static_cast<char>(below(256)));
            // A position in it has 8 bits in a state of the machine.
            if (text->empty() || text->size() > 200) fail("punctuation must have 1 to 200 bytes");
            if (text->find('\xff') != std::string::npos) fail("punctuation is text, which has no byte ff");  // special tokens begin with it
        }
        auto kept = std::make_shared<const Punctuation>(std::move(made));
        if (punctuation_.size() < kMaxKept) punctuation_.emplace_back(left.first(left.size() - (words_.size() - at_)), kept);
        return kept;
    }

    Decimal read_decimal() {
        Decimal made;
        made.negative = below(2) != 0;
        made.exponent = static_cast<std::int32_t>(word());
        for (std::uint32_t n = counted(1); n--;) made.digits.push_back(static_cast<char>('0' + below(10)));
        return made;
    }

    std::vector<Decimal> read_decimals() {
        std::vector<Decimal> made;
        for (std::uint32_t n = counted(3); n--;) made.push_back(read_decimal());
        return made;
    }

    Cell read_cell() {
        Cell made;
        const std::uint32_t flags = below(16);
        made.has_low = flags & 1;
        made.has_high = flags & 2;
        made.open_low = flags & 4;
        made.open_high = flags & 8;
        if (made.has_low) made.low = read_decimal();
        if (made.has_high) made.high = read_decimal();
        made.multiple_of = read_decimals();
        made.not_multiple_of = read_decimals();
        return made;
    }

    std::uint64_t read_marks(bool wide) {
        const std::uint64_t low = word();
        return wide ? low | std::uint64_t{word()} << 32 : low;
    }

    NodeId read_reference() { return NodeId{below(n_nodes_)}; }

    Readings read_value(std::uint64_t marks, bool may_be_none, bool wide = false) {
        Readings made;
        for (std::uint32_t n = counted(2); n--;) {
            const std::uint64_t bits = read_marks(wide);
            if (bits & ~marks) fail("an unused mark");
            made.push_back({bits, read_reference()});
        }
        if (made.empty() && !may_be_none) fail("a value without a node");
        return made;
    }

    void read_object(Node& node) {
        node.punctuation = read_punctuation();
        node.ordered = word() != 0;
        node.minimum = word();
        node.maximum = word();
        const std::uint32_t demands = word(), least = word();
        const bool wide = least & kWideMarks;
        node.least = least & ~kWideMarks;
        node.most = word();
        node.demands = wide ? demands | std::uint64_t{word()} << 32 : demands;
        if (node.least > 64 || node.most > 64) fail("more marks than there are");
        for (int part = 0; part < 2; ++part) {
            std::uint32_t n = counted(4);
            node.entries.reserve(node.entries.size() + n);
            while (n--) {
                const ExprId key = want();
                const std::uint32_t flags = word();
                const std::uint64_t missing = flags & 2 ? read_marks(wide) : 0;
                if (missing & ~node.demands || (missing && part)) fail("an unused mark");
                node.entries.push_back({key, (flags & 1) && part == 0, read_value(node.demands, false, wide), missing});
            }
            if (part == 0) node.fixed = static_cast<std::uint32_t>(node.entries.size());
        }
    }

    void read_array(Node& node) {
        node.punctuation = read_punctuation();
        node.minimum = word();
        node.maximum = word();
        node.unique = word() != 0;
        for (std::uint32_t n = counted(2); n--;) {
            const std::uint32_t minimum = word();
            node.counts.push_back({minimum, word()});
        }
        if (node.counts.size() > 32) fail("more counters than marks");
        const auto marks = static_cast<std::uint32_t>((std::uint64_t{1} << node.counts.size()) - 1);
        for (std::uint32_t n = counted(1); n--;) node.prefix.push_back(read_value(marks, false));
        node.rest = read_value(marks, true);
    }

    void read_parts(Node& node) {
        std::uint32_t n = counted(1);
        node.parts.reserve(n);
        while (n--) node.parts.push_back(read_reference());
    }

    // The number of an expression of the program, as an id that `resolve` replaces.
    ExprId want() {
        const std::uint32_t e = below(static_cast<std::uint32_t>(exprs_.size()));
        exprs_[e].wanted |= 1;
        return ExprId{e};
    }

    Node read_node() {
        Node node;
        node.kind = static_cast<NodeKind>(below(6));
        switch (node.kind) {
            case NodeKind::leaf: node.expr = want(); break;
            case NodeKind::sequence:
            case NodeKind::alternative: read_parts(node); break;
            case NodeKind::object: read_object(node); break;
            case NodeKind::array: read_array(node); break;
            case NodeKind::number:
                node.number = static_cast<NumberText>(below(kNumberTexts));
                for (std::uint32_t n = counted(3); n--;) node.cells.push_back(read_cell());
                break;
        }
        return node;
    }

    void resolve(Node& node) {
        if (node.kind == NodeKind::leaf) node.expr = lowered(raw(node.expr), 0);
        for (Entry& entry : node.entries) entry.key = lowered(raw(entry.key), 0);
    }

    // First determines the spellings in which each expression is needed, from the last to the first; then makes the pool's expressions,
    // from the first to the last.
    void lower() {
        for (std::size_t i = exprs_.size(); i-- > 0;) {
            const RawExpr expr = exprs_[i];
            if (!(expr.wanted & ~expr.made)) continue;
            at_ = expr.at;
            if (expr.op >= 2 && expr.op <= 4)
                for (std::uint32_t n = word(); n--;) exprs_[word()].wanted |= expr.wanted;
            else if (expr.op == 5 || expr.op == 6) exprs_[word()].wanted |= expr.wanted;
            else if (expr.op == 8) {
                for (const GraphState& state : read_graph())
                    for (const GraphEdge& edge : state.edges) exprs_[raw(edge.step)].wanted |= expr.wanted;
            } else if (expr.op == 7) {
                const std::uint32_t inner = word(), spelling = word();
                if (expr.wanted != 1) fail("a spelling inside a spelling");
                exprs_[inner].wanted |= static_cast<std::uint8_t>(1u << spelling);
            } else if (expr.op == 11 && expr.wanted != 1) fail("a spelling inside a spelling");
        }
        for (RawExpr& expr : exprs_) {
            const unsigned missing = expr.wanted & ~expr.made;
            expr.made |= expr.wanted;
            for (unsigned spelling = 0; missing >> spelling; ++spelling)
                if (missing >> spelling & 1) expr.lowered[spelling] = is_late(expr) ? kUnknownExpr : lower_one(expr, spelling);
        }
    }

    std::vector<GraphState> read_graph() {
        std::vector<GraphState> states(word());
        for (GraphState& state : states) {
            state.accepting = word() != 0;
            for (std::uint32_t n = word(); n--;) {
                const ExprId step{word()};
                state.edges.push_back({step, word()});
            }
        }
        return states;
    }

    std::vector<std::u32string> read_texts() {
        const std::uint32_t count = word();
        std::vector<std::u32string> texts;
        texts.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i) texts.push_back(read_text());
        return texts;
    }
    std::u32string read_text() {
        const std::uint32_t length = word();
        const auto characters = words_.subspan(at_, length);
        at_ += length;
        return {characters.begin(), characters.end()};
    }

    ExprId substrings(Encoding spelling) {
        Substrings::Text text;
        text.empty = word() != 0;
        const std::uint32_t n = word();
        text.characters.reserve(n);
        text.flags.reserve(n + 1);
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::uint32_t one = word();
            text.characters.push_back(one >> 2);
            text.flags.push_back(static_cast<std::uint8_t>(one & (kBegins | kEnds)));
        }
        text.flags.push_back(word() ? kEnds : 0);
        for (std::uint32_t variants = word(); variants--;) {
            const char32_t variant = word();
            text.variants.emplace_back(variant, word());
        }
        const bool empty = text.empty;
        const SubstringState state = pool_.substrings().make(std::move(text), spelling);
        return state == Substrings::kNowhere && empty ? kEmpty : pool_.substring(state);
    }

    // Inside a JSON string, the name is text.
    ExprId special(const std::u32string& name, Encoding mode) {
        std::vector<ExprId> tokens;
        if (vocabulary_ && mode == Encoding::text)
            for (const std::uint32_t id : vocabulary_->special(utf8_of(name))) tokens.push_back(literal(pool_, special_text(id)));
        return tokens.empty() ? encoder_.literals({name}, mode) : pool_.unite(std::move(tokens));
    }

    // A tail after many texts becomes part of their trie, so that a state is one node, not a concatenation.
    ExprId before(std::uint32_t index, unsigned spelling, ExprId tail) {
        std::uint32_t inner = index, inside = spelling;
        if (exprs_[index].op == 7) {
            at_ = exprs_[index].at;
            inner = word();
            inside = word();
        }
        if (exprs_[inner].op != 1 || words_[exprs_[inner].at] < (is_quote(pool_, tail) ? 1 : 2) || tail == kEmpty)
            return pool_.concat(lowered(index, spelling), tail);
        at_ = exprs_[inner].at;
        return encoder_.literals(read_texts(), static_cast<Encoding>(inside), tail);
    }

    // Literals, with or without a spelling, are made only when they are needed without a tail (`before`).
    bool is_late(const RawExpr& expr) const { return expr.op == 1 || (expr.op == 7 && exprs_[words_[expr.at]].op == 1); }
    ExprId lowered(std::uint32_t index, unsigned spelling) {
        RawExpr& expr = exprs_[index];
        if (is_late(expr) && expr.lowered[spelling] == kUnknownExpr) {
            const std::size_t back = at_;
            expr.lowered[spelling] = lower_one(expr, spelling);
            at_ = back;
        }
        return expr.lowered[spelling];
    }

    ExprId string(Encoding mode, bool others) {
        if (quote_ == kNone) quote_ = literal(pool_, "\"");
        auto texts = read_texts();
        if (!others) return pool_.concat(quote_, encoder_.literals(std::move(texts), mode, quote_));
        const ExprId rest = pool_.intersect({encoder_.universe(mode), pool_.complement(encoder_.literals(std::move(texts), mode))});
        return pool_.concat(quote_, pool_.concat(rest, quote_));
    }

    ExprId lower_one(const RawExpr& expr, unsigned spelling) {
        at_ = expr.at;
        const auto mode = static_cast<Encoding>(spelling);
        auto child = [&] { return lowered(word(), spelling); };
        std::vector<ExprId> parts;
        switch (expr.op) {
            case 0: {
                Ranges ranges;
                for (std::uint32_t n = word(); n--;) {
                    const std::uint32_t low = word();
                    ranges.emplace_back(low, word());
                }
                return encoder_.characters(ranges, mode);
            }
            case 1: return encoder_.literals(read_texts(), mode);
            case 5: return pool_.intersect({encoder_.universe(mode), pool_.complement(child())});
            case 6: {
                const ExprId part = child();
                const std::uint32_t minimum = word();
                return pool_.repeat(part, minimum, word());
            }
            case 7: {
                const std::uint32_t inner = word();
                return lowered(inner, word());
            }
            case 8: {
                auto states = read_graph();
                for (GraphState& state : states)
                    for (GraphEdge& edge : state.edges) edge.step = lowered(raw(edge.step), spelling);
                return pool_.graph(states);
            }
            case 9: return special(read_text(), mode);
            case 10: {
                const std::uint32_t id = word();
                if (!vocabulary_ || !vocabulary_->is_special(id))
                    throw Error(ErrorKind::invalid, "token " + std::to_string(id) + " is no special token of this vocabulary");
                return literal(pool_, special_text(id));
            }
            case 11: {
                const auto inside = static_cast<Encoding>(word());
                return string(inside, word() != 0);
            }
            case 12: return substrings(mode);
            default: break;
        }
        if (expr.op == 2) {
            std::vector<std::uint32_t> indices;
            for (std::uint32_t n = word(); n--;) indices.push_back(word());
            ExprId made = kEmpty;
            for (auto index = indices.rbegin(); index != indices.rend(); ++index) made = before(*index, spelling, made);
            return made;
        }
        for (std::uint32_t n = word(); n--;) parts.push_back(child());
        if (expr.op == 3) return pool_.unite(std::move(parts));
        return pool_.intersect(std::move(parts));
    }

    std::span<const std::uint32_t> words_;
    std::size_t at_ = 0;
    std::uint32_t n_nodes_ = 0;
    ExprPool& pool_;
    Encoder& encoder_;
    const TokenTable* vocabulary_;
    ProgramPrefixCache* beginnings_;
    ProgramPrefixCache::Beginning* beginning_ = nullptr;
    std::uint32_t common_ = 0;  // number of expressions that it has in common with the program
    std::vector<RawExpr> exprs_;
    ExprId quote_ = kNone;
    std::vector<std::pair<std::span<const std::uint32_t>, std::shared_ptr<const Punctuation>>>
        punctuation_;  // punctuation that was read, by its words
};

}  // namespace

std::pair<ProgramPrefixCache::Beginning*, std::uint32_t> ProgramPrefixCache::find(std::span<const std::uint32_t> words,
                                                                                  std::uint32_t count) {
    std::pair<Beginning*, std::uint32_t> best{nullptr, 0};
    for (Beginning& one : kept_) {
        const auto apart = std::mismatch(one.words.begin(), one.words.end(), words.begin(), words.end()).first - one.words.begin();
        const auto common = std::upper_bound(one.ends.begin(), one.ends.end(), static_cast<std::uint32_t>(apart)) - one.ends.begin();
        const auto found = std::min(static_cast<std::uint32_t>(common), count);
        if (found > best.second) best = {&one, found};
    }
    return best;
}

void ProgramPrefixCache::keep(Beginning&& made) {
    if (kept_.size() < kMaxBeginnings) kept_.push_back(std::move(made));
    else kept_[next_++ % kMaxBeginnings] = std::move(made);
}

Program read_program(std::span<const std::uint32_t> words, ExprPool& pool, const TokenTable* vocabulary, ProgramPrefixCache* beginnings) {
    return Reader(words, pool, vocabulary, beginnings).read();
}

}  // namespace guideway
