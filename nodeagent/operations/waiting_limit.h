#pragma once

#include <chrono>

#include "engine/base/types.h"
#include "nodeagent/operations/operation_journal.h"

namespace verger::agent {

/// Whether the operation's effect has been awaited for longer than `limit`. The member "since"
/// of the record's memory is when waiting began, by the wall clock, since it has to outlive the
/// agent; it is set here. A clock that was set back begins the wait anew, instead of one that
/// does not end in sight.
bool waited_longer_than(std::chrono::seconds limit, Ticks now, OperationRecord& record);

}  // namespace verger::agent
