#pragma once

#include <string>
#include <string_view>

#include "nodeagent/operations/certificates/change_files.h"

namespace verger::agent {

/// JSON, docs/formats/agent-interface.md, "Certificates on disk".
std::string manifest_text(const ChangeManifest& manifest);
/// Error: kCorruption.
Result<ChangeManifest> parse_manifest(std::string_view text);

}  // namespace verger::agent
