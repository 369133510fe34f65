#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/object_store/detail/requests.h"

/// Objects that are made of parts. Nothing is there under their key before they are complete.
/// Errors of all: those of S3Requests::send().
namespace verger::object_store::detail {

/// An upload in parts. One thread.
class Upload {
 public:
  static Result<Upload> begin(S3Requests& requests, std::string key);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::size_t parts() const { return etags_.size(); }
  /// Each but the last as large as the settings say, at least.
  Result<void> add(ByteView part);
  /// A part that the server copies from another object.
  Result<void> add_copy(const std::string& from, std::uint64_t offset, std::uint64_t size);
  /// The object is there when this returns; also where the answer was lost.
  Result<void> complete();
  /// What was sent goes. Tried twice; what stays is removed with the leftovers.
  void abort();

 private:
  Upload(S3Requests& requests, std::string key, std::string id)
      : requests_(&requests), key_(std::move(key)), id_(std::move(id)) {}
  [[nodiscard]] S3Request part_request() const;
  Result<void> count_part(const std::string& etag, std::uint64_t size);
  [[nodiscard]] Result<bool> is_there() const;
  [[nodiscard]] std::string expected_etag() const;

  S3Requests* requests_;
  std::string key_;
  std::string id_;
  std::uint64_t size_ = 0;
  std::vector<std::string> etags_;  ///< of the parts, with their quotes
};

/// On the server's side; what was under `to` is replaced as a whole. `size`: that of `from`.
Result<void> copy_object(S3Requests& requests, const std::string& from, const std::string& to,
                         std::uint64_t size);

/// Those whose key begins with `start`, with keys below the prefix; nullopt: the server does not
/// list uploads.
Result<std::optional<std::vector<UnfinishedUpload>>> unfinished_uploads(S3Requests& requests,
                                                                        const std::string& start);
/// One that is not there is no error.
Result<void> abort_upload(S3Requests& requests, const UnfinishedUpload& upload);

}  // namespace verger::object_store::detail
