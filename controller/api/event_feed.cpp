#include "controller/api/event_feed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::size_t kPage = 500;
constexpr milliseconds kLookInterval{100};
constexpr milliseconds kKeepAlive{15'000};

/// What was read, and up to which sequence the journal has been looked through.
struct Page {
  std::vector<JournalEvent> events;
  Sequence looked_at;
};

Result<Page> read_page(Journal& journal, const EventQuery& query) {
  Page page{.events = {}, .looked_at = query.after};
  while (page.events.size() < kPage) {
    VERGER_TRY(auto events, journal.read_all(page.looked_at, kPage));
    if (events.empty()) {
      break;
    }
    page.looked_at = events.back().sequence;
    for (auto& event : events) {
      if (query.stream.empty() || event.stream == query.stream) {
        page.events.push_back(std::move(event));
      }
    }
  }
  return page;
}

}  // namespace

json to_json(const JournalEvent& event) {
  auto data = json::parse(event.data, nullptr, false);
  return {{"sequence", event.sequence.value()},
          {"time", format_ticks(event.at)},
          {"stream", event.stream},
          {"type", event.type},
          {"data", data.is_discarded() ? json(event.data) : std::move(data)}};
}

net::awaitable<Result<json>> event_page(Journal& journal, http::Timers& timers, EventQuery query) {
  milliseconds waited{0};
  while (true) {
    VERGER_CO_TRY(const auto page, read_page(journal, query));
    query.after = page.looked_at;
    if (!page.events.empty() || waited >= query.wait) {
      auto events = json::array();
      for (const auto& event : page.events) {
        events.push_back(to_json(event));
      }
      co_return json{{"events", std::move(events)}, {"next", page.looked_at.value()}};
    }
    co_await timers.sleep_for(kLookInterval);
    waited += kLookInterval;
  }
}

http::Response event_stream(Journal& journal, http::Timers& timers, EventQuery query) {
  http::Response response;
  response.headers.set("Content-Type", "text/event-stream");
  response.headers.set("Cache-Control", "no-store");
  auto state = std::make_shared<EventQuery>(std::move(query));
  response.stream = [&journal, &timers, state]() -> net::awaitable<Result<std::string>> {
    milliseconds waited{0};
    while (true) {
      VERGER_CO_TRY(const auto page, read_page(journal, *state));
      state->after = page.looked_at;
      std::string text;
      for (const auto& event : page.events) {
        text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.sequence, event.type,
                            to_json(event).dump());
      }
      if (!text.empty()) {
        co_return text;
      }
      if (waited >= kKeepAlive) {
        co_return std::string(": nothing new\n\n");
      }
      co_await timers.sleep_for(kLookInterval);
      waited += kLookInterval;
    }
  };
  return response;
}

}  // namespace verger::controller
