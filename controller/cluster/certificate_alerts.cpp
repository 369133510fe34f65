#include "controller/cluster/certificate_alerts.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/cluster/certificate_end.h"
#include "controller/journal/append_and_fold.h"
#include "engine/base/clock.h"

namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kCertificateStreams = "certificates/";
constexpr std::int64_t kTicksOfDay = 86'400 * kTicksPerSecond;
constexpr int kDaysBefore[] = {0, 1, 7, 14, 30};

/// The last of the alert's times that has passed; nullopt: none has.
std::optional<int> days_of_alert(const CertificateEnd& end, Ticks now) {
  const auto left = end.not_after.value() - now.value();
  const auto lifetime = end.not_after.value() - end.not_before.value();
  for (const auto days : kDaysBefore) {
    if (left <= days * kTicksOfDay) {
      return days == 0 || days * kTicksOfDay < lifetime / 3 ? std::optional(days) : std::nullopt;
    }
  }
  return std::nullopt;
}

struct Ending {
  CertificateEnd end;
  int days = 0;
  std::vector<std::string> nodes;
};

std::string reason_of(const Ending& ending) {
  return fmt::format(
      "{} {} {} {} {} at {}; verger cert status shows it",
      ending.end.kind == planner::CertificateSeen::Kind::kLeaf   ? "the certificate"
      : ending.end.kind == planner::CertificateSeen::Kind::kUser ? "the certificate of the user"
      : ending.end.kind == planner::CertificateSeen::Kind::kRoot ? "the root"
                                                                 : "the intermediate certificate",
      ending.end.subject, ending.end.kind == planner::CertificateSeen::Kind::kUser ? "on" : "of",
      fmt::join(ending.nodes, ", "), ending.days == 0 ? "ended" : "ends",
      format_ticks(ending.end.not_after));
}

}  // namespace

Result<void> CertificateAlerts::fold(Cluster& cluster, const JournalEvent& event) {
  const auto data = json::parse(event.data, nullptr, false);
  if (!data.is_object() || event.type != events::kCertificateEnds) {
    return Error{Errc::kCorruption, fmt::format("{}: unknown event {}", event.stream, event.type)};
  }
  cluster.revision = event.revision;
  cluster.raised[data.value("fingerprint", std::string())] = data.value("days", 0);
  return {};
}

Result<void> CertificateAlerts::load() {
  VERGER_TRY(const auto streams, journal_.streams(kCertificateStreams));
  for (const auto& stream : streams) {
    auto& cluster = clusters_[stream.substr(kCertificateStreams.size())];
    VERGER_TRY(const auto events, journal_.read(stream));
    for (const auto& event : events) {
      VERGER_RETURN_IF_ERROR(fold(cluster, event));
    }
  }
  return {};
}

void CertificateAlerts::look(const planner::ClusterSnapshot& snapshot) {
  std::map<std::string, Ending> endings;
  for (const auto& node : snapshot.nodes) {
    for (const auto& end : certificate_ends(node)) {
      const auto days = days_of_alert(end, snapshot.taken_at);
      if (!days) {
        continue;
      }
      auto& ending = endings[end.fingerprint];
      ending.end = end;
      ending.days = *days;
      if (std::ranges::find(ending.nodes, node.name) == ending.nodes.end()) {
        ending.nodes.push_back(node.name);
      }
    }
  }
  if (endings.empty()) {
    return;
  }
  auto& cluster = clusters_[snapshot.cluster];
  for (const auto& [fingerprint, ending] : endings) {
    const auto raised = cluster.raised.find(fingerprint);
    if (raised != cluster.raised.end() && raised->second <= ending.days) {
      continue;
    }
    const json data{{"fingerprint", fingerprint},
                    {"subject", ending.end.subject},
                    {"kind", planner::to_string(ending.end.kind)},
                    {"nodes", ending.nodes},
                    {"not_after", format_ticks(ending.end.not_after)},
                    {"days", ending.days},
                    {"reason", reason_of(ending)}};
    const auto written = append_and_fold(
        journal_, fmt::format("{}{}", kCertificateStreams, snapshot.cluster), epoch_,
        cluster.revision, {NewEvent{std::string(events::kCertificateEnds), data.dump()}},
        [&cluster](const JournalEvent& event) { return fold(cluster, event); });
    if (!written) {
      log_.warning("an alert of a certificate could not be journaled; it is tried again",
                   {{"cluster", snapshot.cluster}, {"reason", written.error().message}});
    }
  }
}

}  // namespace verger::controller
