#include <algorithm>
#include <fmt/format.h>

#include "controller/journal/journal.h"

namespace verger::controller {

Result<std::vector<JournalEvent>> StreamWriter::append(std::vector<NewEvent> events) {
  auto appended = journal_->append(stream_, revision_, events, epoch_);
  if (appended) {
    revision_ = appended->empty() ? revision_ : appended->back().revision;
    return appended;
  }
  if (appended.error().code != Errc::kUnknownOutcome) {
    return appended.error();
  }
  auto found = journal_->read(stream_, revision_);
  if (!found) {
    return Error{Errc::kUnknownOutcome,
                 appended.error().message + "; reading it: " + found.error().message};
  }
  if (found->empty()) {
    return Error{Errc::kUnavailable, fmt::format("{}: {} events were not written: {}", stream_,
                                                 events.size(), appended.error().message)};
  }
  const bool ours = found->size() == events.size() &&
                    std::ranges::equal(*found, events, [this](const auto& is, const auto& wanted) {
                      return is.type == wanted.type && is.data == wanted.data && is.epoch == epoch_;
                    });
  if (!ours) {
    return Error{Errc::kConflict, fmt::format("{}: another writer wrote to it", stream_)};
  }
  revision_ = found->back().revision;
  return found;
}

}  // namespace verger::controller
