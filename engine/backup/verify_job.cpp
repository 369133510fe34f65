#include "engine/backup/verify_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "engine/backup/detail/file_copy.h"

namespace verger::backup {
namespace {

/// One content that is read.
struct Reading {
  const BackedUpFile* file = nullptr;
  std::unique_ptr<BlobReader> content;
  std::uint64_t at = 0;
  Sha256 hash;
  Bytes buffer;
  std::optional<std::string> damage;
  std::optional<Error> problem;  ///< the store's
  bool done = false;

  void step(std::uint64_t most) {
    std::uint64_t read = 0;
    while (at < file->size && (read == 0 || read < most)) {
      buffer.resize(std::min(detail::kBlockSize, file->size - at));
      if (const auto got = content->read_exact(at, buffer); !got) {
        if (is_store_away(got.error().code)) {
          problem = got.error();
          return;
        }
        damage = "its content cannot be read: " + got.error().message;
        done = true;
        return;
      }
      hash.update(buffer);
      at += buffer.size();
      read += buffer.size();
    }
    if (at == file->size) {
      if (hash.finish() != file->sha256) {
        damage = fmt::format("its content ({}) does not have this SHA-256", to_hex(file->sha256));
      }
      done = true;
    }
  }
};

}  // namespace

struct VerifyBytesJob::State {
  State(BlobStore& store_in, const Manifest& manifest_in, std::size_t lanes_in,
        scavenge::ParallelRunner& runner_in)
      : store(store_in),
        manifest(manifest_in),
        lanes(std::max<std::size_t>(lanes_in, 1)),
        runner(runner_in) {
    // Files with the same content are one.
    std::map<Sha256Digest, const BackedUpFile*> by_content;
    for (const auto& file : manifest.files) {
      by_content.try_emplace(file.sha256, &file);
    }
    for (const auto& file : manifest.files) {
      if (by_content.at(file.sha256) == &file) {
        waiting.push_back(&file);
        total += file.size;
      }
    }
    std::ranges::reverse(waiting);
  }

  BlobStore& store;
  const Manifest& manifest;
  std::size_t lanes;
  scavenge::ParallelRunner& runner;
  std::vector<const BackedUpFile*> waiting;  ///< the next one last
  std::vector<Reading> running;
  std::vector<BackupDamage> damage;
  std::uint64_t done = 0;
  std::uint64_t total = 0;

  Result<void> fill() {
    while (running.size() < lanes && !waiting.empty()) {
      const auto* const file = waiting.back();
      waiting.pop_back();
      auto content = store.open_blob(file->sha256);
      if (!content && content.error().code == Errc::kCorruption) {
        found(*file, "its content cannot be read: " + content.error().message);
        continue;
      }
      if (!content && content.error().code != Errc::kNotFound) {
        return content.error();
      }
      if (!content) {
        found(*file, fmt::format("its content ({}) is missing", to_hex(file->sha256)));
        continue;
      }
      if ((*content)->size() != file->size) {
        found(*file, fmt::format("its content ({}) has {} bytes instead of {}",
                                 to_hex(file->sha256), (*content)->size(), file->size));
        continue;
      }
      auto& reading = running.emplace_back();
      reading.file = file;
      reading.content = *std::move(content);
    }
    return {};
  }

  void found(const BackedUpFile& file, std::string text) {
    done += file.size;
    damage.push_back({file.path, std::move(text)});
  }
};

VerifyBytesJob::VerifyBytesJob(BlobStore& store, const Manifest& manifest, std::size_t lanes,
                               scavenge::ParallelRunner& runner)
    : state_(std::make_unique<State>(store, manifest, lanes, runner)) {}
VerifyBytesJob::~VerifyBytesJob() = default;

Result<StepOutcome> VerifyBytesJob::step(Budget budget) {
  auto& state = *state_;
  const auto most = std::max<std::uint64_t>(budget.units, 1) * detail::kBytesPerUnit;
  VERGER_RETURN_IF_ERROR(state.fill());
  std::vector<std::function<void()>> pieces;
  for (auto& reading : state.running) {
    pieces.emplace_back([&reading, most] { reading.step(most); });
    state.done -= reading.at;
  }
  state.runner.run(pieces);
  for (auto& reading : state.running) {
    if (reading.problem) {
      return *reading.problem;
    }
    state.done += reading.done ? reading.file->size : reading.at;
    if (reading.damage) {
      state.damage.push_back({reading.file->path, *std::move(reading.damage)});
    }
  }
  std::erase_if(state.running, [](const Reading& reading) { return reading.done; });
  const bool all = state.running.empty() && state.waiting.empty();
  return StepOutcome{all ? StepOutcome::Kind::kDone : StepOutcome::Kind::kMore};
}

std::uint64_t VerifyBytesJob::done() const { return state_->done; }
std::uint64_t VerifyBytesJob::total() const { return state_->total; }
const std::vector<BackupDamage>& VerifyBytesJob::damage() const { return state_->damage; }

}  // namespace verger::backup
