#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redaction_job.h"

namespace verger::agent {

/// What was done on a node, and what the search showed. Nothing of what the events held is in it.
struct RedactionResult {
  std::size_t records = 0;                         ///< of the list, that the node has
  std::size_t blanked = 0;                         ///< by this job
  std::size_t already = 0;                         ///< before
  std::size_t read_blank = 0;                      ///< that read as blank at the end
  std::vector<std::string> missing{};              ///< of the list, that the node does not have
  std::vector<redaction::RedactedChunk> chunks{};  ///< files that were replaced
  std::vector<std::string> removed{};              ///< files beside the live ones
  std::size_t texts = 0;                           ///< that were searched for
  std::size_t unsearchable = 0;                    ///< too short, or nothing but repetitions
  std::size_t searched_files = 0;                  ///< 0: no text was known, nothing was searched
  std::uint64_t searched_bytes = 0;
  std::vector<std::string> found{};  ///< where text is left, or why a file was not searched
  std::vector<std::string> held{};   ///< removed files that a process has open
  // Of a redaction beside the running server:
  bool online = false;
  std::size_t read_back = 0;      ///< events that the server gives readers without data
  std::size_t search_rounds = 0;  ///< the later ones of what was written during the one before
  /// Files that were written to during the last round, too: searched as they were then.
  std::vector<std::string> changing{};
  std::size_t held_searched = 0;  ///< removed files that were held open, and hold none of the texts
};

/// JSON object: the members in camelCase, a chunk as {"from", "to", "records", "md5Before",
/// "md5After"}, and "proven": a text was searched for, and none was found or may be held.
nlohmann::json to_json(const RedactionResult& result);

/// Into `found`: the files that are not clean, each with how often or why.
void keep_found(const std::vector<redaction::SearchedFile>& files, RedactionResult& into);

}  // namespace verger::agent
