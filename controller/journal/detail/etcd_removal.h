#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "controller/journal/detail/etcd_values.h"
#include "controller/journal/journal.h"

namespace verger::controller::detail {

/// The operations of one transaction after another that remove events and streams. Each of them
/// leaves a journal whose chain can be walked. `known`: the ranges that are gone, by sequence.
std::vector<nlohmann::json> removing(const EtcdKeys& keys, const Removal& removal,
                                     std::vector<RemovedRange> known);

}  // namespace verger::controller::detail
