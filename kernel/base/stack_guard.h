// A guard against stack overflow where the kernel recurses on nested expressions: threads of some platforms and servers
// have stacks of 128 KB.
#pragma once

namespace guideway {

// Throws Error(limit) if less than 32 KB of the calling thread's stack is left. Platforms without a way to find the
// bounds of the stack are not checked.
void check_stack();

// Whether less than 48 KB is left. Callers that can compute the result without recursion then do so.
bool stack_is_low();

}  // namespace guideway
