// Tables that the parts of a machine share (machine_core.h).
#include "guideway/grammar/machine_core.h"

#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"

namespace guideway {

const AnalysedNode* SharedLeaves::keep(AnalysedNode&& leaf) {
    const std::uint64_t hash = mix(std::uint64_t{leaf.id} << 32 | leaf.expr, leaf.cost);
    const std::uint32_t known = ids_.find(hash, [&](std::uint32_t id) {
        const AnalysedNode& c = kept_[id];
        return c.id == leaf.id && c.expr == leaf.expr && c.cost == leaf.cost && c.nullable == leaf.nullable && c.first == leaf.first &&
               c.follow == leaf.follow;
    });
    if (known != InternTable::kMissing) return &kept_[known];
    const AnalysedNode* const made = &kept_.emplace_back(std::move(leaf));
    ids_.add(hash, static_cast<std::uint32_t>(kept_.size() - 1));
    return made;
}

AnalysedNodes::AnalysedNodes(std::vector<AnalysedNode>&& all, SharedLeaves* leaves) : at_(all.size()) {
    const auto shared = [&](const AnalysedNode& c) { return leaves && c.kind == NodeKind::leaf; };
    own_.reserve(all.size() - static_cast<std::size_t>(std::count_if(all.begin(), all.end(), shared)));
    for (std::size_t i = 0; i < all.size(); ++i)
        at_[i] = shared(all[i]) ? leaves->keep(std::move(all[i])) : &own_.emplace_back(std::move(all[i]));
}

MachineCore::MachineCore(AnalysedNodes nodes, ExprPool& expressions, MachineTables& found, MachineLimits most)
    : components(std::move(nodes)), pool(expressions), limits(most), tables(found), records(found.records), read_texts(found.read_texts),
      used_values(expressions), key_lengths(expressions, used_values) {
    frames.push_back({kDone, 0, 0, 0});
}

std::uint32_t MachineCore::push(const Config& frame) {
    const std::uint64_t hash = ConfigHash{}(frame);
    const auto hash_of = [&](std::uint32_t id) { return ConfigHash{}(frames[id]); };
    const std::uint32_t known = tables.frames.find(hash, frames.size(), hash_of, [&](std::uint32_t id) { return frames[id] == frame; });
    if (known != InternTable::kMissing) return known;
    if (frames.size() >= limits.max_frames)
        throw over_limit(limits.max_frames, "different parser stacks", "use a less nested constraint", frame.node);
    const auto id = static_cast<std::uint32_t>(frames.size());
    frames.push_back(frame);
    tables.frames.add(hash);
    return id;
}

void MachineCore::members(std::uint32_t frame, std::vector<std::uint32_t>& out) {
    const Config& at = frames[frame];
    if (at.node != kGssNode) return out.push_back(frame);
    const std::uint32_t* first = records.at(at.state, at.regs);
    out.insert(out.end(), first, first + at.regs);
}

std::uint32_t MachineCore::used_with(std::uint32_t set, std::uint32_t read_text) {
    const std::uint64_t key = std::uint64_t{set} << 32 | read_text;
    if (const auto known = known_used_with.find(key); known != known_used_with.end()) return known->second;
    if (known_used_with.size() >= kMostKept) known_used_with.clear();
    return known_used_with[key] = used_values.plus(set, read_texts.text(read_text));
}

void MachineCore::check_heads(std::size_t count, std::int64_t node) const {
    if (count > limits.max_heads)
        throw over_limit(limits.max_heads, "parser configurations at the same time", "use fewer alternatives that begin with the same text",
                         node);
}

}  // namespace guideway
