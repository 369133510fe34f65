#include "controller/operations/scavenge/digest_comparison.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;

/// Names by what the nodes have, such as "n1, n2 against n3".
template <class Of>
std::string groups(const std::vector<ComparedNode>& nodes, Of of) {
  std::map<std::string, std::vector<std::string>> by_value;
  for (const auto& node : nodes) {
    by_value[of(node)].push_back(node.name);
  }
  std::vector<std::string> texts;
  for (auto& [value, names] : by_value) {
    std::ranges::sort(names);
    texts.push_back(fmt::format("{}", fmt::join(names, ", ")));
  }
  std::ranges::sort(texts, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return fmt::format("{}", fmt::join(texts, " against "));
}

std::int64_t finished_number(const ComparedNode& node) {
  return node.last_finished ? node.last_finished->number : -1;
}

/// Those that have to read the same as of the point: all that were not scavenged beyond it, and
/// those that were to one later point, which rightly removes more.
std::map<std::int64_t, std::vector<ComparedNode>> comparable_groups(
    const std::vector<ComparedNode>& nodes, std::int64_t point) {
  std::map<std::int64_t, std::vector<ComparedNode>> out;
  for (const auto& node : nodes) {
    out[std::max(finished_number(node), point)].push_back(node);
  }
  return out;
}

std::set<std::string> readable_of(const std::vector<ComparedNode>& nodes) {
  std::set<std::string> out;
  for (const auto& node : nodes) {
    out.insert(node.digest.readable);
  }
  return out;
}

/// Newest first, such as "n1, n3 at 4; n2 at 3".
std::string finished_points(const std::vector<ComparedNode>& nodes) {
  std::map<std::int64_t, std::vector<std::string>, std::greater<>> by_point;
  for (const auto& node : nodes) {
    by_point[finished_number(node)].push_back(node.name);
  }
  std::vector<std::string> texts;
  for (auto& [number, names] : by_point) {
    std::ranges::sort(names);
    texts.push_back(fmt::format("{} at {}", fmt::join(names, ", "),
                                number < 0 ? std::string("none") : std::to_string(number)));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

json first_difference(const std::vector<ComparedNode>& nodes) {
  std::size_t chunks = 0;
  for (const auto& node : nodes) {
    chunks = std::max(chunks, node.digest.chunks.size());
  }
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    std::set<std::string> values;
    auto by_node = json::object();
    for (const auto& node : nodes) {
      const auto& list = node.digest.chunks;
      const auto value = chunk < list.size() ? list[chunk] : std::string();
      values.insert(value);
      by_node[node.name] = value;
    }
    if (values.size() > 1) {
      return {{"chunk", chunk}, {"nodes", std::move(by_node)}};
    }
  }
  return nullptr;
}

/// Of nodes with the same records one may have been computed for all.
void share_readable(std::vector<ComparedNode>& nodes) {
  for (auto& node : nodes) {
    const auto twin = std::ranges::find_if(nodes, [&node](const ComparedNode& other) {
      return other.digest.logical == node.digest.logical && !other.digest.readable.empty();
    });
    if (node.digest.readable.empty() && twin != nodes.end()) {
      node.digest.readable = twin->digest.readable;
      node.digest.readable_events = twin->digest.readable_events;
    }
  }
}

}  // namespace

std::string digest_value_name(std::string_view node) { return fmt::format("digest/{}", node); }

json digest_value(const api::Digest& digest, std::int64_t point) {
  const bool read = !digest.readable.empty();
  return {{"point", point},
          {"logical", digest.logical},
          {"readable", read ? json(digest.readable) : json()},
          {"records", digest.records},
          {"readable_events", read ? json(digest.readable_events) : json()}};
}

std::optional<api::Digest> digest_of_value(const std::string& text, std::int64_t point) {
  const auto value = json::parse(text, nullptr, false);
  if (!value.is_object() || value.value("point", -1LL) != point ||
      !value.value("logical", json()).is_string()) {
    return std::nullopt;
  }
  api::Digest out;
  out.point_number = point;
  out.logical = value["logical"].get<std::string>();
  out.records = value.value("records", 0LL);
  const auto readable = value.value("readable", json());
  out.readable = readable.is_string() ? readable.get<std::string>() : std::string();
  out.readable_events = out.readable.empty() ? -1 : value.value("readable_events", -1LL);
  return out;
}

json comparison_of(std::int64_t point, std::vector<ComparedNode> nodes,
                   const DigestBefore& before) {
  share_readable(nodes);
  std::set<std::string> logical;
  std::set<std::string> readable;
  std::set<std::int64_t> finished;
  auto by_name = json::object();
  for (const auto& node : nodes) {
    const auto& digest = node.digest;
    logical.insert(digest.logical);
    readable.insert(digest.readable);
    finished.insert(finished_number(node));
    json last;
    if (node.last_finished) {
      last = {{"number", node.last_finished->number}, {"position", node.last_finished->position}};
    }
    by_name[node.name] = {
        {"logical", digest.logical},
        {"readable", digest.readable.empty() ? json() : json(digest.readable)},
        {"records", digest.records},
        {"readable_events", digest.readable.empty() ? json() : json(digest.readable_events)},
        {"last_finished", std::move(last)}};
  }
  auto differences = json::array();
  const auto comparable = comparable_groups(nodes, point);
  for (const auto& [number, group] : comparable) {
    if (readable_of(group).size() > 1) {
      differences.push_back(
          fmt::format("what clients can read up to scavenge point {} differs between the nodes: {}",
                      point, groups(group, [](const auto& node) { return node.digest.readable; })));
    }
  }
  json readable_equal;
  if (!differences.empty() || readable.size() == 1) {
    readable_equal = differences.empty();
  }
  const auto at_point = comparable.find(point);
  const auto now =
      at_point == comparable.end() ? std::set<std::string>() : readable_of(at_point->second);
  json unchanged;
  const bool is_read = now.size() != 1 || !now.begin()->empty();
  if (!before.readable.empty() && is_read) {
    const bool is_another = now.size() == 1 && *now.begin() != before.readable;
    if (is_another || now.size() > 1) {
      unchanged = false;
    } else if (readable.contains(before.readable)) {
      unchanged = true;
    }
    if (is_another) {
      differences.push_back(
          fmt::format("what clients can read up to scavenge point {} is not what {} held before it "
                      "was scavenged",
                      point, before.node));
    }
  }
  if (finished.size() > 1) {
    differences.push_back(
        fmt::format("the nodes ended at different scavenge points: {}", finished_points(nodes)));
  }
  return {{"compared", true},
          {"point", point},
          {"equal", logical.size() == 1},
          {"readable_equal", std::move(readable_equal)},
          {"readable_unchanged", std::move(unchanged)},
          {"same_point", finished.size() == 1},
          {"nodes", std::move(by_name)},
          {"first_difference", first_difference(nodes)},
          {"differences", std::move(differences)}};
}

}  // namespace verger::controller::scavenge
