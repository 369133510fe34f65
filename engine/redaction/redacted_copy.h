#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/random.h"
#include "engine/redaction/redaction_plan.h"

namespace verger::redaction {

/// One record of an event, where a running node says that it is.
struct RecordPlace {
  EventName event;
  LogPosition position;
  std::uint64_t file_offset = 0;  ///< of its length prefix
};

struct CopyRequest {
  Path directory;
  std::string chunk_file;  ///< completed; a name without directory
  std::vector<RecordPlace> records;
  bool metadata = false;  ///< the bytes of their metadata, too
};

/// What became of a request.
struct RedactedCopy {
  std::string name{};       ///< of the copy, in the directory; empty: all were redacted already
  std::size_t blanked = 0;  ///< records
  std::size_t already = 0;
  std::uint64_t file_size = 0;
  Md5Digest md5_before{};
  Md5Digest md5_after{};
  Sha256Digest digest_before{};  ///< over the records, as in RedactedChunk
  Sha256Digest digest_after{};
};

/// Copies one chunk file, beside the node that has it open, to `<guid>.redact.tmp` with the records
/// blanked and the MD5 that then is right: the file to switch in. Source and copy are compared with
/// their checksums, the copy is synced and read back. Nothing but the copy is written; after an
/// error there is none.
///
/// Errors: kRefused: what verger-db redact refuses, with the reason; kConflict: a record is not
/// where it was said to be; kCorruption: the source is damaged; kNoSpace, kIo, kNotFound. Blocks
/// for as long as some megabytes take, at the end for the sync: it belongs on a pool.
class RedactedCopyJob final : public Job {
 public:
  /// The first two outlive it.
  RedactedCopyJob(FileSystem& files, Random& random, CopyRequest request);
  ~RedactedCopyJob() override;
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] const RedactedCopy& copy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a copy would be, without making one: how many records would be blanked and are already, and
/// the errors of the records. Reads those alone.
Result<RedactedCopy> look_at(FileSystem& files, CopyRequest request);

/// The record of `place` in that chunk file reads as blanked. Errors: as above.
Result<void> check_blanked(FileSystem& files, const Path& chunk_file, const RecordPlace& place,
                           bool metadata);

/// Removes the copies that an interrupted redaction has left in the directory; their names. Only
/// where no other redaction is under way: with the node's chunk lock held. Errors: kIo.
Result<std::vector<std::string>> remove_copies(FileSystem& files, const Path& directory);

}  // namespace verger::redaction
