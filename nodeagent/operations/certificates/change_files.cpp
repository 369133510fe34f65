#include "nodeagent/operations/certificates/change_files.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "engine/base/digest.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/operations/certificates/certificate_proof.h"
#include "nodeagent/operations/certificates/change_plan.h"
#include "nodeagent/operations/certificates/manifest_text.h"
#include "nodeagent/operations/certificates/private_copy.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;

/// The first certificate's fingerprint and serial.
certificates::CertificateInfo leaf_of(const std::string& text) {
  const auto read = certificates::read_details(text);
  return read ? read->front().info : certificates::CertificateInfo{};
}

std::string quoted_for_shell(const Path& path) {
  std::string out = "'";
  for (const char each : path.string()) {
    out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  }
  return out + "'";
}

}  // namespace

std::vector<const FileChange*> ChangeManifest::of(CertificatePhase phase) const {
  std::vector<const FileChange*> out;
  for (const auto& each : files) {
    if (each.phase == phase) {
      out.push_back(&each);
    }
  }
  return out;
}

Result<std::optional<ChangeManifest>> ChangeFiles::load() const {
  const auto text = read_file(files_, manifest_path());
  if (!text && text.error().code == Errc::kNotFound) {
    return std::optional<ChangeManifest>();
  }
  if (!text) {
    return text.error();
  }
  VERGER_TRY(auto manifest, parse_manifest(as_text(*text)));
  return std::optional(std::move(manifest));
}

Result<void> ChangeFiles::store(const ChangeManifest& manifest) {
  return write_file_durably(files_, manifest_path(), as_bytes(manifest_text(manifest)));
}

Result<ChangeManifest> ChangeFiles::stage(const std::string& change, const FoundCertificates& live,
                                          const FoundCertificates& next) {
  VERGER_TRY(const auto planned, plan_files(live, next));
  VERGER_RETURN_IF_ERROR(make_directories_durably(files_, directory_));
  VERGER_TRY(const auto former, load());
  if (former) {
    for (const auto phase :
         {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
      const auto state = former->state(phase);
      const bool under_way = state == PhaseState::kSwitching || state == PhaseState::kRestoring;
      if (under_way || (former->change == change && state == PhaseState::kSwitched)) {
        return Error{Errc::kConflict,
                     fmt::format("the change {} is {} in its phase {}: it has to end, or to be "
                                 "restored, before files are staged",
                                 former->change, to_string(state), api::to_string(phase))};
      }
    }
    VERGER_RETURN_IF_ERROR(remove_copies(*former));
  }
  const auto now = leaf_of(next.certificate.content);
  const auto before = leaf_of(live.certificate.content);
  ChangeManifest manifest{.change = change,
                          .staged_at = format_ticks(clock_.now()),
                          .digest = digest_of(next),
                          .set = next.set,
                          .serial = now.serial,
                          .not_after = now.not_after,
                          .serial_before = before.serial,
                          .fingerprint = now.fingerprint,
                          .fingerprint_before = before.fingerprint,
                          .trust_not_shown = why_trust_is_not_shown(live, next),
                          .drop_not_shown = why_drop_is_not_shown(live, next)};
  for (const auto& file : planned) {
    manifest.files.push_back(file.change);
  }
  auto copied = [&]() -> Result<void> {
    // The names first: then all that a crash leaves of the copies is known and can be removed.
    VERGER_RETURN_IF_ERROR(store(manifest));
    for (const auto& file : planned) {
      if (!file.change.before.empty()) {
        VERGER_RETURN_IF_ERROR(write_copy(files_, access_, file.change.previous,
                                          file.content_before, file.attributes));
      }
      if (!file.change.after.empty()) {
        VERGER_RETURN_IF_ERROR(
            write_copy(files_, access_, file.change.next, file.content_after, file.attributes));
      }
      VERGER_FAILPOINT("agent.certificates.copied");
    }
    manifest.complete = true;
    return store(manifest);
  }();
  if (!copied) {
    static_cast<void>(remove_copies(manifest));
    static_cast<void>(remove_if_there(files_, manifest_path()));
    return copied.error();
  }
  return manifest;
}

Result<void> ChangeFiles::remove_copies(const ChangeManifest& manifest) {
  for (const auto& file : manifest.files) {
    VERGER_RETURN_IF_ERROR(remove_if_there(files_, file.next));
    VERGER_RETURN_IF_ERROR(remove_if_there(files_, file.previous));
  }
  std::vector<const FileChange*> all;
  all.reserve(manifest.files.size());
  for (const auto& file : manifest.files) {
    all.push_back(&file);
  }
  return sync_directories(all);
}

Result<void> ChangeFiles::sync_directories(const std::vector<const FileChange*>& of) {
  std::set<Path> directories;
  for (const auto* file : of) {
    directories.insert(file->path.parent_path());
  }
  for (const auto& directory : directories) {
    VERGER_RETURN_IF_ERROR(files_.sync_directory(directory));
  }
  return {};
}

Result<ChangeFiles::Look> ChangeFiles::look(const ChangeManifest& manifest,
                                            CertificatePhase phase) const {
  bool any_before = false;
  bool any_after = false;
  for (const auto* file : manifest.of(phase)) {
    VERGER_TRY(const auto now, hash_if_there(files_, file->path));
    if (now != file->before && now != file->after) {
      return Look::kForeign;
    }
    any_before = any_before || now == file->before;
    any_after = any_after || now == file->after;
  }
  return any_before && any_after ? Look::kMixed : any_after ? Look::kAfter : Look::kBefore;
}

Result<void> ChangeFiles::check_next(const ChangeManifest& manifest, CertificatePhase phase) const {
  for (const auto* file : manifest.of(phase)) {
    VERGER_TRY(const auto now, hash_if_there(files_, file->path));
    if (now != file->before) {
      return Error{Errc::kConflict,
                   fmt::format("{} is no longer what it was when the change {} was staged: stage "
                               "it again",
                               file->path.string(), manifest.change)};
    }
    VERGER_TRY(const auto next, hash_if_there(files_, file->next));
    VERGER_TRY(const auto previous, hash_if_there(files_, file->previous));
    if (next != file->after || previous != file->before) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: the copy is missing or damaged; stage the change again",
                               (next != file->after ? file->next : file->previous).string())};
    }
  }
  return {};
}

Result<void> ChangeFiles::switch_over(ChangeManifest& manifest, CertificatePhase phase,
                                      api::ReloadBy reload) {
  VERGER_RETURN_IF_ERROR(check_next(manifest, phase));
  const auto changed = manifest.of(phase);
  manifest.reload = reload;
  manifest.set_state(phase, PhaseState::kSwitching);
  if (const auto stored = store(manifest); !stored) {
    manifest.set_state(phase, PhaseState::kStaged);
    return stored;
  }
  auto renamed = [&]() -> Result<void> {
    for (const auto* file : changed) {
      VERGER_FAILPOINT("agent.certificates.before-rename");
      VERGER_RETURN_IF_ERROR(file->after.empty() ? files_.remove(file->path)
                                                 : files_.rename(file->next, file->path));
      VERGER_FAILPOINT("agent.certificates.after-rename");
    }
    return sync_directories(changed);
  }();
  if (renamed) {
    return {};
  }
  if (const auto restored = restore(manifest, phase); !restored) {
    return Error{Errc::kUnknownOutcome,
                 fmt::format("{}; and what was before could not be restored: {}",
                             renamed.error().message, restored.error().message)};
  }
  static_cast<void>(confirm_restore(manifest, phase));
  return renamed;
}

Result<void> ChangeFiles::confirm_switch(ChangeManifest& manifest, CertificatePhase phase) {
  manifest.set_state(phase, PhaseState::kSwitched);
  return store(manifest);
}

Result<void> ChangeFiles::put_back(const FileChange& file) {
  VERGER_TRY(const auto now, hash_if_there(files_, file.path));
  if (now == file.before) {
    return {};
  }
  if (file.before.empty()) {
    return remove_if_there(files_, file.path);
  }
  VERGER_TRY(const auto previous, hash_if_there(files_, file.previous));
  if (previous != file.before) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the copy of what was before is {}", file.previous.string(),
                             previous.empty() ? "missing" : "damaged")};
  }
  if (!file.after.empty() && !now.empty()) {
    // For the proof that the server no longer uses it; without it less can be proven.
    const auto attributes = access_.attributes_of(file.path);
    if (const auto content = read_file(files_, file.path); content && attributes) {
      static_cast<void>(write_copy(files_, access_, file.next, as_text(*content), *attributes));
    }
  }
  return files_.rename(file.previous, file.path);
}

Result<void> ChangeFiles::restore(ChangeManifest& manifest, CertificatePhase phase) {
  VERGER_TRY(const auto found, look(manifest, phase));
  if (found == Look::kForeign) {
    return Error{Errc::kConflict,
                 fmt::format("the files of the change {} were replaced by someone else since the "
                             "switch, so they are left as they are",
                             manifest.change)};
  }
  manifest.set_state(phase, PhaseState::kRestoring);
  // On a full disk the files come back all the same: look() needs no manifest to tell.
  static_cast<void>(store(manifest));
  const auto changed = manifest.of(phase);
  for (const auto* file : changed) {
    VERGER_FAILPOINT("agent.certificates.before-restore");
    VERGER_RETURN_IF_ERROR(put_back(*file));
  }
  return sync_directories(changed);
}

Result<void> ChangeFiles::confirm_restore(ChangeManifest& manifest, CertificatePhase phase) {
  manifest.set_state(phase, PhaseState::kRestored);
  return store(manifest);
}

Result<void> ChangeFiles::discard(const ChangeManifest& manifest) {
  for (const auto phase :
       {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
    if (!manifest.is_untouched(phase)) {
      return Error{
          Errc::kConflict,
          fmt::format("the change {} is {} in its phase {}: restore it first", manifest.change,
                      to_string(manifest.state(phase)), api::to_string(phase))};
    }
  }
  VERGER_RETURN_IF_ERROR(remove_copies(manifest));
  VERGER_RETURN_IF_ERROR(remove_if_there(files_, manifest_path()));
  return files_.sync_directory(directory_);
}

Result<std::string> ChangeFiles::content(const FileChange& file, bool after) const {
  const auto& wanted = after ? file.after : file.before;
  for (const auto& path : {file.path, after ? file.next : file.previous}) {
    const auto read = read_file(files_, path);
    if (read && to_hex(sha256(*read)) == wanted) {
      return std::string(as_text(*read));
    }
  }
  return Error{Errc::kNotFound, fmt::format("{}: there is no copy of what was {} any longer",
                                            file.path.string(), after ? "staged" : "before")};
}

std::vector<std::string> restore_commands(const ChangeManifest& manifest, CertificatePhase phase) {
  std::vector<std::string> out;
  for (const auto* file : manifest.of(phase)) {
    out.push_back(file->before.empty()
                      ? fmt::format("rm -f -- {}", quoted_for_shell(file->path))
                      : fmt::format("mv -f -- {} {}", quoted_for_shell(file->previous),
                                    quoted_for_shell(file->path)));
  }
  return out;
}

}  // namespace verger::agent
