#include "nodeagent/node/persistent/group_settings.h"

#include <array>

namespace verger::node::persistent {
namespace {

constexpr std::array<std::pair<Strategy, std::string_view>, 4> kNames = {
    {{Strategy::kDispatchToSingle, "DispatchToSingle"},
     {Strategy::kRoundRobin, "RoundRobin"},
     {Strategy::kPinned, "Pinned"},
     {Strategy::kPinnedByCorrelation, "PinnedByCorrelation"}}};

}  // namespace

std::string_view name_of(Strategy strategy) {
  for (const auto& [each, name] : kNames) {
    if (each == strategy) {
      return name;
    }
  }
  return {};
}

std::optional<Strategy> strategy_of(std::string_view name) {
  for (const auto& [each, text] : kNames) {
    if (text == name) {
      return each;
    }
  }
  return std::nullopt;
}

bool GroupSettings::from_now_on() const {
  if (const auto* number = std::get_if<EventNumber>(&start)) {
    return number->value() < 0;
  }
  return std::get<streams::AllPosition>(start).commit.value() < 0;
}

std::optional<std::string> problem_of(const GroupSettings& settings) {
  if (settings.read_batch_size >= settings.history_buffer_size) {
    return "Specified argument was out of the range of valid values. (Parameter 'ReadBatchSize may "
           "not be greater than or equal to BufferSize')";
  }
  return std::nullopt;
}

}  // namespace verger::node::persistent
