#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nodeagent/operations/certificates/change_files.h"

namespace verger::agent {

/// A file of a change with both of its contents.
struct PlannedFile {
  FileChange change{};
  std::string content_before{};
  std::string content_after{};
  std::optional<external::FileAttributes> attributes{};  ///< of both
};

/// Which files a change replaces, adds and removes, in the order of its phases. A function of
/// values.
///
/// Leaf: certificate and key, where their contents differ. Intermediates that are new are added
/// behind the present leaf in the phase trust; the old ones that are not among the new stay behind
/// the new leaf until the phase drop. Roots, where there are new ones: those
/// that are new are added in the phase trust; the old ones that are not among the new go in the
/// phase drop. A file whose certificates are all among the new ones stays as it is, under any
/// name. A new one whose name an old one has lies under another name ("ca-0a1b2c3d.crt") until
/// that is dropped. Roots in one file can
/// only stay.
///
/// Errors: kRefused: the present files are not as they can be changed, and the message says what
/// to do; kInvalidArgument: the new ones cannot be used together.
Result<std::vector<PlannedFile>> plan_files(const FoundCertificates& live,
                                            const FoundCertificates& next);

/// Why the certificates of this node cannot be changed by an agent; empty: they can.
std::string why_not_changeable(const FoundCertificates& live, external::FileAccess& access);
/// Why the agent cannot put these in their place, beyond what is wrong with them; empty: it can.
std::string why_not_replaceable(const FoundCertificates& live, const FoundCertificates& next,
                                external::FileAccess& access);

}  // namespace verger::agent
