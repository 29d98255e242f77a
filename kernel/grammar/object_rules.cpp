// The entries that an object may have next, and the cost of its shortest completion. Entries are in the given order or in any
// order. No key occurs twice.
//
// The register of an object records the keys that were read. A direct register of an ordered object is the position: the number of
// the first property that is still allowed. A direct register of an unordered object has a bit for each property that was read.
// Other registers are the number of a record, which has: the number of entries (up to the minimum if there is no maximum); the
// demands that are met; for each class of open keys, the number of keys that were read but whose text is not known (in walks
// for masks, and in registers that are made only to compute a cost; not in those of a matcher), and the set of the known texts;
// last, the position or the bits.
//
// Records are immutable and interned, so a rollback needs no work: the earlier configurations have the earlier register. The
// register changes when an open key ends (`after_key`: its text) and when a value begins (`after_entry`: count, marks,
// position or bit). The new register is in the frame below the value.
#include "guideway/grammar/object_rules.h"

#include <algorithm>
#include <bit>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"

namespace guideway {

namespace {

enum Word : std::size_t { kCount, kMet, kMetHigh, kClasses };

std::uint64_t met(const std::uint32_t* record) { return record[kMet] | std::uint64_t{record[kMetHigh]} << 32; }

std::size_t seen_word(const AnalysedNode& k) { return kClasses + 2 * (k.entries.size() - k.fixed); }
std::size_t unknown_word(const AnalysedNode& k, std::uint32_t label) { return kClasses + 2 * (label - k.fixed); }
std::size_t used_word(const AnalysedNode& k, std::uint32_t label) { return unknown_word(k, label) + 1; }
template <class Record>
ValueSet used(const AnalysedNode& k, const Record& record, std::uint32_t label) {
    return ValueSet{record[used_word(k, label)]};
}

// Limits a sum to the largest finite cost. kInfinite means that no text completes the object.
std::uint32_t clamped(std::uint64_t total) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, kInfinite - 1)); }

}  // namespace

bool ObjectRules::seen(const AnalysedNode& k, Register regs, std::uint32_t label) {
    if (k.direct) return raw(regs) >> label & 1;
    return core_.records.at(regs, k.record_words)[seen_word(k) + label / 32] >> (label % 32) & 1;
}

std::uint32_t ObjectRules::position(const AnalysedNode& k, Register regs) {
    return k.direct ? raw(regs) : core_.records.at(regs, k.record_words)[seen_word(k)];
}

// The register after an entry whose value has a reading with these `marks`.
Register ObjectRules::after_entry(const AnalysedNode& k, Register regs, const Entry& entry, std::uint64_t marks) {
    const auto label = static_cast<std::uint32_t>(&entry - k.entries.begin());
    if (k.direct) return Register{k.ordered ? std::min(label + 1, k.fixed) : label < k.fixed ? raw(regs) | 1u << label : raw(regs)};
    auto& record = core_.records.draft(regs, k.record_words);
    ++record[kCount];
    if (k.maximum == kInfinite) record[kCount] = std::min(record[kCount], k.minimum);
    if (k.has_absence_marks && k.ordered)
        for (std::uint32_t i = record[seen_word(k)]; i < std::min(label, k.fixed); ++i) marks |= k.entries[i].missing;
    record[kMet] |= static_cast<std::uint32_t>(marks);
    record[kMetHigh] |= static_cast<std::uint32_t>(marks >> 32);
    if (k.ordered) record[seen_word(k)] = std::min(label + 1, k.fixed);
    else if (label < k.fixed) record[seen_word(k) + label / 32] |= 1u << (label % 32);
    if (core_.records.size() >= core_.limits.max_frames)
        throw over_limit(core_.limits.max_frames, "different sets of properties", "use fewer optional properties, or key_order=\"schema\"");
    return core_.records.intern(record);
}

// The register after an open key. A key whose text does not matter leaves it unchanged.
Register ObjectRules::after_key(const AnalysedNode& k, Register regs, std::uint32_t label, ReadText read_text) {
    if (read_text == ReadTexts::kIrrelevant) return regs;
    auto& record = core_.records.draft(regs, k.record_words);
    if (read_text == ReadTexts::kUnknown) ++record[unknown_word(k, label)];
    else record[used_word(k, label)] = raw(core_.used_with(used(k, record, label), read_text));
    return core_.records.intern(record);
}

bool ObjectRules::has_unknown_key(const AnalysedNode& k, Register regs, std::uint32_t label) {
    return core_.records.at(regs, k.record_words)[unknown_word(k, label)] != 0;
}

// Keys of unknown text are not excluded.
ExprId ObjectRules::open_keys(const AnalysedNode& k, Register regs, std::uint32_t label) {
    return core_.used_values.without(k.entries[label].key, used(k, core_.records.at(regs, k.record_words), label));
}

bool ObjectRules::allows_entry(NodeId node, Register regs, std::uint32_t label) {
    const AnalysedNode& k = core_.components[node];
    if (!k.is_live(label)) return false;
    if (label >= k.fixed) {
        if (k.ordered && k.ahead[position(k, regs)].next_required != k.fixed) return false;
        const std::uint32_t* record = core_.records.at(regs, k.record_words);
        const std::size_t unknown_keys = record[unknown_word(k, label)];
        if (!core_.key_lengths.has_more(k.entries[label].key, used(k, record, label), unknown_keys)) return false;
        if (!k.bounded) return true;
        if (const auto known = can_complete_by(node, regs, label)) return *known;
        return value_and_rest(node, after_key(k, regs, label, ReadTexts::kUnknown), label) != kInfinite;
    }
    if (!k.ordered) {
        if (seen(k, regs, label)) return false;
    } else {
        const std::uint32_t at = position(k, regs);
        if (label < at || label > k.ahead[at].next_required) return false;
    }
    if (!k.bounded) return true;
    if (k.demands)
        if (const auto known = can_complete_by(node, regs, label)) return *known;
    return value_and_rest(node, regs, label) != kInfinite;
}

// The demands that the remaining entries can meet, without the entry `label` (kNoLabel: with all). Without a maximum number of
// entries, entries are independent of each other.
ObjectRules::Cover ObjectRules::cover(NodeId node, Register regs, std::uint32_t label) {
    const AnalysedNode& k = core_.components[node];
    const auto add = [&](std::uint32_t entry, Cover& to) {
        std::uint64_t all = 0;
        bool one = entry < k.fixed;  // whether one reading has all marks of the entry; an open class may have no more keys
        for (const Reading& r : k.entries[entry].value)
            if (core_.components[r.node].cost != kInfinite) all |= r.marks;
        one = one && std::any_of(k.entries[entry].value.begin(), k.entries[entry].value.end(),
                                 [&](const Reading& r) { return r.marks == all && core_.components[r.node].cost != kInfinite; });
        to.possible |= all;
        if (!one) return std::uint64_t{0};
        to.twice |= to.sure & all;
        to.sure |= all;
        return all;
    };
    const auto add_open = [&](Cover& to) {
        for (std::uint32_t i = k.fixed; i < k.entries.size(); ++i)
            if (k.is_live(i)) add(i, to);
    };
    if (k.ordered) {
        Cover made;
        for (std::uint32_t i = k.ahead[label == kNoLabel ? position(k, regs) : std::min(label + 1, k.fixed)].next_live; i < k.fixed;
             i = k.ahead[i + 1].next_live) {
            core_.pool.fuel().spend(1);
            add(i, made);
        }
        add_open(made);
        return made;
    }
    if (cover_.node != node || cover_.regs != regs) {
        cover_.node = kDone;  // until it is complete
        cover_.all = {};
        cover_.sure.assign(k.fixed, 0);
        core_.pool.fuel().spend(k.entries.size());
        for (std::uint32_t i = k.ahead[0].next_live; i < k.fixed; i = k.ahead[i + 1].next_live)
            if (!seen(k, regs, i)) cover_.sure[i] = add(i, cover_.all);
        add_open(cover_.all);
        cover_.node = node;
        cover_.regs = regs;
    }
    Cover made = cover_.all;
    if (label < k.fixed) made.sure = made.twice | (made.sure & ~cover_.sure[label]);
    return made;
}

// Whether an object can be completed after the entry `label` whose value has a reading with these `marks`; kNoLabel: without
// another entry. Returns no value if this needs a search for the cheapest choice of entries (`plan`). This includes objects that count
// marks of absent properties, and objects that do not require all demands.
std::optional<bool> ObjectRules::can_complete(NodeId node, Register regs, std::uint32_t label, std::uint64_t marks) {
    const AnalysedNode& k = core_.components[node];
    const std::uint32_t* const record = core_.records.at(regs, k.record_words);
    const bool all_demands = !k.has_absence_marks && k.least == static_cast<std::uint32_t>(std::popcount(k.demands)) && k.least <= k.most;
    if (!k.demands || !all_demands || k.maximum != kInfinite || record[kCount] + (label != kNoLabel) < k.minimum) return std::nullopt;
    const std::uint64_t unmet = k.demands & ~met(record) & ~marks;
    if (!unmet) return true;
    const Cover rest = cover(node, regs, label);
    if (!(unmet & ~rest.sure)) return true;
    if (unmet & ~rest.possible) return false;
    return std::nullopt;
}

// The same for an entry with one of its readings.
std::optional<bool> ObjectRules::can_complete_by(NodeId node, Register regs, std::uint32_t label) {
    std::optional<bool> made = false;
    for (const Reading& r : core_.components[node].entries[label].value) {
        if (core_.components[r.node].cost == kInfinite) continue;
        const std::optional<bool> one = can_complete(node, regs, label, r.marks);
        if (one == true) return one;
        if (!one) made = std::nullopt;
    }
    return made;
}

ObjectRules::AllowedKeys::AllowedKeys(ObjectRules& rules, NodeId node, Register regs)
    : rules_(rules), k_(rules.core_.components[node]), node_(node), regs_(regs), direct_(raw(regs)) {
    if (k_.bounded) return;
    if (k_.ordered) {
        first_ = rules.position(k_, regs);
        last_ = k_.ahead[first_].next_required;
    } else bits_ = k_.direct ? &direct_ : rules.core_.records.at(regs, k_.record_words) + seen_word(k_);
}

bool ObjectRules::may_close(const AnalysedNode& k, Register regs) {
    if (k.bounded) {
        const std::uint32_t* record = core_.records.at(regs, k.record_words);
        if (record[kCount] < k.minimum) return false;
        std::uint64_t marks = met(record);
        if (k.has_absence_marks)
            for (std::uint32_t i = k.ordered ? record[seen_word(k)] : 0; i < k.fixed; ++i)
                if (k.ordered || !(record[seen_word(k) + i / 32] >> (i % 32) & 1)) marks |= k.entries[i].missing;
        if (!MarksNeeded{k.demands, k.least, k.most, 0}.allows(marks)) return false;
    }
    if (k.ordered) return k.ahead[position(k, regs)].next_required == k.fixed;
    for (std::uint32_t i = k.ahead[0].next_required; i < k.fixed; i = k.ahead[i + 1].next_required)
        if (!seen(k, regs, i)) return false;
    return true;
}

bool ObjectRules::allows_fixed_key(NodeId node, Register regs) {
    const AnalysedNode& k = core_.components[node];
    const AllowedKeys allowed_keys(*this, node, regs);
    for (std::uint32_t i = k.ahead[k.ordered ? position(k, regs) : 0].next_live; i < k.fixed; i = k.ahead[i + 1].next_live)
        if (allowed_keys(i)) return true;
    return false;
}

bool ObjectRules::allows_any_entry(NodeId node, Register regs) {
    const AnalysedNode& k = core_.components[node];
    for (std::uint32_t i = k.fixed; i < k.entries.size(); ++i)
        if (allows_entry(node, regs, i)) return true;
    return allows_fixed_key(node, regs);
}

// Computed when the object is first entered. Most objects of a large grammar are never entered.
ExprId ObjectRules::keys(NodeId node) {
    if (keys_[node] != kUnknownExpr) return keys_[node];
    const AnalysedNode& k = core_.components[node];
    std::vector<std::pair<ExprId, std::uint32_t>> labelled_keys;
    for (std::uint32_t i = 0; i < k.fixed; ++i)
        if (k.is_live(i)) labelled_keys.emplace_back(k.entries[i].key, i);
    return keys_[node] = unite_labelled(core_.pool, labelled_keys);
}

// The cost of all entries that are still needed, each with a comma; kInfinite: the object cannot be completed.
std::uint32_t ObjectRules::entries_cost(NodeId node, Register regs) {
    const AnalysedNode& k = core_.components[node];
    if (k.ordered && !k.bounded) return k.ahead[position(k, regs)].required_cost;
    if (!k.bounded) {
        std::uint32_t total = 0;
        for (std::uint32_t i = k.ahead[0].next_required; i < k.fixed; i = k.ahead[i + 1].next_required)
            if (!seen(k, regs, i)) total = sum(total, sum(k.ahead[i].cost, length(k.punctuation->comma)));
        return total;
    }
    const std::uint64_t key = std::uint64_t{raw(node)} << 32 | raw(regs);
    auto known = entries_cost_.find(key);
    if (known == entries_cost_.end()) {
        const std::uint32_t cost = plan_entries(node, regs);
        if (entries_cost_.size() >= MachineCore::kMostKept) entries_cost_.clear();
        known = entries_cost_.emplace(key, cost).first;
    }
    return known->second;
}

ObjectRules::Offer ObjectRules::offer(NodeId node, Register regs) {
    const AnalysedNode& k = core_.components[node];
    const auto record = core_.records.copy(regs, k.record_words);
    const std::uint32_t comma = length(k.punctuation->comma);
    Offer made;
    made.room = k.maximum == kInfinite ? kInfinite : k.maximum - record[kCount];
    made.need = k.minimum - std::min(k.minimum, record[kCount]);
    for (std::uint32_t i = k.ahead[k.ordered ? position(k, regs) : 0].next_live; i < k.fixed; i = k.ahead[i + 1].next_live) {
        if (!k.ordered && seen(k, regs, i)) continue;
        if (k.entries[i].required) {
            ++made.required;
            made.required_cost += sum(k.ahead[i].cost, comma);
        } else made.others.emplace_back(sum(k.ahead[i].cost, comma), i);
    }
    core_.pool.fuel().spend(made.required + made.others.size());
    const std::uint32_t most = most_needed(made.required, made.need, made.room, 0);
    for (std::uint32_t i = k.fixed; i < k.entries.size(); ++i) {
        if (!k.is_live(i) || most <= made.required) continue;
        const std::size_t unknown_keys = record[unknown_word(k, i)],
                          wanted = most - made.required + unknown_keys;  // unknown keys may be the shortest
        const auto lengths = core_.key_lengths.of({k.entries[i].key}, used(k, record, i), wanted);
        const std::uint32_t rest = sum(core_.value_cost(k.entries[i].value), length(k.punctuation->colon) + comma);
        for (std::size_t n = unknown_keys; n < std::min(lengths.size(), wanted); ++n) made.others.emplace_back(sum(lengths[n], rest), i);
    }
    return made;
}

// The cost of the entries needed after the entry `label`. It is computed for all entries with fixed keys at once: computing it
// for one of many properties takes as long as for all.
std::uint32_t ObjectRules::rest_after(NodeId node, Register regs, std::uint32_t label) {
    if (rests_.node != node || rests_.regs != regs) {
        rests_.node = kDone;  // until all costs are known
        const AnalysedNode& k = core_.components[node];
        find_rests(k, k.ordered ? position(k, regs) : 0, offer(node, regs));
        rests_.node = node;
        rests_.regs = regs;
    }
    return rests_.costs[label];
}

void ObjectRules::find_rests(const AnalysedNode& k, std::uint32_t from, Offer&& all) {
    rests_.costs.assign(k.fixed, kInfinite);
    if (all.room == 0) return;
    const std::uint32_t left = all.need - std::min<std::uint32_t>(all.need, 1), space = all.room == kInfinite ? kInfinite : all.room - 1;
    if (left > space) return;
    if (k.ordered) find_rests_in_order(k, from, all, left, space);
    else find_rests_in_any_order(k, from, all, left, space);
}

void ObjectRules::find_rests_in_any_order(const AnalysedNode& k, std::uint32_t from, Offer& all, std::uint32_t left, std::uint32_t space) {
    auto& others = all.others;
    const std::uint32_t required = all.required, comma = length(k.punctuation->comma);
    const auto more_than = [&](std::uint32_t count) { return left - std::min(left, count); };
    std::sort(others.begin(), others.end());
    std::vector<std::uint64_t> sums{0};  // of the cheapest ones
    for (const auto& other : others) sums.push_back(sums.back() + other.first);
    const std::uint32_t more = more_than(required);
    for (std::size_t rank = 0; rank < others.size(); ++rank) {
        const auto [cost, label] = others[rank];
        if (label >= k.fixed || required > space || others.size() - 1 < more) continue;
        rests_.costs[label] = clamped(all.required_cost + (rank < more ? sums[more + 1] - cost : sums[more]));
    }
    if (required == 0) return;
    const std::uint32_t more_needed = more_than(required - 1);
    if (required - 1 > space || others.size() < more_needed) return;
    for (std::uint32_t i = k.ahead[from].next_required; i < k.fixed; i = k.ahead[i + 1].next_required)
        rests_.costs[i] = clamped(all.required_cost - sum(k.ahead[i].cost, comma) + sums[more_needed]);
}

// Entries before a label cannot come after it. The loop runs from the last label to the first and keeps the cheapest entries.
void ObjectRules::find_rests_in_order(const AnalysedNode& k, std::uint32_t from, const Offer& all, std::uint32_t left,
                                      std::uint32_t space) {
    const auto& others = all.others;
    const std::uint32_t required = all.required, comma = length(k.punctuation->comma);
    const auto more_than = [&](std::uint32_t count) { return left - std::min(left, count); };
    const std::uint32_t last = k.ahead[from].next_required;
    std::vector<std::uint32_t> costs;
    for (const auto& [cost, label] : others)
        if (label > last || label >= k.fixed) costs.push_back(cost);
    if (last < k.fixed && required - 1 <= space) {
        const std::uint32_t more = more_than(required - 1);
        if (costs.size() >= more) {
            std::nth_element(costs.begin(), costs.begin() + more, costs.end());
            std::uint64_t total = all.required_cost - sum(k.ahead[last].cost, comma);
            for (std::uint32_t i = 0; i < more; ++i) total += costs[i];
            rests_.costs[last] = clamped(total);
        }
    }
    if (required > space) return;
    const std::uint32_t more = more_than(required);
    std::uint64_t total = 0;
    std::vector<std::uint32_t> kept;  // a heap of the cheapest ones, the most expensive of them on top
    const auto keep = [&](std::uint32_t cost) {
        kept.push_back(cost);
        std::push_heap(kept.begin(), kept.end());
        total += cost;
        if (kept.size() <= more) return;
        std::pop_heap(kept.begin(), kept.end());
        total -= kept.back();
        kept.pop_back();
    };
    for (const std::uint32_t cost : costs) keep(cost);
    for (auto other = others.rbegin(); other != others.rend(); ++other) {
        const auto [cost, label] = *other;
        if (label >= last) continue;
        if (kept.size() == more) rests_.costs[label] = clamped(all.required_cost + total);
        keep(cost);
    }
}

std::uint32_t ObjectRules::plan_entries(NodeId node, Register regs) {
    const AnalysedNode& k = core_.components[node];
    if (!k.demands) {
        if (core_.records.at(regs, k.record_words)[kCount] > k.maximum) return kInfinite;
        Offer all = offer(node, regs);
        if (all.required > all.room || all.need > all.room) return kInfinite;
        const std::uint32_t more = all.need - std::min(all.need, all.required);
        if (all.others.size() < more) return kInfinite;
        std::nth_element(all.others.begin(), all.others.begin() + more, all.others.end());
        std::uint64_t total = all.required_cost;
        for (std::uint32_t i = 0; i < more; ++i) total += all.others[i].first;
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, kInfinite - 1));
    }
    const auto record = core_.records.copy(regs, k.record_words);
    if (record[kCount] > k.maximum) return kInfinite;
    MarksNeeded marks{k.demands, k.least, k.most, met(record.data())};
    const std::uint32_t room = k.maximum == kInfinite ? kInfinite : k.maximum - record[kCount];
    const std::uint32_t need = k.minimum - std::min(k.minimum, record[kCount]);
    std::vector<CostItem> items;
    std::uint32_t required = 0;
    auto add = [&](std::uint32_t label, std::uint32_t key) {
        CostItem item{k.entries[label].required, k.entries[label].missing, {}};
        const std::uint32_t around = sum(key, length(k.punctuation->colon) + length(k.punctuation->comma));
        for (const Reading& r : k.entries[label].value)
            if (const std::uint32_t cost = sum(around, core_.components[r.node].cost); cost != kInfinite)
                item.ways.emplace_back(r.marks, cost);
        required += item.required;
        items.push_back(std::move(item));
    };
    for (std::uint32_t i = k.ahead[k.ordered ? position(k, regs) : 0].next_live; i < k.fixed; i = k.ahead[i + 1].next_live)
        if (k.ordered || !seen(k, regs, i)) add(i, core_.pool.emptiness.shortest(k.entries[i].key));
    if (k.has_absence_marks)  // properties that cannot be completed will not occur
        for (std::uint32_t i = k.ordered ? position(k, regs) : 0; i < k.fixed; ++i)
            if (!k.is_live(i) && (k.ordered || !seen(k, regs, i))) marks.met |= k.entries[i].missing;
    const std::uint32_t most = most_needed(required, need, room, k.demands & ~marks.met);
    for (std::uint32_t i = k.fixed; i < k.entries.size(); ++i) {
        if (!k.is_live(i) || most <= required) continue;
        const std::size_t unknown_keys = record[unknown_word(k, i)],
                          wanted = most - required + unknown_keys;  // unknown keys may be the shortest
        const auto lengths = core_.key_lengths.of({k.entries[i].key}, used(k, record, i), wanted);
        for (std::size_t n = unknown_keys; n < std::min(lengths.size(), wanted); ++n) add(i, lengths[n]);
    }
    return plan(items, need, room, marks, node, core_.pool.fuel());
}

// The set of the shortest unused keys that a completion might need: one for each required entry, one for the current key, and
// one for each five bytes of `further`. UsedValues::kAllTexts if there are keys of unknown text.
ValueSet ObjectRules::watched_keys(const Config& frame, std::uint32_t further) {
    const AnalysedNode& k = core_.components[frame.node];
    const std::uint32_t label = label_of_entry(frame.state);
    const auto record = core_.records.copy(frame.regs, k.record_words);
    if (record[unknown_word(k, label)]) return UsedValues::kAllTexts;
    std::size_t count = 2 + further / 5;
    if (k.bounded) {
        std::uint32_t required = 0;
        for (std::uint32_t i = k.ahead[k.ordered ? record[seen_word(k)] : 0].next_required; i < k.fixed; i = k.ahead[i + 1].next_required)
            required += k.ordered || !seen(k, frame.regs, i);
        const std::uint32_t need = k.minimum - std::min(k.minimum, record[kCount]),
                            most = most_needed(required, need, k.maximum, k.demands);
        count += most - std::min(most, required);
    }
    return core_.key_lengths.texts({k.entries[label].key}, used(k, record, label), count);
}

// The cost of the value of an entry and of all that is needed after it, up to the end of the object.
std::uint32_t ObjectRules::value_and_rest(NodeId node, Register regs, std::uint32_t label) {
    const AnalysedNode& k = core_.components[node];
    const Entry& entry = k.entries[label];
    if (k.bounded && !k.demands && label < k.fixed) {
        const std::uint32_t rest = rest_after(node, regs, label);
        return rest == kInfinite ? kInfinite : sum(sum(core_.value_cost(entry.value), rest), length(k.punctuation->close));
    }
    std::uint32_t least = kInfinite, known = kInfinite;
    Register known_regs{};
    for (const Reading& r : entry.value) {
        const std::uint32_t value = core_.components[r.node].cost;
        if (value == kInfinite) continue;
        const Register after = after_entry(k, regs, entry, r.marks);
        if (known == kInfinite || after != known_regs) known = entries_cost(node, known_regs = after);
        least = std::min(least, sum(value, known));
    }
    return sum(least, length(k.punctuation->close));
}

// The label of the fixed key that completes a partly read key at the lowest cost, and this cost, up to the end of the object.
LabelDistance ObjectRules::best_label(NodeId node, Register regs, ExprId state) {
    auto& known = best_label_;
    if (known.node != node || known.regs != regs || known.state != state) {
        known.node = kDone;  // until it is found
        known.label = find_best_label(node, regs, state);
        known.node = node;
        known.regs = regs;
        known.state = state;
    }
    return known.label;
}

LabelDistance ObjectRules::find_best_label(NodeId node, Register regs, ExprId state) {
    const AnalysedNode& k = core_.components[node];
    const std::uint32_t comma = length(k.punctuation->comma), colon = length(k.punctuation->colon);
    const std::uint32_t all = k.bounded ? 0 : sum(entries_cost(node, regs), length(k.punctuation->close));
    LabelDistance best{0, kInfinite, false};
    const auto& reachable = core_.pool.labels.reachable(state);
    const bool has_rests =
        k.bounded && !k.demands;  // then `value_and_rest` is kInfinite for entries that are not allowed, except those already read
    const auto first = std::lower_bound(reachable.begin(), reachable.end(), k.ordered ? position(k, regs) : 0,
                                        [](const LabelDistance& reach, std::uint32_t label) { return reach.label < label; });
    for (auto reach = first; reach != reachable.end(); ++reach) {
        const std::uint32_t label = reach->label;
        if (has_rests ? !k.ordered && seen(k, regs, label) : !allows_entry(node, regs, label)) continue;
        std::uint32_t after;
        if (k.bounded) after = value_and_rest(node, regs, label);
        else {  // the cost of all required entries, without this one
            after = sum(all, core_.value_cost(k.entries[label].value));
            if (k.ordered)
                after = sum(sum(k.ahead[label + 1].required_cost, core_.value_cost(k.entries[label].value)), length(k.punctuation->close));
            else if (k.entries[label].required) after -= std::min(after, sum(k.ahead[label].cost, comma));
        }
        const std::uint32_t total = sum(reach->distance + colon, after);
        if (total < best.distance) best = {label, total, false};
    }
    return best;
}

// Stores the best label of `next`, the state after a byte that leads from `state` to its best label. The label does not change: one
// byte shortens the distance to each key by at most one byte, so no other key becomes cheaper.
void ObjectRules::follow_best_label(ExprId state, ExprId next) {
    if (best_label_.node == kDone || best_label_.state != state || best_label_.label.distance == kInfinite) return;
    best_label_.state = next;
    --best_label_.label.distance;
}

// The lowest cost from the beginning of a key to the end of the object.
std::uint32_t ObjectRules::key_and_rest(NodeId node, Register regs) {
    std::uint32_t least = best_label(node, regs, keys(node)).distance;
    for (std::uint32_t i = core_.components[node].fixed; i < core_.components[node].entries.size(); ++i) {
        if (!allows_entry(node, regs, i)) continue;
        const AnalysedNode& k = core_.components[node];
        const std::uint32_t key = sum(core_.pool.emptiness.shortest(open_keys(k, regs, i)), length(k.punctuation->colon));
        least = std::min(least, sum(key, value_and_rest(node, after_key(k, regs, i, ReadTexts::kUnknown), i)));
    }
    return least;
}

std::uint32_t ObjectRules::cost(const Config& c) {
    const AnalysedNode& k = core_.components[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const std::uint32_t close = length(k.punctuation->close), comma = length(k.punctuation->comma), colon = length(k.punctuation->colon);
    auto first = [&] {
        const std::uint32_t needed = entries_cost(c.node, c.regs);
        return sum(needed ? needed - comma : 0, close);
    };
    switch (phase_of(c.state)) {
        case Phase::open: return sum(first(), length(k.punctuation->open) - rest);
        case Phase::first: return first();
        case Phase::gap: return key_and_rest(c.node, c.regs);
        case Phase::key: return best_label(c.node, c.regs, keys_of(c.state)).distance;
        case Phase::colon: return sum(value_and_rest(c.node, c.regs, label_of_entry(c.state)), colon - colon_bytes_read(c.state));
        case Phase::below_leaf: {
            const std::uint32_t label = label_of_entry(c.state);
            return sum(value_and_rest(c.node, after_key(k, c.regs, label, ReadTexts::kUnknown), label), colon);
        }
        case Phase::value: return value_and_rest(c.node, c.regs, rest);
        case Phase::after: return sum(entries_cost(c.node, c.regs), close);
        case Phase::comma: return sum(key_and_rest(c.node, c.regs), comma - rest);
        case Phase::close: return close - rest;
        case Phase::undecided: break;
    }
    return kInfinite;
}

}  // namespace guideway
