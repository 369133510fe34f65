#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/backup/blob_store.h"
#include "engine/object_store/detail/requests.h"
#include "engine/object_store/detail/uploads.h"

namespace verger::object_store::detail {

/// The key of content: "blobs/ab/<sha256>".
std::string blob_key(const Sha256Digest& digest);
/// Where content lies on its way.
inline constexpr std::string_view kPartsFolder = "tmp/";

/// Content on its way into a bucket. Holds one part in memory.
class BlobUpload final : public backup::BlobWriter {
 public:
  /// `name`: no other's in the bucket.
  BlobUpload(S3Requests& requests, const std::string& name)
      : requests_(requests), key_(std::string(kPartsFolder) + name) {}
  ~BlobUpload() override;
  BlobUpload(const BlobUpload&) = delete;
  BlobUpload& operator=(const BlobUpload&) = delete;

  Result<void> append(ByteView bytes) override;
  Result<void> commit(const Sha256Digest& digest) override;

 private:
  [[nodiscard]] std::size_t part_size() const;
  Result<void> send_part();

  S3Requests& requests_;
  std::string key_;
  Bytes part_;
  std::optional<Upload> upload_;  ///< once there is more than one part
  bool complete_ = false;         ///< `upload_` is an object
};

}  // namespace verger::object_store::detail
