#pragma once

#include <string>
#include <vector>

#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redaction_job.h"
#include "engine/redaction/redaction_plan.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// What a redaction did, or would do, for the output.
struct RedactionOutcome {
  std::string result;  ///< "planned", "redacted", "nothing to do"
  redaction::RedactionPlan plan{};
  std::vector<redaction::RedactedChunk> chunks{};
  /// Directories in which a restore keeps former files.
  std::vector<std::string> kept_by_restores{};
  bool searched = false;
  std::vector<std::string> texts{};  ///< what each text that was searched for is
  std::vector<std::string> unsearchable{};
  std::vector<redaction::SearchedFile> files{};
  double seconds = 0;

  /// Every file was searched and is clean.
  [[nodiscard]] bool proven() const;
};

void print_redaction(ToolContext& tool, const RedactionOutcome& outcome);

}  // namespace verger::tool
