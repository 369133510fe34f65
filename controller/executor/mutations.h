#pragma once

namespace verger::controller {

/// Ways to break the executor on purpose, so that the simulation can show that it would notice.
/// Without failpoints compiled in (releases) they have no effect.
struct Mutations {
  bool reply_is_deed = false;  ///< an accepted act counts as done, unobserved
  bool second_resign = false;  ///< once the leader has moved, the new one has to resign as well
  bool repeat_after_crash = false;  ///< what was intended before a restart is done again
};

#ifdef VERGER_FAILPOINTS
inline constexpr bool kMayBeBroken = true;
#else
inline constexpr bool kMayBeBroken = false;
#endif

}  // namespace verger::controller
