#pragma once

#include <string>

#include "controller/scheduler/schedule_policy.h"

namespace verger::controller::detail {

/// What stands for the recipient in the journal: its secrets do not. 16 hexadecimal digits, the
/// same for each notification to it.
std::string recipient_key(const Notification& to);
/// For people; the path of a webhook is a secret of some services.
std::string recipient_name(const Notification& to);
/// What went wrong, without `target`, the path and query of a webhook, which errors of HTTP name.
std::string without_target(std::string problem, const std::string& target);

}  // namespace verger::controller::detail
