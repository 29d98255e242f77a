#include "guideway/grammar/used_values.h"

#include <algorithm>

#include "guideway/grammar/composite_language.h"
#include "guideway/regex/characters.h"
#include "guideway/regex/number_language.h"

namespace guideway {

namespace {

// The characters of a JSON string, or no value for other texts. `text` includes the quotes.
std::optional<std::u32string> decoded(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    std::u32string made;
    DecoderState part = kBetween;
    for (const char b : text.substr(1, text.size() - 2)) {
        const CharacterRead read = read_character(Encoding::escaped_any, part, static_cast<std::uint8_t>(b));
        part = read.part;
        if (part == kBetween && !is_character(read.character)) return std::nullopt;
        if (part == kBetween) made.push_back(read.character);
    }
    return part == kBetween ? std::optional(made) : std::nullopt;
}

}  // namespace

ExprId UsedValues::spellings(ExprPool& pool, std::string_view text) {
    if (auto characters = decoded(text))
        return pool.concat(literal(pool, "\""),
                           pool.string_state(pool.strings().make({{std::move(*characters), literal(pool, "\"")}}, Encoding::escaped_any)));
    if (const auto number = value_of(text)) return pool.number_language().start({taken_by(*number)}, NumberText::any);
    return literal(pool, text);
}

ValueSet UsedValues::plus(ValueSet set, std::string_view text) {
    Set made = sets_[set];
    made.before = set;
    ++made.count;
    made.number.reset();
    if (const auto composite = CompositeLanguage::of(pool_).spelled(text)) made.composites = pool_.unite({made.composites, *composite});
    else if (const auto characters = decoded(text))
        made.strings = pool_.strings().plus(made.strings, *characters, literal(pool_, "\""), Encoding::escaped_any);
    else if (const auto number = value_of(text)) {
        made.number = number;
        made.others = pool_.unite({made.others, pool_.number_language().start({taken_by(*number)}, NumberText::any)});
    } else made.others = pool_.unite({made.others, literal(pool_, text)});
    made.scalars = pool_.unite({pool_.concat(literal(pool_, "\""), pool_.string_state(made.strings)), made.others});
    made.expr = pool_.unite({made.scalars, made.composites});
    if (const auto known = ids_.find(made.expr); known != ids_.end()) return known->second;
    const ValueSet id = sets_.next();
    sets_.push_back(made);  // before `ids_` has its id: an allocation may fail
    ids_.emplace(made.expr, id);
    return id;
}

ExprId UsedValues::without(ExprId e, ValueSet set) {
    if (set == kEmptySet) return e;
    if (pool_[e].op == Op::composite) return pool_.subtract(e, sets_[set].composites);
    if (pool_[e].op != Op::number) {
        const ByteSet first = pool_.dfa.first(e);  // an expression that can begin an array or object may contain these
        const bool composites = first.contains('{') || first.contains('[');
        return pool_.intersect({e, pool_.complement(composites ? sets_[set].expr : sets_[set].scalars)});
    }
    // Numbers are excluded one by one, by other cells: then emptiness is known without a search.
    const ExprId all = e;
    auto key = [&](ValueSet at) { return std::uint64_t{raw(all)} << 32 | raw(at); };
    std::vector<ValueSet> missing;
    for (; set != kEmptySet; set = sets_[set].before) {
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
