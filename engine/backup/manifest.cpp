#include "engine/backup/manifest.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/backup/blob_store.h"
#include "engine/backup/detail/checked_document.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/json_number.h"

namespace verger::backup {
namespace {

using Json = nlohmann::ordered_json;

constexpr detail::DocumentKind kManifestDocument{"verger-backup-manifest", "manifest"};
constexpr int kManifestVersion = 1;

constexpr std::array kKinds = {FileKind::kIndexMap,      FileKind::kTable,
                               FileKind::kBloomFilter,   FileKind::kExistenceFilter,
                               FileKind::kScavengeState, FileKind::kCheckpoint,
                               FileKind::kChunk,         FileKind::kOther};

Json json_of(const BackedUpFile& file) {
  Json object = {{"path", file.path},
                 {"kind", to_string(file.kind)},
                 {"size", file.size},
                 {"restoredSize", file.restored_size},
                 {"sha256", to_hex(file.sha256)}};
  if (!file.identity.empty()) {
    object["identity"] = file.identity;
  }
  return object;
}

Json json_of(const BackupPositions& at) {
  return {{"chunkSize", at.chunk_size},
          {"writer", at.writer.value()},
          {"chaser", at.chaser.value()},
          {"end", at.end.value()},
          {"epoch", at.epoch.value()},
          {"proposal", at.proposal},
          {"restoredEpoch", at.restored_epoch.value()},
          {"epochNumber", at.epoch_number.value()},
          {"epochId", at.epoch_id.to_string()},
          {"indexPrepare", at.index_prepare.value()},
          {"indexCommit", at.index_commit.value()}};
}

Json json_of(const BackupDigests& digests) {
  Json object = {{"logical", to_hex(digests.logical)},
                 {"records", digests.records},
                 {"chunks", Json::array()}};
  if (digests.readable) {
    object["readable"] = to_hex(*digests.readable);
    object["readableNow"] = format_ticks(digests.readable_now);
  }
  for (const auto& chunk : digests.chunks) {
    object["chunks"].push_back(to_hex(chunk));
  }
  return object;
}

/// Members are looked up in values that throw; decode_manifest() catches.
template <class T>
T checked(Result<T> result) {
  if (!result) {
    throw std::out_of_range(result.error().message);
  }
  return *std::move(result);
}

Sha256Digest digest_of(const Json& value) {
  return checked(digest_from_hex(value.get_ref<const std::string&>()));
}

LogPosition position_of_member(const Json& object, const char* name) {
  return LogPosition(json_integer<std::int64_t>(object.at(name)));
}

/// A path that stays below the directory it is restored into.
bool is_safe_path(std::string_view path) {
  const Path as_path{path};
  return !path.empty() && as_path.is_relative() &&
         std::ranges::none_of(
             as_path, [](const Path& part) { return part.empty() || part == "." || part == ".."; });
}

BackedUpFile file_of(const Json& object) {
  BackedUpFile file;
  file.path = object.at("path").get<std::string>();
  const auto& kind = object.at("kind").get_ref<const std::string&>();
  const auto* const found =
      std::ranges::find_if(kKinds, [&](FileKind one) { return to_string(one) == kind; });
  file.size = json_integer<std::uint64_t>(object.at("size"));
  file.restored_size = json_integer<std::uint64_t>(object.at("restoredSize"));
  file.sha256 = digest_of(object.at("sha256"));
  if (const auto identity = object.find("identity"); identity != object.end()) {
    file.identity = identity->get<std::string>();
  }
  if (found == kKinds.end() || !is_safe_path(file.path) || file.restored_size < file.size) {
    throw std::out_of_range(
        fmt::format("the file \"{}\" is none that a backup can have", file.path));
  }
  file.kind = *found;
  return file;
}

BackupPositions positions_of(const Json& object) {
  BackupPositions at;
  at.chunk_size = json_integer<std::int32_t>(object.at("chunkSize"));
  at.writer = position_of_member(object, "writer");
  at.chaser = position_of_member(object, "chaser");
  at.end = position_of_member(object, "end");
  at.epoch = position_of_member(object, "epoch");
  at.proposal = json_integer<std::int32_t>(object.at("proposal"));
  at.restored_epoch = position_of_member(object, "restoredEpoch");
  at.epoch_number = EpochNumber(json_integer<std::int32_t>(object.at("epochNumber")));
  at.epoch_id = checked(Uuid::parse(object.at("epochId").get_ref<const std::string&>()));
  at.index_prepare = position_of_member(object, "indexPrepare");
  at.index_commit = position_of_member(object, "indexCommit");
  if (at.chunk_size <= 0 || at.chaser.value() < 0 || at.end < at.chaser || at.writer < at.end) {
    throw std::out_of_range("the positions of the log contradict each other");
  }
  return at;
}

BackupDigests digests_of(const Json& object) {
  BackupDigests digests;
  digests.logical = digest_of(object.at("logical"));
  digests.records = json_integer<std::uint64_t>(object.at("records"));
  for (const auto& chunk : object.at("chunks")) {
    digests.chunks.push_back(digest_of(chunk));
  }
  if (const auto readable = object.find("readable"); readable != object.end()) {
    digests.readable = digest_of(*readable);
    digests.readable_now =
        checked(parse_ticks(object.at("readableNow").get_ref<const std::string&>()));
  }
  return digests;
}

Ticks time_of(const Json& object, const char* name) {
  return checked(parse_ticks(object.at(name).get_ref<const std::string&>()));
}

Manifest manifest_of(const Json& object) {
  Manifest manifest;
  manifest.id = object.at("id").get<std::string>();
  manifest.parent = object.at("parent").get<std::string>();
  const auto& source = object.at("source");
  manifest.source = {
      source.at("node").get<std::string>(),          source.at("cluster").get<std::string>(),
      source.at("host").get<std::string>(),          source.at("directory").get<std::string>(),
      source.at("serverVersion").get<std::string>(), source.at("state").get<std::string>()};
  manifest.started_at = time_of(object, "startedAt");
  manifest.checkpoints_at = time_of(object, "checkpointsAt");
  manifest.finished_at = time_of(object, "finishedAt");
  manifest.positions = positions_of(object.at("positions"));
  if (const auto digests = object.find("digests"); digests != object.end()) {
    manifest.digests = digests_of(*digests);
  }
  for (const auto& warning : object.at("warnings")) {
    manifest.warnings.push_back(warning.get<std::string>());
  }
  manifest.reused_bytes = json_integer<std::uint64_t>(object.at("reusedBytes"));
  for (const auto& file : object.at("files")) {
    manifest.files.push_back(file_of(file));
  }
  if (std::ranges::adjacent_find(manifest.files, std::greater_equal<>(), &BackedUpFile::path) !=
      manifest.files.end()) {
    throw std::out_of_range("its files are not in order, or one is there twice");
  }
  return manifest;
}

}  // namespace

std::string_view to_string(FileKind kind) {
  switch (kind) {
    case FileKind::kIndexMap:
      return "index-map";
    case FileKind::kTable:
      return "table";
    case FileKind::kBloomFilter:
      return "bloom-filter";
    case FileKind::kExistenceFilter:
      return "existence-filter";
    case FileKind::kScavengeState:
      return "scavenge-state";
    case FileKind::kCheckpoint:
      return "checkpoint";
    case FileKind::kChunk:
      return "chunk";
    case FileKind::kOther:
      return "other";
  }
  return "other";
}

const BackedUpFile* Manifest::find(std::string_view path) const {
  const auto found = std::ranges::lower_bound(files, path, {}, &BackedUpFile::path);
  return found != files.end() && found->path == path ? &*found : nullptr;
}

std::uint64_t Manifest::stored_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files) {
    sum += file.size;
  }
  return sum;
}

std::uint64_t Manifest::restored_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files) {
    sum += file.restored_size;
  }
  return sum;
}

std::string encode_manifest(const Manifest& manifest) {
  const auto& source = manifest.source;
  Json object = {{"version", kManifestVersion},
                 {"id", manifest.id},
                 {"parent", manifest.parent},
                 {"source",
                  {{"node", source.node},
                   {"cluster", source.cluster},
                   {"host", source.host},
                   {"directory", source.directory},
                   {"serverVersion", source.server_version},
                   {"state", source.state}}},
                 {"startedAt", format_ticks(manifest.started_at)},
                 {"checkpointsAt", format_ticks(manifest.checkpoints_at)},
                 {"finishedAt", format_ticks(manifest.finished_at)},
                 {"positions", json_of(manifest.positions)}};
  if (manifest.digests) {
    object["digests"] = json_of(*manifest.digests);
  }
  object["warnings"] = manifest.warnings;
  object["reusedBytes"] = manifest.reused_bytes;
  object["files"] = Json::array();
  for (const auto& file : manifest.files) {
    object["files"].push_back(json_of(file));
  }
  return detail::encode_document(kManifestDocument, object);
}

Result<Manifest> decode_manifest(ByteView bytes) {
  return detail::decode_document(kManifestDocument, bytes, manifest_of);
}

std::string make_generation_id(Ticks now, std::uint64_t random) {
  // Of "2026-11-23T03:17:04.123Z" the digits of date and time.
  const auto text = format_ticks(now);
  return fmt::format("{}{}{}t{}{}{}z-{:08x}", text.substr(0, 4), text.substr(5, 2),
                     text.substr(8, 2), text.substr(11, 2), text.substr(14, 2), text.substr(17, 2),
                     static_cast<std::uint32_t>(random));
}

bool is_generation_id(std::string_view text) {
  constexpr std::string_view kForm = "00000000t000000z-xxxxxxxx";
  const auto fits = [](char form, char letter) {
    const bool digit = letter >= '0' && letter <= '9';
    switch (form) {
      case '0':
        return digit;
      case 'x':
        return digit || (letter >= 'a' && letter <= 'f');
      default:
        return form == letter;
    }
  };
  return text.size() == kForm.size() && std::ranges::equal(kForm, text, fits);
}

}  // namespace verger::backup
