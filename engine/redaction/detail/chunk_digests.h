#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::redaction::detail {

/// The logical digests of a chunk file and of its redacted copy, as verger-db digest has them for
/// each chunk: SHA-256 over the records in order, each as position (i64), length (u32), record
/// without framing. Of a merged file over all its records. Files with the same records have the
/// same digest on every node.
class ChunkDigests {
 public:
  ChunkDigests(std::shared_ptr<const log::Chunk> before, std::shared_ptr<const log::Chunk> after);
  /// Reads up to `bytes`, and a record at least; true once both are read. Errors: those of reading.
  Result<bool> step(std::uint64_t bytes);
  // Once they are read.
  [[nodiscard]] const Sha256Digest& before() const { return before_; }
  [[nodiscard]] const Sha256Digest& after() const { return after_; }

 private:
  std::array<std::shared_ptr<const log::Chunk>, 2> files_;
  std::size_t reading_ = 0;  ///< which of them
  std::optional<log::ChunkScanner> scanner_{};
  Sha256 hash_{};
  Sha256Digest before_{};
  Sha256Digest after_{};
};

}  // namespace verger::redaction::detail
