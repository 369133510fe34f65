#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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

/// How long ended operations are remembered, counted from their end. What has not ended stays.
struct OperationRetention {
  std::chrono::days age{400};
  std::int64_t kept = 100;  ///< the newest ones stay at any age
  /// Where there are more than `count`, the older ones go once they are as old as `settled`:
  /// earlier a controller may still query them.
  std::int64_t count = 1'000;
  std::chrono::days settled{30};
};

/// The agent's own journal: operations by id and the highest controller epoch seen. Every call is
/// durable when it returns. One thread. Schema: docs/formats/agent-journal.md.
class OperationJournal {
 public:
  /// In SQLite. Creates the file when missing. What `retention` does not keep goes now, and each
  /// time an operation is accepted. Errors: kCorruption, kUnsupported (newer schema), kIo,
  /// kNoSpace.
  static Result<std::unique_ptr<OperationJournal>> open(FileSystem& files, const Path& path,
                                                        Clock& clock,
                                                        const OperationRetention& retention = {});
  virtual ~OperationJournal() = default;

  /// Stores a new operation as accepted. When the id is known already, gives the stored record and
  /// changes nothing; kConflict when the same id was sent with other content.
  struct Accepted {
    OperationRecord record;
    bool is_new = false;
  };
  virtual Result<Accepted> accept(const api::OperationRequest& request) = 0;
  virtual Result<std::optional<OperationRecord>> find(const std::string& id) = 0;
  /// State, and what the kind remembers; written before the act and after each thing learned.
  virtual Result<void> update(const OperationRecord& record) = 0;
  /// Accepted, acting or unknown ones, oldest first.
  virtual Result<std::vector<OperationRecord>> unfinished() = 0;
  /// The newest `count` ended ones, newest first.
  virtual Result<std::vector<OperationRecord>> newest_ended(int count) = 0;

  [[nodiscard]] virtual std::int64_t highest_epoch() const = 0;
  /// Errors: those of check_epoch, the journal's.
  virtual Result<void> raise_epoch(std::int64_t epoch) = 0;
};

/// How far above the newest epoch that an agent has seen the next one may be. A controller's grows
/// by one at each of its starts, so a greater jump is a mistake, or an attempt to lock it out.
inline constexpr std::int64_t kEpochJump = 100'000;

/// kRefused where `epoch` is older than `highest`, or more than kEpochJump newer.
Result<void> check_epoch(std::int64_t highest, std::int64_t epoch);

/// The repair of an agent that knows a wrong epoch: sets `epoch`, lower or higher, in the journal
/// of a stopped agent. Returns the former one. Errors: kNotFound, the journal's (kRefused:
/// an agent uses it).
Result<std::int64_t> set_highest_epoch(FileSystem& files, const Path& journal, std::int64_t epoch);
/// The same without a change.
Result<std::int64_t> read_highest_epoch(FileSystem& files, const Path& journal);

/// The same request again, or another one under a known id?
bool same_request(const api::OperationRequest& a, const api::OperationRequest& b);

/// What an operation wrote down in memory_json; an empty object where that is none.
nlohmann::json memory_of(const OperationRecord& record);
/// A parameter that is true or false, and false where it is missing. Error: kInvalidArgument.
Result<bool> flag_of(const OperationRecord& record, std::string_view parameter);

}  // namespace verger::agent
