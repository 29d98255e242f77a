#include <mutex>
#include <shared_mutex>

#include "guideway/error.h"
#include "guideway/matcher.h"

namespace guideway {

std::shared_ptr<const Automaton> Automaton::compile(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> words) {
    auto store = vocabulary->store();
    const std::lock_guard<std::shared_mutex> guard(store->lock);
    Program program = read_program(words, store->pool);
    const std::uint32_t root = program.root;
    auto components = analyse(std::move(program), store->pool);
    for (Component& c : components) c.id = store->runs.component_id(c);
    std::shared_ptr<Automaton> made(new Automaton());
    made->vocabulary_ = std::move(vocabulary);
    made->nodes_ = components.size();
    made->number_ = store->runs.next_automaton();
    made->machine_ = std::make_unique<Machine>(std::move(components), root, store->pool);
    made->store_ = std::move(store);
    return made;
}

Automaton::Stats Automaton::stats() const {
    const std::shared_lock guard(store_->lock);
    const Runs& runs = store_->runs;
    return {nodes_, machine_->frame_count(), store_->pool.size(), runs.used(), runs.hits(), runs.misses()};
}

}  // namespace guideway
