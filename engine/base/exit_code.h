#pragma once

#include "engine/base/result.h"

/// Exit codes of all programs (docs/operations/command-line.md).
namespace verger {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;  ///< or damage or differences were found
inline constexpr int kExitRefused = 2;
inline constexpr int kExitStopped = 3;
inline constexpr int kExitWaiting = 4;  ///< still waiting, or the outcome is not known
inline constexpr int kExitUsage = 64;

/// Of a daemon that does not start: its input is wrong, another process has what it needs,
/// or anything else.
inline int exit_code_of_start(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return kExitUsage;
    case Errc::kRefused:
    case Errc::kConflict:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

}  // namespace verger
