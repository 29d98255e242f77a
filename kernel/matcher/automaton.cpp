#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/sort_unique.h"
#include "guideway/matcher/matcher.h"

namespace guideway {

namespace {

constexpr std::size_t kLarge = 5000;  // nodes; the first mask of a grammar with as many is computed when it is compiled
constexpr std::size_t kMaxStored =
    1'000'000;  // limit on stacks, records and bytes that were read, about 60 bytes each; configurations have 16

Program read(std::span<const std::uint32_t> words, const Vocabulary& vocabulary, Store& store) {
    return read_program(words, store.pool, &vocabulary, vocabulary.limits().tuning.program_prefixes ? &store.beginnings : nullptr);
}

}  // namespace

PackedProgram packed(std::span<const std::uint32_t> words) {
    std::size_t size = 0;
    for (const std::uint32_t w : words) size += w < 0x80 ? 1 : (static_cast<std::size_t>(std::bit_width(w)) + 6) / 7;
    std::vector<std::uint8_t> made(size);
    std::uint8_t* at = made.data();
    for (std::uint32_t w : words) {
        for (; w >= 0x80; w >>= 7) *at++ = static_cast<std::uint8_t>(w | 0x80);
        *at++ = static_cast<std::uint8_t>(w);
    }
    return std::make_shared<const std::vector<std::uint8_t>>(std::move(made));
}

std::vector<std::uint32_t> unpacked(const PackedProgram& program) {
    std::vector<std::uint32_t> made;
    made.reserve(program->size());
    std::uint32_t word = 0;
    unsigned shift = 0;
    for (std::uint8_t b : *program) {
        word |= std::uint32_t{b & 0x7fu} << shift;
        shift += 7;
        if (b & 0x80) continue;
        made.push_back(std::exchange(word, 0));
        shift = 0;
    }
    return made;
}

// Calls f with a new separate store; again if the process is forked meanwhile. No other thread uses that store.
template <class F>
static auto in_store_apart(const Vocabulary& vocabulary, F&& f) {
    for (;;) try {
            return f(vocabulary.store_apart(), true);
        } catch (const Preempted&) {
        }
}

// Calls f(store, whether it is a separate one) with the vocabulary's store; after some interruptions with a separate one.
template <class F>
static auto in_store(const Vocabulary& vocabulary, F&& f) {
    for (unsigned tries = 0; tries < StoreLock::most_tries();) try {
            return f(vocabulary.store(), false);
        } catch (const Preempted& preempted) {
            tries += !preempted.by_process_fork;
        }
    return in_store_apart(vocabulary, f);
}

std::shared_ptr<const Automaton> Automaton::compile(std::shared_ptr<const Vocabulary> vocabulary, const PackedProgram& program) {
    return in_store(*vocabulary,
                    [&](const std::shared_ptr<Store>& store, bool is_apart) { return compile_in(store, vocabulary, program, is_apart); });
}

std::shared_ptr<const Automaton> Automaton::compile_apart(const std::shared_ptr<const Vocabulary>& vocabulary,
                                                          const PackedProgram& program) {
    return in_store_apart(
        *vocabulary, [&](const std::shared_ptr<Store>& store, bool is_apart) { return compile_in(store, vocabulary, program, is_apart); });
}

bool Automaton::is_empty(const Vocabulary& vocabulary, std::span<const std::uint32_t> words) {
    return in_store(vocabulary, [&](const std::shared_ptr<Store>& store, bool) {
        const Hold guard(*store, StoreLock::Rank::background);
        Program program = read(words, vocabulary, *store);
        if (const Node& root = program.nodes[program.root]; root.kind == NodeKind::leaf)
            return !store->pool.emptiness.is_nonempty(root.expr);
        try {
            analyse(std::move(program), store->pool);
        } catch (const Error& error) {
            if (error.kind != ErrorKind::unsatisfiable) throw;
            return true;
        }
        return false;
    });
}

std::shared_ptr<const Automaton> Automaton::compile_in(const std::shared_ptr<Store>& store,
                                                       const std::shared_ptr<const Vocabulary>& vocabulary,
                                                       const PackedProgram& packed_program, bool is_apart) {
    const std::vector<std::uint32_t> words = unpacked(packed_program);
    std::shared_ptr<Automaton> made(new Automaton());  // declared before the lock: after an error it is deleted without the lock
    made->program_ = packed_program;
    made->vocabulary_ = vocabulary;
    made->is_apart_ = is_apart;
    const Hold guard(*store, StoreLock::Rank::background);
    Program program = read(words, *vocabulary, *store);
    const NodeId root = program.root;
    auto components = analyse(std::move(program), store->pool);
    for (AnalysedNode& c : components) c.id = store->engine.ids().of(c);
    made->nodes_ = components.size();
    store->retired.each([&](AutomatonId id) { store->engine.remove_automaton(id); });
    made->retire_entry_ = std::make_unique<RetireList::Entry>();
    made->id_ = made->retire_entry_->id = store->engine.next_automaton();
    made->store_ = store;
    AutomatonCache& cache = store->engine.cache_of(made->id_);
    made->machine_ = std::make_unique<Machine>(AnalysedNodes(std::move(components), &store->leaves), root, store->pool, cache.machine);
    made->state_sets_.emplace(cache.state_sets);
    made->warm_up_first();
    made->first_bytes_ = made->store_->pool.bytes();
    return made;
}

std::shared_ptr<const Automaton> Automaton::apart() const {
    const auto known = [&]() -> std::shared_ptr<const Automaton> { return apart_ ? apart_->automaton : nullptr; };
    {
        const std::lock_guard guard(vocabulary_->lock());
        if (auto found = known()) return found;
    }
    const auto made = compile_apart(vocabulary_, program_);
    const auto current = std::make_shared<CurrentAutomaton>(CurrentAutomaton{made});
    {
        const std::lock_guard guard(vocabulary_->lock());
        if (known()) return made;  // another thread was first: only the caller uses this one
        apart_ = current;
    }
    vocabulary_->keep_apart(current);
    return made;
}

std::shared_ptr<const Automaton> Automaton::newest() const {
    std::shared_ptr<const Automaton> found;
    const std::lock_guard guard(vocabulary_->lock());
    for (const Automaton* at = this; at->apart_ && at->apart_->automaton; at = found.get()) found = at->apart_->automaton;
    return found ? found : shared_from_this();
}

const StateSet& Automaton::start() const {
    if (const StateSet* const known = start_.load(std::memory_order_acquire)) return *known;
    Configs made;
    machine_->start(made);
    sort_unique(made);
    const StateSet& kept = state_sets_->keep(made);
    start_.store(&kept, std::memory_order_release);
    return kept;
}

// Moves work from the first masks to compilation.
void Automaton::warm_up_first() const {
    try {
        if (nodes_ >= kLarge) {
            std::vector<std::uint32_t> row(vocabulary_->words());
            store_->engine.fill(*machine_, id_, start(), row);
        }
        store_->engine.warm_up_leaves(*machine_, id_);
    } catch (const Error&) {  // it is thrown again by a mask that needs the result
    }
}

Automaton::~Automaton() {
    if (store_) store_->retired.add(std::move(retire_entry_));  // null: compilation threw an error
}

// After an interruption it begins again with the rest of the work: earlier results are cached, and cost little.
void Automaton::warm_up(std::uint64_t work) const {
    while (work > 0) try {
            const Hold guard(*store_, StoreLock::Rank::background);
            Fuel& all = store_->pool.fuel();
            const std::uint64_t before = all.left();
            struct Spent {
                Fuel& all;
                std::uint64_t before, &work;
                ~Spent() { work -= std::min(work, std::max<std::uint64_t>(before - all.left(), 1)); }
            };
            const Spent spent{all, before, work};
            store_->engine.warm_up(*machine_, id_, work);
            return;
        } catch (const Error&) {  // of a run that perhaps no text needs
            return;
        } catch (const Preempted&) {
        }
}

bool Automaton::needs_replacement() const {
    {
        const SharedHold guard(*store_);
        if (machine_->stored_items() + state_sets_->stored_configs() / 4 > kMaxStored) return true;
        if (store_->pool.bytes() < 2 * first_bytes_)
            return false;  // a new automaton would be as large: an automaton that fills a store must not be replaced at each call
    }
    return !is_apart_ && vocabulary_->store() != store_;
}

Automaton::Stats Automaton::stats() const {
    const SharedHold guard(*store_);
    const MaskEngine& engine = store_->engine;
    return {nodes_, machine_->frame_count(), store_->pool.size(), engine.bytes(), engine.hits(), engine.misses()};
}

}  // namespace guideway
