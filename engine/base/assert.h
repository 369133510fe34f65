#pragma once

namespace verger {
/// Prints the broken invariant and ends the process; what is journaled makes that safe.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace verger

/// For bugs only, in all builds; never on bytes from disk or network.
#define VERGER_ASSERT(condition)         \
  (static_cast<bool>(condition) ? void() \
                                : ::verger::assertion_failed(#condition, __FILE__, __LINE__))
