// Tables that the parts of a machine share (machine_core.h).
#include "guideway/grammar/machine_core.h"

#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"

namespace guideway {

const AnalysedNode* SharedLeaves::keep(AnalysedNode&& leaf) {
    const std::uint64_t hash = mix(std::uint64_t{raw(leaf.id)} << 32 | raw(leaf.expr), leaf.cost);
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

AnalysedNodes::AnalysedNodes(IdVector<NodeId, AnalysedNode>&& all, SharedLeaves* leaves) : at_(all.size()) {
    const auto shared = [&](const AnalysedNode& c) { return leaves && c.kind == NodeKind::leaf; };
    own_.reserve(all.size() - static_cast<std::size_t>(std::count_if(all.begin(), all.end(), shared)));
    for (const NodeId i : all.ids()) at_[i] = shared(all[i]) ? leaves->keep(std::move(all[i])) : &own_.emplace_back(std::move(all[i]));
}

MachineCore::MachineCore(AnalysedNodes nodes, ExprPool& expressions, MachineTables& found, MachineLimits most)
    : components(std::move(nodes)), pool(expressions), limits(most), tables(found), records(found.records), read_texts(found.read_texts),
      used_values(expressions), key_lengths(expressions, used_values) {
    frames.push_back({kDone, {}, {}, kBottom});
}

FrameId MachineCore::push(const Config& frame) {
    const std::uint64_t hash = ConfigHash{}(frame);
    const auto hash_of = [&](FrameId id) { return ConfigHash{}(frames[id]); };
    const auto same = [&](FrameId id) { return frames[id] == frame; };
    if (const auto known = tables.frames.find(hash, frames.size(), hash_of, same)) return *known;
    if (frames.size() >= limits.max_frames)
        throw over_limit(limits.max_frames, "different parser stacks", "use a less nested constraint", raw(frame.node));
    const FrameId id = frames.next();
    frames.push_back(frame);
    tables.frames.add(hash);
    return id;
}

void MachineCore::members(FrameId frame, std::vector<FrameId>& out) {
    const Config& at = frames[frame];
    if (at.node != kGssNode) return out.push_back(frame);
    const std::uint32_t* const all = records.at(at.regs, raw(at.state));
    for (std::uint32_t i = 0; i < raw(at.state); ++i) out.push_back(FrameId{all[i]});
}

ValueSet MachineCore::used_with(ValueSet set, ReadText read_text) {
    const std::uint64_t key = std::uint64_t{raw(set)} << 32 | raw(read_text);
    if (const auto known = known_used_with.find(key); known != known_used_with.end()) return known->second;
    if (known_used_with.size() >= kMostKept) known_used_with.clear();
    return known_used_with[key] = used_values.plus(set, read_texts.text(read_text));
}

void MachineCore::check_heads(std::size_t count, NodeId node) const {
    if (count > limits.max_heads)
        throw over_limit(limits.max_heads, "parser configurations at the same time", "use fewer alternatives that begin with the same text",
                         node == kDone ? -1 : std::int64_t{raw(node)});
}

}  // namespace guideway
