#pragma once

#include <string>
#include <string_view>

#include "engine/backup/blob_store.h"

namespace verger::backup::detail {

// The documents of a repository, and its folders of documents.
inline constexpr std::string_view kMarker = "repository";
inline constexpr std::string_view kSweeping = "sweeping";
inline constexpr std::string_view kGenerations = "generations";
inline constexpr std::string_view kSessions = "sessions";
inline constexpr std::string_view kDeletions = "deletions";
inline constexpr std::string_view kChecks = "checks";

inline std::string document_in(std::string_view folder, std::string_view id) {
  auto name = std::string(folder);
  name.append("/").append(id);
  return name;
}

inline Result<bool> is_there(BlobStore& store, std::string_view document) {
  const auto got = store.get(document);
  if (!got && got.error().code == Errc::kNotFound) {
    return false;
  }
  if (!got) {
    return got.error();
  }
  return true;
}

}  // namespace verger::backup::detail
