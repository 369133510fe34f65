#include "engine/index/index.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "engine/index/detail/index_state.h"
#include "engine/index/rebuild_job.h"

namespace verger::index {
namespace {

constexpr auto kNoLimit = std::numeric_limits<std::size_t>::max();

/// Entries next to each other with one position are one entry that was indexed twice.
void collapse(std::vector<IndexEntry>& entries) {
  const auto repeated = std::ranges::unique(entries, {}, &IndexEntry::position);
  entries.erase(repeated.begin(), repeated.end());
}

/// Collects up to `limit` different entries of all tables. `collect(limit, out)` appends each
/// table's first `limit` entries in the order of `compare`, and says whether one of them may have
/// more.
template <class Compare, class Collect>
Result<std::vector<IndexEntry>> merged_range(std::size_t limit, const Compare& compare,
                                             const Collect& collect) {
  std::vector<IndexEntry> entries;
  for (auto asked = limit; limit > 0;) {
    entries.clear();
    VERGER_TRY(const bool more, collect(asked, entries));
    std::ranges::sort(entries, compare);
    if (more) {
      // Behind the first `asked` there may be gaps: entries that a table had to leave out.
      entries.resize(std::min(entries.size(), asked));
    }
    collapse(entries);
    if (!more || entries.size() >= limit) {
      entries.resize(std::min(entries.size(), limit));
      break;
    }
    asked = asked > kNoLimit / 2 ? kNoLimit : asked * 2;
  }
  return entries;
}

}  // namespace

Index::Index(std::unique_ptr<State> state) : state_(std::move(state)) {}
Index::~Index() = default;

const Path& Index::directory() const { return state_->directory; }
const IndexOptions& Index::options() const { return state_->options; }
StreamHash Index::hash(std::string_view stream) const { return state_->options.hash(stream); }

bool Index::may_exist(std::string_view stream) const {
  const auto wanted = hash(stream);
  const auto view = state_->view();
  return view->memory->may_contain(wanted) ||
         std::ranges::any_of(view->newest_first,
                             [&](const auto& table) { return table->may_contain(wanted); });
}

Result<std::vector<IndexEntry>> Index::range(StreamHash hash, EventNumber from, EventNumber to,
                                             std::size_t limit) const {
  const auto view = state_->view();
  auto found = merged_range(limit, std::greater{},
                            [&](std::size_t asked, std::vector<IndexEntry>& out) -> Result<bool> {
                              view->memory->range(hash, from, to, asked, out);
                              bool more = out.size() >= asked;
                              for (const auto& table : view->newest_first) {
                                const auto before = out.size();
                                VERGER_RETURN_IF_ERROR(table->range(hash, from, to, asked, out));
                                more = more || out.size() - before >= asked;
                              }
                              return more;
                            });
  return found ? std::move(found) : state_->noted(std::move(found).error());
}

Result<std::vector<IndexEntry>> Index::range_forward(StreamHash hash, EventNumber from,
                                                     EventNumber to, std::size_t limit) const {
  const auto view = state_->view();
  auto found = merged_range(
      limit, std::less{}, [&](std::size_t asked, std::vector<IndexEntry>& out) -> Result<bool> {
        view->memory->range_forward(hash, from, to, asked, out);
        bool more = out.size() >= asked;
        for (const auto& table : view->newest_first) {
          const auto before = out.size();
          VERGER_RETURN_IF_ERROR(table->range_forward(hash, from, to, asked, out));
          more = more || out.size() - before >= asked;
        }
        return more;
      });
  return found ? std::move(found) : state_->noted(std::move(found).error());
}

Result<std::optional<IndexEntry>> Index::latest(StreamHash hash) const {
  const auto view = state_->view();
  auto found = Result<std::optional<IndexEntry>>(view->memory->latest(hash));
  for (auto table = view->newest_first.begin();
       found && !*found && table != view->newest_first.end(); ++table) {
    found = (*table)->latest(hash);
  }
  return found ? std::move(found) : state_->noted(std::move(found).error());
}

Result<std::optional<IndexEntry>> Index::latest_before(StreamHash hash, LogPosition limit,
                                                       const EntryFilter& is_of_stream) const {
  const auto view = state_->view();
  auto found = view->memory->latest_before(hash, limit, is_of_stream);
  for (auto table = view->newest_first.begin();
       found && !*found && table != view->newest_first.end(); ++table) {
    found = (*table)->latest_before(hash, limit, is_of_stream);
  }
  return found ? std::move(found) : state_->noted(std::move(found).error());
}

Result<std::optional<IndexEntry>> Index::next(StreamHash hash, EventNumber number) const {
  const auto view = state_->view();
  auto found = Result<std::optional<IndexEntry>>(std::nullopt);
  for (auto table = view->newest_first.rbegin();
       found && !*found && table != view->newest_first.rend(); ++table) {
    found = (*table)->next(hash, number);
  }
  if (!found) {
    return state_->noted(std::move(found).error());
  }
  return *found ? std::move(found) : view->memory->next(hash, number);
}

Result<std::optional<IndexEntry>> Index::previous(StreamHash hash, EventNumber number) const {
  const auto view = state_->view();
  auto found = Result<std::optional<IndexEntry>>(view->memory->previous(hash, number));
  for (auto table = view->newest_first.begin();
       found && !*found && table != view->newest_first.end(); ++table) {
    found = (*table)->previous(hash, number);
  }
  return found ? std::move(found) : state_->noted(std::move(found).error());
}

LogPosition Index::prepare_checkpoint() const { return state_->view()->set->prepare_checkpoint; }
LogPosition Index::commit_checkpoint() const { return state_->view()->set->commit_checkpoint; }
std::uint64_t Index::memory_entry_count() const { return state_->view()->memory->count(); }
std::vector<TableSlot> Index::tables() const { return state_->view()->set->slots; }

Result<void> Index::add(const IndexedWrite& write) {
  if (state_->options.read_only) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: the index is open for reading only", directory().string())};
  }
  return state_->add(write.entries, write.prepare, write.commit);
}

Result<void> Index::maintain() {
  if (state_->options.read_only) {
    return {};
  }
  const std::lock_guard lock(state_->structure);
  if (state_->holds > 0) {
    return {};
  }
  if (memory_entry_count() >= state_->options.max_mem_table_size) {
    VERGER_RETURN_IF_ERROR(state_->flush());
  }
  while (true) {
    const auto level = state_->view()->set->level_to_merge();
    if (level < 0) {
      return {};
    }
    VERGER_RETURN_IF_ERROR(state_->merge_level(level));
  }
}

Result<void> Index::truncate(LogPosition position) {
  const std::lock_guard lock(state_->structure);
  return state_->truncate(position);
}

Result<void> Index::rebuild(const log::TransactionLog& log, LogPosition end) {
  constexpr int kThreads = 2;
  IndexRebuildJob job(*this, log, end, kThreads);
  while (true) {
    VERGER_TRY(const auto outcome, job.step(Budget{.units = 1U << 20U}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
  }
}

Index::TableHold::TableHold(Index& index) : index_(index) {
  const std::lock_guard lock(index_.state_->structure);
  ++index_.state_->holds;
}

Index::TableHold::~TableHold() {
  const std::lock_guard lock(index_.state_->structure);
  --index_.state_->holds;
}

Result<void> Index::replace_table(const std::shared_ptr<const PTable>& old,
                                  const Path& replacement) {
  const std::lock_guard lock(state_->structure);
  return state_->replace(old, replacement);
}

}  // namespace verger::index
