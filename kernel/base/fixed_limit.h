// Errors of fixed limits, which cannot be changed by a parameter. The limits of `CompileLimits` have their own messages (expr, work).
#pragma once

#include <cstdint>
#include <string>

#include "guideway/base/error.h"

namespace guideway {

// `what`: the things that are limited. `advice`: how to keep a constraint below the limit.
inline Error over_limit(std::uint64_t limit, const std::string& what, const std::string& advice, std::int64_t node = -1) {
    return Error(ErrorKind::limit, "more than " + std::to_string(limit) + " " + what + " (a fixed limit): " + advice, node);
}

}  // namespace guideway
