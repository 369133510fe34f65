#include "controller/journal/sealed_snapshots.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"

namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::size_t kReadAtOnce = 1'000;

std::string hash_of(const std::string& text) { return to_hex(sha256(as_bytes(text))); }

}  // namespace

Result<void> SealedSnapshots::learn() {
  for (;;) {
    VERGER_TRY(const auto events, inner().read(kStream, read_to_, kReadAtOnce));
    for (const auto& event : events) {
      read_to_ = event.revision;
      const auto data = json::parse(event.data, nullptr, false);
      if (event.type != kSealed || !data.is_object()) {
        continue;  // of a newer version
      }
      auto& known = seals_[data.value("stream", std::string())];
      known.push_back({.revision = Revision(data.value("revision", std::int64_t{-1})),
                       .summary = data.value("summary", std::string()),
                       .state = data.value("state", std::string())});
      if (known.size() > kSealsOfStream) {
        known.erase(known.begin());
      }
    }
    if (events.size() < kReadAtOnce) {
      return {};
    }
  }
}

bool SealedSnapshots::is_sealed(const Snapshot& snapshot, Of what) {
  const auto found = seals_.find(snapshot.stream);
  if (found == seals_.end()) {
    return false;  // an earlier version kept it
  }
  bool changed = false;
  for (const auto& seal : found->second) {
    if (seal.revision != snapshot.revision) {
      continue;
    }
    if (seal.summary == hash_of(snapshot.summary) &&
        (what == Of::kSummary || seal.state == hash_of(snapshot.state))) {
      return true;
    }
    changed = true;
  }
  if (changed) {
    log_.warning("a snapshot is not what was sealed in the journal; the events are read instead",
                 {{"stream", snapshot.stream}});
  }
  return false;
}

Result<void> SealedSnapshots::save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) {
  // The seal first: after a crash in between it belongs to no snapshot, which does no harm.
  const json seal{{"stream", snapshot.stream},
                  {"revision", snapshot.revision.value()},
                  {"summary", hash_of(snapshot.summary)},
                  {"state", hash_of(snapshot.state)}};
  VERGER_TRY(
      const auto sealed,
      inner().append(kStream, kAnyRevision, {NewEvent{std::string(kSealed), seal.dump()}}, epoch));
  static_cast<void>(sealed);
  return inner().save_snapshot(snapshot, epoch);
}

Result<std::optional<Snapshot>> SealedSnapshots::snapshot(std::string_view stream) {
  VERGER_TRY(auto kept, inner().snapshot(stream));
  if (!kept) {
    return std::optional<Snapshot>();
  }
  VERGER_RETURN_IF_ERROR(learn());
  return is_sealed(*kept, Of::kAll) ? std::move(kept) : std::optional<Snapshot>();
}

Result<std::vector<Snapshot>> SealedSnapshots::current_snapshots(std::string_view prefix) {
  VERGER_TRY(auto kept, inner().current_snapshots(prefix));
  VERGER_RETURN_IF_ERROR(learn());
  std::erase_if(kept,
                [this](const Snapshot& snapshot) { return !is_sealed(snapshot, Of::kSummary); });
  return kept;
}

}  // namespace verger::controller
