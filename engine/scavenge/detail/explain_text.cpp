#include "engine/scavenge/detail/explain_text.h"

#include <fmt/format.h>

#include "engine/base/clock.h"

namespace verger::scavenge::detail {
namespace {

std::string age_text(std::int64_t seconds) { return format_duration(seconds * kTicksPerSecond); }

/// The rules that remove it.
class RemovalText {
 public:
  RemovalText(const Preview& preview, const StreamStory& story, Explanation& explanation)
      : preview_(preview), story_(story), out_(explanation) {}

  void write() {
    switch (*out_.removed_by) {
      case RemovalRule::kDeletedStream:
        out_.decider = story_.tombstone;
        out_.reason = "the stream is deleted for good: only its tombstone stays";
        return;
      case RemovalRule::kTombstone:
        out_.decider = story_.tombstone;
        out_.reason = "hard deletes are ignored: the tombstone goes with its stream";
        return;
      case RemovalRule::kDeletedMetadata:
        out_.decider = story_.tombstone;
        out_.reason = "its stream is deleted for good, and the metadata with it";
        return;
      case RemovalRule::kReplacedMetadata:
        out_.decider = story_.metadata;
        out_.reason = "newer metadata replace it";
        return;
      case RemovalRule::kSoftDeleted:
        out_.decider = story_.metadata;
        out_.reason = "the stream is soft-deleted: only its last event stays";
        return;
      case RemovalRule::kTruncateBefore:
        out_.decider = story_.metadata;
        out_.reason = fmt::format("the stream is truncated before {} ($tb)",
                                  story_.original->truncate_before.value_or(0));
        return;
      case RemovalRule::kMaxCount:
        out_.decider = story_.metadata;
        out_.reason = fmt::format("the stream keeps {} events ($maxCount), and its last is {}",
                                  story_.original->max_count.value_or(0), story_.last);
        return;
      case RemovalRule::kMaxAge:
        age();
        return;
      case RemovalRule::kEarlierScavenge:
        earlier();
        return;
    }
  }

 private:
  void age() {
    out_.decider = story_.metadata;
    const auto limit = age_text(story_.original->max_age_seconds.value_or(0));
    const auto* verdict = story_.verdict_of(out_.number);
    if (!story_.limits.discard.discards(out_.number)) {
      out_.reason = fmt::format("older than {} ($maxAge) at the point's time {}", limit,
                                format_ticks(preview_.point().effective_now));
    } else if (verdict != nullptr && verdict->rule == EventRule::kExpired) {
      out_.reason = fmt::format("everything in its chunk is older than {} ($maxAge)", limit);
    } else if (out_.number.value() < story_.walked.first_kept()) {
      const auto* later = last_discarded();
      out_.reason = fmt::format(
          "event {} behind it goes for certain, older than {} ($maxAge)",
          later == nullptr ? story_.walked.first_kept() - 1 : later->entry.number.value(), limit);
    } else {
      earlier();
    }
  }

  /// Removed earlier, not by the scavenge in question.
  void earlier() {
    if (!story_.verdicts.empty() && out_.number < story_.verdicts.front().entry.number) {
      out_.reason = fmt::format(
          "the stream begins with event {} in the index: what lies before is "
          "gone for readers",
          story_.verdicts.front().entry.number);
    } else {
      out_.reason = fmt::format(
          "an earlier scavenge has discarded everything before event {}: that "
          "cannot be undone",
          story_.limits.discard.first_kept());
    }
  }

  const StreamWalker::Verdict* last_discarded() const {
    const StreamWalker::Verdict* last = nullptr;
    for (const auto& verdict : story_.verdicts) {
      last = verdict.decision == EventDecision::kDiscard ? &verdict : last;
    }
    return last;
  }

  const Preview& preview_;
  const StreamStory& story_;
  Explanation& out_;
};

/// The rules that keep it.
class StayText {
 public:
  StayText(const Preview& preview, const StreamStory& story, Explanation& explanation)
      : preview_(preview), story_(story), out_(explanation) {}

  void write() {
    switch (*out_.kept_by) {
      case StayRule::kBehindPoint:
        behind_point();
        return;
      case StayRule::kNotAnEvent:
        out_.reason = fmt::format("{} records always stay", out_.type);
        out_.missing = "nothing removes it";
        return;
      case StayRule::kTransaction:
        out_.reason = "it belongs to an explicit transaction, which a scavenge does not thin";
        out_.missing = "a tombstone of the stream";
        return;
      case StayRule::kTombstone:
        out_.reason = "a tombstone stays, so that no node brings the stream back";
        out_.missing = "a scavenge that ignores hard deletes, which is unsafe";
        return;
      case StayRule::kNoLimits:
        no_limits();
        return;
      case StayRule::kLastEvent:
        out_.decider = story_.last_event;
        out_.reason = "the last event of a stream always stays";
        out_.missing = fmt::format("a newer event before the point{}",
                                   has_limits() ? "" : ", and a limit for the stream");
        return;
      case StayRule::kNewestMetadata:
        out_.decider = story_.metadata;
        out_.reason = "the newest metadata of a stream stay";
        out_.missing = "newer metadata, or a tombstone of the stream";
        return;
      case StayRule::kWithinLimits:
        within_limits();
        return;
      case StayRule::kFresh:
        fresh();
        return;
      case StayRule::kBehindKept:
        behind_kept();
        return;
    }
  }

 private:
  [[nodiscard]] bool has_limits() const {
    return story_.original && (story_.original->max_count || story_.original->max_age_seconds ||
                               story_.original->truncate_before.value_or(0) > 0);
  }

  void behind_point() {
    const auto& point = preview_.point();
    out_.decider = Decider{.what = "scavenge point",
                           .stream = "$scavengePoints",
                           .number = point.number,
                           .position = point.position,
                           .chunk_file = chunk_file_of(preview_.parts().log, point.position)};
    out_.reason = out_.position == point.position
                      ? "it is the scavenge point itself"
                      : fmt::format("it lies behind scavenge point {}", point.number);
    out_.missing = "a scavenge point after it";
  }

  void no_limits() {
    if (story_.metastream) {
      out_.reason = "nothing replaces it";
      out_.missing = "newer metadata, or a tombstone of the stream";
      return;
    }
    out_.decider = story_.metadata;
    out_.reason = story_.metadata
                      ? "the stream's metadata set no $maxCount, $maxAge or $tb (or cannot be read)"
                      : "the stream has no metadata: it keeps everything";
    out_.missing = "metadata with a limit, or a delete";
  }

  void within_limits() {
    out_.decider = story_.metadata;
    const auto& limits = *story_.original;
    std::string kept;
    std::string missing;
    if (limits.max_count) {
      kept = fmt::format("among the last {} events ($maxCount)", *limits.max_count);
      missing = fmt::format("{} more events in the stream",
                            out_.number.value() + *limits.max_count - story_.last.value());
    }
    if (limits.truncate_before && *limits.truncate_before > 0) {
      kept +=
          fmt::format("{}not before {} ($tb)", kept.empty() ? "" : ", ", *limits.truncate_before);
      missing += fmt::format("{}$tb above {}", missing.empty() ? "" : ", or ", out_.number);
    }
    out_.reason = kept;
    out_.missing = missing;
  }

  void fresh() {
    out_.decider = story_.metadata;
    const auto limit = age_text(story_.original->max_age_seconds.value_or(0));
    const auto& now = preview_.point().effective_now;
    if (!out_.expires) {
      out_.reason = fmt::format("it never gets as old as {} ($maxAge)", limit);
      out_.missing = "a smaller $maxAge";
    } else if (*out_.expires >= now) {
      out_.reason =
          fmt::format("younger than {} ($maxAge) at the point's time {}", limit, format_ticks(now));
      out_.missing = fmt::format("a scavenge point later than {}", format_ticks(*out_.expires));
    } else {
      const auto* kept = story_.first_kept();
      out_.reason = fmt::format(
          "its own age exceeds {} ($maxAge), but the walk along the stream ended at event {}, "
          "which "
          "stays",
          limit, kept == nullptr ? out_.number : kept->entry.number);
      out_.missing = "that event has to go first";
    }
  }

  void behind_kept() {
    const auto* kept = story_.first_kept();
    out_.reason = fmt::format(
        "its limits would let it go, but event {} before it stays, and a "
        "scavenge removes from the beginning of a stream only",
        kept == nullptr ? kNoStream : kept->entry.number);
    if (kept != nullptr) {
      out_.decider =
          Decider{.what = "event",
                  .stream = story_.name,
                  .number = kept->entry.number,
                  .position = kept->entry.position,
                  .chunk_file = chunk_file_of(preview_.parts().log, kept->entry.position)};
    }
    out_.missing = "that event has to go first";
  }

  const Preview& preview_;
  const StreamStory& story_;
  Explanation& out_;
};

void gone(const Preview& preview, Explanation& out) {
  static_cast<void>(preview);
  out.reason = out.entry_stays.value_or(true)
                   ? "the record was removed by an earlier scavenge; its index entry stays, and "
                     "readers skip it"
                   : "the record was removed by an earlier scavenge; its index entry goes now";
}

void light_chunk(const Preview& preview, Explanation& out) {
  if (preview.stage() != Stage::kExecutingChunks) {
    out.missing = fmt::format(
        "the unfinished scavenge of point {} has rewritten its chunks "
        "already: the next point removes it",
        preview.point().number);
    return;
  }
  out.missing = fmt::format(
      "its chunk is not rewritten: weight {:.0f} does not exceed the "
      "threshold {}",
      out.weight, preview.point().threshold);
}

}  // namespace

void put_into_words(const Preview& preview, const StreamStory& story, Explanation& explanation) {
  if (explanation.removed_by) {
    RemovalText(preview, story, explanation).write();
    if (explanation.stays) {
      light_chunk(preview, explanation);
    }
  } else if (explanation.kept_by) {
    StayText(preview, story, explanation).write();
  } else {
    gone(preview, explanation);
  }
}

}  // namespace verger::scavenge::detail
