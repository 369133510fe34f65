#include "controller/scheduler/delivery_book.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;

Sequence sequence_in(const json& data, const char* name) {
  const auto found = data.find(name);
  return Sequence(found != data.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                                    : 0);
}

}  // namespace

Result<void> DeliveryBook::load() {
  VERGER_TRY(const auto events, journal_.read(kNotificationStream));
  for (const auto& event : events) {
    fold(event);
  }
  return {};
}

void DeliveryBook::fold(const JournalEvent& event) {
  const auto data = json::parse(event.data, nullptr, false);
  if (!data.is_object()) {
    return;
  }
  begun_ = true;
  up_to_ = std::max(up_to_, sequence_in(data, "up_to"));
  if (event.type == events::kNotificationEnded) {
    ended_.emplace(sequence_in(data, "of"), data.value("to", std::string()));
  }
  std::erase_if(ended_, [this](const auto& each) { return each.first <= up_to_; });
}

Result<void> DeliveryBook::seen(Sequence up_to) {
  VERGER_TRY(const auto written, journal_.append(kNotificationStream, kAnyRevision,
                                                 {NewEvent{std::string(events::kNotificationsSeen),
                                                           json{{"up_to", up_to.value()}}.dump()}},
                                                 epoch_));
  for (const auto& event : written) {
    fold(event);
  }
  return {};
}

Result<void> DeliveryBook::ended(const Ended& delivery) {
  ended_.emplace(delivery.of, delivery.to);
  VERGER_TRY(const auto written, journal_.append(kNotificationStream, kAnyRevision,
                                                 {NewEvent{std::string(events::kNotificationEnded),
                                                           json{{"of", delivery.of.value()},
                                                                {"to", delivery.to},
                                                                {"outcome", delivery.outcome},
                                                                {"attempts", delivery.attempts},
                                                                {"up_to", delivery.up_to.value()}}
                                                               .dump()}},
                                                 epoch_));
  for (const auto& event : written) {
    fold(event);
  }
  return {};
}

}  // namespace verger::controller
