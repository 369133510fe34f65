#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_kind.h"

/// What the step kinds of all operations share.
namespace verger::controller::steps {

nlohmann::json parsed_or_empty(const std::string& text);
std::int64_t int_parameter(const planner::Step& step, std::string_view name, std::int64_t fallback);
bool bool_parameter(const planner::Step& step, std::string_view name, bool fallback);
std::string text_parameter(const planner::Step& step, std::string_view name);
/// A list of texts; empty where the step has none.
std::vector<std::string> list_parameter(const planner::Step& step, std::string_view name);

/// For a person: a POST to the node itself; curl asks for the user's password.
std::string post_command(const std::string& url, std::string_view path,
                         std::string_view options = "");

/// False where the plan's policy leaves such a step to end: parameters "onPause" and "onClose".
bool policy_lets_stop(const planner::Step& step, Interrupt why);

Readiness ready(const nlohmann::json& memo = nlohmann::json::object());
Readiness wait(std::string reason);
Readiness not_needed(const nlohmann::json& result);
Readiness impossible(std::string reason);

/// `reason`: for people; what runs or is done has running() and done().
Verdict verdict(Verdict::Kind kind, std::string reason);
Verdict verdict(Verdict::Kind kind, std::string outcome, std::string reason);
Verdict running(const nlohmann::json& progress);
Verdict done(const nlohmann::json& result);

/// What the answer to a request that acts says: accepted, refused, not sent or unknown.
template <class T>
ActAnswer to_answer(const Result<T>& result) {
  if (result) {
    return {ActAnswer::Kind::kAccepted, ""};
  }
  switch (result.error().code) {
    case Errc::kUnavailable:
      return {ActAnswer::Kind::kNotSent, result.error().message};
    case Errc::kUnknownOutcome:
    case Errc::kTimeout:
    case Errc::kCorruption:  // an answer that cannot be read says nothing
      return {ActAnswer::Kind::kUnknown, result.error().message};
    default:
      return {ActAnswer::Kind::kRefused, result.error().message};
  }
}

/// Has the node's agent carry the attempt out under the step's operation id.
net::awaitable<ActAnswer> act_through_agent(const StepContext& context, std::string kind,
                                            nlohmann::json parameters);

/// What the agent says of the operation with this id.
struct OperationNews {
  enum class Kind : std::uint8_t { kNotArrived, kUnderWay, kDone, kFailed, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string code;
  std::string reason;
  nlohmann::json result = nlohmann::json::object();
  std::string result_text = "{}";  ///< the same as the agent sent it, in camelCase
  /// Of one that is under way, for running(): {"phase", "done", "total", "unit", "bytes", "rate",
  /// "since"}, as far as known; an empty object from older agents.
  nlohmann::json progress = nlohmann::json::object();
};
/// Name of the run's value that says how gently its agents' jobs work, instead of what the plan
/// says: {"percent", "bytes_per_second"}.
inline constexpr const char* kThrottleValue = "throttle";
/// What a failed operation means that did not do its work: to be sent again, as a new attempt.
Verdict judge_failed(const OperationNews& news);
/// Of an operation of the step's own node. Where the run has a throttle of its own, the operation
/// gets it.
net::awaitable<OperationNews> ask_agent(const StepContext& context, std::string operation);
/// The same of an operation at another node's agent.
net::awaitable<OperationNews> ask_agent(const StepContext& context, std::string node,
                                        std::string operation);

}  // namespace verger::controller::steps
