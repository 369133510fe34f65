#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/external/file_access.h"
#include "nodeagent/operations/certificates/found_certificates.h"

namespace verger::agent {

/// One file of one phase. Copies lie in the directory of the file, so that a rename does:
/// ".NAME.verger-PHASE-next" and ".NAME.verger-PHASE-previous", which servers pass over.
struct FileChange {
  api::CertificatePhase phase = api::CertificatePhase::kLeaf;
  Path path{};
  Path next{};
  Path previous{};
  std::string before{};  ///< SHA-256; empty: there is no such file before
  std::string after{};   ///< SHA-256; empty: the file goes
};

enum class PhaseState : std::uint8_t {
  kStaged,
  kSwitching,  ///< files are being renamed, or the server has not been seen with them yet
  kSwitched,
  kRestoring,
  kRestored,  ///< as before; to switch again it has to be staged again
};
/// "staged", "switching", "switched", "restoring", "restored".
std::string_view to_string(PhaseState state);

/// What an agent remembers of the change that is staged: in "certificates/change.json" of its state
/// directory. No content of a file is in it.
struct ChangeManifest {
  std::string change{};
  /// False: files are being copied; what is there is removed, not used.
  bool complete = false;
  std::string staged_at{};
  std::string digest{};
  std::string set{};  ///< SHA-256 of the set in the agent's store that was staged; empty: none
  std::string serial{};
  std::string not_after{};
  std::string serial_before{};
  std::string fingerprint{};  ///< of the new leaf, SHA-256
  std::string fingerprint_before{};
  api::ReloadBy reload = api::ReloadBy::kRoute;  ///< as the last switch was asked
  /// Why connections cannot show that the server uses the files of these phases (see
  /// certificate_proof.h); empty: they can.
  std::string trust_not_shown{};
  std::string drop_not_shown{};
  std::vector<FileChange> files{};
  std::array<PhaseState, 3> states{};  ///< by CertificatePhase

  [[nodiscard]] PhaseState state(api::CertificatePhase phase) const {
    return states.at(static_cast<std::size_t>(phase));
  }
  /// No file of the phase is other than before: what changes one is written down first.
  [[nodiscard]] bool is_untouched(api::CertificatePhase phase) const {
    return of(phase).empty() || state(phase) == PhaseState::kStaged ||
           state(phase) == PhaseState::kRestored;
  }
  void set_state(api::CertificatePhase phase, PhaseState state) {
    states.at(static_cast<std::size_t>(phase)) = state;
  }
  [[nodiscard]] std::vector<const FileChange*> of(api::CertificatePhase phase) const;
};

/// The files of a change on disk: copied, switched, restored, removed. Nothing here talks to a
/// server. One thread.
///
/// A switch is several renames, and no file system makes them one. The manifest says durably that
/// they begin before the first; what a crash left, look() tells by the contents alone, and
/// restore() brings back from any of it what was before, bytes, mode and owner. That needs no
/// space on the disk of the files: their copies were made when they were staged.
class ChangeFiles {
 public:
  ChangeFiles(FileSystem& files, external::FileAccess& access, Clock& clock, Path directory)
      : files_(files), access_(access), clock_(clock), directory_(std::move(directory)) {}

  /// nullopt: no change is staged. Errors: kCorruption, kIo.
  [[nodiscard]] Result<std::optional<ChangeManifest>> load() const;
  /// Copies `next` beside `live`, and `live` beside itself; removes the copies of the change
  /// before. After an error nothing of this change is left. Errors: kNoSpace; kRefused: a
  /// file cannot be written, given to its user, or is a link among the roots; kConflict: the change
  /// is switched already; kIo.
  Result<ChangeManifest> stage(const std::string& change, const FoundCertificates& live,
                               const FoundCertificates& next);
  /// Renames the files of a phase, all or none: after an error they were restored, except that
  /// after kUnknownOutcome restore() has to be called again. Errors: kConflict: a file is no
  /// longer what it was when the change was staged; kCorruption: a copy is damaged; kIo.
  Result<void> switch_over(ChangeManifest& manifest, api::CertificatePhase phase,
                           api::ReloadBy reload);
  /// The server was seen with them.
  Result<void> confirm_switch(ChangeManifest& manifest, api::CertificatePhase phase);
  /// From any state. Errors: kConflict: a file is neither the one before nor the new one, so
  /// someone else has replaced it, and nothing was touched; kCorruption: a copy is
  /// damaged or missing; kIo.
  Result<void> restore(ChangeManifest& manifest, api::CertificatePhase phase);
  /// The server was seen with what was before.
  Result<void> confirm_restore(ChangeManifest& manifest, api::CertificatePhase phase);
  /// Removes copies and manifest. Error: kConflict: a phase is switched.
  Result<void> discard(const ChangeManifest& manifest);

  enum class Look : std::uint8_t {
    kBefore,
    kAfter,
    kMixed,
    kForeign,  ///< a file is neither
  };
  /// Of a phase that is not is_untouched(): one that was not begun may begin with what an earlier
  /// one has yet to make. Error: kIo.
  [[nodiscard]] Result<Look> look(const ChangeManifest& manifest,
                                  api::CertificatePhase phase) const;
  /// The content of one side of a file, from wherever it lies now. Error: kNotFound.
  [[nodiscard]] Result<std::string> content(const FileChange& file, bool after) const;

 private:
  [[nodiscard]] Path manifest_path() const { return directory_ / "change.json"; }
  Result<void> store(const ChangeManifest& manifest);
  Result<void> remove_copies(const ChangeManifest& manifest);
  Result<void> check_next(const ChangeManifest& manifest, api::CertificatePhase phase) const;
  Result<void> put_back(const FileChange& file);
  Result<void> sync_directories(const std::vector<const FileChange*>& of);

  FileSystem& files_;
  external::FileAccess& access_;
  Clock& clock_;
  Path directory_;
};

/// For people: what restores a phase by hand, without the reload.
std::vector<std::string> restore_commands(const ChangeManifest& manifest,
                                          api::CertificatePhase phase);

}  // namespace verger::agent
