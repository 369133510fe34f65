#pragma once

#include <string_view>

namespace verger {

/// Called with the name of each failpoint the program passes, from any thread; null takes it away.
/// While there is one, the environment is not looked at. Test builds only.
using FailpointHook = void (*)(std::string_view name);
void set_failpoint_hook(FailpointHook hook);
void failpoint_reached(std::string_view name);

}  // namespace verger

/// A named place where a test may kill the process, for example "chunk.switch.after-rename".
/// Compiled to nothing unless VERGER_FAILPOINTS is set. Without a hook, the environment variable
/// VERGER_FAILPOINT=name[:n] makes the process kill itself (SIGKILL) when it passes `name` for the
/// nth time (default 1), after appending the name as a line to the file VERGER_FAILPOINT_LOG if
/// that is set. VERGER_FAILPOINT_LOG alone makes it append each failpoint that it passes, once.
#ifdef VERGER_FAILPOINTS
#define VERGER_FAILPOINT(name) ::verger::failpoint_reached(name)
#else
#define VERGER_FAILPOINT(name) static_cast<void>(0)
#endif
