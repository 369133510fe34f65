#include "nodeagent/operations/heal/lost_streams_look.h"

#include <algorithm>
#include <variant>

#include "nodeagent/external/database_look.h"

namespace verger::agent {
namespace {

/// Of lost streams, so many at most are remembered by their hash.
constexpr std::size_t kHashesKept = 200;
/// Gates were checked before it, and must not grow old.
constexpr std::chrono::seconds kLongestLook{60};

Result<std::unique_ptr<streams::Database>> open_beside(const external::OfflineServer& server) {
  const auto machine = server.machine();
  return external::DatabaseReading{.files = machine.files,
                                   .place = server.place(),
                                   .clock = machine.clock,
                                   .random = machine.random,
                                   .log = machine.log}
      .open();
}

/// Of a stream that is deleted or has expired: nullopt.
std::optional<std::int64_t> newest_number(const streams::Database& database,
                                          const std::string& stream) {
  const auto newest = database.read_backward(stream, kDeletedStream, 1);
  return newest && newest->status == streams::StreamStatus::kSuccess && !newest->events.empty()
             ? std::optional(newest->events.front().number.value())
             : std::nullopt;
}

}  // namespace

LostStreamsLook::LostStreamsLook(external::OfflineServer& server)
    : server_(server), job_(server.machine().files, server.place().index_directory()) {}

Result<StepOutcome> LostStreamsLook::step(Budget budget) {
  const auto now = server_.machine().clock.monotonic();
  began_ = began_.value_or(now);
  VERGER_TRY(auto outcome, job_.step(budget));
  if (now - *began_ > kLongestLook) {
    outcome = {.kind = StepOutcome::Kind::kDone};
  }
  if (outcome.kind == StepOutcome::Kind::kDone) {
    VERGER_RETURN_IF_ERROR(choose_sample());
  }
  return outcome;
}

JobProgress LostStreamsLook::progress() const {
  return {.phase = "counting lost streams",
          .done = static_cast<std::int64_t>(job_.done()),
          .total = static_cast<std::int64_t>(job_.total()),
          .unit = "entries"};
}

std::vector<std::uint64_t> LostStreamsLook::hashes() const {
  std::vector<std::uint64_t> out;
  for (const auto& lost : job_.listed()) {
    if (out.size() < kHashesKept) {
      out.push_back(lost.hash.value());
    }
  }
  return out;
}

/// What has events now must be found: a stream that is deleted or expired is none of these.
Result<void> LostStreamsLook::choose_sample() {
  if (job_.listed().empty()) {
    return {};
  }
  const auto opened = open_beside(server_);
  if (!opened) {
    // Without a sample the filter alone shows that it helped.
    server_.machine().log.warning("no sample of lost streams can be chosen",
                                  {{"reason", opened.error().message}});
    return {};
  }
  const auto& database = *opened;
  Bytes buffer;
  for (const auto& lost : job_.listed()) {
    if (sample_.size() == kSample) {
      break;
    }
    const auto record = database->transaction_log().read(lost.position, buffer);
    const auto* prepare = record ? std::get_if<log::Prepare>(&record->record) : nullptr;
    if (prepare == nullptr) {
      continue;  // scavenged away
    }
    const std::string stream(prepare->stream);
    const auto number = newest_number(*database, stream);
    if (number && std::ranges::find(sample_, stream, &Sample::stream) == sample_.end()) {
      sample_.push_back({stream, *number});
    }
  }
  return {};
}

Result<StepOutcome> StreamsWithEvents::step(Budget /*budget*/) {
  VERGER_TRY(const auto database, open_beside(server_));
  std::erase_if(streams_, [&database](const std::string& stream) {
    return !newest_number(*database, stream).has_value();
  });
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

}  // namespace verger::agent
