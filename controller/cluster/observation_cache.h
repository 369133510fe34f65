#pragma once

#include <deque>
#include <map>
#include <string>

#include "controller/cluster/observer.h"

namespace verger::controller {

/// What an observer remembers of clusters between two looks, and adds to the next snapshot: how
/// long the leader has been the same, how large lags were, and certificates that were looked at
/// lately.
class ObservationCache {
 public:
  /// How long the leader has been the same, and the lags of some seconds ago.
  void compare(planner::ClusterSnapshot& snapshot, Monotonic now);
  /// Of a URL; nullptr: not looked at for `age` (after a failure: ten seconds).
  [[nodiscard]] const std::optional<planner::ServedCertificate>* certificate(
      const std::string& url, Monotonic now, std::chrono::seconds age) const;
  /// The next look is a fresh one.
  void forget_certificate(const std::string& url) {
    certificates_.erase(url);
    files_.erase(url);
  }
  void keep_certificate(const std::string& url, std::optional<planner::ServedCertificate> seen,
                        Monotonic now);
  /// The same of what an agent at this URL found in its node's certificate files.
  [[nodiscard]] const planner::CertificateFiles* certificate_files(const std::string& url,
                                                                   Monotonic now,
                                                                   std::chrono::seconds age) const;
  void keep_certificate_files(const std::string& url, planner::CertificateFiles seen,
                              Monotonic now);
  /// False: this process of the node at `url` has no metrics, which does not change while it lives.
  [[nodiscard]] bool has_metrics(const std::string& url, const std::string& instance) const;
  void keep_without_metrics(const std::string& url, std::string instance);

 private:
  struct Lag {
    Monotonic at{};
    std::int64_t bytes = 0;
    std::int64_t leader = -1;  ///< where the leader's log ended
  };
  struct Cluster {
    std::string leader;
    std::int32_t epoch = -1;
    Monotonic since{};
    std::map<std::string, std::deque<Lag>> lags;  ///< by node, oldest first
  };
  struct Certificate {
    std::optional<planner::ServedCertificate> seen;
    Monotonic at{};
  };
  struct Files {
    planner::CertificateFiles seen;
    Monotonic at{};
  };
  std::map<std::string, Cluster> clusters_;
  std::map<std::string, Certificate> certificates_;
  std::map<std::string, Files> files_;
  std::map<std::string, std::string> without_metrics_;  ///< by URL, the instance
};

}  // namespace verger::controller
