#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "guideway/logits/mask_logits.h"
#include "guideway/matcher/batch.h"
#include "guideway/matcher/matcher.h"
#include "tables.h"

namespace guideway {

namespace {

// `LoopRows`, and the Python objects that they use.
struct PythonRows {
    std::vector<nb::object> held;
    MaskRows masks;  // that are being computed
    std::unique_ptr<LoopRows> rows;
    mutable std::mutex use{};  // its holder must not wait for the GIL

    // Calls f(rows) while no other thread uses the rows. Releases the GIL.
    template <class F>
    auto with(F&& f) const {
        const nb::gil_scoped_release release;
        const std::lock_guard alone(use);
        rows->settle();
        return f(*rows);
    }
};

std::unique_ptr<LoopRows> loop_rows(const nb::sequence& rows, std::vector<nb::object>& held) {
    std::vector<LoopRow> made;
    for (nb::handle one : rows) {
        std::tuple<nb::object, std::size_t, std::size_t, std::uint32_t> given;
        Matcher* matcher = nullptr;
        if (!nb::try_cast(one, given) || (!std::get<0>(given).is_none() && !nb::try_cast(std::get<0>(given), matcher)))
            throw nb::type_error("a row is a matcher or None, and three numbers from 0 on");
        made.push_back({matcher, std::get<1>(given), std::get<2>(given), std::get<3>(given)});
        held.push_back(std::get<0>(given));
    }
    return std::make_unique<LoopRows>(std::move(made));
}

// A call of an engine. `since` has no value if there is no clock, or another call has not ended.
struct ClockedCall {
    explicit ClockedCall(LoopClock* given) : since(given ? given->enter() : std::nullopt), clock(given) {}
    ClockedCall(const ClockedCall&) = delete;
    ClockedCall& operator=(const ClockedCall&) = delete;
    ~ClockedCall() {
        if (since) clock->leave();
    }
    const std::optional<double> since;
    LoopClock* const clock;
};

IdRows id_rows(const Table<const std::int64_t>& ids) { return {ids.data, ids.rows, ids.width, ids.stride}; }
LogitRows logit_rows(const Table<float>& logits) { return {logits.data, logits.rows, logits.width, logits.stride}; }

}  // namespace

void bind_loop(nb::module_& m) {
    nb::class_<LoopClock>(m, "LoopClock", "Measures the calls of a logits processor by an engine, which do not overlap.")
        .def(nb::init<>())
        .def("enter", &LoopClock::enter,
             "Begin a call. Returns the seconds since the last call ended, 0 for the first call, or None if another call "
             "has not ended.")
        .def("leave", &LoopClock::leave, "End a call. Required after each `enter` that returned a number.")
        .def(
            "take",
            [](LoopClock& self) {
                return std::tuple(std::exchange(self.calls, 0), std::exchange(self.model, 0), std::exchange(self.mask, 0),
                                  std::exchange(self.copy, 0));
            },
            "Read and reset the counters: the number of calls of `LoopRows.run_on` that masked logits, and the seconds spent "
            "between the end of a call of the clock and `run_on`, computing masks, and applying masks to logits.");
    nb::class_<PythonRows>(m, "LoopRows", "The rows of an engine's generation loop. Each step adds one token to each row.")
        .def(
            "__init__",
            [](PythonRows* self, const nb::sequence& rows) {
                std::vector<nb::object> held;
                auto made = loop_rows(rows, held);
                new (self) PythonRows{std::move(held), {}, std::move(made)};
            },
            nb::arg("rows"), nb::sig("def __init__(self, rows: collections.abc.Sequence[tuple[Matcher | None, int, int, int]]) -> None"),
            "rows: for each row, its matcher (None: unconstrained), its number of tokens, how many of these the matcher "
            "has taken, and the maximum number of tokens (0: unlimited).")
        .def(
            "grow",
            [](PythonRows& self, const Integers& tokens) {
                const auto ids = integers<std::int64_t>(tokens);
                self.with([&](LoopRows& rows) { rows.grow(ids); });
            },
            nb::arg("tokens"),
            "Append token i to row i. The next `run` advances the matchers; a matcher takes its token only if the token is "
            "legal.")
        .def(
            "know",
            [](PythonRows& self, nb::handle ids) {
                const auto given = table<const std::int64_t>(ids);
                if (!given) throw nb::type_error("tokens are int64 [rows, tokens], the tokens of a row side by side");
                self.with([&](LoopRows& rows) { rows.know(id_rows(*given)); });
            },
            nb::arg("ids"), nb::sig("def know(self, ids: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Set the token ids that the engine has in the rows now, including the prompts. `grow_to` and `run_on` compare "
            "with them.")
        .def(
            "grow_to",
            [](PythonRows& self, nb::handle ids) {
                const auto given = table<const std::int64_t>(ids);
                return given && self.with([&](LoopRows& rows) { return rows.grow_to(id_rows(*given)); });
            },
            nb::arg("ids"), nb::sig("def grow_to(self, ids: typing.Any) -> bool"),
            "If all columns of `ids` but the last equal the known tokens, call `grow` with the last column and return "
            "True. Otherwise change nothing and return False. ids: int64 [rows, tokens] on the CPU.")
        .def_prop_ro(
            "known",
            [](const PythonRows& self) {
                const std::size_t count = self.rows->rows().size();
                auto* const made = new std::vector<std::int64_t>(self.with([](const LoopRows& rows) { return rows.known(); }));
                const nb::capsule owner(made, [](void* all) noexcept { delete static_cast<std::vector<std::int64_t>*>(all); });
                return nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>(made->data(), {count, count ? made->size() / count : 0}, owner);
            },
            nb::rv_policy::move, nb::sig("def known(self) -> numpy.typing.NDArray[numpy.int64]"),
            "A copy of the known tokens, [rows, tokens]. [rows, 0] if none are known.")
        .def_prop_ro(
            "width", [](const PythonRows& self) { return self.with([](const LoopRows& rows) { return rows.width(); }); },
            "The number of known tokens of each row.")
        .def(
            "run",
            [](PythonRows& self, const MaskRows& masks) { self.with([&](LoopRows& rows) { rows.run(words(masks), masks.shape(1)); }); },
            nb::arg("masks").noconvert(),
            "Advance the matchers by the appended tokens and fill the masks. A mask allows the legal tokens that fit the "
            "budget of the row, or all legal tokens if none fits; if the row is not held, it has all bits set. After an "
            "error, the object cannot be used again. Releases the GIL.")
        .def(
            "run_on",
            [](PythonRows& self, nb::handle ids, nb::handle source, nb::handle target, LoopClock& clock) {
                using Nothing = std::optional<std::vector<std::size_t>>;
                const auto given = table<const std::int64_t>(ids);
                const auto from = given ? table<float>(source) : std::nullopt, to = target.is(source) ? from : table<float>(target);
                const ClockedCall call{from && to ? &clock : nullptr};
                if (!call.since) return Nothing();
                clock.model += *call.since;
                return self.with([&](LoopRows& rows) {
                    if (!rows.grow_to(id_rows(*given))) return Nothing();
                    return Nothing(rows.run_on(logit_rows(*from), logit_rows(*to), clock));
                });
            },
            nb::arg("ids"), nb::arg("source"), nb::arg("target").none(), nb::arg("clock"),
            nb::sig("def run_on(self, ids: typing.Any, source: typing.Any, target: typing.Any, clock: LoopClock) -> list[int] | None"),
            "Call `grow_to`, `run` and `mask_logits` in turn, as one call of the clock. Returns the result of "
            "`mask_logits`. Returns None and changes no row if the arguments are not NumPy arrays or PyTorch tensors on a "
            "CPU (`ids` int64, `source` and `target` float32), if `grow_to` returns False, or if another call of the clock "
            "has not ended.")
        .def(
            "begin",
            [](PythonRows& self, const MaskRows& masks) {
                const std::lock_guard alone(self.use);
                self.rows->wait();  // for a thread that still writes to the earlier masks
                self.masks = masks;
                self.rows->begin(words(masks), masks.shape(1));
            },
            nb::arg("masks").noconvert(), "Call `run` on another thread. Do not access the masks and matchers before `wait`.")
        .def(
            "wait", [](PythonRows& self) { self.with([](LoopRows& rows) { rows.wait(); }); },
            "Wait for the thread of `begin`. Raises the errors of `run`.")
        .def_prop_ro(
            "seconds", [](const PythonRows& self) { return self.with([](const LoopRows& rows) { return rows.seconds(); }); },
            "The seconds that the other thread worked.")
        .def_prop_ro(
            "held",
            [](const PythonRows& self) {
                return self.with([](const LoopRows& rows) {
                    std::vector<bool> made;
                    for (const LoopRow& row : rows.rows()) made.push_back(row.is_held());
                    return made;
                });
            },
            nb::sig("def held(self) -> list[bool]"),
            "For each row, whether it is held: its matcher has taken all of its tokens, or is finished.")
        .def_prop_ro(
            "lengths",
            [](const PythonRows& self) {
                return self.with([](const LoopRows& rows) {
                    std::vector<std::pair<std::size_t, std::size_t>> made;
                    for (const LoopRow& row : rows.rows()) made.emplace_back(row.length, row.taken);
                    return made;
                });
            },
            "For each row, its number of tokens, and how many of them the matcher has taken.");
}

}  // namespace guideway
