#include "nodeagent/node/detail/scavenge_history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"

namespace verger::node {
namespace {

using nlohmann::ordered_json;

constexpr int kAttempts = 6;
constexpr std::size_t kHistoryPage = 20;
constexpr std::string_view kHistory = "$scavenges";
/// How many earlier runs' streams get the metadata of today's options.
constexpr std::size_t kNewestRuns = 30;

std::string history_of(const std::string& id) { return "$scavenges-" + id; }

Bytes bytes_of(std::string_view text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

// Another client may have written to these streams: what is not as expected counts as missing.
std::string text_of(const nlohmann::json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

template <class T>
T number(const nlohmann::json& data, const char* key) {
  try {
    return json_integer_or<T>(data, key, 0);
  } catch (const std::out_of_range&) {
    return 0;
  }
}

WriteRequest metadata_of_history(NodeContext& context, std::string stream) {
  const auto seconds = std::int64_t{context.options.scavenge_history_max_age_days} * 24 * 60 * 60;
  streams::NewEvent event;
  event.id = context.env.random.uuid();
  event.type = "$metadata";
  event.data = bytes_of(fmt::format(
      R"({{"$maxAge":{},"$acl":{{"$r":"$ops","$w":[],"$d":[],"$mr":[],"$mw":[]}}}})", seconds));
  WriteRequest request;
  request.kind = WriteRequest::Kind::kMetadata;
  request.stream = std::move(stream);
  request.events.push_back(std::move(event));
  return request;
}

bool has_history_metadata(const NodeContext& context, std::string_view stream) {
  const auto metadata = context.db().metadata(stream);
  if (!metadata || !metadata->acl || !metadata->acl->read) {
    return false;
  }
  const auto seconds = std::int64_t{context.options.scavenge_history_max_age_days} * 24 * 60 * 60;
  return metadata->max_age_seconds == seconds &&
         *metadata->acl->read == std::vector<std::string>{"$ops"};
}

/// A link's target, "<number>@<stream>".
std::optional<std::pair<EventNumber, std::string>> link_target(const streams::Event& link) {
  const auto text = as_text(link.data);
  const auto at = text.find('@');
  std::int64_t number = 0;
  if (at == std::string_view::npos ||
      std::from_chars(text.data(), text.data() + at, number).ptr != text.data() + at) {
    return std::nullopt;
  }
  return std::pair{EventNumber(number), std::string(text.substr(at + 1))};
}

std::int64_t ticks_of_duration(const std::string& text) {
  int days = 0;
  int hours = 0;
  int minutes = 0;
  double seconds = 0;
  if (std::sscanf(text.c_str(), "%d.%d:%d:%lf", &days, &hours, &minutes, &seconds) != 4) {
    days = 0;
    if (std::sscanf(text.c_str(), "%d:%d:%lf", &hours, &minutes, &seconds) != 3) {
      return 0;
    }
  }
  const auto whole = ((std::int64_t{days} * 24 + hours) * 60 + minutes) * 60;
  return whole * kTicksPerSecond +
         std::int64_t{std::llround(seconds * static_cast<double>(kTicksPerSecond))};
}

struct OpenRun {
  std::string id;
  std::int64_t ticks = 0;
  std::int64_t space_saved = 0;
  std::int32_t max_chunk = 0;
};

/// Runs started here (by endpoint) and never completed, and the newest of all that were started
/// here. A page of the history at a time.
class OpenRuns {
 public:
  OpenRuns(const NodeContext& context, std::string running)
      : context_(context), running_(std::move(running)) {}

  /// False at the end. Errors: those of reading.
  Result<bool> next_page() {
    VERGER_TRY(const auto page, context_.db().read_backward(kHistory, from_, kHistoryPage));
    for (const auto& link : page.events) {
      VERGER_RETURN_IF_ERROR(take(link));
    }
    from_ = page.next;
    return page.status == streams::StreamStatus::kSuccess && !page.end_of_stream &&
           page.next.value() >= 0;
  }
  Result<std::vector<OpenRun>> take_found() {
    for (auto& run : found_) {
      VERGER_RETURN_IF_ERROR(sum(run));
    }
    return std::move(found_);
  }
  /// Ids; without that of the running one.
  [[nodiscard]] const std::vector<std::string>& newest() const { return newest_; }

 private:
  Result<void> take(const streams::Event& link) {
    const auto target = link_target(link);
    if (!target) {
      return {};
    }
    VERGER_TRY(const auto slice, context_.db().read_forward(target->second, target->first, 1));
    if (slice.events.empty()) {
      return {};
    }
    const auto& event = slice.events.front();
    const auto data = nlohmann::json::parse(as_text(event.data), nullptr, false);
    if (!data.is_object() || text_of(data, "nodeEndpoint") != context_.self) {
      return {};
    }
    const auto id = text_of(data, "scavengeId");
    if (newest_.size() < kNewestRuns && id != running_ &&
        std::ranges::find(newest_, id) == newest_.end()) {
      newest_.push_back(id);
    }
    if (event.type == "$scavengeCompleted") {
      completed_.insert(id);
    } else if (event.type == "$scavengeStarted" && !completed_.contains(id) && id != running_) {
      found_.push_back({id});
    }
    return {};
  }

  Result<void> sum(OpenRun& run) {
    EventNumber from{0};
    for (bool more = true; more;) {
      VERGER_TRY(const auto slice,
                 context_.db().read_forward(history_of(run.id), from, kHistoryPage));
      for (const auto& event : slice.events) {
        const auto data = nlohmann::json::parse(as_text(event.data), nullptr, false);
        if (data.is_object()) {
          run.ticks += ticks_of_duration(text_of(data, "timeTaken"));
          run.space_saved += number<std::int64_t>(data, "spaceSaved");
          run.max_chunk = std::max(run.max_chunk, number<std::int32_t>(data, "chunkEndNumber"));
        }
      }
      more = slice.status == streams::StreamStatus::kSuccess && !slice.end_of_stream &&
             slice.next > from;
      from = slice.next;
    }
    return {};
  }

  const NodeContext& context_;
  std::string running_;
  EventNumber from_ = kDeletedStream;
  std::set<std::string> completed_;
  std::vector<OpenRun> found_;
  std::vector<std::string> newest_;
};

}  // namespace

void ScavengeHistory::begin(const std::string& id) {
  reports_.push_back({.request = metadata_of_history(context_, history_of(id))});
}

void ScavengeHistory::report(const std::string& id, std::string type, const ordered_json& data,
                             bool link) {
  const auto& misbehaviour = context_.options.misbehaviour;
  const bool is_end = type == "$scavengeCompleted";
  if (is_end && misbehaviour.lose_scavenge_end) {
    return;
  }
  streams::NewEvent event;
  event.id = context_.env.random.uuid();
  event.type = std::move(type);
  event.data = bytes_of(data.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  Report report;
  report.request.stream = history_of(id);
  report.request.events.push_back(std::move(event));
  report.link_to = link ? id : std::string();
  report.delay = is_end ? misbehaviour.scavenge_end_delay : report.delay;
  reports_.push_back(std::move(report));
  if (!reporting_) {
    reporting_ = true;
    context_.spawn(write_reports(context_.keep(*this)));
  }
}

net::awaitable<bool> ScavengeHistory::write_one(std::shared_ptr<ScavengeHistory> history,
                                                WriteRequest request, EventNumber* number) {
  const auto& context = history->context_;
  // The ids stay the same, so that a repetition is recognised.
  for (int attempt = 0; attempt < kAttempts && context.serving(); ++attempt) {
    const auto reply = co_await history->write_(request);
    if (reply.status == WriteStatus::kDone) {
      *number = reply.first;
      co_return true;
    }
    if (reply.status == WriteStatus::kInvalid || reply.status == WriteStatus::kDeleted) {
      break;
    }
    co_await context.env.timers.sleep_for(context.options.timings.reconnect_delay);
  }
  co_return false;
}

net::awaitable<void> ScavengeHistory::write_reports(std::shared_ptr<ScavengeHistory> history) {
  const auto& context = history->context_;
  while (context.serving() && !history->reports_.empty()) {
    auto report = std::move(history->reports_.front());
    history->reports_.pop_front();
    const auto stream = report.request.stream;
    if (report.delay.count() > 0) {
      co_await context.env.timers.sleep_for(report.delay);
    }
    EventNumber number{-1};
    if (!co_await write_one(history, std::move(report.request), &number)) {
      context.env.log.warning("an entry about a scavenge was not written", {{"stream", stream}});
      continue;
    }
    if (!report.link_to.empty()) {
      streams::NewEvent link;
      link.id = context.env.random.uuid();
      link.type = "$>";
      link.is_json = false;
      link.data = bytes_of(fmt::format("{}@{}", number.value(), stream));
      WriteRequest request;
      request.stream = kHistory;
      request.events.push_back(std::move(link));
      static_cast<void>(co_await write_one(history, std::move(request), &number));
    }
  }
  history->reporting_ = false;
}

void ScavengeHistory::close_dead_runs(std::function<std::string()> running) {
  context_.spawn(complete_open_runs(context_.keep(*this), std::move(running)));
}

net::awaitable<void> ScavengeHistory::complete_open_runs(std::shared_ptr<ScavengeHistory> history,
                                                         std::function<std::string()> running) {
  auto& context = history->context_;
  if (!has_history_metadata(context, kHistory)) {
    auto request = metadata_of_history(context, std::string(kHistory));
    static_cast<void>(co_await history->write_(std::move(request)));  // as the server: no retry
  }
  OpenRuns runs(context, running());
  for (bool more = context.serving(); more && context.serving();) {
    const auto page = runs.next_page();
    if (!page) {
      context.env.log.warning("history of scavenges not read", {{"reason", page.error().message}});
    }
    more = page && *page;
    co_await context.env.timers.sleep_for(std::chrono::milliseconds(0));
  }
  const auto found = runs.take_found();
  if (!found || !context.serving()) {
    co_return;
  }
  for (const auto& run : *found) {
    history->report(run.id, "$scavengeCompleted",
                    {{"scavengeId", run.id},
                     {"nodeEndpoint", context.self},
                     {"result", "Interrupted"},
                     {"error", "The node was restarted."},
                     {"timeTaken", format_duration(run.ticks)},
                     {"spaceSaved", run.space_saved},
                     {"maxChunkScavenged", run.max_chunk}},
                    true);
  }
  // The option may have changed since they ran.
  for (const auto& id : runs.newest()) {
    const auto stream = history_of(id);
    if (context.serving() && !has_history_metadata(context, stream)) {
      EventNumber number{-1};
      static_cast<void>(co_await write_one(history, metadata_of_history(context, stream), &number));
    }
  }
}

}  // namespace verger::node
