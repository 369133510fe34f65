#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/object_store/detail/answers.h"
#include "engine/object_store/detail/requests.h"

/// Single objects, by their keys below the prefix. Errors of all: those of S3Requests::send().
namespace verger::object_store::detail {

struct ObjectFacts {
  std::uint64_t size = 0;
  /// Without quotes; empty where the server encrypts, and it says nothing of the content.
  std::string etag{};
};

/// nullopt: it is not there.
Result<std::optional<ObjectFacts>> look_at_object(S3Requests& requests, const std::string& key);
/// As a whole: it is there with this content or as it was before.
Result<void> put_object(S3Requests& requests, const std::string& key, ByteView content);
/// What put_object() wrote. Further errors: kNotFound; kCorruption where it is not that.
Result<Bytes> get_object(S3Requests& requests, const std::string& key);
/// A part of it. Further errors: kNotFound; kCorruption where it ends before.
Result<void> read_object(S3Requests& requests, const std::string& key, std::uint64_t offset,
                         MutableBytes into);
/// One that is not there is no error.
Result<void> remove_object(S3Requests& requests, const std::string& key);
/// All whose key begins with `start`; with `flat` those with no further '/' in it. Their keys are
/// those below the prefix.
Result<std::vector<ListedObject>> list_objects(S3Requests& requests, const std::string& start,
                                               bool flat);

}  // namespace verger::object_store::detail
