#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/log/transaction_log.h"

namespace verger::redaction {

/// How a request to switch a prepared chunk file in ended, as the server tells it apart
/// (docs/formats/grpc.md, "Redaction").
enum class SwitchResult : std::uint8_t {
  kSuccess,
  kTargetNameInvalid,  ///< with a separator or "..", or not named as a chunk file
  kTargetNotFound,
  kTargetExcessive,  ///< there is such a file, and the log has no such chunk
  kTargetInactive,   ///< another file is the live one of that chunk
  kTargetNotCompleted,
  kNewNameInvalid,  ///< with a separator or "..", or not ending in ".tmp"
  kNewNotFound,
  kNewNotCompleted,
  kNewHeaderOrFooterInvalid,
  kNewHashInvalid,
  kNewOpenFailed,
  kRangeDoesNotMatch,
  kUnexpectedError,
  kTargetFormatNotSupported,  ///< the bytes of the target are transformed
};

/// The server's text for a refusal, which clients compare.
std::string_view reason_of(SwitchResult result);

/// Puts a file that was prepared beside a running node in the place of a live chunk file, after the
/// server's checks in the server's order. Nothing but the files themselves is compared: whoever
/// prepares the new file answers for its records. Its bytes are synced before it gets its name, so
/// that after a crash either file is there whole; after a refusal all is as it was.
///
/// step() returns no error: result() has the outcome. It reads the whole file in one step, so it
/// belongs on a pool. Nothing else may switch chunks meanwhile.
class ChunkSwitchJob final : public Job {
 public:
  /// File names without a directory. `files` and `log` outlive it.
  ChunkSwitchJob(FileSystem& files, log::TransactionLog& log, std::string target,
                 std::string new_file);
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] SwitchResult result() const { return result_; }
  /// Of a refusal, what was found; of a success, the name of the file that is live now.
  [[nodiscard]] const std::string& detail() const { return detail_; }

 private:
  SwitchResult refuse(SwitchResult result, std::string detail);
  /// nullopt: it passed.
  std::optional<SwitchResult> check_target();
  std::optional<SwitchResult> check_new();
  SwitchResult switch_in();

  FileSystem& files_;
  log::TransactionLog& log_;
  std::string target_;
  std::string new_file_;
  std::shared_ptr<const log::Chunk> live_;
  SwitchResult result_ = SwitchResult::kUnexpectedError;
  std::string detail_;
};

}  // namespace verger::redaction
