// Errors that the kernel reports. The bindings turn each kind into a class of guideway.errors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace guideway {

enum class ErrorKind { invalid, unsupported, unsatisfiable, limit, rejected, token, argument };

// `node` is the number of the grammar node that caused the error, or -1.
struct Error : std::runtime_error {
    Error(ErrorKind k, const std::string& message, std::int64_t n = -1) : std::runtime_error(message), kind(k), node(n) {}
    ErrorKind kind;
    std::int64_t node;
};

// A search has exceeded its limit. The other results of the call are still valid.
struct SearchLimit : Error {
    explicit SearchLimit(const std::string& message) : Error(ErrorKind::limit, message) {}
};

// Calls f. An error without a node gets this node; with -1, the node of an error is removed.
template <class F>
decltype(auto) at_node(std::int64_t node, F&& f) {
    try {
        return f();
    } catch (Error& error) {
        if (node < 0 || error.node < 0) error.node = node;
        throw;
    }
}

}  // namespace guideway
