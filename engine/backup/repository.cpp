#include "engine/backup/repository.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "engine/backup/detail/repository_names.h"
#include "engine/backup/detail/session_text.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

constexpr std::string_view kMarkerLine = "verger-backup-repository 1\n";
constexpr std::string_view kMarkerSum = "sha256 ";

/// Version, id, and the SHA-256 of the two lines: another id would be another repository.
std::string marker_text(const Uuid& id) {
  const auto lines = fmt::format("{}id {}\n", kMarkerLine, id.to_string());
  return fmt::format("{}{}{}\n", lines, kMarkerSum, to_hex(sha256(as_bytes(lines))));
}

/// nullopt: it is none.
std::optional<Uuid> id_of_marker(std::string_view text) {
  if (text == kMarkerLine) {
    return Uuid{};
  }
  constexpr std::size_t kIdText = 36;
  const auto at = kMarkerLine.size() + std::string_view("id ").size();
  if (text.size() < at + kIdText) {
    return std::nullopt;
  }
  const auto id = Uuid::parse(text.substr(at, kIdText));
  return id && marker_text(*id) == text ? std::optional(*id) : std::nullopt;
}

}  // namespace

Result<Repository> Repository::create_in(BlobStore& store, Random& random) {
  VERGER_RETURN_IF_ERROR(store.put(detail::kMarker, as_bytes(marker_text(random.uuid()))));
  // Another program may have made it at the same moment: what is there is what counts.
  return open(store, Create::kNo, random);
}

Result<Repository> Repository::open(BlobStore& store, Create create, Random& random) {
  const auto marker = store.get(detail::kMarker);
  if (!marker && marker.error().code == Errc::kNotFound) {
    if (create == Create::kIfMissing) {
      return create_in(store, random);
    }
    return Error{Errc::kNotFound,
                 fmt::format("{}: is no backup repository; `verger-db backup create` makes one",
                             store.name())};
  }
  if (!marker) {
    return marker.error();
  }
  const auto text = as_text(*marker);
  if (const auto id = id_of_marker(text)) {
    return id->is_zero() && create == Create::kIfMissing ? create_in(store, random)
                                                         : Repository(store, *id);
  }
  if (text.starts_with("verger-backup-repository ") &&
      !text.starts_with("verger-backup-repository 1")) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: was made by a newer version: use that one", store.name())};
  }
  return Error{Errc::kCorruption,
               fmt::format("{}: the file \"{}\" is not that of a backup repository, or it is "
                           "damaged; its first line should be \"verger-backup-repository 1\". "
                           "With this line alone, the next backup gives the repository a new id",
                           store.name(), detail::kMarker)};
}

Result<std::vector<GenerationEntry>> Repository::generations() const {
  VERGER_TRY(const auto names, store_->list(detail::kGenerations));
  std::vector<GenerationEntry> found;
  for (const auto& name : names) {
    if (!is_generation_id(name)) {
      continue;
    }
    GenerationEntry entry{.id = name, .manifest = std::nullopt, .damage = {}};
    auto manifest = load(name);
    if (manifest) {
      entry.manifest = *std::move(manifest);
    } else if (manifest.error().code == Errc::kNotFound) {
      continue;  // deleted meanwhile
    } else {
      entry.damage = manifest.error().message;
    }
    found.push_back(std::move(entry));
  }
  return found;
}

Result<std::vector<std::string>> Repository::generation_ids() const {
  VERGER_TRY(auto names, store_->list(detail::kGenerations));
  std::erase_if(names, [](const std::string& name) { return !is_generation_id(name); });
  return names;
}

Result<Manifest> Repository::load(std::string_view id, std::string_view node) const {
  if (id == "latest") {
    VERGER_TRY(const auto names, store_->list(detail::kGenerations));
    for (const auto& name : names | std::views::reverse) {
      if (!is_generation_id(name)) {
        continue;
      }
      // A damaged one may be the latest: an older one in its place would be a surprise.
      VERGER_TRY(auto manifest, load(name));
      if (node.empty() || manifest.source.node == node) {
        return manifest;
      }
    }
    return Error{Errc::kNotFound, fmt::format("{}: holds no backup{}", store_->name(),
                                              node.empty() ? "" : fmt::format(" of {}", node))};
  }
  if (!is_generation_id(id)) {
    return Error{Errc::kNotFound,
                 fmt::format("\"{}\" is no backup's id; `verger-db backup list` shows them, "
                             "\"latest\" is the last one",
                             id)};
  }
  const auto where = fmt::format("{}: backup {}", store_->name(), id);
  const auto bytes = store_->get(detail::document_in(detail::kGenerations, id));
  if (!bytes) {
    return bytes.error().code == Errc::kNotFound
               ? Error{Errc::kNotFound, where + " is not there; `verger-db backup list` shows all"}
               : bytes.error();
  }
  auto manifest = decode_manifest(*bytes);
  if (!manifest) {
    return manifest.error().within(where);
  }
  if (manifest->id != id) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the manifest is that of {}", where, manifest->id)};
  }
  return manifest;
}

Result<void> Repository::save(const Manifest& manifest) {
  VERGER_RETURN_IF_ERROR(check_alive(manifest.id));
  const auto text = encode_manifest(manifest);
  VERGER_RETURN_IF_ERROR(
      store_->put(detail::document_in(detail::kGenerations, manifest.id), as_bytes(text)));
  VERGER_FAILPOINT("backup.after-manifest");
  return end_session(manifest.id);
}

// A backup announces itself, then looks for a deletion; a deletion announces itself, then looks for
// backups. Whichever comes second sees the other and gives way, so that content that a backup has
// found in the store is not removed before its manifest is there.
Result<void> Repository::begin_session(const BackupSession& session) {
  VERGER_RETURN_IF_ERROR(put_session(session));
  VERGER_FAILPOINT("backup.after-session");
  VERGER_TRY(const bool sweeping, detail::is_there(*store_, detail::kSweeping));
  if (sweeping) {
    VERGER_RETURN_IF_ERROR(end_session(session.id));
    return Error{Errc::kUnavailable,
                 fmt::format("{}: deleted backups are being removed at this moment; try again, or, "
                             "where that program was killed, repeat `verger-db backup delete`",
                             store_->name())};
  }
  return {};
}

Result<void> Repository::put_session(const BackupSession& session) {
  return store_->put(detail::document_in(detail::kSessions, session.id),
                     as_bytes(detail::encode_session(session)));
}

/// A sweep that took this backup for dead has ended its session, and may have removed its content.
Result<void> Repository::check_alive(std::string_view id) const {
  VERGER_TRY(const bool alive,
             detail::is_there(*store_, detail::document_in(detail::kSessions, id)));
  if (!alive) {
    return Error{Errc::kConflict,
                 fmt::format("{}: the backup {} was given up as abandoned while it ran: repeat it",
                             store_->name(), id)};
  }
  return {};
}

Result<void> Repository::update_session(const BackupSession& session) {
  VERGER_RETURN_IF_ERROR(check_alive(session.id));
  return put_session(session);
}

Result<void> Repository::release_session(BackupSession session) {
  session.updated_at = {};  // longer ago than any limit
  return session.files.empty() ? end_session(session.id) : update_session(session);
}

Result<void> Repository::end_session(std::string_view id) {
  return store_->remove(detail::document_in(detail::kSessions, id));
}

Result<std::vector<BackupSession>> Repository::sessions() const {
  VERGER_TRY(const auto names, store_->list(detail::kSessions));
  std::vector<BackupSession> found;
  for (const auto& name : names) {
    const auto bytes = store_->get(detail::document_in(detail::kSessions, name));
    if (!bytes && bytes.error().code == Errc::kNotFound) {
      continue;
    }
    if (!bytes) {
      return bytes.error();
    }
    // What cannot be read still is a backup that may run.
    auto session = detail::decode_session(*bytes);
    found.push_back(session ? *std::move(session)
                            : BackupSession{.id = name, .node = {}, .updated_at = {}, .files = {}});
    found.back().id = name;
  }
  return found;
}

}  // namespace verger::backup
