#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings.h"
#include "guideway/vocabulary.h"

namespace guideway {

void bind_vocabulary(nb::module_& m) {
    nb::class_<Vocabulary>(m, "Vocabulary",
                           "The tokens of a model as bytes. `memo_bytes`: what its masks may take before the half not used lately goes; `store_bytes`: what "
                           "expressions may take before a new store is begun. `shortcuts`: bits for the ways around a full walk (subtrees, "
                           "deltas, clipped counts), which change no mask.")
        .def(
            "__init__",
            [](Vocabulary* self, const nb::sequence& tokens, const std::vector<std::uint32_t>& eos_ids,
               const std::vector<std::uint32_t>& special_ids, std::size_t memo_bytes, std::size_t store_bytes,
               std::size_t max_states, unsigned shortcuts) {
                std::vector<std::string> bytes;
                for (nb::handle token : tokens) {
                    const auto held = nb::cast<nb::bytes>(token);
                    bytes.emplace_back(held.c_str(), held.size());
                }
                VocabularyLimits limits;
                limits.memo_bytes = memo_bytes;
                limits.store_bytes = store_bytes;
                limits.max_states = max_states;
                limits.shortcuts = {(shortcuts & 1) != 0, (shortcuts & 2) != 0, (shortcuts & 4) != 0};
                new (self) Vocabulary(bytes, eos_ids, special_ids, limits);
            },
            nb::arg("token_bytes"), nb::arg("eos_ids"), nb::arg("special_ids"), nb::kw_only(), nb::arg("memo_bytes") = VocabularyLimits{}.memo_bytes,
            nb::arg("store_bytes") = VocabularyLimits{}.store_bytes, nb::arg("max_states") = VocabularyLimits{}.max_states,
            nb::arg("shortcuts") = 7u,
            nb::sig("def __init__(self, token_bytes: collections.abc.Sequence[bytes], eos_ids: collections.abc.Sequence[int], "
                    "special_ids: collections.abc.Sequence[int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912, "
                    "max_states: int = 4000000, shortcuts: int = 7) -> None"))
        .def_prop_ro("size", &Vocabulary::size, "Number of token ids.")
        .def_prop_ro("words", &Vocabulary::words, "32-bit words of a mask row.");
}

}  // namespace guideway
