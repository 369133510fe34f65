#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/journal/detail/etcd_values.h"
#include "controller/journal/journal.h"

namespace verger::controller::detail {

/// What a process knows of a journal that only it writes to: where streams end, and the newest
/// events. The caller decides when that may be trusted.
class JournalMemory {
 public:
  void forget();
  void keep_tip(std::string_view stream, StreamTip tip);
  /// nullptr: not known.
  [[nodiscard]] const StreamTip* find_tip(std::string_view stream) const;
  /// The events have no gap: each is the one after that before.
  void keep_newest(const JournalEvent& event);

  /// A stream's events behind `after`; nullopt: read the store.
  [[nodiscard]] std::optional<std::vector<JournalEvent>> read(std::string_view stream,
                                                              Revision after,
                                                              std::size_t limit) const;
  /// Those of all streams; nullopt: read the store.
  [[nodiscard]] std::optional<std::vector<JournalEvent>> read_all(Sequence after,
                                                                  std::size_t limit) const;

 private:
  std::map<std::string, StreamTip, std::less<>> tips_;
  std::deque<JournalEvent> tail_;  ///< the newest events, without a gap
  std::size_t tail_bytes_ = 0;
};

}  // namespace verger::controller::detail
