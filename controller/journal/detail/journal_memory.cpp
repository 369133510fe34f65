#include "controller/journal/detail/journal_memory.h"

#include <iterator>
#include <utility>

namespace verger::controller::detail {
namespace {

/// Of the newest events this many are kept in memory: waiting readers read them every second.
constexpr std::size_t kTailEvents = 2'000;
constexpr std::size_t kTailBytes = std::size_t{8} << 20U;
constexpr std::size_t kTipsKept = 100'000;

}  // namespace

void JournalMemory::forget() {
  tips_.clear();
  tail_.clear();
  tail_bytes_ = 0;
}

void JournalMemory::keep_tip(std::string_view stream, StreamTip tip) {
  if (tips_.size() >= kTipsKept) {
    tips_.clear();
  }
  tips_.insert_or_assign(std::string(stream), std::move(tip));
}

const StreamTip* JournalMemory::find_tip(std::string_view stream) const {
  const auto found = tips_.find(stream);
  return found == tips_.end() ? nullptr : &found->second;
}

void JournalMemory::keep_newest(const JournalEvent& event) {
  tail_bytes_ += event.data.size();
  tail_.push_back(event);
  while (tail_.size() > kTailEvents || (tail_bytes_ > kTailBytes && tail_.size() > 1)) {
    tail_bytes_ -= tail_.front().data.size();
    tail_.pop_front();
  }
}

std::optional<std::vector<JournalEvent>> JournalMemory::read(std::string_view stream,
                                                             Revision after,
                                                             std::size_t limit) const {
  const auto* tip = find_tip(stream);
  if (tip == nullptr) {
    return std::nullopt;
  }
  std::vector<JournalEvent> out;
  for (const auto& event : tail_) {
    if (event.stream == stream && event.revision > after && out.size() < limit) {
      out.push_back(event);
    }
  }
  const bool whole =
      out.empty() ? after >= tip->revision : out.front().revision.value() == after.value() + 1;
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<JournalEvent>> JournalMemory::read_all(Sequence after,
                                                                 std::size_t limit) const {
  if (tail_.empty() || after.value() + 1 < tail_.front().sequence.value()) {
    return std::nullopt;
  }
  std::vector<JournalEvent> out;
  for (auto i = after.value() + 1 - tail_.front().sequence.value();
       i < std::ssize(tail_) && out.size() < limit; ++i) {
    out.push_back(tail_[static_cast<std::size_t>(i)]);
  }
  return out;
}

}  // namespace verger::controller::detail
