#pragma once

#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/lint.h"
#include "nodeagent/certificates/openssl.h"

/// What lint's rules share.
namespace verger::certificates {

/// A node's new files, read as far as that goes.
struct ReadNode {
  const LintNode* node{};
  std::vector<Certificate> chain{};  ///< empty: cannot be read
  std::vector<Certificate> roots{};  ///< those that are self-signed
  Key key{};
  CertificateInfo leaf{};
};

/// Collects findings about one node.
class Findings {
 public:
  Findings(std::vector<Finding>& all, std::string node) : all_(all), node_(std::move(node)) {}
  void error(std::string code, std::string where, std::string message, std::string next) {
    all_.push_back({Severity::kError, std::move(code), node_, std::move(where), std::move(message),
                    std::move(next)});
  }
  void warning(std::string code, std::string where, std::string message, std::string next) {
    all_.push_back({Severity::kWarning, std::move(code), node_, std::move(where),
                    std::move(message), std::move(next)});
  }

 private:
  std::vector<Finding>& all_;
  std::string node_;
};

struct ServerVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;
};
/// nullopt: not known.
std::optional<ServerVersion> parse_server_version(const std::string& text);
/// Whether a changed common name is taken by a reload; false where the version is not known.
bool takes_changed_common_name(const LintNode& node);
/// Whether peers need client usage in a node's certificate.
bool needs_client_usage(const LintNode& node);
/// By which the node marks nodes' certificates when it shows a leaf of this name.
std::string reserved_name_of(const LintNode& node, const std::string& own_common_name);

/// Reads the files; says what cannot be read, who may read a key, and what is no root.
ReadNode read_new_files(const LintNode& node, Findings& findings);

/// Rules about one node's files: key, dates, names, usages, chain.
void check_node(const ReadNode& read, const std::vector<ReadNode>& all,
                const std::vector<Certificate>& known, const LintInput& input, Findings& findings);
/// Why no chain leads from the new leaf to the new roots.
void check_chain(const ReadNode& read, const std::vector<Certificate>& known,
                 const LintInput& input, Findings& findings);

}  // namespace verger::certificates
