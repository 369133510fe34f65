#include "controller/journal/chain.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

/// Each text with its length in front, so that no two events give the same bytes.
void add_text(Bytes& out, std::string_view text) {
  append_le(out, static_cast<std::uint64_t>(text.size()));
  append_bytes(out, as_bytes(text));
}

}  // namespace

Bytes bytes_of_hex(std::string_view hex) {
  Bytes out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<Bytes::value_type>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return out;
}

Sha256Digest chain_hash(ByteView before, const JournalEvent& event) {
  Bytes bytes(before.begin(), before.end());
  append_le(bytes, event.sequence.value());
  add_text(bytes, event.stream);
  append_le(bytes, event.revision.value());
  add_text(bytes, event.type);
  add_text(bytes, event.data);
  append_le(bytes, event.at.value());
  append_le(bytes, event.epoch.value());
  return sha256(bytes);
}

JournalEvent chain_event(ChainHead& head, std::string_view stream, Revision revision,
                         NewEvent event, Ticks at, ControllerEpoch epoch) {
  JournalEvent out{Sequence(head.sequence.value() + 1),
                   std::string(stream),
                   revision,
                   std::move(event.type),
                   std::move(event.data),
                   at,
                   epoch,
                   ""};
  const auto hash = chain_hash(head.hash, out);
  out.hash = to_hex(hash);
  head.sequence = out.sequence;
  head.hash.assign(hash.begin(), hash.end());
  return out;
}

std::vector<std::pair<Sequence, Sequence>> joined(
    std::vector<std::pair<Sequence, Sequence>> ranges) {
  std::ranges::sort(ranges);
  std::vector<std::pair<Sequence, Sequence>> out;
  for (const auto& each : ranges) {
    if (!out.empty() && each.first.value() <= out.back().second.value() + 1) {
      out.back().second = std::max(out.back().second, each.second);
    } else {
      out.push_back(each);
    }
  }
  return out;
}

std::vector<std::pair<Sequence, Sequence>> recorded_ranges(std::string_view data) {
  std::vector<std::pair<Sequence, Sequence>> out;
  const auto document = nlohmann::json::parse(data, nullptr, false);
  const auto ranges = document.is_object() ? document.value("ranges", nlohmann::json::array())
                                           : nlohmann::json::array();
  for (const auto& range : ranges) {
    if (range.is_array() && range.size() == 2 && range[0].is_number_integer() &&
        range[1].is_number_integer()) {
      out.emplace_back(Sequence(range[0].get<std::int64_t>()),
                       Sequence(range[1].get<std::int64_t>()));
    }
  }
  return out;
}

void ChainCheck::know(std::vector<RemovedRange> removed) {
  removed_ = std::move(removed);
  std::ranges::sort(removed_, {}, &RemovedRange::last);
}

Result<void> ChainCheck::next(const JournalEvent& event) {
  auto at = at_;
  auto before = before_;
  if (event.sequence.value() > at.value() + 1) {
    const Sequence last(event.sequence.value() - 1);
    const auto gap = std::ranges::lower_bound(removed_, last, {}, &RemovedRange::last);
    if (gap != removed_.end() && gap->last == last && gap->first.value() <= at.value() + 1) {
      at = last;
      before = bytes_of_hex(gap->hash);
    }
  }
  const auto hash = chain_hash(before, event);
  if (event.sequence.value() != at.value() + 1 || to_hex(hash) != event.hash) {
    return Error{Errc::kCorruption,
                 fmt::format("event {} ({} in {}) is not what was written, or one before it is "
                             "missing",
                             event.sequence.value(), event.type, event.stream)};
  }
  if (at != at_) {
    gaps_.emplace_back(Sequence(at_.value() + 1), at);
    missing_ += at.value() - at_.value();
  }
  if (event.stream == kJournalStream && event.type == events::kEventsRemoved) {
    const auto ranges = recorded_ranges(event.data);
    recorded_.insert(recorded_.end(), ranges.begin(), ranges.end());
  }
  before_.assign(hash.begin(), hash.end());
  at_ = event.sequence;
  return {};
}

Result<void> ChainCheck::end() const {
  const auto recorded = joined(recorded_);
  for (const auto& [first, last] : joined(gaps_)) {
    const auto found = std::ranges::upper_bound(recorded, first, {},
                                                [](const auto& range) { return range.first; });
    if (found == recorded.begin() || std::prev(found)->second < last) {
      return Error{Errc::kCorruption,
                   fmt::format("the events {} to {} are missing, and no event of the journal says "
                               "of their removal",
                               first.value(), last.value())};
    }
  }
  return {};
}

Result<ChainCheck> check_chain(Journal& journal) {
  constexpr std::size_t kEventsOfOneRead = 1'000;
  VERGER_TRY(auto removed, journal.removed());
  ChainCheck check(std::move(removed));
  for (;;) {
    VERGER_TRY(const auto events, journal.read_all(check.at(), kEventsOfOneRead));
    if (events.empty()) {
      break;
    }
    for (const auto& event : events) {
      VERGER_RETURN_IF_ERROR(check.next(event));
    }
  }
  VERGER_RETURN_IF_ERROR(check.end());
  return check;
}

}  // namespace verger::controller
