#include "guideway/grammar/used_values.h"

#include <algorithm>

#include "guideway/grammar/composite_language.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/number_language.h"

namespace guideway {

namespace {

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

class Decoder {
public:
    explicit Decoder(std::string_view text) : text_(text) {}

    std::optional<std::u32string> run() {
        if (text_.size() < 2 || text_.front() != '"' || text_.back() != '"') return std::nullopt;
        text_ = text_.substr(1, text_.size() - 2);
        std::u32string made;
        while (at_ < text_.size()) {
            const std::optional<char32_t> c = text_[at_] == '\\' ? escape() : character();
            if (!c) return std::nullopt;
            made.push_back(*c);
        }
        return made;
    }

private:
    std::optional<char32_t> character() {
        const auto lead = static_cast<std::uint8_t>(text_[at_++]);
        if (lead < 0x20 || lead == '"') return std::nullopt;
        if (lead < 0x80) return lead;
        const unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        char32_t c = lead & (0x3fu >> more);
        for (unsigned i = 0; i < more; ++i) {
            if (at_ == text_.size()) return std::nullopt;
            c = c << 6 | (static_cast<std::uint8_t>(text_[at_++]) & 0x3f);
        }
        return c;
    }

    std::optional<char32_t> unit() {
        if (text_.size() - at_ < 4) return std::nullopt;
        char32_t c = 0;
        for (int i = 0; i < 4; ++i) {
            const int digit = hex(text_[at_++]);
            if (digit < 0) return std::nullopt;
            c = c << 4 | static_cast<char32_t>(digit);
        }
        return c;
    }

    std::optional<char32_t> escape() {
        if (text_.size() - at_ < 2) return std::nullopt;
        const char name = text_[at_ + 1];
        at_ += 2;
        switch (name) {
            case '"':
            case '\\':
            case '/': return static_cast<char32_t>(name);
            case 'b': return 8;
            case 'f': return 12;
            case 'n': return 10;
            case 'r': return 13;
            case 't': return 9;
            case 'u': break;
            default: return std::nullopt;
        }
        const std::optional<char32_t> high = unit();
        if (!high || *high < 0xd800 || *high > 0xdfff) return high;
        if (*high >= 0xdc00 || text_.substr(at_, 2) != "\\u") return std::nullopt;
        at_ += 2;
        const std::optional<char32_t> low = unit();
        if (!low || *low < 0xdc00 || *low > 0xdfff) return std::nullopt;
        return 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

ExprId bytes(ExprPool& pool, std::string_view text) {
    ExprId made = kEmpty;
    for (std::size_t i = text.size(); i-- > 0;) {
        const auto b = static_cast<std::uint8_t>(text[i]);
        made = pool.concat(pool.set(ByteSet::range(b, b)), made);
    }
    return made;
}

}  // namespace

std::optional<std::u32string> decoded(std::string_view text) { return Decoder(text).run(); }

ExprId UsedValues::spellings(ExprPool& pool, std::string_view text) {
    if (auto characters = decoded(text))
        return pool.concat(bytes(pool, "\""),
                           pool.string_state(pool.strings().make({{std::move(*characters), bytes(pool, "\"")}}, Encoding::escaped_any)));
    if (const auto number = value_of(text)) return pool.number_language().start({taken_by(*number)}, NumberText::any);
    return bytes(pool, text);
}

std::uint32_t UsedValues::plus(std::uint32_t set, std::string_view text) {
    Set made = sets_[set];
    made.before = set;
    ++made.count;
    made.number.reset();
    if (const auto composite = CompositeLanguage::of(pool_).spelled(text)) made.composites = pool_.unite({made.composites, *composite});
    else if (const auto characters = decoded(text))
        made.strings = pool_.strings().plus(made.strings, *characters, bytes(pool_, "\""), Encoding::escaped_any);
    else if (const auto number = value_of(text)) {
        made.number = number;
        made.others = pool_.unite({made.others, pool_.number_language().start({taken_by(*number)}, NumberText::any)});
    } else made.others = pool_.unite({made.others, bytes(pool_, text)});
    made.scalars = pool_.unite({pool_.concat(bytes(pool_, "\""), pool_.string_state(made.strings)), made.others});
    made.expr = pool_.unite({made.scalars, made.composites});
    if (const auto known = ids_.find(made.expr); known != ids_.end()) return known->second;
    const auto id = static_cast<std::uint32_t>(sets_.size());
    sets_.push_back(made);  // before `ids_` has its id: an allocation may fail
    ids_.emplace(made.expr, id);
    return id;
}

ExprId UsedValues::without(ExprId e, std::uint32_t set) {
    if (!set) return e;
    if (pool_[e].op == Op::composite) return pool_.subtract(e, sets_[set].composites);
    if (pool_[e].op != Op::number) {
        const ByteSet first = pool_.dfa.first(e);  // an expression that can begin an array or object may contain these
        const bool composites = first.contains('{') || first.contains('[');
        return pool_.intersect({e, pool_.complement(composites ? sets_[set].expr : sets_[set].scalars)});
    }
    // Numbers are excluded one by one, by other cells: then emptiness is known without a search.
    const ExprId all = e;
    auto key = [&](std::uint32_t at) { return std::uint64_t{all} << 32 | at; };
    std::vector<std::uint32_t> missing;
    for (; set; set = sets_[set].before) {
        if (auto known = numbers_left_.find(key(set)); known != numbers_left_.end()) {
            e = known->second;
            break;
        }
        missing.push_back(set);
    }
    for (; !missing.empty(); missing.pop_back()) {
        const Set& at = sets_[missing.back()];
        if (at.number && e != kNone) e = pool_.number_language().without(e, *at.number);
        numbers_left_.emplace(key(missing.back()), e);
    }
    return e;
}

}  // namespace guideway
