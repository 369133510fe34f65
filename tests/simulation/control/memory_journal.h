#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/journal/journal.h"
#include "engine/base/random.h"

namespace verger::sim {

/// What happens to one write; by default it is done.
enum class WriteFate : std::uint8_t {
  kDone,
  kNoSpace,
  kUnknownWritten,  ///< its writer learns that the outcome is unknown
  kUnknownLost,
  kDead,  ///< the process has ended at this very instruction, before the write
};

/// What a journal's disk holds, and the disk of its successor. Shared by the controllers of a
/// pair, as a server for it would be.
struct JournalStore {
  std::vector<controller::JournalEvent> events;
  std::map<std::string, std::vector<std::size_t>, std::less<>> streams;  ///< indices of events
  std::map<std::string, controller::Snapshot, std::less<>> snapshots;
  controller::ControllerEpoch epoch{0};
  /// Called for each event as it becomes durable.
  std::function<void(const controller::JournalEvent&)> on_event;
};

/// Called for each write, before and after it became durable; the second answer only says whether
/// the process still lives.
using WriteFates = std::function<WriteFate(bool written)>;

/// A controller's journal without SQLite: the same answers, some hundred times as fast. The hash
/// chain is not kept: what it protects from does not happen in memory.
std::unique_ptr<controller::Journal> open_memory_journal(std::shared_ptr<JournalStore> store,
                                                         Clock& clock, WriteFates fates);

}  // namespace verger::sim
