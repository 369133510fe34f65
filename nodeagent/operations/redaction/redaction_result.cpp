#include "nodeagent/operations/redaction/redaction_result.h"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

namespace verger::agent {
namespace {

using nlohmann::json;

/// Of files with findings, so many are named; the others are counted.
constexpr std::size_t kMostNamed = 50;

void note_text(ByteView text, redaction::PlaintextDigests& digests, RedactionResult& into) {
  if (text.empty()) {
    return;
  }
  const bool searchable = digests.add(text);
  into.unsearchable += searchable ? 0U : 1U;
  into.texts += searchable ? 1U : 0U;
}

}  // namespace

json to_json(const RedactionResult& result) {
  auto chunks = json::array();
  for (const auto& chunk : result.chunks) {
    chunks.push_back({{"from", chunk.from},
                      {"to", chunk.to},
                      {"records", chunk.records},
                      {"md5Before", to_hex(chunk.md5_before)},
                      {"md5After", to_hex(chunk.md5_after)}});
  }
  return {{"records", result.records},
          {"blanked", result.blanked},
          {"already", result.already},
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

Result<void> note_texts(const log::TransactionLog& log, const redaction::RedactionPlan& plan,
                        redaction::PlaintextDigests& digests, RedactionResult& into) {
  Bytes buffer;
  for (const auto& planned : plan.records) {
    if (planned.already) {
      continue;
    }
    VERGER_TRY(const auto record, log.read(planned.position, buffer));
    const auto* prepare = record.prepare();
    if (prepare == nullptr) {
      continue;
    }
    note_text(prepare->data, digests, into);
    if (planned.metadata) {
      note_text(prepare->metadata, digests, into);
    }
  }
  return {};
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
