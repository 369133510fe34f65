#include "nodeagent/operations/redaction/redaction_result.h"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

namespace verger::agent {
namespace {

using nlohmann::json;

/// Of files with findings, so many are named; the others are counted.
constexpr std::size_t kMostNamed = 50;

}  // namespace

json to_json(const RedactionResult& result) {
  auto chunks = json::array();
  for (const auto& chunk : result.chunks) {
    json shown{{"from", chunk.from},
               {"to", chunk.to},
               {"records", chunk.records},
               {"md5Before", to_hex(chunk.md5_before)},
               {"md5After", to_hex(chunk.md5_after)}};
    if (chunk.digest_after != Sha256Digest{}) {  // else an attempt that was killed has replaced it
      shown["digestBefore"] = to_hex(chunk.digest_before);
      shown["digestAfter"] = to_hex(chunk.digest_after);
    }
    chunks.push_back(std::move(shown));
  }
  return {{"records", result.records},
          {"blanked", result.blanked},
          {"already", result.already},
          {"readBlank", result.read_blank},
          {"missing", result.missing},
          {"chunks", std::move(chunks)},
          {"removed", result.removed},
          {"texts", result.texts},
          {"unsearchable", result.unsearchable},
          {"searchedFiles", result.searched_files},
          {"searchedBytes", result.searched_bytes},
          {"found", result.found},
          {"held", result.held},
          {"online", result.online},
          {"readBack", result.read_back},
          {"searchRounds", result.search_rounds},
          {"changing", result.changing},
          {"heldSearched", result.held_searched},
          {"proven", result.searched_files > 0 && result.found.empty() && result.held.empty()}};
}

void keep_found(const std::vector<redaction::SearchedFile>& files, RedactionResult& into) {
  std::size_t more = 0;
  for (const auto& file : files) {
    if (file.clean()) {
      continue;
    }
    if (into.found.size() == kMostNamed) {
      ++more;
      continue;
    }
    into.found.push_back(
        file.problem.empty()
            ? fmt::format("{}: the text, or a part of it, {} times", file.path.string(),
                          file.found.count)
            : fmt::format("{}: not searched: {}", file.path.string(), file.problem));
  }
  if (more > 0) {
    into.found.push_back(fmt::format("and {} more files", more));
  }
}

}  // namespace verger::agent
