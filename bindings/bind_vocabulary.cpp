#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings.h"
#include "guideway/base/checksum.h"
#include "guideway/base/error.h"
#include "guideway/base/tuning.h"
#include "guideway/matcher/vocabulary.h"

namespace guideway {

namespace {

using Ids = std::vector<std::uint32_t>;
using File = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string_view view(const nb::bytes& data) { return {data.c_str(), data.size()}; }

std::string block_of(nb::handle tokens) {
    const nb::object held = nb::steal(PySequence_Fast(tokens.ptr(), "token_bytes must be a sequence of bytes"));
    if (!held.is_valid()) throw nb::python_error();
    const std::span items(PySequence_Fast_ITEMS(held.ptr()), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(held.ptr())));
    TokenBlockWriter made(items.size());
    for (std::size_t id = 0; id < items.size(); ++id) {
        PyObject* token = items[id];
        if (!PyBytes_CheckExact(token)) {
            const std::string type = nb::cast<std::string>(nb::handle(token).type().attr("__name__"));
            throw nb::type_error(("token_bytes[" + std::to_string(id) + "] is " + type + "; every token must be bytes").c_str());
        }
        made.add({PyBytes_AS_STRING(token), static_cast<std::size_t>(PyBytes_GET_SIZE(token))});
    }
    return made.take();
}

nb::tuple tokens_of(const nb::bytes& block) {
    const TokenBlock found(view(block));
    const TokenView all = found.view();
    nb::object made = nb::steal(PyTuple_New(all.size()));
    if (!made.is_valid()) throw nb::python_error();
    for (std::uint32_t id = 0; id < all.size(); ++id) {
        PyObject* token = PyBytes_FromStringAndSize(all[id].data(), static_cast<Py_ssize_t>(all[id].size()));
        if (!token) throw nb::python_error();
        PyTuple_SET_ITEM(made.ptr(), id, token);
    }
    return nb::cast<nb::tuple>(made);
}

VocabularyLimits limits_of(std::size_t max_states, std::uint64_t max_work) {
    VocabularyLimits limits;
    limits.max_states = max_states;
    limits.max_work = max_work;
    return limits;
}

// Switches and thresholds by name.
Tuning tuning_of(const nb::dict& given) {
    Tuning made;
    for (const auto& [key, value] : given) {
        const auto name = nb::cast<std::string>(key);
        const auto number = nb::cast<std::uint32_t>(value);
        bool known = false;
        for (const TuningSwitch& each : kTuningSwitches)
            if (each.name == name) made.*each.member = number != 0, known = true;
        for (const TuningThreshold& each : kTuningThresholds)
            if (each.name == name) made.*each.member = number, known = true;
        if (!known) throw Error(ErrorKind::argument, "no switch or threshold is named " + name + "; kernel/base/tuning.h lists them");
    }
    return made;
}

std::vector<std::string> mechanisms() {
    std::vector<std::string> made;
    for (const TuningSwitch& each : kTuningSwitches) made.emplace_back(each.name);
    return made;
}

nb::dict thresholds() {
    nb::dict made;
    for (const TuningThreshold& each : kTuningThresholds) made[std::string(each.name).c_str()] = each.eager;
    return made;
}

// The caller owns the result.
Vocabulary* read(const nb::bytes& block, const Integers& eos, const Integers& special, const File& file, std::size_t max_states,
                 std::uint64_t max_work) {
    if (file.size() % 8 || reinterpret_cast<std::uintptr_t>(file.data()) % 8)
        throw Error(ErrorKind::argument, "the file's length or address is not a multiple of 8");
    const std::shared_ptr<const void> owner(new File(file), [](const File* held) {
        if (!nb::is_alive()) return;  // the interpreter has ended, and its objects do not exist any more
        const nb::gil_scoped_acquire acquire;
        delete held;
    });
    const Ids eos_ids = integers<std::uint32_t>(eos), special_ids = integers<std::uint32_t>(special);
    const nb::gil_scoped_release release;
    return new Vocabulary(TokenBlock(view(block)), eos_ids, special_ids,
                          std::span(reinterpret_cast<const std::uint64_t*>(file.data()), file.size() / 8), owner,
                          limits_of(max_states, max_work));
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
    nb::class_<Vocabulary>(
        m, "KernelVocabulary",
        "The tokens of a model as bytes. `memo_bytes`: the size of cached masks above which the least recently used ones are "
        "removed; `store_bytes`: the size of expressions above which a new store is begun.")
        .def(
            "__init__",
            [](Vocabulary* self, const nb::sequence& tokens, const Integers& eos, const Integers& special, std::size_t memo_bytes,
               std::size_t store_bytes, std::size_t max_states) {
                VocabularyLimits limits;
                limits.memo_bytes = memo_bytes;
                limits.store_bytes = store_bytes;
                limits.max_states = max_states;
                const Ids eos_ids = integers<std::uint32_t>(eos), special_ids = integers<std::uint32_t>(special);
                const std::string block = block_of(tokens);
                const nb::gil_scoped_release release;
                new (self) Vocabulary(TokenBlock(block), eos_ids, special_ids, limits);
            },
            nb::arg("token_bytes"), nb::arg("eos_ids"), nb::arg("special_ids"), nb::kw_only(),
            nb::arg("memo_bytes") = VocabularyLimits{}.memo_bytes, nb::arg("store_bytes") = VocabularyLimits{}.store_bytes,
            nb::arg("max_states") = VocabularyLimits{}.max_states,
            nb::sig("def __init__(self, token_bytes: collections.abc.Sequence[bytes], eos_ids: collections.abc.Sequence[int], "
                    "special_ids: collections.abc.Sequence[int], *, memo_bytes: int = 268435456, store_bytes: int = 536870912, "
                    "max_states: int = 4000000) -> None"))
        .def_static(
            "tuned",
            [](const nb::sequence& tokens, const Integers& eos, const Integers& special, const nb::dict& tuning, std::size_t memo_bytes,
               std::size_t store_bytes) {
                VocabularyLimits limits;
                limits.memo_bytes = memo_bytes;
                limits.store_bytes = store_bytes;
                limits.tuning = tuning_of(tuning);
                const Ids eos_ids = integers<std::uint32_t>(eos), special_ids = integers<std::uint32_t>(special);
                const std::string block = block_of(tokens);
                const nb::gil_scoped_release release;
                return new Vocabulary(TokenBlock(block), eos_ids, special_ids, limits);
            },
            nb::rv_policy::take_ownership, nb::arg("token_bytes"), nb::arg("eos_ids"), nb::arg("special_ids"), nb::arg("tuning"),
            nb::kw_only(), nb::arg("memo_bytes") = VocabularyLimits{}.memo_bytes, nb::arg("store_bytes") = VocabularyLimits{}.store_bytes,
            nb::sig("def tuned(token_bytes: collections.abc.Sequence[bytes], eos_ids: collections.abc.Sequence[int], "
                    "special_ids: collections.abc.Sequence[int], tuning: dict[str, int], *, memo_bytes: int = 268435456, "
                    "store_bytes: int = 536870912) -> KernelVocabulary"),
            "A vocabulary for tests and benchmarks. `tuning` sets switches and thresholds of kernel/base/tuning.h by name; "
            "they do not change any mask.")
        .def_static("mechanisms", &mechanisms, "The switches that `tuned` accepts.")
        .def_static("thresholds", &thresholds, nb::sig("def thresholds() -> dict[str, int]"),
                    "The thresholds that `tuned` accepts, with values that small vocabularies reach.")
        .def_static(
            "of_block",
            [](const nb::bytes& block, const Integers& eos, const Integers& special, std::size_t max_states, std::uint64_t max_work) {
                const Ids eos_ids = integers<std::uint32_t>(eos), special_ids = integers<std::uint32_t>(special);
                const nb::gil_scoped_release release;
                return new Vocabulary(TokenBlock(view(block)), eos_ids, special_ids, limits_of(max_states, max_work));
            },
            nb::rv_policy::take_ownership, nb::arg("block"), nb::arg("eos_ids"), nb::arg("special_ids"), nb::kw_only(),
            nb::arg("max_states") = VocabularyLimits{}.max_states, nb::arg("max_work") = VocabularyLimits{}.max_work,
            nb::sig("def of_block(block: bytes, eos_ids: collections.abc.Sequence[int], special_ids: collections.abc.Sequence[int], *, "
                    "max_states: int = 4000000, max_work: int = 400000000) -> KernelVocabulary"),
            "A vocabulary from the result of `flatten`.")
        .def(
            "save",
            [](const Vocabulary& self) {
                const std::vector<std::uint64_t> file = [&] {
                    const nb::gil_scoped_release release;
                    return self.file();
                }();
                return nb::bytes(file.data(), file.size() * 8);
            },
            "The parts that take long to build, for `load` on machines with the same byte order.")
        .def_static(
            "load", &read, nb::rv_policy::take_ownership, nb::arg("block"), nb::arg("eos_ids"), nb::arg("special_ids"), nb::arg("file"),
            nb::kw_only(), nb::arg("max_states") = VocabularyLimits{}.max_states, nb::arg("max_work") = VocabularyLimits{}.max_work,
            nb::sig(
                "def load(block: bytes, eos_ids: collections.abc.Sequence[int], special_ids: collections.abc.Sequence[int], "
                "file: numpy.typing.NDArray[numpy.uint8], *, max_states: int = 4000000, max_work: int = 400000000) -> KernelVocabulary"),
            "As `of_block`, but with the tables that take long to build from `file`, a result of `save` of an equal vocabulary. The "
            "vocabulary keeps the array, which must not change. Raises ValueError if the file belongs to other tokens or "
            "is malformed.")
        .def(
            "open_ends", [](const Vocabulary& self, const nb::bytes& text) { return self.open_ends(view(text)); }, nb::arg("text"),
            "The positions p where text[p:] is a proper prefix of some token.")
        .def(
            "_locking",
            [](const Vocabulary& self) {
                const auto found = [&] {
                    const nb::gil_scoped_release release;
                    return self.store()->lock.statistics();
                }();
                nb::dict made;
                made["most_waited"] = found.most_waited;
                made["most_delayed"] = found.most_delayed;
                made["preempted"] = found.preempted;
                made["windows"] = found.windows;
                made["most_with_gil"] = LongCall::most_work();
                return made;
            },
            nb::sig("def _locking(self) -> dict[str, int]"),
            "For tests: statistics of the lock of this vocabulary's store. `most_waited`: the most units of work that a "
            "thread did while another thread waited for the lock; `most_delayed`: the same while a step of a sequence "
            "waited. `preempted`: how often a thread was interrupted. `windows`: how often readers were admitted. "
            "`most_with_gil`: the most units that a call did before it released the GIL.")
        .def_prop_ro("size", &Vocabulary::size, "The number of token ids.")
        .def_prop_ro("words", &Vocabulary::words, "The number of 32-bit words of a mask row.");

    m.def(
        "flatten",
        [](const nb::tuple& tokens) {
            const std::string made = block_of(tokens);
            return nb::bytes(made.data(), made.size());
        },
        nb::arg("tokens"), nb::sig("def flatten(tokens: tuple[bytes, ...]) -> bytes"),
        "The tokens as one block of bytes. Different sequences of tokens have different blocks.");
    m.def("unflatten", tokens_of, nb::arg("block"), nb::sig("def unflatten(block: bytes) -> tuple[bytes, ...]"),
          "The tokens from which `flatten` made a block.");
    m.def(
        "checksum",
        [](const nb::object& data, std::uint64_t seed) {
            Py_buffer held;
            if (PyObject_GetBuffer(data.ptr(), &held, PyBUF_SIMPLE) != 0) throw nb::python_error();
            const std::uint64_t sum = [&] {
                const nb::gil_scoped_release release;  // the buffer is held
                return checksum({static_cast<const std::uint8_t*>(held.buf), static_cast<std::size_t>(held.len)}, seed);
            }();
            PyBuffer_Release(&held);
            return sum;
        },
        nb::arg("data"), nb::arg("seed"), nb::sig("def checksum(data: bytes | bytearray | memoryview, seed: int) -> int"),
        "A 64-bit checksum that detects damaged data. Not cryptographic.");
}

}  // namespace guideway
