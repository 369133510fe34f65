#include "engine/scavenge/explain.h"

#include <fmt/format.h>

#include "engine/scavenge/detail/explain_text.h"
#include "engine/scavenge/detail/stream_story.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {

std::string_view to_string(StayRule rule) {
  switch (rule) {
    case StayRule::kBehindPoint:
      return "behind-point";
    case StayRule::kNotAnEvent:
      return "not-an-event";
    case StayRule::kTransaction:
      return "transaction";
    case StayRule::kTombstone:
      return "tombstone";
    case StayRule::kNoLimits:
      return "no-limits";
    case StayRule::kLastEvent:
      return "last-event";
    case StayRule::kNewestMetadata:
      return "newest-metadata";
    case StayRule::kWithinLimits:
      return "within-limits";
    case StayRule::kFresh:
      return "fresh";
    case StayRule::kBehindKept:
      return "behind-kept-event";
  }
  return "unknown";
}

namespace {

namespace flags = log::prepare_flags;
using detail::StreamStory;

/// Why keeps_prepare() said yes.
StayRule stay_rule(const log::Prepare& prepare, const StreamStory& story, const RunRules& rules) {
  if (prepare.position >= rules.point) {
    return StayRule::kBehindPoint;
  }
  if (prepare.has(flags::kStreamDelete)) {
    return StayRule::kTombstone;
  }
  if (!prepare.has(flags::kIsCommitted)) {
    return StayRule::kTransaction;
  }
  const auto number = prepare.event_number();
  if (story.metastream) {
    return number == story.last || story.limits.discard.first_kept() > 0 ? StayRule::kNewestMetadata
                                                                         : StayRule::kNoLimits;
  }
  if (!story.original) {
    return StayRule::kNoLimits;
  }
  if (number >= story.last) {
    return StayRule::kLastEvent;
  }
  const auto* verdict = story.verdict_of(number);
  const auto* first_kept = story.first_kept();
  if (verdict == nullptr && first_kept != nullptr && number > first_kept->entry.number) {
    const auto& limits = *story.original;
    if (discarded_by_number(limits, number, story.last)) {
      return StayRule::kBehindKept;
    }
    if (limits.max_age_seconds &&
        prepare.timestamp < cutoff_of(rules.effective_now, *limits.max_age_seconds)) {
      return StayRule::kBehindKept;
    }
  }
  const auto& limits = *story.original;
  if (limits.max_age_seconds) {
    return StayRule::kFresh;
  }
  const bool none = !limits.max_count && (!limits.truncate_before || *limits.truncate_before == 0);
  return none ? StayRule::kNoLimits : StayRule::kWithinLimits;
}

}  // namespace

struct Explainer::State {
  Preview& preview;
  std::optional<StreamStory> story;  ///< of the stream requested last

  Result<const StreamStory*> story_of(std::string_view name) {
    if (!story || story->name != name) {
      story.reset();
      VERGER_TRY(story, detail::read_story(preview, name));
    }
    return &*story;
  }

  Result<void> place(Explanation& explanation);
  Result<Explanation> explain(const log::Prepare& prepare, EventNumber number);
  Result<Explanation> explain_entry(const StreamStory& stream, const index::IndexEntry& entry);
  Result<void> explain_index(const StreamStory& stream, const index::IndexEntry& entry,
                             Explanation& explanation);
  void describe_stream(const StreamStory& stream, Explanation& explanation) const;
};

/// Chunk file, its weight, and whether it would be rewritten.
Result<void> Explainer::State::place(Explanation& explanation) {
  const auto chunk = preview.parts().log.chunk_at(explanation.position);
  if (chunk == nullptr) {
    return {};
  }
  explanation.chunk_file = chunk->path().filename().string();
  VERGER_TRY(explanation.chunk_executed, preview.executes(*chunk, explanation.weight));
  return {};
}

void Explainer::State::describe_stream(const StreamStory& stream, Explanation& explanation) const {
  explanation.limits = stream.original;
  explanation.last = stream.last;
  explanation.discard = stream.limits.discard;
  explanation.maybe = stream.limits.maybe;
}

Result<void> Explainer::State::explain_index(const StreamStory& stream,
                                             const index::IndexEntry& entry,
                                             Explanation& explanation) {
  if (preview.state().is_collision_hash(entry.hash) && entry.position < preview.point().position &&
      (!explanation.in_log || !explanation.stays)) {
    explanation.entry_stays = false;  // without a record it has no owner
    return {};
  }
  explanation.entry_stays = keeps_entry(entry, stream.limits, preview.rules());
  return {};
}

Result<Explanation> Explainer::State::explain(const log::Prepare& prepare, EventNumber number) {
  VERGER_TRY(const auto* stream, story_of(prepare.stream));
  Explanation result;
  result.stream = prepare.stream;
  result.number = number;
  result.position = prepare.position;
  result.type = prepare.type;
  result.timestamp = prepare.timestamp;
  result.in_log = true;
  VERGER_RETURN_IF_ERROR(place(result));
  describe_stream(*stream, result);
  if (stream->original && stream->original->max_age_seconds &&
      *stream->original->max_age_seconds <
          (kMaxTicks.value() - prepare.timestamp.value()) / kTicksPerSecond) {
    result.expires =
        Ticks(prepare.timestamp.value() + *stream->original->max_age_seconds * kTicksPerSecond);
  }
  const auto rules = preview.rules();
  if (keeps_prepare(prepare, stream->metastream, stream->limits, rules)) {
    result.kept_by = stay_rule(prepare, *stream, rules);
  } else {
    const auto rule = removal_rule(prepare, stream->metastream, stream->limits);
    result.removed_by =
        rule ? *rule : removal_rule(prepare.event_number(), {stream->original, stream->last});
    result.stays = !result.chunk_executed;
  }
  detail::put_into_words(preview, *stream, result);
  return result;
}

Result<Explanation> Explainer::State::explain_entry(const StreamStory& stream,
                                                    const index::IndexEntry& entry) {
  Explanation result;
  result.stream = stream.name;
  result.number = entry.number;
  result.position = entry.position;
  result.stays = false;
  VERGER_RETURN_IF_ERROR(place(result));
  describe_stream(stream, result);
  VERGER_RETURN_IF_ERROR(explain_index(stream, entry, result));
  detail::put_into_words(preview, stream, result);
  return result;
}

Explainer::Explainer(Preview& preview)
    : state_(std::make_unique<State>(State{.preview = preview, .story = {}})) {}
Explainer::~Explainer() = default;

Result<Explanation> Explainer::record(LogPosition position) {
  const auto& parts = state_->preview.parts();
  Bytes buffer;
  VERGER_TRY(const auto record, parts.log.read(position, buffer));
  const auto* prepare = record.prepare();
  if (prepare == nullptr) {
    Explanation result;
    result.number = kNoStream;
    result.position = position;
    result.in_log = true;
    result.kept_by = StayRule::kNotAnEvent;
    result.type = std::holds_alternative<log::Commit>(record.record) ? "commit" : "epoch";
    VERGER_RETURN_IF_ERROR(state_->place(result));
    detail::put_into_words(state_->preview, {}, result);
    return result;
  }
  const auto number = prepare->has(flags::kIsCommitted) ? prepare->event_number() : kNoStream;
  VERGER_TRY(auto result, state_->explain(*prepare, number));
  VERGER_TRY(const auto* stream, state_->story_of(prepare->stream));
  VERGER_TRY(const auto entries, parts.index.range(parts.index.hash(prepare->stream),
                                                   number == kNoStream ? EventNumber(0) : number,
                                                   number == kNoStream ? kDeletedStream : number,
                                                   std::numeric_limits<std::size_t>::max()));
  for (const auto& entry : entries) {
    if (entry.position == position) {
      result.number = entry.number;
      VERGER_RETURN_IF_ERROR(state_->explain_index(*stream, entry, result));
    }
  }
  return result;
}

Result<std::vector<Explanation>> Explainer::stream(std::string_view name, EventNumber from,
                                                   EventNumber to, std::size_t limit) {
  const auto& parts = state_->preview.parts();
  VERGER_TRY(const auto* stream, state_->story_of(name));
  VERGER_TRY(const auto entries,
             parts.index.range_forward(parts.index.hash(name), from, to, limit));
  std::vector<Explanation> result;
  Bytes buffer;
  for (const auto& entry : entries) {
    const auto record = parts.log.read(entry.position, buffer);
    if (!record) {
      if (record.error().code != Errc::kNotFound) {
        return record.error();
      }
      // With a colliding stream around it cannot be said whose entry this is.
      if (!stream->handle.by_name()) {
        VERGER_TRY(auto gone, state_->explain_entry(*stream, entry));
        result.push_back(std::move(gone));
      }
      continue;
    }
    const auto* prepare = record->prepare();
    if (prepare == nullptr || prepare->stream != name) {
      continue;
    }
    VERGER_TRY(auto explained, state_->explain(*prepare, entry.number));
    VERGER_RETURN_IF_ERROR(state_->explain_index(*stream, entry, explained));
    result.push_back(std::move(explained));
  }
  if (result.empty()) {
    return Error{Errc::kNotFound,
                 from == to ? fmt::format("stream '{}' has no event {} in the index", name, from)
                            : fmt::format("there is no stream '{}' in the index", name)};
  }
  return result;
}

}  // namespace verger::scavenge
