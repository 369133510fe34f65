#include "engine/log/detail/checkpoint_files.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace verger::log::detail {
namespace {

struct Description {
  std::string_view name;
  std::int64_t initial;
};
constexpr std::array<Description, kCheckpointCount> kDescriptions{{{"writer.chk", 0},
                                                                   {"chaser.chk", 0},
                                                                   {"epoch.chk", -1},
                                                                   {"proposal.chk", -1},
                                                                   {"truncate.chk", -1}}};
constexpr std::size_t kSize = 8;

}  // namespace

std::string_view checkpoint_file_name(Checkpoint which) {
  return kDescriptions.at(static_cast<std::size_t>(which)).name;
}

Result<CheckpointFiles> CheckpointFiles::load(FileSystem& files, const Path& directory) {
  CheckpointFiles loaded(files, directory);
  for (std::size_t i = 0; i < kCheckpointCount; ++i) {
    One& one = loaded.all_[i];
    const Path path = directory / kDescriptions[i].name;
    auto file = files.open(path, OpenMode::kRead);
    if (!file && file.error().code == Errc::kNotFound) {
      one.value = kDescriptions[i].initial;
      continue;
    }
    if (!file) {
      return std::move(file).error();
    }
    std::array<std::byte, kSize> bytes{};
    VERGER_RETURN_IF_ERROR((*file)->read_at(0, bytes));
    VERGER_TRY(one.size, (*file)->size());
    one.value = load_le<std::int64_t>(bytes.data());
  }
  const auto proposal = loaded.value(Checkpoint::kProposal);
  if (proposal < -1 || proposal > std::numeric_limits<std::int32_t>::max()) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} is not an epoch number; write -1 (eight bytes ff) there",
                             (directory / "proposal.chk").string(), proposal)};
  }
  return loaded;
}

Checkpoints CheckpointFiles::values() const {
  Checkpoints values;
  values.writer = LogPosition(value(Checkpoint::kWriter));
  values.chaser = LogPosition(value(Checkpoint::kChaser));
  values.epoch = LogPosition(value(Checkpoint::kEpoch));
  values.proposal = static_cast<std::int32_t>(value(Checkpoint::kProposal));
  values.truncate = LogPosition(value(Checkpoint::kTruncate));
  return values;
}

Result<void> CheckpointFiles::store(Checkpoint which, std::int64_t value) {
  One& one = all_[static_cast<std::size_t>(which)];
  if (one.value == value && one.size == kSize && one.synced) {
    return {};
  }
  const Path path = directory_ / checkpoint_file_name(which);
  if (!one.size) {
    // An empty file would count as 0: it gets its name only once its content is on the disk.
    std::array<std::byte, kSize> bytes{};
    store_le(bytes.data(), value);
    VERGER_RETURN_IF_ERROR(write_file_durably(*files_, path, bytes));
    one.size = kSize;
    one.value = value;
    return {};
  }
  VERGER_RETURN_IF_ERROR(overwrite(one, path, value));
  VERGER_RETURN_IF_ERROR(one.file->sync());
  one.synced = true;
  return {};
}

Result<void> CheckpointFiles::write(Checkpoint which, std::int64_t value) {
  One& one = all_[static_cast<std::size_t>(which)];
  if (!one.size) {
    return store(which, value);
  }
  if (one.value == value && one.size == kSize) {
    return {};
  }
  return overwrite(one, directory_ / checkpoint_file_name(which), value);
}

Result<std::shared_ptr<File>> CheckpointFiles::open_to_overwrite(Checkpoint which) {
  One& one = all_[static_cast<std::size_t>(which)];
  if (one.size != kSize) {
    VERGER_RETURN_IF_ERROR(store(which, one.value));
  }
  if (!one.file) {
    VERGER_TRY(one.file,
               files_->open(directory_ / checkpoint_file_name(which), OpenMode::kReadWrite));
  }
  return one.file;
}

void CheckpointFiles::note_stored(Checkpoint which, std::int64_t value) {
  One& one = all_[static_cast<std::size_t>(which)];
  one.value = value;
  one.synced = true;
}

Result<void> CheckpointFiles::overwrite(One& one, const Path& path, std::int64_t value) {
  if (!one.file) {
    VERGER_TRY(one.file, files_->open(path, OpenMode::kReadWrite));
  }
  std::array<std::byte, kSize> bytes{};
  store_le(bytes.data(), value);
  one.synced = false;
  VERGER_RETURN_IF_ERROR(one.file->write_at(0, bytes));
  if (*one.size > kSize) {
    VERGER_RETURN_IF_ERROR(one.file->resize(kSize));
  }
  one.size = kSize;
  one.value = value;
  return {};
}

bool operator==(const CheckpointFiles& a, const CheckpointFiles& b) {
  return std::ranges::equal(a.all_, b.all_, [](const auto& x, const auto& y) {
    return x.value == y.value && x.size == y.size;
  });
}

}  // namespace verger::log::detail
