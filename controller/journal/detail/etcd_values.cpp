#include "controller/journal/detail/etcd_values.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "engine/base/json_number.h"

namespace verger::controller::detail {
namespace {

using nlohmann::json;

/// etcd takes 128 operations in a transaction, and an event is two.
constexpr std::size_t kEventsInAppend = 50;
/// etcd takes 1.5 MiB in a request; base64 makes four bytes of three.
constexpr std::size_t kAppendBytes = 1'000'000;

std::string numbered(std::int64_t number) { return fmt::format("{:020}", number); }

Error not_readable(std::string_view key, std::string_view why) {
  return {Errc::kCorruption, fmt::format("etcd, key {}: {}", key, why)};
}

/// Calls `read` with the parsed object; what it throws becomes kCorruption.
template <class Read>
auto parsed_value(const EtcdKeyValue& kv, std::string_view text, const Read& read)
    -> Result<decltype(read(json()))> {
  try {
    return read(json::parse(text));
  } catch (const std::exception& error) {
    return not_readable(kv.key, error.what());
  }
}

}  // namespace

std::string tip_text(const StreamTip& tip) {
  return json{{"revision", tip.revision.value()}, {"hash", tip.hash}}.dump();
}

Result<StreamTip> parse_tip(const EtcdKeyValue& kv) {
  return parsed_value(kv, kv.value, [](const json& value) {
    return StreamTip{Revision(json_integer<std::int64_t>(value.at("revision"))),
                     value.at("hash").get<std::string>()};
  });
}

/// A line of JSON with everything but the data, then the data as it is.
std::string event_text(const JournalEvent& event) {
  const json line{{"sequence", event.sequence.value()},
                  {"stream", event.stream},
                  {"revision", event.revision.value()},
                  {"type", event.type},
                  {"at", event.at.value()},
                  {"epoch", event.epoch.value()},
                  {"hash", event.hash}};
  return line.dump() + "\n" + event.data;
}

Result<JournalEvent> parse_event(const EtcdKeyValue& kv) {
  const auto end = kv.value.find('\n');
  if (end == std::string::npos) {
    return not_readable(kv.key, "it is not an event");
  }
  VERGER_TRY(auto event,
             parsed_value(kv, std::string_view(kv.value).substr(0, end), [](const json& value) {
               return JournalEvent{Sequence(json_integer<std::int64_t>(value.at("sequence"))),
                                   value.at("stream").get<std::string>(),
                                   Revision(json_integer<std::int64_t>(value.at("revision"))),
                                   value.at("type").get<std::string>(),
                                   "",
                                   Ticks(json_integer<std::int64_t>(value.at("at"))),
                                   ControllerEpoch(json_integer<std::int64_t>(value.at("epoch"))),
                                   value.at("hash").get<std::string>()};
             }));
  event.data = kv.value.substr(end + 1);
  return event;
}

std::string removed_text(const RemovedRange& range) {
  return json{{"first", range.first.value()}, {"last", range.last.value()}, {"hash", range.hash}}
      .dump();
}

Result<RemovedRange> parse_removed(const EtcdKeyValue& kv) {
  return parsed_value(kv, kv.value, [](const json& value) {
    return RemovedRange{Sequence(json_integer<std::int64_t>(value.at("first"))),
                        Sequence(json_integer<std::int64_t>(value.at("last"))),
                        value.at("hash").get<std::string>()};
  });
}

std::string place_text(std::string_view stream, Revision revision) {
  return json{{"stream", stream}, {"revision", revision.value()}}.dump();
}

Result<EventPlace> parse_place(const EtcdKeyValue& kv) {
  return parsed_value(kv, kv.value, [](const json& value) {
    return EventPlace{value.at("stream").get<std::string>(),
                      Revision(json_integer<std::int64_t>(value.at("revision")))};
  });
}

Result<EtcdHead> parse_head(const std::vector<std::vector<EtcdKeyValue>>& found) {
  EtcdHead out;
  if (!found.at(0).empty()) {
    const auto& kv = found[0].front();
    VERGER_TRY(out.epoch, parsed_value(kv, kv.value, [](const json& value) {
                 return ControllerEpoch(json_integer<std::int64_t>(value.at("epoch")));
               }));
    out.epoch_written = kv.mod_revision;
  }
  if (!found.at(1).empty()) {
    const auto& kv = found[1].front();
    VERGER_TRY(out.sequence, parsed_value(kv, kv.value, [](const json& value) {
                 return Sequence(json_integer<std::int64_t>(value.at("sequence")));
               }));
    VERGER_TRY(out.hash, parsed_value(kv, kv.value, [](const json& value) {
                 return bytes_of_hex(value.at("hash").get<std::string>());
               }));
    out.written = kv.mod_revision;
  }
  return out;
}

std::string head_text(const EtcdHead& head) {
  return json{{"sequence", head.sequence.value()}, {"hash", to_hex(head.hash)}}.dump();
}

std::string summary_text(const StreamTip& tip, std::string_view summary) {
  return json{{"revision", tip.revision.value()}, {"hash", tip.hash}, {"summary", summary}}.dump();
}

Result<KeptSummary> parse_summary_value(const EtcdKeyValue& kv) {
  return parsed_value(kv, kv.value, [](const json& value) {
    return KeptSummary{StreamTip{Revision(json_integer<std::int64_t>(value.at("revision"))),
                                 value.at("hash").get<std::string>()},
                       value.at("summary").get<std::string>()};
  });
}

std::string EtcdKeys::at(std::string_view rest) const { return fmt::format("{}{}", prefix_, rest); }

std::string EtcdKeys::event(std::string_view stream, std::int64_t revision) const {
  return events_of(stream) + numbered(revision);
}

std::string EtcdKeys::events_of(std::string_view stream) const {
  auto out = at(fmt::format("events/{}", stream));
  out.push_back('\0');
  return out;
}

std::string EtcdKeys::sequence(std::int64_t number) const {
  return at("sequence/" + numbered(number));
}

std::string EtcdKeys::removed(Sequence last) const {
  return at("removed/" + numbered(last.value()));
}

std::string EtcdKeys::epoch(ControllerEpoch epoch) const {
  return at("epochs/" + numbered(epoch.value()));
}

std::string EtcdKeys::stream(std::string_view name) const {
  return at(fmt::format("streams/{}", name));
}

std::string EtcdKeys::summary(std::string_view stream) const {
  return at(fmt::format("snapshots/{}", stream));
}

std::string EtcdKeys::state(std::string_view stream) const {
  return at(fmt::format("states/{}", stream));
}

Result<void> check_append(std::string_view stream, const std::vector<NewEvent>& events) {
  std::size_t bytes = 0;
  for (const auto& event : events) {
    bytes += event.type.size() + event.data.size() + 500;
  }
  if (stream.contains('\0')) {
    return Error{Errc::kInvalidArgument, "a stream's name must not have a NUL"};
  }
  if (events.size() > kEventsInAppend || bytes > kAppendBytes) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: {} events with {} bytes are more than etcd takes at once ({} "
                             "events, {} bytes)",
                             stream, events.size(), bytes, kEventsInAppend, kAppendBytes)};
  }
  return {};
}

}  // namespace verger::controller::detail
