#include "controller/api/retention.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/api/access.h"
#include "controller/api/detail/removal_rounds.h"
#include "controller/executor/events.h"
#include "controller/executor/run_snapshot.h"
#include "controller/executor/step_kind.h"
#include "controller/journal/chain.h"
#include "controller/journal/sealed_snapshots.h"
#include "controller/scheduler/delivery_book.h"
#include "controller/scheduler/scheduler.h"

namespace verger::controller {

using detail::RemovalRounds;
using nlohmann::json;

namespace {

/// Records of earlier compactions are joined when there are more, of an age.
constexpr std::size_t kRecordsKept = 200;
constexpr std::chrono::days kRecordAge{7};
constexpr std::size_t kRangesInRecord = 20'000;
constexpr std::chrono::seconds kSizeKnownFor{60};

/// Whether a step's progress says no more than what a restart may do without.
bool is_plain_progress(const json& data) {
  const auto memo = data.find("memo");
  const auto unwatched = data.find("unwatched_ms");
  return (memo == data.end() || memo->empty()) &&
         (unwatched == data.end() || *unwatched == 0 || unwatched->is_null());
}

std::string step_named_in(const json& data) { return data.value("step", std::string()); }

}  // namespace

struct Retention::Impl {
  using Keep = RemovalRounds::Keep;

  explicit Impl(RetentionParts p)
      : parts(std::move(p)), rounds(parts.journal, parts.epoch, parts.files, parts.archive) {}

  RetentionParts parts;
  RemovalRounds rounds;
  Compacted done;
  bool under_way = false;
  std::optional<Ticks> last_end;  ///< of a compaction that succeeded
  JournalSize known_size;
  std::optional<Monotonic> size_known_at;
  std::set<std::string> without_progress;  ///< ended runs, by id
  std::set<std::string> without_details;

  [[nodiscard]] Ticks ago(std::chrono::hours age) const {
    return Ticks(parts.clock.now().value() -
                 std::chrono::duration_cast<std::chrono::seconds>(age).count() * kTicksPerSecond);
  }

  /// Of runs: progress of which there is newer, and waits of ended ones.
  net::awaitable<Result<void>> progress() {
    const auto limit = ago(parts.rules.progress);
    for (const auto& run : parts.runs.runs("")) {
      const bool ended = has_ended(run->status);
      if (without_progress.contains(run->id)) {
        continue;
      }
      VERGER_CO_RETURN_IF_ERROR(co_await progress_of("run/" + run->id, ended, limit));
      if (ended && run->ended_at && *run->ended_at < limit) {
        without_progress.insert(run->id);
      }
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> progress_of(std::string stream, bool ended, Ticks limit) {
    std::map<std::string, JournalEvent> progress;  ///< the newest progress of each step
    std::map<std::string, JournalEvent> waiting;   ///< the newest, where nothing else came since
    co_return co_await rounds.each(stream, Revision(0), [&](const JournalEvent& event) {
      const auto data = json::parse(event.data, nullptr, false);
      if (event.type == events::kRunStarted || !data.is_object()) {
        return true;
      }
      const bool is_progress = event.type == events::kStepProgress;
      const auto step = step_named_in(data);
      auto& newest = is_progress ? progress : waiting;
      if (const auto older = newest.find(step);
          older != newest.end() && (is_progress || event.type == events::kStepWaiting) &&
          older->second.at < limit) {
        rounds.take(older->second, Keep::kNothing, done.progress);
      }
      if (is_progress) {
        progress.erase(step);
        if (is_plain_progress(data)) {
          progress.emplace(step, event);
        }
      }
      waiting.erase(step);
      if (ended && event.type == events::kStepWaiting) {
        waiting.emplace(step, event);
      }
      return true;
    });
  }

  /// Of ended runs: all between the first event, which has the plan, and the last, for which the
  /// journal has a snapshot with the state.
  net::awaitable<Result<void>> run_details() {
    const auto limit = ago(parts.rules.run_details);
    for (const auto& run : parts.runs.runs("")) {
      if (!has_ended(run->status) || !run->ended_at || *run->ended_at >= limit ||
          without_details.contains(run->id)) {
        continue;
      }
      // The first event, and the last one.
      VERGER_CO_TRY(const auto few, parts.journal.read("run/" + run->id, Revision(0), 3));
      if (few.size() < 3) {
        without_details.insert(run->id);
        continue;
      }
      const auto state = parts.runs.find_run(run->id);
      if (!state) {
        parts.log.warning("an ended run is not compacted: it cannot be read",
                          {{"run", run->id}, {"reason", state.error().message}});
        continue;
      }
      // In the present format, even if the last one is in an older one.
      VERGER_CO_RETURN_IF_ERROR(parts.journal.save_snapshot(snapshot_of(**state), parts.epoch));
      const auto last = (*state)->revision;
      VERGER_CO_RETURN_IF_ERROR(
          co_await rounds.each("run/" + run->id, Revision(1), [&](const JournalEvent& event) {
            if (event.revision >= last) {
              return false;
            }
            rounds.take(event,
                        event.type == events::kStepProgress ? Keep::kNothing : Keep::kArchive,
                        done.run_details);
            return true;
          }));
      without_details.insert(run->id);
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> runs() {
    const auto limit = ago(parts.rules.runs);
    std::map<std::string, std::size_t> newer;  ///< ended ones, by cluster
    for (const auto& run : parts.runs.runs("")) {
      // What it says of older data is needed as long as there are backups, whose age is not known.
      if (!has_ended(run->status) || run->kept.contains(std::string(kOlderDataNoteValue))) {
        continue;
      }
      const auto count = newer[run->cluster]++;
      const bool old = run->ended_at && *run->ended_at < limit;
      if (count < parts.rules.runs_kept || (!old && count < parts.rules.runs_of_cluster)) {
        continue;
      }
      parts.runs.forget_run(run->id);
      VERGER_CO_RETURN_IF_ERROR(
          co_await rounds.take_stream("run/" + run->id, Keep::kArchive, &done.runs));
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> plans() {
    const auto limit = ago(parts.rules.plans);
    for (const auto& plan : parts.runs.plans("")) {
      if (plan.made_at < limit) {
        parts.runs.forget_plan(plan.hash);
        VERGER_CO_RETURN_IF_ERROR(
            co_await rounds.take_stream("plan/" + plan.hash, Keep::kArchive, &done.plans));
      }
    }
    co_return Result<void>{};
  }

  /// What is older than the newest due time that is settled.
  net::awaitable<Result<void>> schedules() {
    const auto limit = ago(parts.rules.plans);
    VERGER_CO_TRY(const auto streams, parts.journal.streams("schedule/"));
    for (const auto& stream : streams) {
      std::vector<JournalEvent> older;
      VERGER_CO_RETURN_IF_ERROR(
          co_await rounds.each(stream, Revision(0), [&](const JournalEvent& event) {
            if (event.type == events::kScheduleSettled) {
              for (const auto& each : older) {
                rounds.take(each, Keep::kArchive, done.schedules);
              }
              older.clear();
            }
            if (event.at < limit) {
              older.push_back(event);
            }
            return true;
          }));
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> answers() {
    const auto limit = ago(parts.rules.answers);
    VERGER_CO_TRY(const auto streams, parts.journal.streams(kAnswerStreams));
    std::size_t looked_at = 0;
    for (const auto& stream : streams) {
      VERGER_CO_TRY(const auto first, parts.journal.read(stream, Revision(0), 1));
      if (!first.empty() && first.front().at < limit) {
        VERGER_CO_RETURN_IF_ERROR(
            co_await rounds.take_stream(stream, Keep::kNothing, &done.answers));
      }
      if (++looked_at % 100 == 0) {
        co_await detail::let_others_in();
      }
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> audit() {
    const auto limit = ago(parts.rules.audit);
    VERGER_CO_TRY(const auto newest, parts.journal.revision(kAuditStream));
    co_return co_await rounds.each(std::string(kAuditStream), Revision(0),
                                   [&](const JournalEvent& event) {
                                     if (event.at >= limit || event.revision == newest) {
                                       return false;
                                     }
                                     rounds.take(event, Keep::kArchive, done.audit);
                                     return true;
                                   });
  }

  /// Those on record as ended, but for what a restart would look at again; the newest one says from
  /// where.
  net::awaitable<Result<void>> notifications() {
    const auto limit = ago(parts.rules.answers);
    const auto sequence_in = [](const JournalEvent& event, const char* name) {
      const auto data = json::parse(event.data, nullptr, false);
      return data.is_object() ? data.value(name, std::int64_t{0}) : 0;
    };
    VERGER_CO_TRY(const auto newest, parts.journal.revision(kNotificationStream));
    if (newest.value() < 2) {
      co_return Result<void>{};
    }
    VERGER_CO_TRY(const auto last,
                  parts.journal.read(kNotificationStream, Revision(newest.value() - 1), 1));
    const auto up_to = last.empty() ? 0 : sequence_in(last.front(), "up_to");
    co_return co_await rounds.each(std::string(kNotificationStream), Revision(0),
                                   [&](const JournalEvent& event) {
                                     if (event.at >= limit || event.revision == newest) {
                                       return false;
                                     }
                                     if (sequence_in(event, "of") <= up_to) {
                                       rounds.take(event, Keep::kNothing, done.notifications);
                                     }
                                     return true;
                                   });
  }

  /// Of snapshots that newer ones have replaced, or whose stream is gone.
  net::awaitable<Result<void>> seals() {
    const std::string stream(SealedSnapshots::kStream);
    VERGER_CO_TRY(const auto newest, parts.journal.revision(stream));
    std::map<std::string, std::deque<JournalEvent>> kept;
    VERGER_CO_RETURN_IF_ERROR(
        co_await rounds.each(stream, Revision(0), [&](const JournalEvent& event) {
          const auto data = json::parse(event.data, nullptr, false);
          if (event.type == SealedSnapshots::kSealed && data.is_object()) {
            auto& of_stream = kept[data.value("stream", std::string())];
            of_stream.push_back(event);
            if (of_stream.size() > SealedSnapshots::kSealsOfStream) {
              rounds.take(of_stream.front(), Keep::kNothing, done.seals);
              of_stream.pop_front();
            }
          }
          return true;
        }));
    for (const auto& [sealed, events] : kept) {
      VERGER_CO_TRY(const auto revision, parts.journal.revision(sealed));
      for (const auto& event : events) {
        if (revision == Revision(0) && event.revision < newest) {
          rounds.take(event, Keep::kNothing, done.seals);
        }
      }
    }
    co_return Result<void>{};
  }

  /// Records of removals whose ranges have grown together are joined, so that they do not grow
  /// without end themselves.
  net::awaitable<Result<void>> records() {
    const auto limit = ago(kRecordAge);
    std::vector<JournalEvent> old;
    VERGER_CO_RETURN_IF_ERROR(co_await rounds.each(
        std::string(kJournalStream), Revision(0), [&](const JournalEvent& event) {
          if (event.type == events::kEventsRemoved && event.at < limit) {
            old.push_back(event);
          }
          return true;
        }));
    if (old.size() <= kRecordsKept) {
      co_return Result<void>{};
    }
    std::vector<std::pair<Sequence, Sequence>> recorded;
    for (const auto& event : old) {
      const auto found = recorded_ranges(event.data);
      recorded.insert(recorded.end(), found.begin(), found.end());
    }
    recorded = joined(std::move(recorded));
    // What lies in one range by now is recorded as that one.
    VERGER_CO_TRY(const auto gone, parts.journal.removed());
    std::vector<std::pair<Sequence, Sequence>> ranges;
    for (const auto& each : recorded) {
      const auto found = std::ranges::lower_bound(gone, each.second, {}, &RemovedRange::last);
      if (found != gone.end() && found->first <= each.first) {
        ranges.emplace_back(found->first, found->last);
      } else {
        ranges.push_back(each);
      }
    }
    ranges = joined(std::move(ranges));
    for (std::size_t begin = 0; begin < ranges.size(); begin += kRangesInRecord) {
      const auto end = std::min(ranges.size(), begin + kRangesInRecord);
      VERGER_CO_RETURN_IF_ERROR(
          rounds.record({{"events", 0},
                         {"joined", old.size()},
                         {"ranges", detail::json_of({ranges.begin() + static_cast<long>(begin),
                                                     ranges.begin() + static_cast<long>(end)})}}));
    }
    for (const auto& event : old) {
      rounds.take(event, Keep::kArchive, done.records);
    }
    co_return Result<void>{};
  }

  net::awaitable<Result<void>> all() {
    // After each all that it took is gone: none is to take an event that another has taken.
    for (const auto part :
         {&Impl::answers, &Impl::progress, &Impl::runs, &Impl::run_details, &Impl::plans,
          &Impl::schedules, &Impl::audit, &Impl::notifications, &Impl::seals, &Impl::records}) {
      VERGER_CO_RETURN_IF_ERROR(co_await (this->*part)());
      VERGER_CO_RETURN_IF_ERROR(co_await rounds.remove());
    }
    co_return parts.journal.reclaim();
  }

  static net::awaitable<Result<Compacted>> compact(std::shared_ptr<Impl> self, std::string by,
                                                   std::string reason) {
    if (self->under_way) {
      co_return Error{Errc::kConflict, "a compaction of the journal is under way; ask again later"};
    }
    struct UnderWay {
      bool& flag;
      explicit UnderWay(bool& it) : flag(it) { flag = true; }
      ~UnderWay() { flag = false; }
    } const under_way(self->under_way);
    self->done = {};
    self->rounds.begin(std::move(by), std::move(reason));
    VERGER_CO_TRY(self->done.before, self->parts.journal.size());
    VERGER_CO_RETURN_IF_ERROR(co_await self->all());
    VERGER_CO_TRY(self->done.after, self->parts.journal.size());
    self->known_size = self->done.after;
    self->size_known_at = self->parts.clock.monotonic();
    self->done.archived = self->rounds.archived();
    self->last_end = self->parts.clock.now();
    co_return self->done;
  }
};

Retention::Retention(RetentionParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}
Retention::~Retention() = default;

net::awaitable<Result<Compacted>> Retention::compact(std::string by, std::string reason) {
  return Impl::compact(impl_, std::move(by), std::move(reason));
}

Retention::Status Retention::status() const {
  return {.removed = impl_->rounds.removed(), .ended = impl_->last_end};
}

Result<JournalSize> Retention::size() {
  const auto now = impl_->parts.clock.monotonic();
  if (!impl_->size_known_at || now - *impl_->size_known_at >= kSizeKnownFor) {
    VERGER_TRY(impl_->known_size, impl_->parts.journal.size());
    impl_->size_known_at = now;
  }
  return impl_->known_size;
}

}  // namespace verger::controller
