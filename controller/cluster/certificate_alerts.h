#pragma once

#include <map>
#include <string>
#include <string_view>

#include "controller/journal/journal.h"
#include "engine/base/log.h"
#include "planner/snapshot.h"

namespace verger::controller {

/// Types of the events in the streams "certificates/<cluster>".
namespace events {
/// {fingerprint, subject, kind, nodes, not_after, days, reason}: it ends within `days`; 0: it has
/// ended.
inline constexpr std::string_view kCertificateEnds = "certificate-ends";
}  // namespace events

/// Journals an alert for each certificate that is seen on a cluster's nodes and agents: 30, 14, 7
/// and 1 days before its end, and at its end, once each, also after a restart. Where several of
/// these times have passed, the last one alone. A time before two thirds of the certificate's
/// lifetime raises none: what lives for less than 90 days is always within 30 days of its end. One
/// executor; the parts outlive it.
class CertificateAlerts {
 public:
  CertificateAlerts(Journal& journal, ControllerEpoch epoch, Log& log)
      : journal_(journal), epoch_(epoch), log_(log) {}
  /// Replays the journal. Call once, before anything else.
  Result<void> load();
  /// Of what was seen of a cluster now.
  void look(const planner::ClusterSnapshot& snapshot);

 private:
  struct Cluster {
    std::map<std::string, int> raised;  ///< days of the last alert, by fingerprint
    Revision revision;
  };
  static Result<void> fold(Cluster& cluster, const JournalEvent& event);

  Journal& journal_;
  ControllerEpoch epoch_;
  Log& log_;
  std::map<std::string, Cluster> clusters_;
};

}  // namespace verger::controller
