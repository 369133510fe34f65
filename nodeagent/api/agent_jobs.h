#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/api/json_view.h"
#include "nodeagent/api/json_writer.h"

/// What the agent interface says of long work and of stored files
/// (docs/formats/agent-interface.md).
namespace verger::api {

/// How far an operation is. Numbers are -1 and texts empty where they are not known.
struct OperationProgress {
  std::string phase{};      ///< for people: "reading the log"
  std::int64_t done = -1;   ///< of `total`, in `unit`s, within the phase
  std::int64_t total = -1;  ///< of the phase
  std::string unit{};       ///< "bytes", "chunks", "records"
  std::int64_t bytes = -1;  ///< read or written so far, with any unit
  std::int64_t rate = -1;   ///< units an hour, since the phase began
  std::string since{};      ///< when the phase began: ISO-8601, UTC
  friend bool operator==(const OperationProgress&, const OperationProgress&) = default;
};

/// How gently an operation works; it may be changed while it runs.
struct Throttle {
  std::int32_t percent = 100;         ///< share of the time spent working, 1 to 100
  std::int64_t bytes_per_second = 0;  ///< 0: no limit
  friend bool operator==(const Throttle&, const Throttle&) = default;
};

/// A file in an agent's store; its content is never given out.
struct StoredFile {
  std::string sha256{};  ///< lower-case hex
  std::int64_t bytes = 0;
  std::string stored_at{};  ///< when it was last stored: ISO-8601, UTC
  friend bool operator==(const StoredFile&, const StoredFile&) = default;
};

void write(JsonWriter& out, const OperationProgress& progress);
void write(JsonWriter& out, const Throttle& throttle);
void write(JsonWriter& out, const StoredFile& file);
std::string to_text(const Throttle& throttle);
std::string to_text(const StoredFile& file);
/// {"files": [...]}
std::string to_text(const std::vector<StoredFile>& files);

/// Errors: kCorruption, saying where the value is not of that shape.
Result<OperationProgress> progress_of(JsonView value, const std::string& where);
/// kInvalidArgument for values out of range, too.
Result<Throttle> throttle_of(JsonView value, const std::string& where);
/// Of a request. Errors: kInvalidArgument.
Result<Throttle> parse_throttle(std::string_view body);
Result<StoredFile> parse_stored_file(std::string_view body);
Result<std::vector<StoredFile>> parse_stored_files(std::string_view body);

}  // namespace verger::api
