#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "nodeagent/api/agent_certificates.h"
#include "planner/certificates/certificate_steps.h"
#include "planner/json.h"

/// What the steps of a change of certificates share.
namespace verger::controller::certificate_change {

namespace names = planner::certificate_steps;

/// Value of the run: what was checked, {"drops_old_roots", "nodes": {NAME: {"serial",
/// "serial_before", "digest", "not_after", "not_after_before"}}}.
inline constexpr const char* kChecked = "certificates_checked";

/// Of a node in kChecked; all empty where nothing was checked.
struct CheckedNode {
  std::string serial{};
  std::string serial_before{};
  std::string digest{};
  std::string not_after{};
  std::string not_after_before{};
};
std::map<std::string, CheckedNode> checked_nodes(const std::map<std::string, std::string>& values);
/// Some phase of the run takes old roots away.
bool drops_old_roots(const std::map<std::string, std::string>& values);
nlohmann::json to_json(const std::map<std::string, CheckedNode>& nodes);

/// Of a change under way or over: when the first leaf was switched; nullopt: none was.
std::optional<Ticks> window_opened(const std::map<std::string, std::string>& values);
/// nullopt: it has not opened.
std::optional<std::chrono::milliseconds> since_window_opened(const StepContext& context);

/// Name of the run's value that has a node's commands for the way back: {PHASE: [COMMAND]}.
std::string restore_value(std::string_view node);

/// The set that the run has obtained; empty: none.
std::string obtained_set(const StepContext& context);
/// An object among the step's parameters; empty where there is none.
planner::Json::Object object_parameter(const planner::Step& step, std::string_view name);
planner::Json::Object object_member(const planner::Json::Object& object, std::string_view name);
std::string text_member(const planner::Json::Object& object, std::string_view name);
std::vector<std::string> texts_member(const planner::Json::Object& object, std::string_view name);

/// What the agent says of the step's operation, as a verdict; nullopt: it is done. A failure ends
/// the step where repeating it will not help.
std::optional<Verdict> unless_done(const steps::OperationNews& news, bool may_repeat);

/// Parameters of an operation, as the agent interface has them.
template <class Parameters>
nlohmann::json parameters_of(const Parameters& parameters) {
  return nlohmann::json::parse(api::to_text(parameters));
}

}  // namespace verger::controller::certificate_change
