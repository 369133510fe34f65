#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"

namespace verger::backup {

/// Content on its way into a store, under no name yet. Destroying it before commit() leaves
/// nothing. One thread at a time.
class BlobWriter {
 public:
  virtual ~BlobWriter() = default;
  /// Errors: kIo, kNoSpace.
  virtual Result<void> append(ByteView bytes) = 0;
  /// What was appended is stored durably under this name when this returns; content that is there
  /// already is kept, and stored once. Of content the name is its SHA-256, which the caller has
  /// computed; where a store that seals writes to this one, it is not, so a store does not compare
  /// the two. Errors: kIo, kNoSpace.
  virtual Result<void> commit(const Sha256Digest& digest) = 0;
};

/// Stored content. Safe from any thread.
class BlobReader {
 public:
  virtual ~BlobReader() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// What reading all of it transfers: another size where the store compresses.
  [[nodiscard]] virtual std::uint64_t stored_size() const { return size(); }
  /// Errors: kIo; kCorruption when the content ends before.
  virtual Result<void> read_exact(std::uint64_t offset, MutableBytes into) const = 0;
};

struct StoredBlob {
  Sha256Digest name;       ///< BlobStore::stored_name() of its content
  std::uint64_t size = 0;  ///< as stored
};

/// Where backups lie: content by its SHA-256, stored once, and small named documents that are
/// replaced as a whole. What was committed or put is read by every later call, of any process.
/// Names of documents are lower-case letters, digits, '-', '.', and one '/' behind a folder at
/// most. Safe from any thread, and for several processes at once.
class BlobStore {
 public:
  virtual ~BlobStore() = default;
  /// For messages.
  [[nodiscard]] virtual std::string name() const = 0;

  virtual Result<std::unique_ptr<BlobWriter>> create_blob() = 0;
  /// Of the content. nullopt: it is not there.
  virtual Result<std::optional<std::uint64_t>> blob_size(const Sha256Digest& digest) = 0;
  /// Errors: kNotFound, kIo.
  virtual Result<std::unique_ptr<BlobReader>> open_blob(const Sha256Digest& digest) = 0;
  /// The name that list_blobs() shows and remove_blob() takes: the digest itself, unless the store
  /// hides which content it has.
  [[nodiscard]] virtual Sha256Digest stored_name(const Sha256Digest& digest) const {
    return digest;
  }
  virtual Result<std::vector<StoredBlob>> list_blobs() = 0;
  /// One that is not there is no error.
  virtual Result<void> remove_blob(const Sha256Digest& name) = 0;
  /// What writers that were killed left behind, and no process writes to: removed.
  virtual Result<std::uint64_t> remove_leftovers() = 0;

  /// Atomic and durable.
  virtual Result<void> put(std::string_view document, ByteView content) = 0;
  /// Errors: kNotFound, kIo.
  virtual Result<Bytes> get(std::string_view document) = 0;
  /// Names in a folder, without it, sorted; none where there is no such folder.
  virtual Result<std::vector<std::string>> list(std::string_view folder) = 0;
  /// One that is not there is no error.
  virtual Result<void> remove(std::string_view document) = 0;
};

/// An error of a store that could not be asked, or was not asked to the end: it says nothing of
/// what is stored.
constexpr bool is_store_away(Errc code) {
  return code == Errc::kUnavailable || code == Errc::kTimeout || code == Errc::kUnauthorized ||
         code == Errc::kCancelled;
}

/// The 64 hexadecimal digits of a digest, lower case. Error: kCorruption.
Result<Sha256Digest> digest_from_hex(std::string_view text);

}  // namespace verger::backup
