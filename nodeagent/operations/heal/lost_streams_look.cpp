#include "nodeagent/operations/heal/lost_streams_look.h"

#include <algorithm>
#include <variant>

#include "nodeagent/external/database_look.h"

namespace verger::agent {
namespace {

/// Of lost streams, so many at most are remembered by their hash.
constexpr std::size_t kHashesKept = 200;

}  // namespace

LostStreamsLook::LostStreamsLook(external::OfflineServer& server)
    : server_(server), job_(server.machine().files, server.place().index_directory()) {}

Result<StepOutcome> LostStreamsLook::step(Budget budget) {
  VERGER_TRY(const auto outcome, job_.step(budget));
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
  const auto machine = server_.machine();
  VERGER_TRY(const auto database, external::DatabaseReading{.files = machine.files,
                                                            .place = server_.place(),
                                                            .clock = machine.clock,
                                                            .random = machine.random,
                                                            .log = machine.log}
                                      .open());
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
    const auto newest = database->read_backward(stream, kDeletedStream, 1);
    if (newest && newest->status == streams::StreamStatus::kSuccess && !newest->events.empty() &&
        std::ranges::find(sample_, stream) == sample_.end()) {
      sample_.push_back(stream);
    }
  }
  return {};
}

}  // namespace verger::agent
