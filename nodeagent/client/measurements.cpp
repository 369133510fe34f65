#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/number_from_text.h"
#include "nodeagent/api/json_text.h"
#include "nodeagent/client/answers.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

using nlohmann::json;

/// One label's value in `name="Scavenge",status="Idle"`; the values we look for hold no escapes.
std::string_view label(std::string_view labels, std::string_view name) {
  std::size_t at = 0;
  while ((at = labels.find(name, at)) != std::string_view::npos) {
    const auto value = labels.substr(at + name.size());
    const bool starts = at == 0 || labels[at - 1] == ',' || labels[at - 1] == ' ';
    if (starts && value.starts_with("=\"")) {
      const auto end = value.find('"', 2);
      return end == std::string_view::npos ? std::string_view{} : value.substr(2, end - 2);
    }
    at += name.size();
  }
  return {};
}

struct StatusLine {
  std::string_view name;
  std::string_view status;
  double value = 0;
};

/// `eventstore_statuses{name="Scavenge",status="Idle"} 1717236000 1717236000786`, also under the
/// names of 25+ ("kurrentdb_statuses", with "_total" where a scraper requests openmetrics).
std::optional<StatusLine> status_line(std::string_view line) {
  const auto brace = line.find('{');
  const auto close = line.find('}');
  if (line.starts_with('#') || brace == std::string_view::npos || close == std::string_view::npos ||
      close < brace) {
    return std::nullopt;
  }
  const auto metric = line.substr(0, brace);
  if (!metric.ends_with("_statuses") && !metric.ends_with("_statuses_total")) {
    return std::nullopt;
  }
  StatusLine out;
  const auto labels = line.substr(brace + 1, close - brace - 1);
  out.name = label(labels, "name");
  out.status = label(labels, "status");
  auto rest = line.substr(close + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out.value);
  if (error != std::errc{} || out.name.empty()) {
    return std::nullopt;
  }
  return out;
}

const json* at(const json& value, std::initializer_list<std::string_view> path) {
  const json* here = &value;
  for (const auto name : path) {
    if (!here->is_object()) {
      return nullptr;
    }
    const auto it = here->find(name);
    if (it == here->end()) {
      return nullptr;
    }
    here = &*it;
  }
  return here;
}

std::int64_t integer_at(const json& value, std::initializer_list<std::string_view> path,
                        std::int64_t otherwise) {
  const auto* found = at(value, path);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

}  // namespace

Outcome<StatusLines> parse_answer_metrics(const http::Response& response) {
  if (response.status != 200) {
    return common_failure(response).as<StatusLines>();
  }
  StatusLines out;
  // The value is the time at which the status was last current: the largest is the present one.
  double newest_node = -1;
  double newest_index = -1;
  double newest_scavenge = -1;
  std::string_view text = response.body;
  bool any_metric = false;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    any_metric = any_metric || line.starts_with("# TYPE ");
    const auto status = status_line(line);
    if (!status.has_value()) {
      continue;
    }
    any_metric = true;
    const auto keep = [&](std::string_view name, std::string& into, double& newest) {
      if (status->name == name && status->value > newest) {
        newest = status->value;
        into = status->status;
      }
    };
    keep("Node", out.node, newest_node);
    keep("Index", out.index, newest_index);
    keep("Scavenge", out.scavenge, newest_scavenge);
  }
  if (!any_metric) {
    return common_failure(response).as<StatusLines>();
  }
  return done(std::move(out));
}

Outcome<Stats> parse_answer_stats(const http::Response& response) {
  if (response.status != 200) {
    return common_failure(response).as<Stats>();
  }
  const auto value = api::parse_json(response.body, "stats");
  if (!value.has_value()) {
    return unknown<Stats>("unexpected_answer", value.error().message);
  }
  Stats stats;
  stats.checksum = integer_at(*value, {"es", "checksum"}, -1);
  stats.checksum_non_flushed = integer_at(*value, {"es", "checksumNonFlushed"}, -1);
  stats.process_id = integer_at(*value, {"proc", "id"}, 0);
  if (const auto* start = at(*value, {"proc", "startTime"});
      start != nullptr && start->is_string()) {
    stats.process_start = start->get<std::string>();
  }
  if (const auto* drives = at(*value, {"sys", "drive"}); drives != nullptr && drives->is_object()) {
    for (const auto& drive : *drives) {
      const auto free = integer_at(drive, {"availableBytes"}, -1);
      if (free >= 0 && (stats.disk_free_bytes < 0 || free < stats.disk_free_bytes)) {
        stats.disk_free_bytes = free;
      }
    }
  }
  if (stats.checksum < 0) {
    return unknown<Stats>("unexpected_answer", "stats: es.checksum is missing");
  }
  return done(std::move(stats));
}

Outcome<NodeSettings> parse_answer_settings(const http::Response& response) {
  if (response.status != 200) {
    return common_failure(response).as<NodeSettings>();
  }
  const auto value = api::parse_json(response.body, "options");
  if (!value.has_value()) {
    return unknown<NodeSettings>("unexpected_answer", value.error().message);
  }
  NodeSettings out;
  const auto text_of = [&](std::string_view name, const char* member = "value") {
    for (const auto& option : *value) {
      const auto* given = at(option, {"name"});
      const auto* text = at(option, {member});
      if (given == nullptr || *given != name || text == nullptr) {
        continue;
      }
      if (text->is_string()) {
        return text->get<std::string>();
      }
      if (text->is_boolean()) {
        return std::string(text->get<bool>() ? "true" : "false");
      }
      if (text->is_number_integer()) {
        return std::to_string(text->get<std::int64_t>());
      }
    }
    return std::string();
  };
  const auto is_on = [&](std::string_view name) {
    auto text = text_of(name);
    std::ranges::transform(text, text.begin(), [](unsigned char each) {
      return static_cast<char>(std::tolower(each));
    });
    return text == "true";
  };
  out.database = text_of("Db");
  out.index = text_of("Index");
  out.certificate_file = text_of("CertificateFile");
  out.private_key_file = text_of("CertificatePrivateKeyFile");
  out.trusted_roots = text_of("TrustedRootCertificatesPath");
  out.reserved_common_name = text_of("CertificateReservedNodeCommonName");
  out.client_usage_disabled = is_on("DisableClientAuthEkuValidation");
  out.cluster_size =
      number_from_text<std::int32_t>(text_of("ClusterSize")).value_or(out.cluster_size);
  out.cluster_size_source = text_of("ClusterSize", "configurationSource");
  if (out.database.empty()) {
    return unknown<NodeSettings>("unexpected_answer", "options: Db is missing");
  }
  return done(std::move(out));
}

}  // namespace verger::client
