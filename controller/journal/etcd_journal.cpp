#include "controller/journal/etcd_journal.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/journal/chain.h"
#include "controller/journal/detail/etcd_removal.h"
#include "controller/journal/detail/etcd_snapshots.h"
#include "controller/journal/detail/etcd_store.h"
#include "controller/journal/detail/etcd_values.h"
#include "controller/journal/detail/journal_memory.h"
#include "controller/journal/detail/listeners.h"
#include "controller/journal/detail/removal.h"

// Keys and values: controller/journal/README.md. What makes an append safe: every one writes the
// key "head" and demands that none has since this process read or wrote it last. So of two
// writers that saw the same journal one fails; and after a lost reply, writing "head" anew shuts
// out a request that may still be under way, before this process looks whether it arrived.
namespace verger::controller {

using nlohmann::json;

namespace {

using detail::EtcdHead;
using detail::EtcdKeys;
using detail::event_text;
using detail::head_text;
using detail::parse_head;
using detail::parse_tip;
using detail::place_text;
using detail::StreamTip;
using detail::tip_text;

constexpr int kRounds = 8;

class EtcdJournal final : public Journal {
 public:
  EtcdJournal(const EtcdOptions& options, Clock& clock, std::optional<EtcdTerm> term)
      : clock_(clock), term_(std::move(term)), store_(options, term_ ? term_->lease : nullptr) {}

  Result<void> open() {
    VERGER_RETURN_IF_ERROR(store_.open());
    VERGER_TRY(head_, store_.load_head());
    return {};
  }

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_RETURN_IF_ERROR(check_epoch(stream, epoch));
    VERGER_TRY(const auto tip, tip_of(stream));
    if (expected != kAnyRevision && expected != tip.revision) {
      return Error{Errc::kConflict, fmt::format("{}: expected revision {}, it is at {}", stream,
                                                expected.value(), tip.revision.value())};
    }
    if (events.empty()) {
      return std::vector<JournalEvent>();
    }
    VERGER_RETURN_IF_ERROR(detail::check_append(stream, events));
    auto next = head_;
    auto written = chained(stream, tip.revision, std::move(events), next);
    const StreamTip new_tip{written.back().revision, written.back().hash};
    auto puts = json::array();
    for (const auto& event : written) {
      puts.push_back(etcd::put(keys().event(stream, event.revision.value()), event_text(event)));
      puts.push_back(
          etcd::put(keys().sequence(event.sequence.value()), place_text(stream, event.revision)));
    }
    puts.push_back(etcd::put(keys().stream(stream), tip_text(new_tip)));
    puts.push_back(etcd::put(keys().at("head"), head_text(next)));
    const auto answer = store_.transact(
        json::array({etcd::was_written_at(keys().at("epoch"), head_.epoch_written),
                     etcd::was_written_at(keys().at("head"), head_.written), is_at(stream, tip)}),
        std::move(puts), store_.head_gets());
    if (!answer) {
      return failed(answer.error(), stream);
    }
    if (!answer->succeeded) {
      return overtaken(stream, *answer);
    }
    next.written = answer->revision;
    head_ = std::move(next);
    memory_.keep_tip(stream, new_tip);
    for (const auto& event : written) {
      memory_.keep_newest(event);
    }
    listeners_.tell(head_.sequence);
    return written;
  }

  Result<std::vector<JournalEvent>> read(std::string_view stream, Revision after,
                                         std::size_t limit) override {
    VERGER_RETURN_IF_ERROR(certain());
    if (may_remember()) {
      if (auto kept = memory_.read(stream, after, limit)) {
        return *std::move(kept);
      }
    }
    VERGER_TRY(auto page, store_.read_stream(stream, after, limit));
    if (page.to_its_end && may_remember() && (!page.events.empty() || after == Revision(0))) {
      memory_.keep_tip(stream, page.events.empty() ? StreamTip{}
                                                   : StreamTip{page.events.back().revision,
                                                               page.events.back().hash});
    }
    return std::move(page.events);
  }

  Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit) override {
    VERGER_RETURN_IF_ERROR(certain());
    if (may_remember() && after >= head_.sequence) {
      return std::vector<JournalEvent>();
    }
    if (may_remember()) {
      if (auto kept = memory_.read_all(after, limit)) {
        return *std::move(kept);
      }
    }
    return store_.read_all(after, limit);
  }

  Result<Revision> revision(std::string_view stream) override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_TRY(const auto tip, tip_of(stream));
    return tip.revision;
  }

  Result<Sequence> last_sequence() override {
    VERGER_RETURN_IF_ERROR(certain());
    if (!may_remember()) {
      VERGER_TRY(const auto head, store_.load_head());
      return head.sequence;
    }
    return head_.sequence;
  }

  Result<std::vector<std::string>> streams(std::string_view prefix) override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_TRY(const auto found, store_.all_below("streams/", prefix));
    std::vector<std::string> out;
    for (const auto& [name, kv] : found) {
      VERGER_TRY(auto tip, parse_tip(kv));
      if (may_remember()) {
        memory_.keep_tip(name, std::move(tip));
      }
      out.push_back(name);
    }
    return out;
  }

  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_RETURN_IF_ERROR(check_epoch(snapshot.stream, epoch));
    VERGER_TRY(const auto tip, tip_of(snapshot.stream));
    const auto conflict = [&] {
      return Error{Errc::kConflict, fmt::format("{}: a snapshot of revision {}, which is not its "
                                                "last",
                                                snapshot.stream, snapshot.revision.value())};
    };
    if (tip.revision != snapshot.revision || tip.revision == Revision(0)) {
      return conflict();
    }
    const auto answer =
        store_.transact(json::array({etcd::was_written_at(keys().at("epoch"), head_.epoch_written),
                                     is_at(snapshot.stream, tip)}),
                        detail::writing(keys(), tip, snapshot), store_.head_gets());
    if (!answer) {
      // Arriving late it does no harm: it counts only with the event that it was made with.
      const bool unknown = answer.error().code == Errc::kUnknownOutcome;
      return Error{unknown ? Errc::kIo : answer.error().code, answer.error().message}.within(
          snapshot.stream);
    }
    if (!answer->succeeded) {
      const auto refused = overtaken(snapshot.stream, *answer);
      return refused.code == Errc::kRefused ? refused : conflict();
    }
    return {};
  }

  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override {
    VERGER_RETURN_IF_ERROR(certain());
    return detail::read_snapshot(store_, stream);
  }

  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override {
    VERGER_RETURN_IF_ERROR(certain());
    return detail::read_current_snapshots(store_, prefix);
  }

  Result<void> remove(const Removal& removal, ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_RETURN_IF_ERROR(check_epoch(kJournalStream, epoch));
    VERGER_RETURN_IF_ERROR(detail::check_removal(removal, head_.sequence));
    for (const auto& event : removal.events) {
      VERGER_TRY(const auto tip, tip_of(event.stream));
      if (tip.revision == event.revision &&
          std::ranges::find(removal.streams, event.stream) == removal.streams.end()) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("the newest event of {} must not be removed alone", event.stream)};
      }
    }
    VERGER_TRY(auto known, removed());
    memory_.forget();
    for (auto& operations : detail::removing(keys(), removal, std::move(known))) {
      const auto answer = store_.transact(
          json::array({etcd::was_written_at(keys().at("epoch"), head_.epoch_written)}),
          std::move(operations), store_.head_gets());
      if (!answer) {
        // Arriving late it does no harm: it removes what is to go anyway.
        return answer.error().within("removal");
      }
      if (!answer->succeeded) {
        return overtaken(kJournalStream, *answer);
      }
    }
    return {};
  }

  Result<std::vector<RemovedRange>> removed() override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_TRY(const auto found, store_.all_below("removed/", ""));
    std::vector<RemovedRange> out;
    for (const auto& [name, kv] : found) {
      VERGER_TRY(auto range, detail::parse_removed(kv));
      out.push_back(std::move(range));
    }
    return out;
  }

  Result<void> reclaim() override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_TRY(const auto head, store_.load_head());
    const auto compacted = store_.compact(head.written);
    return compacted || compacted.error().code == Errc::kNotFound ? Result<void>{} : compacted;
  }

  Result<JournalSize> size() override {
    VERGER_RETURN_IF_ERROR(certain());
    VERGER_TRY(const auto ranges, removed());
    VERGER_TRY(const auto bytes, store_.size());
    VERGER_TRY(const auto last, last_sequence());
    JournalSize out{
        .events = last.value(), .bytes = bytes.bytes, .bytes_in_use = bytes.bytes_in_use};
    for (const auto& range : ranges) {
      out.events -= range.last.value() - range.first.value() + 1;
    }
    return out;
  }

  Result<ControllerEpoch> begin_epoch(std::string_view owner) override {
    for (int round = 0; round < kRounds; ++round) {
      VERGER_TRY(auto next, store_.load_head());
      const auto before = next;
      next.epoch = ControllerEpoch(before.epoch.value() + 1);
      const json record{
          {"epoch", next.epoch.value()}, {"owner", owner}, {"at", clock_.now().value()}};
      auto compare = json::array(
          {is_written_at("epoch", before.epoch_written), is_written_at("head", before.written)});
      auto puts = json::array({etcd::put(keys().at("epoch"), record.dump()),
                               etcd::put(keys().epoch(next.epoch), record.dump()),
                               etcd::put(keys().at("head"), head_text(next))});
      auto otherwise = json::array({etcd::get(keys().at("acting"))});
      if (term_) {
        if (!term_->lease->held()) {
          return Error{Errc::kRefused, "the lease ran out before the epoch began"};
        }
        compare.push_back(etcd::is_absent(keys().at("acting")));
        puts.push_back(etcd::put(keys().at("acting"), term_->acting, term_->lease->id()));
      }
      const auto answer =
          store_.transact(std::move(compare), std::move(puts), std::move(otherwise));
      if (!answer) {
        return answer.error().within("begin of an epoch");
      }
      if (answer->succeeded) {
        next.written = answer->revision;
        next.epoch_written = answer->revision;
        head_ = std::move(next);
        own_epoch_ = head_.epoch;
        over_ = false;
        doubt_ = Doubt::kNone;
        memory_.forget();
        return *own_epoch_;
      }
      if (term_ && !answer->read.empty() && !answer->read[0].empty()) {
        return Error{Errc::kRefused, fmt::format("another controller is active: {}",
                                                 answer->read[0].front().value)};
      }
    }
    return Error{Errc::kUnavailable, "etcd: others write to the journal's head all the time"};
  }

  Result<ControllerEpoch> epoch() override {
    VERGER_TRY(const auto head, store_.load_head());
    if (own_epoch_ && head.epoch != *own_epoch_) {
      end_term();
    }
    return head.epoch;
  }

  Result<Sequence> verify() override {
    VERGER_TRY(const auto head, store_.load_head());
    VERGER_TRY(const auto check, check_chain(*this));
    VERGER_TRY(const auto last, read_all(Sequence(check.at().value() - 1), 1));
    if (check.at() < head.sequence ||
        (check.at() == head.sequence && !last.empty() && last.front().hash != to_hex(head.hash))) {
      return Error{Errc::kCorruption,
                   fmt::format("the journal ends with event {}, its head says {}",
                               check.at().value(), head.sequence.value())};
    }
    return check.at();
  }

  Subscription subscribe(Listener listener) override { return listeners_.add(std::move(listener)); }

 private:
  enum class Doubt : std::uint8_t {
    kNone,
    kAnswered,  ///< a request was answered, but not in a way that says what became of it
    kLost,      ///< a request may still be under way
  };

  [[nodiscard]] const EtcdKeys& keys() const { return store_.keys(); }

  [[nodiscard]] json is_written_at(std::string_view key, std::int64_t revision) const {
    return revision == 0 ? etcd::is_absent(keys().at(key))
                         : etcd::was_written_at(keys().at(key), revision);
  }

  [[nodiscard]] json is_at(std::string_view stream, const StreamTip& tip) const {
    return tip.revision == Revision(0) ? etcd::is_absent(keys().stream(stream))
                                       : etcd::has_value(keys().stream(stream), tip_text(tip));
  }

  /// Ends a doubt about an earlier append: from here on either it is there, or it never will be.
  Result<void> certain() {
    for (int round = 0; doubt_ != Doubt::kNone && round < kRounds; ++round) {
      memory_.forget();
      VERGER_TRY(auto head, store_.load_head());
      if (!own_epoch_ || over_ || head.epoch != *own_epoch_) {
        // A newer epoch shuts the request out as well.
        if (own_epoch_) {
          end_term();
        }
        head_ = std::move(head);
        doubt_ = Doubt::kNone;
        break;
      }
      if (doubt_ == Doubt::kAnswered) {
        head_ = std::move(head);
        doubt_ = Doubt::kNone;
        break;
      }
      const auto answer = store_.transact(
          json::array(
              {is_written_at("epoch", head.epoch_written), is_written_at("head", head.written)}),
          json::array({etcd::put(keys().at("head"), head_text(head))}), store_.head_gets());
      if (!answer) {
        return Error{Errc::kUnavailable, answer.error().message};
      }
      if (answer->succeeded) {
        head.written = answer->revision;
        head_ = std::move(head);
        doubt_ = Doubt::kNone;
      }
    }
    if (doubt_ != Doubt::kNone) {
      return Error{Errc::kUnavailable, "etcd: others write to the journal's head all the time"};
    }
    return {};
  }

  Result<void> check_epoch(std::string_view stream, ControllerEpoch epoch) {
    if (term_ && !term_->lease->held()) {
      end_term();
      return Error{Errc::kRefused, fmt::format("{}: the lease of this controller is over; another "
                                               "one may have taken over",
                                               stream)};
    }
    if (own_epoch_ && !over_ && epoch == *own_epoch_) {
      return {};
    }
    return Error{Errc::kRefused,
                 fmt::format("{}: epoch {} is over, the journal is at {}: another controller has "
                             "taken over",
                             stream, epoch.value(), head_.epoch.value())};
  }

  std::vector<JournalEvent> chained(std::string_view stream, Revision revision,
                                    std::vector<NewEvent> events, EtcdHead& head) {
    std::vector<JournalEvent> out;
    for (auto& event : events) {
      revision = Revision(revision.value() + 1);
      out.push_back(
          chain_event(head, stream, revision, std::move(event), clock_.now(), head.epoch));
    }
    return out;
  }

  Error failed(const Error& error, std::string_view stream) {
    if (error.code == Errc::kUnknownOutcome) {
      doubt_ = Doubt::kLost;
      return {Errc::kUnknownOutcome,
              fmt::format("{}: {}; it may be written or not", stream, error.message)};
    }
    if (error.code == Errc::kNoSpace) {
      // etcd says so of the request that filled it, too, and that one is written.
      doubt_ = Doubt::kAnswered;
      const auto before = head_.written;
      const bool clear = certain().has_value() && head_.written == before;
      return {clear ? Errc::kNoSpace : Errc::kUnknownOutcome,
              fmt::format("{}: {}", stream, error.message)};
    }
    return error.within(stream);
  }

  /// A transaction whose demands did not hold: what it then read says why.
  Error overtaken(std::string_view stream, const EtcdAnswer& answer) {
    auto found = answer.read;
    found.resize(2);
    const auto head = parse_head(found);
    doubt_ = Doubt::kAnswered;
    memory_.forget();
    if (head && own_epoch_ && head->epoch != *own_epoch_) {
      end_term();
      head_ = *head;
      doubt_ = Doubt::kNone;
      return {Errc::kRefused,
              fmt::format("{}: epoch {} is over, the journal is at {}: another controller has "
                          "taken over",
                          stream, own_epoch_->value(), head->epoch.value())};
    }
    return {Errc::kConflict, fmt::format("{}: another writer wrote to the journal", stream)};
  }

  /// Nothing more is appended, and every reader of the lease knows.
  void end_term() {
    over_ = true;
    memory_.forget();
    if (term_) {
      term_->lease->end();
    }
  }

  /// Under its own epoch only this process writes: what it has read or written stays so.
  [[nodiscard]] bool may_remember() const {
    return own_epoch_ && !over_ && doubt_ == Doubt::kNone && (!term_ || term_->lease->held());
  }

  Result<StreamTip> tip_of(std::string_view stream) {
    if (may_remember()) {
      if (const auto* known = memory_.find_tip(stream)) {
        return *known;
      }
    }
    VERGER_TRY(const auto found, store_.get(json::array({etcd::get(keys().stream(stream))})));
    StreamTip tip;
    if (!found[0].empty()) {
      VERGER_TRY(tip, parse_tip(found[0].front()));
    }
    if (may_remember()) {
      memory_.keep_tip(stream, tip);
    }
    return tip;
  }

  Clock& clock_;
  std::optional<EtcdTerm> term_;
  detail::EtcdStore store_;
  EtcdHead head_;
  std::optional<ControllerEpoch> own_epoch_;
  bool over_ = false;  ///< the own epoch or lease
  Doubt doubt_ = Doubt::kNone;
  detail::JournalMemory memory_;
  detail::Listeners listeners_;
};

}  // namespace

std::string etcd_acting_key(const EtcdOptions& options) {
  return EtcdKeys(options.prefix).at("acting");
}

Result<std::unique_ptr<Journal>> open_etcd_journal(const EtcdOptions& options, Clock& clock,
                                                   std::optional<EtcdTerm> term) {
  auto journal = std::make_unique<EtcdJournal>(options, clock, std::move(term));
  if (auto opened = journal->open(); !opened) {
    return opened.error().within("journal");
  }
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace verger::controller
