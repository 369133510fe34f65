#include <fmt/format.h>
#include <set>

#include "engine/backup/detail/repository_names.h"
#include "engine/backup/repository.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

/// A mark of a deletion: its time in the first line, then the manifest as it was.
struct Mark {
  Ticks at;
  Bytes manifest;
};

Result<Mark> read_mark(BlobStore& store, std::string_view id) {
  VERGER_TRY(const auto bytes, store.get(detail::document_in(detail::kDeletions, id)));
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

Result<void> Repository::mark_deleted(std::string_view id, Ticks now) {
  if (!is_generation_id(id)) {
    return Error{Errc::kNotFound, fmt::format("\"{}\" is no backup's id", id)};
  }
  const auto manifest = store_->get(detail::document_in(detail::kGenerations, id));
  if (!manifest) {
    return manifest.error().code == Errc::kNotFound
               ? Error{Errc::kNotFound,
                       fmt::format("{}: backup {} is not there", store_->name(), id)}
               : manifest.error();
  }
  auto mark = format_ticks(now) + "\n";
  mark.append(as_text(*manifest));
  VERGER_RETURN_IF_ERROR(store_->put(detail::document_in(detail::kDeletions, id), as_bytes(mark)));
  VERGER_FAILPOINT("backup.delete.after-mark");
  return store_->remove(detail::document_in(detail::kGenerations, id));
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
  VERGER_RETURN_IF_ERROR(
      store_->put(detail::document_in(detail::kGenerations, id), mark->manifest));
  VERGER_RETURN_IF_ERROR(store_->remove(detail::document_in(detail::kDeletions, id)));
  return end_session(session);
}

Result<std::vector<Repository::Marked>> Repository::marked() const {
  VERGER_TRY(const auto names, store_->list(detail::kDeletions));
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
  VERGER_RETURN_IF_ERROR(store_->put(detail::kSweeping, as_bytes("a deletion removes content\n")));
  auto swept = Result<Swept>(Swept{});
  if (auto ended = end_abandoned(abandoned); !ended) {
    swept = std::move(ended).error();
  } else {
    swept = sweep_alone(before);
  }
  VERGER_RETURN_IF_ERROR(store_->remove(detail::kSweeping));
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
  std::set<std::string> kept;
  const auto note = [&](const Manifest& manifest) {
    for (const auto& file : manifest.files) {
      needed.insert(store_->stored_name(file.sha256));
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
    kept.insert(entry.id);
  }
  std::vector<std::string> gone;
  VERGER_TRY(const auto marks, marked());
  for (const auto& one : marks) {
    VERGER_TRY(const auto mark, read_mark(*store_, one.id));
    if (one.at < before) {
      gone.push_back(one.id);
      continue;
    }
    kept.insert(one.id);
    if (const auto manifest = decode_manifest(mark.manifest)) {
      note(*manifest);
    }
  }
  Swept swept;
  VERGER_TRY(const auto blobs, store_->list_blobs());
  for (const auto& blob : blobs) {
    if (!needed.contains(blob.name)) {
      VERGER_RETURN_IF_ERROR(store_->remove_blob(blob.name));
      VERGER_FAILPOINT("backup.sweep.after-blob");
      ++swept.blobs;
      swept.bytes += blob.size;
    }
  }
  VERGER_TRY(const auto leftovers, store_->remove_leftovers());
  swept.bytes += leftovers;
  VERGER_RETURN_IF_ERROR(remove_checks_except(kept));
  // Last: as long as a mark is there, a sweep that was interrupted is repeated.
  for (const auto& id : gone) {
    VERGER_RETURN_IF_ERROR(store_->remove(detail::document_in(detail::kDeletions, id)));
    ++swept.generations;
  }
  return swept;
}

}  // namespace verger::backup
