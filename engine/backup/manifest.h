#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/base/uuid.h"

namespace verger::backup {

enum class FileKind : std::uint8_t {
  kIndexMap,
  kTable,
  kBloomFilter,
  kExistenceFilter,  ///< with its checkpoint
  kScavengeState,
  kCheckpoint,
  kChunk,
  kOther,
};
/// "chunk", "table" and so on.
std::string_view to_string(FileKind kind);

/// One file of a database as a generation has it.
struct BackedUpFile {
  /// From the database directory, with '/'; files of the index directory begin with "index/".
  std::string path;
  FileKind kind = FileKind::kOther;
  std::uint64_t size = 0;  ///< of the stored content
  /// The restored file is so long; what is behind the content is zero. Of the last chunk only what
  /// lies below the writer's checkpoint is stored.
  std::uint64_t restored_size = 0;
  Sha256Digest sha256{};
  /// What tells the file from another one with its name, without reading it all: a digest of header
  /// and footer of a completed chunk or of an index table, or which files on the node's disk the
  /// existence filter was in. Empty: such a file is always read.
  std::string identity;
  friend bool operator==(const BackedUpFile&, const BackedUpFile&) = default;
};

/// Whose files they are. Files of different nodes are never in one generation.
struct SourceNode {
  std::string node;  ///< name that the operator gave, or host and directory
  std::string cluster;
  std::string host;
  std::string directory;
  std::string server_version;
  std::string state;  ///< "stopped", "live", "frozen"
  friend bool operator==(const SourceNode&, const SourceNode&) = default;
};

/// Where the log and the index were.
struct BackupPositions {
  std::int32_t chunk_size = 0;
  LogPosition writer{0};
  LogPosition chaser{0};
  /// The restored log ends here: at the chaser for a copy of a running node, as the contract has
  /// it.
  LogPosition end{0};
  LogPosition epoch{-1};  ///< as copied
  std::int32_t proposal = -1;
  /// The newest epoch below `end`: what epoch.chk has to be after a restore.
  LogPosition restored_epoch{-1};
  EpochNumber epoch_number{-1};
  Uuid epoch_id;  ///< zero: the log has none
  LogPosition index_prepare{-1};
  LogPosition index_commit{-1};
  friend bool operator==(const BackupPositions&, const BackupPositions&) = default;
};

/// Digests of the design over the log below BackupPositions::end (docs/operations/digests.md).
struct BackupDigests {
  std::vector<Sha256Digest> chunks;  ///< by logical chunk
  Sha256Digest logical{};
  std::optional<Sha256Digest> readable;
  Ticks readable_now;  ///< what `readable` took for the time
  std::uint64_t records = 0;
  friend bool operator==(const BackupDigests&, const BackupDigests&) = default;
};

/// One generation: everything that a restore needs to know. Written last, so that one that is there
/// is complete. It names all its files, whichever generation stored them first.
struct Manifest {
  std::string id;      ///< "20261123t031704z-1a2b3c4d": sorts by time
  std::string parent;  ///< the generation whose files were not read again; empty: a full backup
  SourceNode source;
  Ticks started_at;
  Ticks checkpoints_at;  ///< when the log's checkpoints were copied: its point in time
  Ticks finished_at;
  BackupPositions positions;
  std::optional<BackupDigests> digests;
  std::vector<BackedUpFile> files;  ///< by path
  std::vector<std::string> warnings;
  std::uint64_t reused_bytes = 0;  ///< of `files`, not read again

  [[nodiscard]] const BackedUpFile* find(std::string_view path) const;
  [[nodiscard]] std::uint64_t stored_bytes() const;
  [[nodiscard]] std::uint64_t restored_bytes() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// A line with the SHA-256 of the rest, then JSON (docs/operations/backup.md, "Manifest").
std::string encode_manifest(const Manifest& manifest);
/// Errors: kCorruption (any byte differs from what was written), kUnsupported (a newer version).
Result<Manifest> decode_manifest(ByteView bytes);

/// A new one: its time, and chance.
std::string make_generation_id(Ticks now, std::uint64_t random);
/// Of that form?
bool is_generation_id(std::string_view text);

}  // namespace verger::backup
