#pragma once

#include <memory>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// heal_filter {"serviceDeadlineMs"}: counts the streams that the existence filter lacks, stops the
/// server, removes the filter's checkpoint, starts it, and looks at the filter that the server has
/// made since; reads a sample of them where the server answers reads over HTTP (Atom) or over its
/// Unix socket. Refused on a leader. Result: {"lostBefore" (as many as were counted within a
/// minute), "lostAfter" (of the first 200 of these; -1: the server has not finished its filter),
/// "streamsRead", "notFound": [stream]}. Codes: as of an offline scavenge.
std::unique_ptr<Operation> make_heal_filter_operation();

}  // namespace verger::agent
