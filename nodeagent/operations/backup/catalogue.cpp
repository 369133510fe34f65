#include "nodeagent/operations/backup/catalogue.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstLookPause{1};
constexpr milliseconds kLongestLookPause{50};

Error not_answering(const std::string& name) {
  return {
      Errc::kUnavailable,
      fmt::format(
          "repository \"{}\" has not answered within {} s: see whether its file system "
          "or its server does",
          name,
          std::chrono::duration_cast<std::chrono::seconds>(BackupCatalogue::kPatience).count())};
}

Error agent_gone() { return {Errc::kUnavailable, "the agent has stopped"}; }

}  // namespace

BackupCatalogue::BackupCatalogue(std::shared_ptr<const BackupAccess> access,
                                 net::any_io_executor executor, http::Timers& timers)
    : repositories_(std::make_shared<Repositories>(std::move(access))),
      timers_(timers),
      tasks_(std::move(executor), repositories_->access().log, "backup catalogue") {}

void BackupCatalogue::abandon() {
  gone_ = true;
  tasks_.cancel();
}

net::awaitable<void> BackupCatalogue::run(Self self, std::string name, std::shared_ptr<Look> look) {
  look->outcome = co_await self->repositories_->access().jobs.run(
      look->job, std::make_shared<node::StopFlag>());
  look->ended = true;
  self->looks_.erase(name);
  if (look->outcome) {
    self->keep(name, *look->job);
  }
}

void BackupCatalogue::keep(const std::string& name, const CatalogueJob& job) {
  auto& kept = kept_[name];
  kept.id = job.repository().id;
  kept.generations.clear();
  std::size_t others = 0;
  for (const auto& [other, entry] : kept_) {
    others += entry.generations.size();
  }
  // The newest first; a damaged one may be repaired.
  for (auto each = job.generations().rbegin(); each != job.generations().rend() && others < kKept;
       ++each) {
    if (each->second.damage.empty()) {
      kept.generations.insert(*each);
      ++others;
    }
  }
}

net::awaitable<Result<std::shared_ptr<BackupCatalogue::Look>>> BackupCatalogue::look_at(
    Self self, std::string name) {
  std::shared_ptr<Look> look;
  if (const auto running = self->looks_.find(name); running != self->looks_.end()) {
    look = running->second;
  } else {
    const auto found = self->kept_.find(name);
    const auto kept = found == self->kept_.end() ? Kept{} : found->second;
    look = std::make_shared<Look>();
    look->job =
        std::make_shared<CatalogueJob>(self->repositories_, name, kept.id, kept.generations);
    self->looks_[name] = look;
    self->tasks_.spawn(run(self, name, look));
  }
  auto pause = kFirstLookPause;
  for (milliseconds waited{0}; !look->ended && waited < kPatience; waited += pause) {
    pause = std::min(2 * pause, kLongestLookPause);
    co_await self->timers_.sleep_for(pause);
    if (self->gone_) {
      co_return agent_gone();
    }
  }
  if (!look->ended) {
    co_return not_answering(name);
  }
  co_return look;
}

net::awaitable<Result<std::vector<api::BackupRepository>>> BackupCatalogue::repositories(
    Self self) {
  const auto names = std::make_shared<NamesJob>(self->repositories_);
  VERGER_CO_RETURN_IF_ERROR(
      co_await self->repositories_->access().jobs.run(names, std::make_shared<node::StopFlag>()));
  // All of them at once: each is waited for as long as the slowest.
  struct Pending {
    api::BackupRepository entry;
    bool ended = false;
  };
  auto pending = std::make_shared<std::vector<Pending>>(names->names().size());
  const auto fill = [](Self catalogue, std::shared_ptr<std::vector<Pending>> into,
                       std::size_t index, std::string name) -> net::awaitable<void> {
    const auto look = co_await look_at(std::move(catalogue), name);
    auto& one = into->at(index);
    if (look) {
      one.entry = (*look)->job->repository();
    } else {
      one.entry.name = std::move(name);
      one.entry.error = look.error().message;
    }
    one.ended = true;
  };
  for (std::size_t i = 0; i < names->names().size(); ++i) {
    self->tasks_.spawn(fill(self, pending, i, names->names()[i]));
  }
  while (!std::ranges::all_of(*pending, &Pending::ended)) {
    co_await self->timers_.sleep_for(kFirstLookPause);
    if (self->gone_) {
      co_return agent_gone();
    }
  }
  std::vector<api::BackupRepository> out;
  for (auto& one : *pending) {
    out.push_back(std::move(one.entry));
  }
  co_return out;
}

net::awaitable<Result<std::vector<api::BackupGeneration>>> BackupCatalogue::generations(
    Self self, std::string name, std::string node) {
  VERGER_CO_TRY(const auto look, co_await look_at(std::move(self), std::move(name)));
  VERGER_CO_RETURN_IF_ERROR(look->outcome);
  std::vector<api::BackupGeneration> out;
  for (const auto& [id, generation] : look->job->generations()) {
    if (node.empty() || generation.node == node || !generation.damage.empty()) {
      out.push_back(generation);
    }
  }
  co_return out;
}

}  // namespace verger::agent
