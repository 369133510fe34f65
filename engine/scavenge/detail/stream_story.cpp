#include "engine/scavenge/detail/stream_story.h"

#include <algorithm>
#include <limits>

#include "engine/streams/stream_names.h"

namespace verger::scavenge::detail {
namespace {

constexpr auto kAll = std::numeric_limits<std::size_t>::max();
constexpr EventNumber kGreatest{std::numeric_limits<std::int64_t>::max()};

/// Index entries of a stream below the point whose records are there and are its own, by position.
struct OwnRecord {
  index::IndexEntry entry;
  bool tombstone = false;
};

Result<std::vector<OwnRecord>> own_records(const Preview& preview, std::string_view name,
                                           std::size_t newest) {
  const auto& parts = preview.parts();
  VERGER_TRY(const auto entries,
             parts.index.range(parts.index.hash(name), EventNumber(0), kGreatest, newest));
  std::vector<OwnRecord> own;
  Bytes buffer;
  for (const auto& entry : entries) {
    if (entry.position >= preview.point().position) {
      continue;
    }
    const auto record = parts.log.read(entry.position, buffer);
    if (!record) {
      if (record.error().code == Errc::kNotFound) {
        continue;
      }
      return record.error();
    }
    const auto* prepare = record->prepare();
    if (prepare != nullptr && prepare->stream == name) {
      own.push_back({entry, prepare->has(log::prepare_flags::kStreamDelete)});
    }
  }
  std::ranges::sort(own, {}, [](const OwnRecord& one) { return one.entry.position; });
  return own;
}

Decider decider(const Preview& preview, std::string_view what, std::string_view stream,
                const index::IndexEntry& entry) {
  return {.what = std::string(what),
          .stream = std::string(stream),
          .number = entry.number,
          .position = entry.position,
          .chunk_file = chunk_file_of(preview.parts().log, entry.position)};
}

/// The last record in the log whose number no earlier one reaches: what the accumulation kept.
Result<std::optional<Decider>> newest_metadata(const Preview& preview,
                                               std::string_view metastream) {
  VERGER_TRY(const auto own, own_records(preview, metastream, kAll));
  std::optional<Decider> newest;
  auto greatest = kNoStream;
  for (const auto& record : own) {
    if (record.entry.number > greatest) {
      greatest = record.entry.number;
      newest = decider(preview, "metadata", metastream, record.entry);
    }
  }
  return newest;
}

Result<std::optional<Decider>> tombstone_of(const Preview& preview, std::string_view stream) {
  // Tombstones have the greatest number; in very old databases a smaller one.
  for (const std::size_t newest : {std::size_t{4}, kAll}) {
    VERGER_TRY(const auto own, own_records(preview, stream, newest));
    for (const auto& record : own) {
      if (record.tombstone) {
        return decider(preview, "tombstone", stream, record.entry);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string chunk_file_of(const log::TransactionLog& log, LogPosition position) {
  const auto chunk = log.chunk_at(position);
  return chunk == nullptr ? std::string() : chunk->path().filename().string();
}

const StreamWalker::Verdict* StreamStory::verdict_of(EventNumber number) const {
  const auto found = std::ranges::lower_bound(
      verdicts, number, {}, [](const StreamWalker::Verdict& one) { return one.entry.number; });
  return found != verdicts.end() && found->entry.number == number ? &*found : nullptr;
}

const StreamWalker::Verdict* StreamStory::first_kept() const {
  return !verdicts.empty() && verdicts.back().decision == EventDecision::kKeep ? &verdicts.back()
                                                                               : nullptr;
}

Result<StreamStory> read_story(Preview& preview, std::string_view name) {
  const auto& parts = preview.parts();
  auto& state = preview.state();
  StreamStory story;
  story.name = name;
  story.metastream = streams::is_metastream(name);
  story.handle = state.handle_of(name);
  VERGER_TRY(const auto limits, state.limits_of(name));
  story.limits = limits.value_or(StreamLimits{});
  IndexView index(parts.index, parts.log, preview.point().position);
  VERGER_TRY(story.last, index.last_number(story.handle, [name]() -> Result<std::string> {
    return std::string(name);
  }));
  if (story.last != kNoStream) {
    std::vector<index::IndexEntry> entries;
    VERGER_RETURN_IF_ERROR(index.forward(story.handle, story.last.value(), 1, entries));
    if (!entries.empty()) {
      story.last_event = decider(preview, "event", name, entries.front());
    }
  }
  const std::string original(story.metastream ? streams::original_of(name) : name);
  if (story.limits.tombstoned) {
    VERGER_TRY(story.tombstone, tombstone_of(preview, original));
  }
  VERGER_TRY(story.metadata,
             newest_metadata(preview,
                             story.metastream ? std::string(name) : streams::metastream_of(name)));
  if (story.metastream) {
    return story;
  }
  VERGER_TRY(story.original, state.original_data(story.handle));
  if (!story.original) {
    return story;
  }
  StreamWalker walker(parts.index, parts.log, preview.point(), state);
  VERGER_RETURN_IF_ERROR(walker.start({.handle = story.handle, .data = *story.original}));
  for (bool finished = false; !finished;) {
    VERGER_TRY(finished, walker.step([&](const StreamWalker::Verdict& verdict) {
      story.verdicts.push_back(verdict);
    }));
  }
  story.walked = walker.walk().discard();
  return story;
}

}  // namespace verger::scavenge::detail
