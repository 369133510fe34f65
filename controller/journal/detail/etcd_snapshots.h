#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/journal/detail/etcd_store.h"
#include "controller/journal/journal.h"

/// The snapshots of a journal in etcd, as Journal has them.
namespace verger::controller::detail {

/// Operations of a transaction that demands that the stream is at `tip`. Of an earlier snapshot
/// both keys go: a state is only ever read with the summary beside it.
nlohmann::json writing(const EtcdKeys& keys, const StreamTip& tip, const Snapshot& snapshot);
/// nullopt: there is none that was made with the event that the journal has there.
Result<std::optional<Snapshot>> read_snapshot(EtcdStore& store, std::string_view stream);
/// Those made with the last event of their streams, without their states.
Result<std::vector<Snapshot>> read_current_snapshots(EtcdStore& store, std::string_view prefix);

}  // namespace verger::controller::detail
