#include "engine/backup/rekey_job.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/file_copy.h"
#include "engine/backup/detail/repository_names.h"
#include "engine/base/assert.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

constexpr auto kSessionInterval = std::chrono::minutes(5);

}  // namespace

RekeyJob::RekeyJob(SealedStore& store, Repository& repository, Clock& clock, Random& random)
    : store_(store), repository_(repository), clock_(clock) {
  VERGER_ASSERT(store_.sealing().keys.has_value());
  session_.id = "rekey-" + random.uuid().to_string();
}

RekeyJob::~RekeyJob() {
  if (begun_) {
    // One that stays is ended by a deletion, as that of a backup that was killed.
    static_cast<void>(repository_.end_session(session_.id).has_value());
  }
}

Result<void> RekeyJob::begin() {
  // No deletion removes what is written again, or finds it removed and written.
  session_.updated_at = clock_.now();
  session_at_ = clock_.monotonic();
  VERGER_RETURN_IF_ERROR(repository_.begin_session(session_));
  begun_ = true;
  documents_.emplace_back(detail::kMarker);
  // Not those of backups in progress: they write them themselves, and remove them.
  for (const auto folder : {detail::kGenerations, detail::kDeletions, detail::kChecks}) {
    VERGER_TRY(const auto names, store_.list(folder));
    for (const auto& name : names) {
      documents_.push_back(detail::document_in(folder, name));
    }
  }
  VERGER_TRY(const auto blobs, store_.list_blobs());
  blobs_.reserve(blobs.size());
  std::ranges::transform(blobs, std::back_inserter(blobs_), &StoredBlob::name);
  progress_.total = documents_.size() + blobs_.size();
  return {};
}

Result<void> RekeyJob::keep_session() {
  const auto now = clock_.monotonic();
  if (now - session_at_ < kSessionInterval) {
    return {};
  }
  session_at_ = now;
  session_.updated_at = clock_.now();
  return repository_.update_session(session_);
}

Result<StepOutcome> RekeyJob::step(Budget budget) {
  if (!begun_) {
    VERGER_RETURN_IF_ERROR(begin());
    return StepOutcome{};
  }
  VERGER_RETURN_IF_ERROR(keep_session());
  if (copy_) {
    VERGER_RETURN_IF_ERROR(
        copy_piece(std::max<std::uint64_t>(budget.units, 1) * detail::kBytesPerUnit));
  } else if (!blobs_.empty()) {
    VERGER_RETURN_IF_ERROR(next_blob());
  } else if (!documents_.empty()) {
    VERGER_RETURN_IF_ERROR(next_document());
  } else {
    begun_ = false;
    VERGER_RETURN_IF_ERROR(repository_.end_session(session_.id));
    return StepOutcome{StepOutcome::Kind::kDone};
  }
  return StepOutcome{};
}

/// Documents come after blobs, the marker of the repository last: as long as that is under the old
/// key, a repository cannot be opened without it.
Result<void> RekeyJob::next_document() {
  const auto name = std::move(documents_.back());
  documents_.pop_back();
  ++progress_.objects;
  const auto key = store_.key_of_document(name);
  if (!key && key.error().code == Errc::kNotFound) {
    return {};  // removed meanwhile
  }
  VERGER_RETURN_IF_ERROR(key);
  if (*key == store_.sealing().keys->writing().id) {
    return {};
  }
  VERGER_TRY(const auto content, store_.get(name));
  VERGER_RETURN_IF_ERROR(store_.put(name, content));
  VERGER_FAILPOINT("backup.rekey.after-document");
  ++progress_.rewritten;
  progress_.bytes += content.size();
  return {};
}

Result<void> RekeyJob::next_blob() {
  const auto name = blobs_.back();
  blobs_.pop_back();
  const auto key = store_.key_of_blob(name);
  if (!key && key.error().code == Errc::kNotFound) {
    ++progress_.objects;
    return {};
  }
  VERGER_RETURN_IF_ERROR(key);
  if (*key == store_.sealing().keys->writing().id) {
    ++progress_.objects;
    return {};
  }
  VERGER_TRY(auto reader, store_.open_stored(name));
  VERGER_TRY(auto writer, store_.create_stored());
  copy_.emplace(
      Copy{.name = name, .reader = std::move(reader), .writer = std::move(writer), .at = 0});
  return {};
}

Result<void> RekeyJob::copy_piece(std::uint64_t most) {
  auto& copy = *copy_;
  Bytes block;
  std::uint64_t copied = 0;
  while (copy.at < copy.reader->size() && copied < most) {
    block.resize(std::min(detail::kBlockSize, copy.reader->size() - copy.at));
    VERGER_RETURN_IF_ERROR(copy.reader->read_exact(copy.at, block));
    VERGER_RETURN_IF_ERROR(copy.writer->append(block));
    copy.at += block.size();
    copied += block.size();
  }
  progress_.bytes += copied;
  if (copy.at < copy.reader->size()) {
    return {};
  }
  // In the place of the old one, at once.
  VERGER_RETURN_IF_ERROR(copy.writer->commit(copy.name));
  VERGER_FAILPOINT("backup.rekey.after-blob");
  copy_.reset();
  ++progress_.objects;
  ++progress_.rewritten;
  return {};
}

}  // namespace verger::backup
