#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/executor.h"
#include "controller/scheduler/policy_book.h"

namespace verger::controller::detail {

/// An event of the journal, as it is notified.
struct Notice {
  std::string moment;  ///< "started", "failed", ...: what `on` of a policy's notification takes
  std::string policy;  ///< empty: it concerns the cluster as a whole
  std::string cluster;
  /// The document of docs/operations/vergerd.md#notifications, without its "id".
  nlohmann::json body = nlohmann::json::object();
};

/// Derives from the journal what is to be notified, and to whom; it delivers nothing. Owns nothing
/// of what it is made with, which outlives it. One executor.
class Notices {
 public:
  /// `registry` may be nullptr: then nothing is notified of what concerns a cluster as a whole.
  Notices(Journal& journal, Executor& runs, PolicyBook& book, const Registry* registry)
      : journal_(journal), runs_(runs), book_(book), registry_(registry) {}

  /// To be called once for each event, in their order: a run that stops until its hours come again
  /// is notified once for each time. nullopt: nothing is notified of this event.
  [[nodiscard]] std::optional<Notice> of(const JournalEvent& event);
  /// Whom to notify: as the policy says; of what concerns a cluster as a whole, as all policies say
  /// that are for it. Each recipient once.
  [[nodiscard]] std::vector<Notification> recipients(const Notice& notice) const;
  /// Whether any policy has notifications.
  [[nodiscard]] bool any_is_ordered() const;
  /// Runs that wait for their hours since before `seen`: that was notified then. Only the first
  /// call looks.
  void know_stopped_runs(Sequence seen);

 private:
  bool stops(const JournalEvent& event);

  Journal& journal_;
  Executor& runs_;
  PolicyBook& book_;
  const Registry* registry_;
  bool knows_stopped_ = false;
  std::set<std::string> stopped_;  ///< runs that wait for their hours
};

}  // namespace verger::controller::detail
