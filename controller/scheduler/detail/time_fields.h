#pragma once

#include <vector>

#include "controller/scheduler/cron.h"
#include "controller/scheduler/detail/yaml_fields.h"
#include "controller/scheduler/windows.h"

/// The keys of a policy that say when: wall-clock times, each in a zone that it names. What is
/// wrong is added to `policy.problems()`, with its line; what is right is read all the same.
namespace verger::controller::detail {

/// "schedule", a list of {cron, zone}; without it `into` stays as it is: only by hand.
void read_schedules(YamlFields& policy, std::vector<CronSchedule>& into);
/// "windows": the lists "allow" and "deny", each window weekly (22:00) or once (2024-12-24T18:00).
void read_windows(YamlFields& policy, WindowRules& into);

}  // namespace verger::controller::detail
