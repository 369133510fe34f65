#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nodeagent/operations/operation_journal.h"
#include "tests/simulation/control/memory_journal.h"

namespace verger::sim {

/// What an agent's disk holds.
struct OperationStore {
  std::vector<agent::OperationRecord> records;  ///< oldest first
  std::int64_t highest_epoch = 0;
};

/// An agent's journal without SQLite: the same answers.
std::unique_ptr<agent::OperationJournal> open_memory_operations(
    std::shared_ptr<OperationStore> store, Clock& clock, WriteFates fates);

/// Another journal, whose stored updates are watched.
std::unique_ptr<agent::OperationJournal> watch_operations(
    std::unique_ptr<agent::OperationJournal> journal,
    std::function<void(const agent::OperationRecord&)> on_update);

}  // namespace verger::sim
