#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "guideway/error.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

constexpr std::size_t kLarge = 5000;  // nodes of a grammar whose first mask is made with it
constexpr std::size_t kMaxLearned = 1'000'000;  // stacks, records and bytes read, some 60 bytes each; configurations take 16

}  // namespace

std::shared_ptr<const Automaton> Automaton::compile(std::shared_ptr<const Vocabulary> vocabulary, std::span<const std::uint32_t> words) {
    auto store = vocabulary->store();
    const std::lock_guard<std::shared_mutex> guard(store->lock);
    store->pool.work().refill();
    Program program = read_program(words, store->pool, vocabulary.get(), &store->beginnings);
    const std::uint32_t root = program.root;
    auto components = analyse(std::move(program), store->pool);
    for (Component& c : components) c.id = store->runs.component_id(c);
    std::shared_ptr<Automaton> made(new Automaton());
    made->vocabulary_ = std::move(vocabulary);
    made->nodes_ = components.size();
    store->ended.each([&](std::uint32_t number) { store->runs.forget(number); });
    made->ended_ = std::make_unique<Ended::Number>();
    made->number_ = made->ended_->number = store->runs.next_automaton();
    made->store_ = store;
    Learned& tables = store->runs.learned(made->number_);
    made->machine_ = std::make_unique<Machine>(Components(std::move(components), &store->leaves), root, store->pool, tables.machine);
    made->fronts_.emplace(tables.fronts);
    made->find_ahead();
    made->first_bytes_ = made->store_->pool.bytes();
    return made;
}

const Front& Automaton::start() const {
    Configs made;
    machine_->start(made);
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    return fronts_->keep(made);
}

// Whoever compiles waits anyway; a mask should not take long.
void Automaton::find_ahead() const {
    try {
        if (nodes_ >= kLarge) {
            std::vector<std::uint32_t> row(vocabulary_->words());
            store_->runs.fill(*machine_, number_, start(), row);
        }
        store_->runs.find_leaves_ahead(*machine_, number_);
    } catch (const Error&) {  // a mask will say so, if a text comes to it
    }
}

Automaton::~Automaton() {
    if (store_) store_->ended.add(std::move(ended_));  // else it never came to be
}

void Automaton::walk_ahead(std::chrono::microseconds budget) const {
    const std::lock_guard<std::shared_mutex> guard(store_->lock);
    store_->pool.work().refill();
    try {
        store_->runs.walk_ahead(*machine_, number_, budget);
    } catch (const Error&) {  // a limit that no text may ever come to
    }
}

bool Automaton::is_worn() const {
    {
        const std::shared_lock guard(store_->lock);
        if (machine_->learned() + fronts_->learned() / 4 > kMaxLearned) return true;
        if (store_->pool.bytes() < 2 * first_bytes_) return false;  // one that fills a store alone is not made at each call
    }
    return vocabulary_->store() != store_;
}

Automaton::Stats Automaton::stats() const {
    const std::shared_lock guard(store_->lock);
    const Runs& runs = store_->runs;
    return {nodes_, machine_->frame_count(), store_->pool.size(), runs.used(), runs.hits(), runs.misses()};
}

}  // namespace guideway
