#pragma once

#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "controller/journal/journal.h"

namespace verger::controller {

/// Appends to a stream whose events are folded into a state up to revision `folded`, and folds what
/// the journal wrote, as a restart would read it. `fold`: Result<void>(const JournalEvent&).
///
/// Where an earlier append of unknown outcome was written after all, its events are folded now and
/// the error is kUnavailable: the caller decided by an older state and may try again. Other errors:
/// StreamWriter's, fold's.
template <class Fold>
Result<void> append_and_fold(Journal& journal, std::string stream, ControllerEpoch epoch,
                             Revision folded, std::vector<NewEvent> events, const Fold& fold) {
  VERGER_TRY(const auto missed, journal.read(stream, folded));
  for (const auto& event : missed) {
    VERGER_RETURN_IF_ERROR(fold(event));
  }
  if (!missed.empty()) {
    return Error{Errc::kUnavailable,
                 fmt::format("{}: an earlier change was written after all; look at it, then try "
                             "again",
                             stream)};
  }
  StreamWriter writer(journal, std::move(stream), epoch, folded);
  VERGER_TRY(const auto written, writer.append(std::move(events)));
  for (const auto& event : written) {
    VERGER_RETURN_IF_ERROR(fold(event));
  }
  return {};
}

}  // namespace verger::controller
