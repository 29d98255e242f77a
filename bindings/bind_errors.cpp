// Kernel errors become the classes of guideway.errors.
#include <cstdint>
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>

#include "bindings.h"
#include "guideway/base/error.h"
#include "guideway/base/store_lock.h"

namespace guideway {

namespace {

const char* class_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid: return "InvalidConstraintError";
        case ErrorKind::unsupported: return "UnsupportedError";
        case ErrorKind::unsatisfiable: return "UnsatisfiableError";
        case ErrorKind::limit: return "LimitExceededError";
        case ErrorKind::rejected: return "RejectedTokenError";
        case ErrorKind::token: return "InvalidTokenError";
        case ErrorKind::argument: break;
    }
    return nullptr;
}

// The module guideway.errors, imported once. The caller holds the interpreter lock.
nb::handle errors() {
    static PyObject* module = nullptr;
    if (!module) module = nb::module_::import_("guideway.errors").release().ptr();
    return module;
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        const char* name = class_of(error.kind);
        if (!name) {
            PyErr_SetString(PyExc_ValueError, error.what());
            return;
        }
        const nb::object type = errors().attr(name);
        std::string message = error.what();
        for (const char* limit : {"max_states", "max_work"})
            if (error.kind == ErrorKind::limit && message.find(std::string(limit) + " = ") != std::string::npos)
                message += "; to raise the limit: guideway.compile(..., limits=CompileLimits(" + std::string(limit) + "=...))";
        const nb::object made = type(message.c_str());
        if (error.node >= 0) made.attr("node") = error.node;
        PyErr_SetObject(type.ptr(), made.ptr());
    }
}

}  // namespace

void bind_errors(nb::module_& m) {
    nb::register_exception_translator(translate);
    nb::exception<Deferred>(m, "WorkDeferred");
    m.def(
        "bound_work",
        [](std::optional<std::uint64_t> units) -> std::optional<std::uint64_t> {
            const std::uint64_t before = WorkBound::left();
            WorkBound::set(units.value_or(WorkBound::kNone));
            return before == WorkBound::kNone ? std::nullopt : std::optional(before);
        },
        nb::arg("units").none(),
        "Limit the total work of later calls of this thread to this number of units of work (about 10 ns each). None removes the limit.\n\n"
        "A call that reaches the limit raises `WorkDeferred` and changes no matcher. It can be repeated.\n\n"
        "Returns:\n    The units that were left of the previous limit, or None if there was none.");
    m.def("begin_round", &LoopRounds::begin,
          "Begin a round of a generation loop in this thread.\n\n"
          "Until `end_round`, calls of other threads that are background work wait before they use a store, 5 ms at most.");
    m.def("end_round", &LoopRounds::end, "End the round of this thread, if there is one.");
    m.def("work_in_background", &LoopRounds::work_in_background,
          "Treat all later calls of this thread as background work, like the compilation of constraints.");
}

}  // namespace guideway
