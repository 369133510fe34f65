#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/backup/detail/sealed_writer.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/sealed_store.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"

namespace verger::backup {

inline constexpr std::size_t kSegment = detail::kSealedSegmentSize;

inline Bytes bytes_of(std::string_view text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

/// Content of which some shrinks and some does not.
inline Bytes some_content(std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  Bytes content(size);
  for (std::size_t at = 0; at < size; ++at) {
    const bool noise = at / 50'000 % 2 == 1;
    content[at] = static_cast<std::byte>(noise ? random.next() : at / 7 + seed);
  }
  return content;
}

/// A store that seals, in /store of a disk.
inline std::unique_ptr<SealedStore> sealed_store(FileSystem& disk, Random& random,
                                                 Compression compression,
                                                 std::optional<KeyRing> keys) {
  return std::make_unique<SealedStore>(std::make_unique<DirectoryStore>(disk, "/store", random),
                                       Sealing{.compression = compression, .keys = std::move(keys)},
                                       random);
}

inline Result<Sha256Digest> store_content(BlobStore& store, ByteView content) {
  VERGER_TRY(const auto writer, store.create_blob());
  VERGER_RETURN_IF_ERROR(writer->append(content));
  const auto digest = sha256(content);
  VERGER_RETURN_IF_ERROR(writer->commit(digest));
  return digest;
}

inline Result<Bytes> read_content(BlobStore& store, const Sha256Digest& digest) {
  VERGER_TRY(const auto reader, store.open_blob(digest));
  Bytes content(reader->size());
  VERGER_RETURN_IF_ERROR(reader->read_exact(0, content));
  return content;
}

/// Where the object of some content lies.
inline Path object_path(const SealedStore& store, const Sha256Digest& digest) {
  const auto hex = to_hex(store.stored_name(digest));
  return Path("/store/blobs") / hex.substr(0, 2) / hex;
}

}  // namespace verger::backup
