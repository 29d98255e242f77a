#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <vector>

#include "bindings.h"
#include "guideway/error.h"
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
        .def(
            "save",
            [](const Vocabulary& self) {
                const std::vector<std::uint64_t> file = self.file();
                return nb::bytes(file.data(), file.size() * 8);
            },
            "All that building it took, for `load` on a machine of the same byte order.")
        .def_static(
            "load",
            [](const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& data) {
                if (data.size() % 8 || reinterpret_cast<std::uintptr_t>(data.data()) % 8)
                    throw Error(ErrorKind::argument, "a file of odd length, or at an odd place");
                using Data = std::remove_cvref_t<decltype(data)>;
                const std::shared_ptr<const void> owner(new Data(data), [](const Data* held) {
                    if (!nb::is_alive()) return;  // the interpreter is gone, and so is what it held
                    const nb::gil_scoped_acquire acquire;
                    delete held;
                });
                const std::span file(reinterpret_cast<const std::uint64_t*>(data.data()), data.size() / 8);
                const nb::gil_scoped_release release;
                return std::make_shared<Vocabulary>(file, owner);
            },
            nb::arg("data"), nb::sig("def load(data: numpy.typing.NDArray[numpy.uint8]) -> Vocabulary"),
            "What `save` gave; the array is kept and must not change. ValueError where it is none: its bounds are checked, not what it says.")
        .def_prop_ro("size", &Vocabulary::size, "Number of token ids.")
        .def_prop_ro("words", &Vocabulary::words, "32-bit words of a mask row.");

    m.def(
        "flatten",
        [](const nb::tuple& tokens) {
            // Lengths as 32-bit words, little end first, then the bytes: one pass, where Python needs three.
            std::size_t total = 4 * tokens.size();
            for (nb::handle token : tokens) {
                if (!PyBytes_CheckExact(token.ptr())) throw nb::type_error("every token must be bytes");
                total += static_cast<std::size_t>(PyBytes_GET_SIZE(token.ptr()));
            }
            nb::bytearray flat(nullptr, total);
            auto* lengths = static_cast<unsigned char*>(flat.data());
            unsigned char* text = lengths + 4 * tokens.size();
            for (nb::handle token : tokens) {
                const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(token.ptr()));
                for (unsigned b = 0; b < 4; ++b) *lengths++ = static_cast<unsigned char>(size >> (8 * b));
                if (size) std::memcpy(text, PyBytes_AS_STRING(token.ptr()), size);
                text += size;
            }
            return flat;
        },
        nb::arg("tokens"), nb::sig("def flatten(tokens: tuple[bytes, ...]) -> bytearray"), "The tokens as one block that no other tokens have, for digests.");
}

}  // namespace guideway
