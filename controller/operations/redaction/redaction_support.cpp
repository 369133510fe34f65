#include "controller/operations/redaction/redaction_support.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

namespace verger::controller::redactions {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kHeader = R"({"format":"verger-redactions","version":1})";

}  // namespace

std::string ListedEvent::name() const { return fmt::format("{}@{}", number, stream); }

Result<std::vector<ListedEvent>> parse_list(std::string_view text) {
  std::vector<ListedEvent> out;
  bool is_header = true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (std::exchange(is_header, false)) {
      if (line != kHeader) {
        return Error{Errc::kCorruption, "the list of redactions has another header"};
      }
      continue;
    }
    try {
      const auto entry = json::parse(line);
      out.push_back({.stream = entry.at("stream").get<std::string>(),
                     .number = entry.at("number").get<std::int64_t>(),
                     .position = entry.at("position").get<std::int64_t>(),
                     .metadata = entry.at("metadata").get<bool>(),
                     .digest = entry.at("digest").get<std::string>()});
    } catch (const json::exception& error) {
      return Error{Errc::kCorruption, fmt::format("the list of redactions: {}", error.what())};
    }
  }
  if (is_header) {
    return Error{Errc::kCorruption, "the list of redactions is empty"};
  }
  return out;
}

std::string list_text(const std::vector<ListedEvent>& list) {
  auto out = std::string(kHeader) + "\n";
  for (const auto& entry : list) {
    out += ordered_json{{"stream", entry.stream},
                        {"number", entry.number},
                        {"position", entry.position},
                        {"metadata", entry.metadata},
                        {"digest", entry.digest}}
               .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
           "\n";
  }
  return out;
}

Result<std::vector<ListedEvent>> agreed_list(
    const std::map<std::string, std::vector<ListedEvent>>& by_node,
    const std::vector<std::string>& events) {
  struct Seen {
    ListedEvent entry;
    std::string node;
  };
  std::map<std::int64_t, Seen> all;
  for (const auto& [node, list] : by_node) {
    for (const auto& entry : list) {
      const auto [at, added] = all.try_emplace(entry.position, Seen{entry, node});
      if (!added && at->second.entry != entry) {
        return Error{
            Errc::kConflict,
            fmt::format("the record at log position {} is {} on {} and {} on {}, or another "
                        "one of that name: the nodes do not have the same log",
                        entry.position, at->second.entry.name(), at->second.node, entry.name(),
                        node)};
      }
    }
  }
  std::vector<ListedEvent> out;
  out.reserve(all.size());
  for (auto& [position, seen] : all) {
    out.push_back(std::move(seen.entry));
  }
  std::vector<std::string> missing;
  for (const auto& event : events) {
    if (std::ranges::none_of(out, [&](const auto& entry) { return entry.name() == event; })) {
      missing.push_back(event);
    }
  }
  if (!missing.empty()) {
    return Error{
        Errc::kNotFound,
        fmt::format("no node has {}: leave out what was never written or is scavenged away",
                    fmt::join(missing, ", "))};
  }
  return out;
}

std::vector<ListedEvent> agreed_list_of(const std::map<std::string, std::string>& values) {
  const auto found = values.find(std::string(names::kListValue));
  auto list = found == values.end() ? Result<std::vector<ListedEvent>>(std::vector<ListedEvent>())
                                    : parse_list(list_member(found->second));
  return list ? *std::move(list) : std::vector<ListedEvent>();
}

std::vector<ListedEvent> redacted_by_runs(const OperationSettings& settings,
                                          std::string_view cluster) {
  std::vector<ListedEvent> out;
  if (!settings.kept_by_runs) {
    return out;
  }
  for (const auto& kept : settings.kept_by_runs(cluster)) {
    if (!kept.contains(std::string(kOlderDataNoteValue))) {
      continue;
    }
    for (auto& entry : agreed_list_of(kept)) {
      if (std::ranges::find(out, entry) == out.end()) {
        out.push_back(std::move(entry));
      }
    }
  }
  // Of a record whose metadata was blanked, too, later, that is the form that counts.
  std::erase_if(out, [all = out](const ListedEvent& entry) {
    return !entry.metadata && std::ranges::any_of(all, [&entry](const ListedEvent& other) {
      return other.metadata && other.position == entry.position && other.name() == entry.name();
    });
  });
  std::ranges::sort(out, {}, [](const ListedEvent& entry) {
    return std::tuple(entry.position, entry.metadata, std::string_view(entry.digest));
  });
  return out;
}

std::string list_member(const std::string& value) {
  return steps::parsed_or_empty(value).value("list", std::string());
}

}  // namespace verger::controller::redactions
