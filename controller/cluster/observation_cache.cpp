#include "controller/cluster/observation_cache.h"

namespace verger::controller {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLagAge{5};  ///< two lags nearer than this are not compared
constexpr seconds kLagForgotten{60};
constexpr seconds kFailureAge{10};

}  // namespace

void ObservationCache::compare(planner::ClusterSnapshot& snapshot, Monotonic now) {
  const auto* leader = snapshot.leader();
  if (leader == nullptr) {
    clusters_.erase(snapshot.cluster);
    return;
  }
  auto& cluster = clusters_[snapshot.cluster];
  if (cluster.leader != leader->instance_id || cluster.epoch != leader->epoch_number) {
    cluster = Cluster{leader->instance_id, leader->epoch_number, now, {}};
  }
  snapshot.leader_stable_ms = duration_cast<milliseconds>(now - cluster.since).count();
  for (auto& node : snapshot.nodes) {
    const auto lag = snapshot.lag(node);
    auto& lags = cluster.lags[node.name];
    while (!lags.empty() && now - lags.front().at > kLagForgotten) {
      lags.pop_front();
    }
    // The newest that is old enough: what was before it says less about now.
    for (const auto& each : lags) {
      if (now - each.at >= kLagAge) {
        node.lag_before = each.bytes;
        node.leader_before = each.leader;
        node.lag_before_ms = duration_cast<milliseconds>(now - each.at).count();
      }
    }
    if (lag >= 0 && (lags.empty() || now - lags.back().at >= seconds(1))) {
      lags.push_back({now, lag, leader->writer_checkpoint});
    }
  }
}

const std::optional<planner::ServedCertificate>* ObservationCache::certificate(
    const std::string& url, Monotonic now, seconds age) const {
  const auto found = certificates_.find(url);
  if (found == certificates_.end() ||
      now - found->second.at >= (found->second.seen ? age : kFailureAge)) {
    return nullptr;
  }
  return &found->second.seen;
}

void ObservationCache::keep_certificate(const std::string& url,
                                        std::optional<planner::ServedCertificate> seen,
                                        Monotonic now) {
  certificates_[url] = {std::move(seen), now};
}

const planner::CertificateFiles* ObservationCache::certificate_files(const std::string& url,
                                                                     Monotonic now,
                                                                     seconds age) const {
  const auto found = files_.find(url);
  if (found == files_.end() ||
      now - found->second.at >= (found->second.seen.problem.empty() ? age : kFailureAge)) {
    return nullptr;
  }
  return &found->second.seen;
}

void ObservationCache::keep_certificate_files(const std::string& url,
                                              planner::CertificateFiles seen, Monotonic now) {
  files_[url] = {std::move(seen), now};
}

bool ObservationCache::has_metrics(const std::string& url, const std::string& instance) const {
  const auto found = without_metrics_.find(url);
  return found == without_metrics_.end() || found->second != instance;
}

void ObservationCache::keep_without_metrics(const std::string& url, std::string instance) {
  without_metrics_[url] = std::move(instance);
}

}  // namespace verger::controller
