#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "guideway/base/error.h"
#include "guideway/logits/sample.h"

namespace guideway {

namespace {

using Logits = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const float> view(const Logits& logits) { return {logits.data(), logits.size()}; }
std::span<const std::uint32_t> view(const Mask& words) { return {words.data(), words.size()}; }
std::span<const std::uint32_t> view(const std::optional<Mask>& words) {
    if (!words) return {};
    if (words->size() == 0) throw Error(ErrorKind::argument, "a mask without words; None allows every token");
    return view(*words);
}

// A draw from more logits releases the GIL. With fewer, it takes less time than the wait for the GIL that can follow its release.
constexpr std::size_t kMostWithGil = 1 << 16;

std::optional<Drawn> drawn(const Sampling& how, const Logits& logits, const std::optional<Mask>& mask, double number, bool exclude_top,
                           const std::optional<Mask>& seen, const std::optional<Mask>& counts) {
    Seen before;
    if (seen && counts) before = {view(*seen), view(*counts)};
    if (seen.has_value() != counts.has_value() || before.ids.size() != before.counts.size())
        throw Error(ErrorKind::argument, "each token that was there needs one count");
    const auto words = view(mask);
    if (logits.size() <= kMostWithGil) return sample(view(logits), words, how, before, number, exclude_top);
    const nb::gil_scoped_release release;
    return sample(view(logits), words, how, before, number, exclude_top);
}

}  // namespace

void bind_sample(nb::module_& m) {
    nb::class_<Sampling>(m, "Sampling", "The stages of `guideway.sampling.Sampler` in their usual order, for float32 logits on the CPU.")
        .def(
            "__init__",
            [](Sampling* self, double temperature, std::uint32_t top_k, double top_p, double min_p, double tail_free, double typical_p,
               double top_a, double top_n_sigma, double xtc_threshold, double repetition_penalty, double presence_penalty,
               double frequency_penalty, std::vector<std::uint32_t> bias_ids, std::vector<double> biases) {
                if (bias_ids.size() != biases.size()) throw Error(ErrorKind::argument, "each biased token needs one bias");
                new (self) Sampling{temperature,
                                    repetition_penalty,
                                    presence_penalty,
                                    frequency_penalty,
                                    top_n_sigma,
                                    tail_free,
                                    typical_p,
                                    top_a,
                                    top_p,
                                    min_p,
                                    xtc_threshold,
                                    top_k,
                                    std::move(bias_ids),
                                    std::move(biases)};
            },
            nb::kw_only(), nb::arg("temperature"), nb::arg("top_k"), nb::arg("top_p"), nb::arg("min_p"), nb::arg("tail_free"),
            nb::arg("typical_p"), nb::arg("top_a"), nb::arg("top_n_sigma"), nb::arg("xtc_threshold"), nb::arg("repetition_penalty"),
            nb::arg("presence_penalty"), nb::arg("frequency_penalty"), nb::arg("bias_ids"), nb::arg("biases"))
        .def(
            "draw",
            [](const Sampling& self, const Logits& logits, const std::optional<Mask>& mask, double number, bool exclude_top,
               const std::optional<Mask>& seen, const std::optional<Mask>& counts) -> std::optional<std::uint32_t> {
                const auto found = drawn(self, logits, mask, number, exclude_top, seen, counts);
                return found ? std::optional(found->token) : std::nullopt;
            },
            nb::arg("logits").noconvert(), nb::arg("mask").none().noconvert(), nb::arg("number") = 0.0, nb::arg("exclude_top") = false,
            nb::arg("seen").none().noconvert() = nb::none(), nb::arg("counts").none().noconvert() = nb::none(),
            nb::sig(
                "def draw(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, number: float = 0.0, "
                "exclude_top: bool = False, seen: numpy.typing.NDArray[numpy.uint32] | None = None, "
                "counts: numpy.typing.NDArray[numpy.uint32] | None = None) -> int | None"),
            "Draw the token that `number`, in [0, 1), selects. Returns None if no token can be drawn, or if a logit is NaN "
            "or +inf. seen: the distinct earlier tokens, with their `counts`. exclude_top: whether XTC is applied. "
            "Releases the GIL for more than 65,536 logits.")
        .def(
            "draw_with_gap",
            [](const Sampling& self, const Logits& logits, const std::optional<Mask>& mask, double number, bool exclude_top,
               const std::optional<Mask>& seen, const std::optional<Mask>& counts) -> std::optional<std::pair<std::uint32_t, double>> {
                const auto found = drawn(self, logits, mask, number, exclude_top, seen, counts);
                return found ? std::optional(std::pair(found->token, found->gap)) : std::nullopt;
            },
            nb::arg("logits").noconvert(), nb::arg("mask").none().noconvert(), nb::arg("number"), nb::arg("exclude_top"),
            nb::arg("seen").none().noconvert(), nb::arg("counts").none().noconvert(),
            nb::sig("def draw_with_gap(self, logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, "
                    "number: float, exclude_top: bool, seen: numpy.typing.NDArray[numpy.uint32] | None, "
                    "counts: numpy.typing.NDArray[numpy.uint32] | None) -> tuple[int, float] | None"),
            "As `draw`. Also returns by how much the difference of two logits must change before another token is drawn, "
            "as if the set of tokens that the cuts keep did not change.");
    m.def(
        "shares",
        [](const Logits& logits, const std::optional<Mask>& mask, std::uint32_t token) {
            const Shares found = shares(view(logits), view(mask), token);
            return nb::make_tuple(found.logprob, found.mask_logprob, found.removed);
        },
        nb::arg("logits").noconvert(), nb::arg("mask").none().noconvert(), nb::arg("token_id"),
        nb::sig("def shares(logits: numpy.typing.NDArray[numpy.float32], mask: numpy.typing.NDArray[numpy.uint32] | None, token_id: int) "
                "-> tuple[float, float, float]"),
        "The log-probability of a token without the mask, the same with the mask, and the total probability of the "
        "tokens that the mask forbids.");
}

}  // namespace guideway
