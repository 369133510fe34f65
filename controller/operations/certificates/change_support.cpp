#include "controller/operations/certificates/change_support.h"

#include <fmt/format.h>

#include "engine/base/clock.h"

namespace verger::controller::certificate_change {

using nlohmann::json;
using steps::parsed_or_empty;

namespace {

std::string text_of_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json value_of(const std::map<std::string, std::string>& values, std::string_view name) {
  const auto found = values.find(std::string(name));
  return found == values.end() ? json::object() : parsed_or_empty(found->second);
}

}  // namespace

std::map<std::string, CheckedNode> checked_nodes(const std::map<std::string, std::string>& values) {
  std::map<std::string, CheckedNode> out;
  const auto value = value_of(values, kChecked);
  for (const auto& [name, node] : value.value("nodes", json::object()).items()) {
    out[name] = {.serial = text_of_member(node, "serial"),
                 .serial_before = text_of_member(node, "serial_before"),
                 .digest = text_of_member(node, "digest"),
                 .not_after = text_of_member(node, "not_after"),
                 .not_after_before = text_of_member(node, "not_after_before")};
  }
  return out;
}

json to_json(const std::map<std::string, CheckedNode>& nodes) {
  auto out = json::object();
  for (const auto& [name, node] : nodes) {
    out[name] = {{"serial", node.serial},
                 {"serial_before", node.serial_before},
                 {"digest", node.digest},
                 {"not_after", node.not_after},
                 {"not_after_before", node.not_after_before}};
  }
  return out;
}

bool drops_old_roots(const std::map<std::string, std::string>& values) {
  return value_of(values, kChecked).value("drops_old_roots", true);
}

std::optional<Ticks> window_opened(const std::map<std::string, std::string>& values) {
  const auto at = parse_ticks(text_of_member(value_of(values, names::kWindowValue), "opened_at"));
  return at ? std::optional(*at) : std::nullopt;
}

std::optional<std::chrono::milliseconds> since_window_opened(const StepContext& context) {
  const auto opened = window_opened(context.values);
  if (!opened) {
    return std::nullopt;
  }
  return std::chrono::milliseconds((context.now.value() - opened->value()) / kTicksPerMillisecond);
}

std::string restore_value(std::string_view node) {
  return fmt::format("certificate_restore/{}", node);
}

std::string obtained_set(const StepContext& context) {
  return text_of_member(value_of(context.values, names::kSetValue), "sha256");
}

planner::Json::Object object_member(const planner::Json::Object& object, std::string_view name) {
  const auto found = object.find(name);
  const auto* value = found == object.end() ? nullptr : found->second.as_object();
  return value == nullptr ? planner::Json::Object() : *value;
}

planner::Json::Object object_parameter(const planner::Step& step, std::string_view name) {
  return object_member(step.parameters, name);
}

std::string text_member(const planner::Json::Object& object, std::string_view name) {
  const auto found = object.find(name);
  const auto* value = found == object.end() ? nullptr : found->second.as_string();
  return value == nullptr ? std::string() : *value;
}

std::vector<std::string> texts_member(const planner::Json::Object& object, std::string_view name) {
  std::vector<std::string> out;
  const auto found = object.find(name);
  const auto* list = found == object.end() ? nullptr : found->second.as_array();
  for (const auto& each : list == nullptr ? planner::Json::Array() : *list) {
    if (const auto* text = each.as_string()) {
      out.push_back(*text);
    }
  }
  return out;
}

std::optional<Verdict> unless_done(const steps::OperationNews& news, bool may_repeat) {
  using News = steps::OperationNews::Kind;
  switch (news.kind) {
    case News::kNotArrived:
      return steps::verdict(Verdict::Kind::kNotArrived, "the agent never got it");
    case News::kUnderWay:
      return steps::running(news.progress.empty() ? json{{"phase", "its agent is at it"}}
                                                  : news.progress);
    case News::kUnknown:
      return steps::verdict(Verdict::Kind::kUnknown, news.reason);
    case News::kFailed:
      // Else the agent has begun, and has restored what it replaced.
      if (may_repeat || news.code == "gate_closed" || news.code == "not_happened" ||
          news.code == "unavailable") {
        return steps::judge_failed(news);
      }
      return steps::verdict(Verdict::Kind::kFailed, news.code,
                            fmt::format("{}: {}", news.code, news.reason));
    case News::kDone:
      break;
  }
  return std::nullopt;
}

}  // namespace verger::controller::certificate_change
