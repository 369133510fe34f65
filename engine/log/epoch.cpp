#include "engine/log/epoch.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"

namespace verger::log {
namespace {

constexpr std::size_t kHistorySize = 1000;

Error bad(std::string_view what) {
  return {Errc::kCorruption, fmt::format("epoch record: {}", what)};
}

Result<std::int64_t> integer_member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return std::int64_t{0};
  }
  if (!found->is_number_integer()) {
    return bad(fmt::format("member {} is not an integer", name));
  }
  return found->get<std::int64_t>();
}

Result<Uuid> uuid_member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return Uuid{};
  }
  if (!found->is_string()) {
    return bad(fmt::format("member {} is not a GUID", name));
  }
  auto id = Uuid::parse(found->get_ref<const std::string&>());
  if (!id) {
    return bad(fmt::format("member {}: {}", name, id.error().message));
  }
  return *id;
}

}  // namespace

std::string encode_epoch_json(const Epoch& epoch) {
  std::string text = "{";
  const auto member = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}\n  \"{}\": {}", text.size() > 1 ? "," : "", name, value);
  };
  const auto quoted = [](const std::string& value) { return '"' + value + '"'; };
  // The server leaves out what equals its type's default; -1 is not one.
  if (epoch.position.value() != 0) {
    member("epochPosition", fmt::to_string(epoch.position.value()));
  }
  if (epoch.number.value() != 0) {
    member("epochNumber", fmt::to_string(epoch.number.value()));
  }
  if (!epoch.id.is_zero()) {
    member("epochId", quoted(epoch.id.to_string()));
  }
  if (epoch.previous.value() != 0) {
    member("prevEpochPosition", fmt::to_string(epoch.previous.value()));
  }
  if (epoch.timestamp.value() != 0) {
    member("timeStamp", quoted(format_ticks(epoch.timestamp)));
  }
  if (!epoch.leader_instance_id.is_zero()) {
    member("leaderInstanceId", quoted(epoch.leader_instance_id.to_string()));
  }
  text += text.size() > 1 ? "\n}" : "}";
  return text;
}

Result<Epoch> decode_epoch_json(ByteView json) {
  const auto text = as_text(json);
  const auto object = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) {
    return bad("its data is not a JSON object");
  }
  Epoch epoch;
  VERGER_TRY(const auto position, integer_member(object, "epochPosition"));
  VERGER_TRY(const auto number, integer_member(object, "epochNumber"));
  VERGER_TRY(const auto previous, integer_member(object, "prevEpochPosition"));
  VERGER_TRY(epoch.id, uuid_member(object, "epochId"));
  VERGER_TRY(epoch.leader_instance_id, uuid_member(object, "leaderInstanceId"));
  if (const auto time = object.find("timeStamp"); time != object.end()) {
    if (!time->is_string()) {
      return bad("member timeStamp is not a time");
    }
    auto ticks = parse_ticks(time->get_ref<const std::string&>());
    if (!ticks) {
      return bad(fmt::format("member timeStamp: {}", ticks.error().message));
    }
    epoch.timestamp = *ticks;
  }
  if (position < 0 || number < 0 || number > std::numeric_limits<std::int32_t>::max() ||
      previous < -1 || (previous >= position && previous != -1)) {
    return bad(fmt::format("position {}, number {}, previous position {} is impossible", position,
                           number, previous));
  }
  epoch.position = LogPosition(position);
  epoch.number = EpochNumber(static_cast<std::int32_t>(number));
  epoch.previous = LogPosition(previous);
  return epoch;
}

void EpochHistory::add(Epoch epoch) {
  epochs_.push_back(epoch);
  if (epochs_.size() > kHistorySize) {
    epochs_.erase(epochs_.begin());
  }
}

void EpochHistory::truncate(LogPosition position) {
  std::erase_if(epochs_, [&](const Epoch& epoch) { return epoch.position >= position; });
}

std::optional<Epoch> EpochHistory::last() const {
  return epochs_.empty() ? std::nullopt : std::optional(epochs_.back());
}

std::optional<Epoch> EpochHistory::at(LogPosition position) const {
  const auto after = std::ranges::upper_bound(epochs_, position, {}, &Epoch::position);
  return after == epochs_.begin() ? std::nullopt : std::optional(*std::prev(after));
}

}  // namespace verger::log
