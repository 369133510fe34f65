#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "nodeagent/api/agent.h"

namespace verger::agent {

/// An operation as the agent remembers it. `memory_json` is what its kind must not forget between
/// acting and observing, for example the id of the scavenge it started.
struct OperationRecord {
  api::OperationRequest request;
  api::OperationStatus status;
  std::string memory_json = "{}";
};

/// The agent's own journal: operations by id and the highest controller epoch seen. Every call is
/// durable when it returns. One thread. Schema: docs/formats/agent-journal.md.
class OperationJournal {
 public:
  /// Creates the file when missing. Errors: kCorruption, kUnsupported (newer schema), kIo,
  /// kNoSpace.
  static Result<std::unique_ptr<OperationJournal>> open(FileSystem& files, const Path& path,
                                                        Clock& clock);
  ~OperationJournal();

  /// Stores a new operation as accepted. When the id is known already, gives the stored record and
  /// changes nothing; kConflict when the same id was sent with other content.
  struct Accepted {
    OperationRecord record;
    bool is_new = false;
  };
  Result<Accepted> accept(const api::OperationRequest& request);
  Result<std::optional<OperationRecord>> find(const std::string& id);
  /// State, and what the kind remembers; written before the act and after each thing learned.
  Result<void> update(const OperationRecord& record);
  /// Accepted, acting or unknown ones, oldest first.
  Result<std::vector<OperationRecord>> unfinished();
  /// The newest `count` ended ones, newest first.
  Result<std::vector<OperationRecord>> newest_ended(int count);

  std::int64_t highest_epoch() const;
  /// kRefused when `epoch` is older than one already seen.
  Result<void> raise_epoch(std::int64_t epoch);

 private:
  struct State;
  explicit OperationJournal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::agent
