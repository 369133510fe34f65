#include "tests/simulation/control/memory_operations.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/clock.h"

namespace verger::sim {
namespace {

using agent::OperationJournal;
using agent::OperationRecord;

bool has_ended(const OperationRecord& record) { return api::has_ended(record.status.state); }

class MemoryOperations final : public OperationJournal {
 public:
  MemoryOperations(std::shared_ptr<OperationStore> store, Clock& clock, WriteFates fates)
      : store_(std::move(store)), clock_(clock), fates_(std::move(fates)) {}

  Result<Accepted> accept(const api::OperationRequest& request) override {
    if (const auto* known = look_up(request.id)) {
      if (!agent::same_request(known->request, request)) {
        return Error{Errc::kConflict,
                     fmt::format("operation {} is known with another content", request.id)};
      }
      return Accepted{.record = *known, .is_new = false};
    }
    OperationRecord record;
    record.request = request;
    record.status.id = request.id;
    record.status.kind = request.kind;
    record.status.accepted_at = format_ticks(clock_.now());
    VERGER_RETURN_IF_ERROR(write([&] { store_->records.push_back(record); }));
    return Accepted{.record = std::move(record), .is_new = true};
  }

  Result<std::optional<OperationRecord>> find(const std::string& id) override {
    const auto* known = look_up(id);
    return known == nullptr ? std::nullopt : std::optional(*known);
  }

  Result<void> update(const OperationRecord& record) override {
    return write([&] {
      if (auto* known = look_up(record.request.id)) {
        known->status = record.status;
        known->memory_json = record.memory_json;
      }
    });
  }

  Result<std::vector<OperationRecord>> unfinished() override {
    std::vector<OperationRecord> out;
    std::ranges::copy_if(store_->records, std::back_inserter(out), std::not_fn(has_ended));
    return out;
  }

  Result<std::vector<OperationRecord>> newest_ended(int count) override {
    std::vector<OperationRecord> out;
    for (auto at = store_->records.rbegin(); at != store_->records.rend() && count > 0; ++at) {
      if (has_ended(*at)) {
        out.push_back(*at);
        --count;
      }
    }
    return out;
  }

  [[nodiscard]] std::int64_t highest_epoch() const override { return store_->highest_epoch; }

  Result<void> raise_epoch(std::int64_t epoch) override {
    VERGER_RETURN_IF_ERROR(agent::check_epoch(store_->highest_epoch, epoch));
    if (epoch == store_->highest_epoch) {
      return {};
    }
    return write([&] { store_->highest_epoch = epoch; });
  }

 private:
  OperationRecord* look_up(const std::string& id) {
    const auto found = std::ranges::find(store_->records, id, [](const OperationRecord& record) {
      return std::string_view(record.request.id);
    });
    return found == store_->records.end() ? nullptr : &*found;
  }

  template <class Change>
  Result<void> write(const Change& change) {
    switch (fates_(false)) {
      case WriteFate::kDone:
      case WriteFate::kUnknownWritten:
        change();
        break;
      case WriteFate::kNoSpace:
      case WriteFate::kUnknownLost:
        return Error{Errc::kNoSpace, "the agent's journal: no space left"};
      case WriteFate::kDead:
        return Error{Errc::kIo, "the process has ended"};
    }
    if (fates_(true) == WriteFate::kDead) {
      return Error{Errc::kIo, "the process has ended"};
    }
    return {};
  }

  std::shared_ptr<OperationStore> store_;
  Clock& clock_;
  WriteFates fates_;
};

class WatchedOperations final : public OperationJournal {
 public:
  WatchedOperations(std::unique_ptr<OperationJournal> journal,
                    std::function<void(const OperationRecord&)> on_update)
      : journal_(std::move(journal)), on_update_(std::move(on_update)) {}
  Result<Accepted> accept(const api::OperationRequest& request) override {
    return journal_->accept(request);
  }
  Result<std::optional<OperationRecord>> find(const std::string& id) override {
    return journal_->find(id);
  }
  Result<void> update(const OperationRecord& record) override {
    auto updated = journal_->update(record);
    if (updated) {
      on_update_(record);
    }
    return updated;
  }
  Result<std::vector<OperationRecord>> unfinished() override { return journal_->unfinished(); }
  Result<std::vector<OperationRecord>> newest_ended(int count) override {
    return journal_->newest_ended(count);
  }
  [[nodiscard]] std::int64_t highest_epoch() const override { return journal_->highest_epoch(); }
  Result<void> raise_epoch(std::int64_t epoch) override { return journal_->raise_epoch(epoch); }

 private:
  std::unique_ptr<OperationJournal> journal_;
  std::function<void(const OperationRecord&)> on_update_;
};

}  // namespace

std::unique_ptr<OperationJournal> open_memory_operations(std::shared_ptr<OperationStore> store,
                                                         Clock& clock, WriteFates fates) {
  return std::make_unique<MemoryOperations>(std::move(store), clock, std::move(fates));
}

std::unique_ptr<OperationJournal> watch_operations(
    std::unique_ptr<OperationJournal> journal,
    std::function<void(const OperationRecord&)> on_update) {
  return std::make_unique<WatchedOperations>(std::move(journal), std::move(on_update));
}

}  // namespace verger::sim
