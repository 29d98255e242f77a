// Builds one mask: the tokens that the component of a configuration accepts, and the results of its suffix trie in the frames
// below. Temporary data of the computation are members. The walk of a composite value inside a mask uses another builder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "guideway/mask/automaton_cache.h"
#include "guideway/mask/key_walk.h"
#include "guideway/mask/leaf_results.h"
#include "guideway/mask/punctuation.h"
#include "guideway/mask/summaries.h"

namespace guideway {

class MaskBuilder {
public:
    using Mask = AutomatonCache::Mask;

    MaskBuilder(LeafResults& results, FrameSummaries& summaries, PunctuationLeaves& punctuation)
        : results_(results), summaries_(summaries), punctuation_(punctuation), vocabulary_(results.vocabulary()), tuning_(results.tuning()),
          fuel_(results.fuel()), sets_(results.sets()), suffix_tries_(results.suffix_tries()), words_(results.words()) {}

    // The mask of a configuration with its whole stack; its parts are stored in `cache`.
    void build(AutomatonCache& cache, Machine& machine, const Config& config, Mask& made);
    // The result of a trie in a composite value that is one leaf. The builder must be new.
    WalkResult composite(AutomatonCache& cache, Machine& machine, TrieId trie, const Config& config);
    // Must be called before `call` outside of `build`.
    void begin(AutomatonCache& cache) {
        cache_ = &cache;
        paths_ = 0;
    }
    // The result of a trie in the rest of a sequence. Null if it cannot be computed here: its computation has begun and is not
    // complete, or too many computations are nested.
    const FrameSummary* call(Machine& machine, TrieId trie, const Config& frame, unsigned depth);

private:
    using Span = AutomatonCache::Span;
    using Parts = AutomatonCache::Parts;
    using ComponentSummary = AutomatonCache::ComponentSummary;
    using KeyIndex = AutomatonCache::KeyIndex;
    struct Task {
        TrieId trie;
        Config config;
    };
    // The worklist and the results so far, in grammars that share stacks.
    struct Exploration {
        std::vector<Task> tasks;
        // By suffix trie, the one with the longest text first: the frames that continue with it.
        std::map<std::pair<std::uint32_t, TrieId>, std::vector<FrameId>> frames_to_resume;
        std::vector<TokenSetId> sets;
        std::vector<TrieId> exits;
        std::vector<std::uint32_t> context_dependent;
        std::unordered_set<std::uint64_t> visited_frames;        // pairs of a trie and a frame
        std::unordered_map<TrieId, VisitedSet> visited_configs;  // by trie: configurations of objects and arrays
    };
    struct Found {  // sizes of `found_`, `tokens_` and `spans_`
        std::size_t sets = 0, tokens = 0, spans = 0;
    };
    // A component summary that is being recorded.
    struct SummaryRecording {
        ResultKey key;
        Config config;
        std::size_t tasks;  // size of `tasks_` at its begin; what is added after that belongs to it
        Found found;        // the same
        bool any_register, reusable;
        std::vector<TrieId> exits, continuations;
    };

    void find_mask(Machine& machine, const Config& config, Mask& made);
    void step_through_context_dependent(Machine& machine, const Config& config, Mask& made);
    void add_part(TokenSetId set);
    Parts keep_parts(const Found& from);
    void drain_worklist(Machine& machine, Mask& mask);
    void run_task(Machine& machine, const Task& task, Mask& mask);
    bool run_punctuation(Machine& machine, const Task& task);
    bool step_along(Machine& machine, const Config& c, std::string_view bytes);
    void run_text(Machine& machine, TrieId trie, bool spaced, std::string_view text, const ByteSet& begins);
    void run_closing(Machine& machine, const Task& task, bool spaced, std::string_view text);
    bool run_keys(Machine& machine, const Task& task);
    KeyIndex key_index_of(Machine& machine, const Task& task);
    bool apply_summary(Machine& machine, const Task& task);
    void end_recording(Machine& machine);
    void leave(Machine& machine, TrieId suffix_trie, const Config& config);
    void add_task(TrieId suffix_trie, const Config& config);

    // summaries.cpp
    void find_mask_of_shared_stacks(Machine& machine, const Config& config, Mask& made);
    std::vector<TrieId> saturate_all(Machine& machine, TrieId trie, const Config& config, Mask& mask);
    void follow(Machine& machine, Exploration& exploration, unsigned depth);
    void drain_worklist(Machine& machine, Exploration& exploration);
    bool run_parts(Machine& machine, Exploration& exploration, const Task& task);
    void leave(Exploration& exploration, TrieId trie, FrameId frame);

    // composite_results.cpp
    struct Accepted {  // accepted tokens: those of a list, and of a row if it is not empty
        std::vector<std::uint32_t> tokens, row;
    };
    TrieId run_inner(Machine& inner, TrieId trie, const Config& config, Accepted& accepted);

    LeafResults& results_;
    FrameSummaries& summaries_;
    PunctuationLeaves& punctuation_;
    const TokenTable& vocabulary_;
    const Tuning& tuning_;
    Fuel& fuel_;
    TokenSets& sets_;
    SuffixTries& suffix_tries_;
    std::uint32_t words_;
    AutomatonCache* cache_ = nullptr;           // of the automaton that the mask is computed for
    std::vector<TrieId>* end_tries_ = nullptr;  // suffix tries at the end of the whole grammar; null: not requested
    Exploration* exploration_ = nullptr;        // receives the tasks and suffix tries, in grammars that share stacks; null in others
    std::size_t paths_ = 0;                     // parser stacks that were examined, in grammars that share stacks
    std::vector<Task> tasks_;
    std::vector<SummaryRecording> recordings_;  // the first `recording_count_` are in use, the innermost last
    std::size_t recording_count_ = 0;
    std::vector<TokenSetId> found_;
    std::vector<std::uint32_t> tokens_;  // of small sets
    std::vector<Span> spans_;
    std::unordered_map<TrieId, VisitedSet> visited_configs_;
    std::size_t task_count_ = 0;  // number of tasks of the mask
    KeyWalk key_walk_;
    std::vector<std::uint32_t> context_dependent_, row_, allowed_, key_pieces_;
    Configs below_, next_, after_;
};

}  // namespace guideway
