#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"
#include "nodeagent/certificates/trust_matrix.h"

/// Checks a set of new certificates against what each node shows and trusts now, before anything
/// is touched: a function of values, for `verger cert lint` and as the preflight of a change.
namespace verger::certificates {

/// A file as it was found.
struct FileSeen {
  std::string path{};  ///< for messages
  std::string content{};
  std::string unreadable{};         ///< why it could not be read; empty: it was
  std::optional<unsigned> mode{};   ///< permission bits; nullopt: not known
  std::optional<unsigned> owner{};  ///< user id
  std::optional<unsigned> group{};  ///< group id
};

struct NewFilesOfNode {
  FileSeen certificate{};
  /// nullopt: the key is on the node and does not leave it; what concerns it is not checked.
  std::optional<FileSeen> key{};
  std::string key_password{};
  std::vector<FileSeen> roots{};
};

/// What a node shows and trusts now, PEM.
struct ServedNow {
  std::string chain{};
  /// All roots that it trusts. Empty: not known; those of the new files and the `other` ones from
  /// which its chain comes count, since a node does not load a leaf that its roots do not accept.
  std::string roots{};
};

struct LintNode {
  std::string name{};
  std::string version{};                 ///< of the server, "24.6.0"; empty: not known
  std::vector<std::string> addresses{};  ///< that gossip advertises, without ports
  std::string reserved_common_name{};    ///< as configured; empty: the version's default
  bool client_usage_disabled = false;    ///< DisableClientAuthEkuValidation
  bool loads_ec_keys = false;            ///< the embedded node does; servers load RSA keys alone
  std::chrono::seconds clock_ahead{};    ///< of the clock of `now`; negative: behind
  std::optional<unsigned> owner{};       ///< user that the server runs as; nullopt: not known
  std::vector<unsigned> groups{};        ///< of that user; empty: not known
  NewFilesOfNode next{};
  std::optional<ServedNow> served{};  ///< nullopt: it does not run, or is not looked at
};

struct LintInput {
  std::vector<LintNode> nodes{};
  std::vector<FileSeen> others{};  ///< certificates that are known, to say which one is missing
  Ticks now{};
  std::chrono::seconds window{std::chrono::minutes(10)};  ///< that the change may take
  /// Old and new roots are trusted everywhere before the first new leaf is shown.
  bool trust_first = false;
};

enum class Severity : std::uint8_t { kWarning, kError };

/// One thing that is wrong. The codes are stable (docs/operations/certificates.md).
struct Finding {
  Severity severity = Severity::kError;
  std::string code{};
  std::string node{};     ///< empty: it concerns all
  std::string where{};    ///< the file; may be empty
  std::string message{};  ///< what is wrong
  std::string next{};     ///< what to do
};

struct LintReport {
  std::vector<Finding> findings{};
  std::vector<TrustStage> stages{};   ///< empty where certificates cannot be read
  [[nodiscard]] bool passed() const;  ///< no errors
};

LintReport lint(const LintInput& input);

}  // namespace verger::certificates
