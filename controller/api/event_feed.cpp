#include "controller/api/event_feed.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/gate_board.h"
#include "controller/journal/member_names.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::size_t kPage = 500;
constexpr milliseconds kKeepAlive{15'000};
/// Looks at the journal without having been woken, should a wake-up ever be lost.
constexpr milliseconds kFallback{2'000};

/// What was read, and up to which sequence the journal has been looked through.
struct Page {
  std::vector<JournalEvent> events;
  Sequence looked_at;
  bool more = false;  ///< there may be something behind it: it was cut, not the journal's end
};

struct Visible {
  std::string_view prefix;
  std::optional<ApiRole> from;  ///< the least role; nullopt: no role may
};
constexpr Visible kVisible[] = {{"run/", ApiRole::kViewer},      {"plan/", ApiRole::kViewer},
                                {"cluster/", ApiRole::kViewer},  {"policy/", ApiRole::kViewer},
                                {"schedule/", ApiRole::kViewer}, {"agent/", ApiRole::kViewer},
                                {"token/", ApiRole::kAdmin},     {"audit", ApiRole::kAdmin},
                                {"idempotency/", std::nullopt},  {"snapshots", std::nullopt}};

/// Events of one stream are read as such, the others are many; and none of them twice.
Result<Page> read_stream(Journal& journal, EventQuery& query) {
  VERGER_TRY(const auto last, journal.last_sequence());
  VERGER_TRY(auto events, journal.read(query.stream, query.revision));
  Page page{.events = {}, .looked_at = std::max(last, query.after)};
  for (auto& event : events) {
    if (page.events.size() == kPage) {
      page.looked_at = page.events.back().sequence;
      break;
    }
    query.revision = event.revision;
    if (event.sequence > query.after) {
      page.events.push_back(std::move(event));
    }
  }
  return page;
}

Result<Page> read_page(Journal& journal, EventQuery& query) {
  if (!query.stream.empty()) {
    return read_stream(journal, query);
  }
  VERGER_TRY(auto events, journal.read_all(query.after, kPage));
  const auto looked_at = events.empty() ? query.after : events.back().sequence;
  const bool more = events.size() == kPage;
  std::erase_if(events,
                [&](const JournalEvent& event) { return !may_see(query.role, event.stream); });
  return Page{.events = std::move(events), .looked_at = looked_at, .more = more};
}

/// Woken by each append. One executor, which is the journal's.
class Waiter {
 public:
  Waiter(Journal& journal, net::any_io_executor executor)
      : channel_(std::make_shared<Channel>(std::move(executor), 1)),
        subscription_(journal.subscribe(
            [channel = channel_](Sequence) { channel->try_send(boost::system::error_code{}); })) {}

  /// Until an append since the last wait, or `limit`.
  static net::awaitable<void> wait(std::shared_ptr<Waiter> self, http::Timers& timers,
                                   milliseconds limit) {
    using net::experimental::awaitable_operators::operator||;
    co_await (self->channel_->async_receive(net::as_tuple(net::use_awaitable)) ||
              timers.sleep_for(limit));
  }

 private:
  using Channel = net::experimental::channel<void(boost::system::error_code)>;
  std::shared_ptr<Channel> channel_;
  Journal::Subscription subscription_;
};

/// Waits for something new, `left` at most, and takes off `left` how long.
net::awaitable<void> wait_for_news(std::shared_ptr<Waiter> waiter, Clock& clock,
                                   http::Timers& timers, milliseconds& left) {
  const auto began = clock.monotonic();
  co_await Waiter::wait(waiter, timers, std::min(left, kFallback));
  left -= std::chrono::duration_cast<milliseconds>(clock.monotonic() - began);
}

struct Feed {
  EventQuery query;
  std::shared_ptr<Waiter> waiter;
};

/// What a stream of events sends next. `feed` continues where the piece before ended.
net::awaitable<Result<std::string>> next_piece(Journal& journal, http::Timers& timers, Clock& clock,
                                               std::shared_ptr<Feed> feed) {
  if (feed->waiter == nullptr) {
    feed->waiter = std::make_shared<Waiter>(journal, co_await net::this_coro::executor);
  }
  milliseconds left = kKeepAlive;
  while (true) {
    VERGER_CO_TRY(const auto page, read_page(journal, feed->query));
    feed->query.after = page.looked_at;
    std::string text;
    for (const auto& event : page.events) {
      text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.sequence, event.type,
                          to_json(event).dump());
    }
    if (!text.empty()) {
      co_return text;
    }
    if (page.more) {
      co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
      continue;
    }
    if (left <= milliseconds(0)) {
      co_return std::string(": nothing new\n\n");
    }
    co_await wait_for_news(feed->waiter, clock, timers, left);
  }
}

}  // namespace

bool may_see(ApiRole role, std::string_view stream) {
  for (const auto& [prefix, from] : kVisible) {
    if (prefix.ends_with('/') ? stream.starts_with(prefix) : stream == prefix) {
      return from && role >= *from;
    }
  }
  return role >= ApiRole::kAdmin;
}

json to_json(const JournalEvent& event) {
  auto data = json::parse(event.data, nullptr, false);
  if (data.is_object() && data.contains("salt")) {
    data.erase("salt");
    data.erase("hash");
  }
  if (event.type == events::kStepWaiting || event.type == events::kStepIntended) {
    for (const auto* gates : {"gates", "not_seen"}) {
      if (data.is_object() && data.contains(gates)) {
        data[gates] = with_current_gate_names(std::move(data[gates]));
      }
    }
  }
  return {{"sequence", event.sequence.value()},
          {"time", format_ticks(event.at)},
          {"stream", event.stream},
          {"type", event.type},
          {"data", data.is_discarded() ? json(event.data) : in_snake_case(std::move(data))}};
}

net::awaitable<Result<json>> event_page(Journal& journal, http::Timers& timers, Clock& clock,
                                        EventQuery query) {
  // Subscribed before it reads: what comes in between is not missed.
  const auto waiter = std::make_shared<Waiter>(journal, co_await net::this_coro::executor);
  milliseconds left = query.wait;
  while (true) {
    VERGER_CO_TRY(const auto page, read_page(journal, query));
    query.after = page.looked_at;
    if (page.events.empty() && page.more) {
      // A long journal is no reason to let others wait.
      co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
      continue;
    }
    if (!page.events.empty() || left <= milliseconds(0)) {
      auto events = json::array();
      for (const auto& event : page.events) {
        events.push_back(to_json(event));
      }
      co_return json{{"events", std::move(events)}, {"next", page.looked_at.value()}};
    }
    co_await wait_for_news(waiter, clock, timers, left);
  }
}

http::Response event_stream(Journal& journal, http::Timers& timers, Clock& clock,
                            EventQuery query) {
  http::Response response;
  response.headers.set("Content-Type", "text/event-stream");
  response.headers.set("Cache-Control", "no-store");
  auto feed = std::make_shared<Feed>(Feed{.query = std::move(query), .waiter = nullptr});
  response.stream = [&journal, &timers, &clock, feed = std::move(feed)] {
    return next_piece(journal, timers, clock, feed);
  };
  return response;
}

}  // namespace verger::controller
