#include "engine/backup/repository.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>
#include <set>

#include "engine/backup/detail/session_text.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

constexpr std::string_view kMarker = "repository";
constexpr std::string_view kMarkerText = "verger-backup-repository 1\n";
constexpr std::string_view kSweeping = "sweeping";
constexpr std::string_view kGenerations = "generations";
constexpr std::string_view kSessions = "sessions";
constexpr std::string_view kDeletions = "deletions";

std::string in(std::string_view folder, std::string_view id) {
  return fmt::format("{}/{}", folder, id);
}

Result<bool> is_there(BlobStore& store, std::string_view document) {
  const auto got = store.get(document);
  if (!got && got.error().code == Errc::kNotFound) {
    return false;
  }
  if (!got) {
    return got.error();
  }
  return true;
}

/// A mark of a deletion: its time in the first line, then the manifest as it was.
struct Mark {
  Ticks at;
  Bytes manifest;
};

Result<Mark> read_mark(BlobStore& store, std::string_view id) {
  VERGER_TRY(const auto bytes, store.get(in(kDeletions, id)));
  const auto text = as_text(bytes);
  const auto end = text.find('\n');
  auto at = end == std::string_view::npos ? Result<Ticks>(Error{Errc::kCorruption, "no time"})
                                          : parse_ticks(text.substr(0, end));
  if (!at) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the deletion of {} is not readable ({}); remove deletions/{} to "
                             "give its content up",
                             store.name(), id, at.error().message, id)};
  }
  const auto rest = ByteView(bytes).subspan(end + 1);
  return Mark{*at, Bytes(rest.begin(), rest.end())};
}

}  // namespace

Result<Repository> Repository::open(BlobStore& store, Create create) {
  auto marker = store.get(kMarker);
  if (!marker && marker.error().code == Errc::kNotFound) {
    if (create == Create::kNo) {
      return Error{Errc::kNotFound,
                   fmt::format("{}: is no backup repository; `verger-db backup create` makes one",
                               store.name())};
    }
    VERGER_RETURN_IF_ERROR(store.put(kMarker, as_bytes(kMarkerText)));
    return Repository(store);
  }
  if (!marker) {
    return marker.error();
  }
  const auto text = as_text(*marker);
  if (text == kMarkerText) {
    return Repository(store);
  }
  if (text.starts_with("verger-backup-repository ") &&
      !text.starts_with("verger-backup-repository 1")) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: was made by a newer version: use that one", store.name())};
  }
  return Error{Errc::kCorruption,
               fmt::format("{}: the file \"{}\" is not that of a backup repository; its one line "
                           "should be \"verger-backup-repository 1\"",
                           store.name(), kMarker)};
}

Result<std::vector<GenerationEntry>> Repository::generations() const {
  VERGER_TRY(const auto names, store_->list(kGenerations));
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

Result<Manifest> Repository::load(std::string_view id, std::string_view node) const {
  if (id == "latest") {
    VERGER_TRY(const auto names, store_->list(kGenerations));
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
  const auto bytes = store_->get(in(kGenerations, id));
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
  VERGER_RETURN_IF_ERROR(store_->put(in(kGenerations, manifest.id), as_bytes(text)));
  VERGER_FAILPOINT("backup.after-manifest");
  return end_session(manifest.id);
}

// A backup announces itself, then looks for a deletion; a deletion announces itself, then looks for
// backups. Whichever comes second sees the other and gives way, so that content that a backup has
// found in the store is not removed before its manifest is there.
Result<void> Repository::begin_session(const BackupSession& session) {
  VERGER_RETURN_IF_ERROR(put_session(session));
  VERGER_TRY(const bool sweeping, is_there(*store_, kSweeping));
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
  return store_->put(in(kSessions, session.id), as_bytes(detail::encode_session(session)));
}

/// A sweep that took this backup for dead has ended its session, and may have removed its content.
Result<void> Repository::check_alive(std::string_view id) const {
  VERGER_TRY(const bool alive, is_there(*store_, in(kSessions, id)));
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
  return store_->remove(in(kSessions, id));
}

Result<std::vector<BackupSession>> Repository::sessions() const {
  VERGER_TRY(const auto names, store_->list(kSessions));
  std::vector<BackupSession> found;
  for (const auto& name : names) {
    const auto bytes = store_->get(in(kSessions, name));
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

Result<void> Repository::mark_deleted(std::string_view id, Ticks now) {
  if (!is_generation_id(id)) {
    return Error{Errc::kNotFound, fmt::format("\"{}\" is no backup's id", id)};
  }
  const auto manifest = store_->get(in(kGenerations, id));
  if (!manifest) {
    return manifest.error().code == Errc::kNotFound
               ? Error{Errc::kNotFound,
                       fmt::format("{}: backup {} is not there", store_->name(), id)}
               : manifest.error();
  }
  auto mark = format_ticks(now) + "\n";
  mark.append(as_text(*manifest));
  VERGER_RETURN_IF_ERROR(store_->put(in(kDeletions, id), as_bytes(mark)));
  VERGER_FAILPOINT("backup.delete.after-mark");
  return store_->remove(in(kGenerations, id));
}

Result<void> Repository::undelete(std::string_view id) {
  auto mark = is_generation_id(id) ? read_mark(*store_, id)
                                   : Result<Mark>(Error{Errc::kNotFound, std::string(id)});
  if (!mark && mark.error().code == Errc::kNotFound) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: backup {} is not marked as deleted", store_->name(), id)};
  }
  if (!mark) {
    return mark.error();
  }
  // As a backup does: no sweep removes content meanwhile.
  const auto session = fmt::format("undelete-{}", id);
  VERGER_RETURN_IF_ERROR(
      begin_session({.id = session, .node = {}, .updated_at = mark->at, .files = {}}));
  VERGER_RETURN_IF_ERROR(store_->put(in(kGenerations, id), mark->manifest));
  VERGER_RETURN_IF_ERROR(store_->remove(in(kDeletions, id)));
  return end_session(session);
}

Result<std::vector<Repository::Marked>> Repository::marked() const {
  VERGER_TRY(const auto names, store_->list(kDeletions));
  std::vector<Marked> found;
  for (const auto& name : names) {
    auto mark = read_mark(*store_, name);
    if (!mark && mark.error().code == Errc::kNotFound) {
      continue;
    }
    if (!mark) {
      return mark.error();
    }
    found.push_back({name, mark->at});
  }
  return found;
}

Result<void> Repository::end_abandoned(Ticks abandoned) {
  VERGER_TRY(const auto running, sessions());
  for (const auto& session : running) {
    if (session.updated_at < abandoned) {
      VERGER_RETURN_IF_ERROR(end_session(session.id));
    }
  }
  return {};
}

Result<Repository::Swept> Repository::sweep(Ticks before, Ticks abandoned) {
  VERGER_RETURN_IF_ERROR(store_->put(kSweeping, as_bytes("a deletion removes content\n")));
  auto swept = Result<Swept>(Swept{});
  if (auto ended = end_abandoned(abandoned); !ended) {
    swept = std::move(ended).error();
  } else {
    swept = sweep_alone(before);
  }
  VERGER_RETURN_IF_ERROR(store_->remove(kSweeping));
  return swept;
}

Result<Repository::Swept> Repository::sweep_alone(Ticks before) {
  VERGER_TRY(const auto running, sessions());
  if (!running.empty()) {
    const auto& one = running.front();
    return Error{
        Errc::kUnavailable,
        fmt::format("{}: the backup {}{} is in progress, or was killed (last seen {}): "
                    "nothing was removed; repeat this after it",
                    store_->name(), one.id, one.node.empty() ? "" : fmt::format(" of {}", one.node),
                    format_ticks(one.updated_at))};
  }
  std::set<Sha256Digest> needed;
  const auto note = [&](const Manifest& manifest) {
    for (const auto& file : manifest.files) {
      needed.insert(file.sha256);
    }
  };
  VERGER_TRY(const auto all, generations());
  for (const auto& entry : all) {
    if (!entry.manifest) {
      return Error{Errc::kCorruption,
                   fmt::format("{}; what it needs is not known, so nothing was removed: restore "
                               "its file generations/{}, or remove that",
                               entry.damage, entry.id)};
    }
    note(*entry.manifest);
  }
  std::vector<std::string> gone;
  VERGER_TRY(const auto marks, marked());
  for (const auto& one : marks) {
    VERGER_TRY(const auto mark, read_mark(*store_, one.id));
    if (one.at < before) {
      gone.push_back(one.id);
    } else if (const auto manifest = decode_manifest(mark.manifest)) {
      note(*manifest);
    }
  }
  Swept swept;
  VERGER_TRY(const auto blobs, store_->list_blobs());
  for (const auto& blob : blobs) {
    if (!needed.contains(blob.digest)) {
      VERGER_RETURN_IF_ERROR(store_->remove_blob(blob.digest));
      VERGER_FAILPOINT("backup.sweep.after-blob");
      ++swept.blobs;
      swept.bytes += blob.size;
    }
  }
  VERGER_TRY(const auto leftovers, store_->remove_leftovers());
  swept.bytes += leftovers;
  // Last: as long as a mark is there, a sweep that was interrupted is repeated.
  for (const auto& id : gone) {
    VERGER_RETURN_IF_ERROR(store_->remove(in(kDeletions, id)));
    ++swept.generations;
  }
  return swept;
}

}  // namespace verger::backup
