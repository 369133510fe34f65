#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/journal/journal.h"
#include "engine/base/file_system.h"
#include "nodeagent/http/message.h"

namespace verger::controller::detail {

/// Leaves the thread to others for a moment.
net::awaitable<void> let_others_in();

/// Removes events from the journal, some thousand at once: what is taken is archived as far as that
/// is wanted, then the removal is recorded, then it is done. One thread.
class RemovalRounds {
 public:
  enum class Keep : std::uint8_t { kNothing, kArchive };

  RemovalRounds(Journal& journal, ControllerEpoch epoch, FileSystem& files, Path archive)
      : journal_(journal), epoch_(epoch), files_(files), archive_(std::move(archive)) {}

  /// Begins anew, for a compaction that `by` asked for.
  void begin(std::string by, std::string reason);

  /// Adds the event to the round, and one to `count`.
  void take(const JournalEvent& event, Keep keep, std::int64_t& count);
  /// The stream as a whole, all that it has when this is called; a step's progress is not archived.
  net::awaitable<Result<void>> take_stream(std::string stream, Keep keep, std::int64_t* count);
  net::awaitable<Result<void>> remove_if_full();
  /// What has been taken. The archive, then the record, then the removal: a crash in between leaves
  /// what is to go.
  net::awaitable<Result<void>> remove();
  /// An event about removals, with who asked for them and why.
  Result<void> record(nlohmann::json data);

  /// All events of `stream` behind `after` that there are, page by page, to `visit`:
  /// bool(const JournalEvent&), which says whether to continue. Between two pages a full round is
  /// removed, and others get the thread.
  template <class Visit>
  net::awaitable<Result<void>> each(std::string stream, Revision after, Visit visit) {
    for (Revision at = after;;) {
      VERGER_CO_TRY(const auto page, page_of(stream, at));
      if (page.empty()) {
        co_return Result<void>{};
      }
      for (const auto& event : page) {
        if (!visit(event)) {
          co_return co_await remove_if_full();
        }
      }
      at = page.back().revision;
      VERGER_CO_RETURN_IF_ERROR(co_await remove_if_full());
      co_await let_others_in();
    }
  }

  [[nodiscard]] const std::vector<std::string>& archived() const { return archived_; }
  /// Events, since this was made.
  [[nodiscard]] std::int64_t removed() const { return removed_; }

 private:
  /// What is removed at once.
  struct Round {
    Removal removal;
    std::map<Sequence, JournalEvent> archive;
    std::size_t archive_bytes = 0;
  };

  Result<std::vector<JournalEvent>> page_of(const std::string& stream, Revision after);
  /// A line for each event, with what its hash is made of.
  Result<std::string> archive_text(const Round& work);

  Journal& journal_;
  ControllerEpoch epoch_;
  FileSystem& files_;
  Path archive_;  ///< directory
  std::string by_;
  std::string reason_;
  Round round_;
  std::vector<std::string> archived_;  ///< names of files
  std::int64_t removed_ = 0;
};

/// [[first, last], ...]
nlohmann::json json_of(const std::vector<std::pair<Sequence, Sequence>>& ranges);

}  // namespace verger::controller::detail
