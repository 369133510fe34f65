#include "engine/tool/detail/redaction_text.h"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostListed = 10;
constexpr std::string_view kUntouched =
    "Backups, other nodes, and what readers have copied are not touched; the file system may keep "
    "the bytes of removed files until it uses their blocks again.\n";

ordered_json json_of(const redaction::PlannedRecord& record) {
  return {{"stream", record.stream},
          {"eventNumber", record.number.value()},
          {"position", record.position.value()},
          {"chunkFile", record.chunk_file},
          {"dataBytes", record.data_bytes},
          {"metadataBytes", record.metadata_bytes},
          {"metadata", record.metadata},
          {"already", record.already},
          {"digest", to_hex(record.digest)}};
}

ordered_json json_of(const redaction::SearchedFile& file) {
  ordered_json json = {{"file", file.path.string()},
                       {"bytes", file.size},
                       {"clean", file.clean()},
                       {"count", file.found.count}};
  json["occurrences"] = ordered_json::array();
  for (const auto& one : file.found.occurrences) {
    json["occurrences"].push_back({{"offset", one.offset},
                                   {"length", one.length},
                                   {"text", one.text},
                                   {"textOffset", one.text_offset},
                                   {"whole", one.whole},
                                   {"event", one.event}});
  }
  if (!file.problem.empty()) {
    json["problem"] = file.problem;
  }
  return json;
}

ordered_json json_of(const redaction::PlannedChunk& chunk) {
  return {{"file", chunk.file},
          {"active", chunk.active},
          {"records", chunk.records.size()},
          {"bytes", chunk.bytes},
          {"fileBytes", chunk.file_size}};
}

ordered_json json_of(const redaction::RedactedChunk& chunk) {
  return {{"from", chunk.from},
          {"to", chunk.to},
          {"records", chunk.records},
          {"md5Before", to_hex(chunk.md5_before)},
          {"md5After", to_hex(chunk.md5_after)}};
}

ordered_json json_of(const redaction::Leftover& leftover) {
  return {
      {"file", leftover.name},
      {"kind", leftover.kind == redaction::Leftover::Kind::kTemporary ? "temporary" : "superseded"},
      {"bytes", leftover.size},
      {"ofRedaction", leftover.of_redaction}};
}

template <class Items>
ordered_json json_list(const Items& items) {
  auto list = ordered_json::array();
  for (const auto& item : items) {
    list.push_back(json_of(item));
  }
  return list;
}

ordered_json json_of(const RedactionOutcome& outcome) {
  ordered_json json = {{"result", outcome.result},
                       {"records", json_list(outcome.plan.records)},
                       {"planned", json_list(outcome.plan.chunks)},
                       {"replaced", json_list(outcome.chunks)},
                       {"missing", outcome.plan.missing},
                       {"refused", outcome.plan.refused},
                       {"leftovers", json_list(outcome.plan.leftovers)},
                       {"keptByRestores", outcome.kept_by_restores},
                       {"unfinishedScavenge", outcome.plan.unfinished_scavenge},
                       {"diskNeed", outcome.plan.disk_need()},
                       {"seconds", outcome.seconds}};
  if (outcome.searched) {
    json["proof"] = {{"clean", outcome.proven()},
                     {"texts", outcome.texts},
                     {"unsearchable", outcome.unsearchable},
                     {"files", json_list(outcome.files)}};
  }
  return json;
}

void print_plan(const redaction::RedactionPlan& plan, std::ostream& out) {
  using enum Table::Align;
  Table records({{"POSITION", kRight}, {"BYTES", kRight}, {"CHUNK FILE"}, {"STATE"}, {"EVENT"}});
  for (const auto& record : plan.records) {
    records.add({fmt::format("{}", record.position),
                 human_count(record.data_bytes + (record.metadata ? record.metadata_bytes : 0)),
                 record.chunk_file, record.already ? "redacted" : "to redact",
                 printable(redaction::name_of(record.stream, record.number))});
  }
  if (!plan.records.empty()) {
    records.print(out);
  }
  Table chunks(
      {{"CHUNK FILE"}, {"RECORDS", kRight}, {"BYTES", kRight}, {"FILE SIZE", kRight}, {""}});
  for (const auto& chunk : plan.chunks) {
    chunks.add({chunk.file, human_count(chunk.records.size()), human_count(chunk.bytes),
                human_bytes(chunk.file_size), chunk.active ? "active: to be completed first" : ""});
  }
  if (!plan.chunks.empty()) {
    out << '\n';
    chunks.print(out);
    out << fmt::format("disk need: {} free meanwhile, for one copy at a time\n",
                       human_bytes(plan.disk_need()));
  }
}

void print_notes(const RedactionOutcome& outcome, std::ostream& out) {
  const auto& plan = outcome.plan;
  for (const auto& text : plan.missing) {
    out << "not there: " << printable(text) << '\n';
  }
  for (const auto& text : plan.refused) {
    out << "refused: " << printable(text) << '\n';
  }
  for (const auto& leftover : plan.leftovers) {
    out << fmt::format("{}: {} ({}){}\n",
                       leftover.kind == redaction::Leftover::Kind::kTemporary
                           ? "temporary file"
                           : "superseded chunk file",
                       leftover.name, human_bytes(leftover.size),
                       leftover.of_redaction ? ", of an interrupted redaction" : "");
  }
  for (const auto& directory : outcome.kept_by_restores) {
    out << fmt::format(
        "{}: a restore keeps the former files there, which may hold the data: remove them with "
        "`verger-db restore DIR --discard-old`\n",
        directory);
  }
}

void print_file(const redaction::SearchedFile& file, const RedactionOutcome& outcome,
                std::ostream& out) {
  if (!file.problem.empty()) {
    out << fmt::format("{}: NOT SEARCHED: {}\n", file.path.string(), printable(file.problem));
    return;
  }
  if (file.found.count == 0) {
    out << fmt::format("{}: clean\n", file.path.string());
    return;
  }
  out << fmt::format("{}: {}, {} found\n", file.path.string(),
                     file.clean() ? "clean but for parts in other events" : "NOT CLEAN",
                     human_count(file.found.count));
  std::size_t listed = 0;
  for (const auto& one : file.found.occurrences) {
    if (++listed > kMostListed) {
      out << fmt::format("  and {} more\n", file.found.count - kMostListed);
      break;
    }
    out << fmt::format("  at {}: {} of {}, {} bytes{}\n", one.offset, one.whole ? "all" : "a part",
                       printable(outcome.texts[one.text], 60), one.length,
                       one.event.empty() ? "" : " in " + printable(one.event, 60));
  }
}

void print_proof(const RedactionOutcome& outcome, std::ostream& out) {
  out << fmt::format("\nsearched for {} texts in {} files:\n", outcome.texts.size(),
                     outcome.files.size());
  for (const auto& file : outcome.files) {
    print_file(file, outcome, out);
  }
  for (const auto& text : outcome.unsearchable) {
    out << fmt::format("not searched for: {}\n", printable(text));
  }
  out << (outcome.proven() ? "proof: clean\n" : "proof: NOT CLEAN\n");
}

}  // namespace

bool RedactionOutcome::proven() const {
  return searched && unsearchable.empty() &&
         std::ranges::all_of(files, &redaction::SearchedFile::clean);
}

void print_redaction(ToolContext& tool, const RedactionOutcome& outcome) {
  if (tool.json) {
    tool.out << json_of(outcome).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
             << '\n';
    return;
  }
  print_plan(outcome.plan, tool.out);
  print_notes(outcome, tool.out);
  if (outcome.result == "redacted") {
    for (const auto& chunk : outcome.chunks) {
      tool.out << fmt::format("{} is now {}: {} records\n", chunk.from, chunk.to, chunk.records);
    }
    tool.out << fmt::format("redacted in {:.1f} s. {}", outcome.seconds, kUntouched);
  } else if (outcome.result == "nothing to do") {
    tool.out << "nothing to do: everything that is there is redacted already\n";
  }
  if (outcome.searched) {
    print_proof(outcome, tool.out);
  }
}

}  // namespace verger::tool
