#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/step_support.h"
#include "controller/operations/operation_settings.h"
#include "planner/redaction/redaction_steps.h"

/// What the steps of a redaction share.
namespace verger::controller::redactions {

namespace names = planner::redaction_steps;

/// An entry of a list of redactions (docs/formats/redactions.md).
struct ListedEvent {
  std::string stream{};
  std::int64_t number = -1;
  std::int64_t position = -1;
  bool metadata = false;
  std::string digest{};  ///< hex SHA-256 of the redacted record
  friend bool operator==(const ListedEvent&, const ListedEvent&) = default;
  /// "12@orders-7"
  [[nodiscard]] std::string name() const;
};

/// Error: kCorruption.
Result<std::vector<ListedEvent>> parse_list(std::string_view text);
std::string list_text(const std::vector<ListedEvent>& list);

/// The lists of nodes as one, by position. Errors: kConflict: a record is another one on another
/// node; kNotFound: no node has one of `events`.
Result<std::vector<ListedEvent>> agreed_list(
    const std::map<std::string, std::vector<ListedEvent>>& by_node,
    const std::vector<std::string>& events);

/// Of the run's value kListValue; empty: it is not there yet.
std::vector<ListedEvent> agreed_list_of(const std::map<std::string, std::string>& values);

/// The records that runs of the cluster have redacted, or seen to be redacted, on a node at least,
/// by position.
std::vector<ListedEvent> redacted_by_runs(const OperationSettings& settings,
                                          std::string_view cluster);

/// Member "list" of {"list": text}, as the run's values have it.
std::string list_member(const std::string& value);

}  // namespace verger::controller::redactions
