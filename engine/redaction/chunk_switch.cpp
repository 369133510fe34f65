#include "engine/redaction/chunk_switch.h"

#include <fmt/format.h>

#include "engine/log/chunk.h"

namespace verger::redaction {
namespace {

bool leaves_the_directory(std::string_view name) {
  return name.find_first_of("/\\") != std::string_view::npos ||
         name.find("..") != std::string_view::npos;
}

struct Ends {
  log::ChunkHeader header;
  log::ChunkFooter footer;
};

Result<Ends> read_ends(const File& file) {
  VERGER_TRY(const auto size, file.size());
  if (size < log::kChunkHeaderSize + log::kChunkFooterSize) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} bytes hold no chunk", file.path().string(), size)};
  }
  Bytes bytes(log::kChunkHeaderSize);
  VERGER_RETURN_IF_ERROR(file.read_exact(0, bytes));
  Ends ends;
  VERGER_TRY(ends.header, log::decode_chunk_header(bytes));
  bytes.resize(log::kChunkFooterSize);
  VERGER_RETURN_IF_ERROR(file.read_exact(size - log::kChunkFooterSize, bytes));
  VERGER_TRY(ends.footer, log::decode_chunk_footer(bytes));
  return ends;
}

}  // namespace

std::string_view reason_of(SwitchResult result) {
  switch (result) {
    case SwitchResult::kSuccess:
      break;
    case SwitchResult::kTargetNameInvalid:
      return "The target chunk's file name is not valid.";
    case SwitchResult::kTargetNotFound:
      return "The target chunk file was not found in the database directory.";
    case SwitchResult::kTargetExcessive:
      return "The target chunk file is not part of the database.";
    case SwitchResult::kTargetInactive:
      return "The target chunk file is not actively used by the database.";
    case SwitchResult::kTargetNotCompleted:
      return "The target chunk is not a completed chunk.";
    case SwitchResult::kNewNameInvalid:
      return "The new chunk's file name is not valid.";
    case SwitchResult::kNewNotFound:
      return "The new chunk file was not found in the database directory.";
    case SwitchResult::kNewNotCompleted:
      return "The new chunk is not a completed chunk.";
    case SwitchResult::kNewHeaderOrFooterInvalid:
      return "The new chunk's header or footer is not valid.";
    case SwitchResult::kNewHashInvalid:
      return "The new chunk has failed hash verification.";
    case SwitchResult::kNewOpenFailed:
      return "An error has occurred when opening the new chunk.";
    case SwitchResult::kRangeDoesNotMatch:
      return "The target chunk's range and the new chunk's range do not match.";
    case SwitchResult::kUnexpectedError:
      return "An unexpected error has occurred.";
    case SwitchResult::kTargetFormatNotSupported:
      return "The target chunk's file format is not supported.";
  }
  return "";
}

ChunkSwitchJob::ChunkSwitchJob(FileSystem& files, log::TransactionLog& log, std::string target,
                               std::string new_file)
    : files_(files), log_(log), target_(std::move(target)), new_file_(std::move(new_file)) {}

Result<StepOutcome> ChunkSwitchJob::step(Budget /*budget*/) {
  auto refused = check_target();
  if (!refused) {
    refused = check_new();
  }
  result_ = refused ? *refused : switch_in();
  live_.reset();
  return StepOutcome{StepOutcome::Kind::kDone, {}};
}

SwitchResult ChunkSwitchJob::refuse(SwitchResult result, std::string detail) {
  detail_ = std::move(detail);
  return result;
}

std::optional<SwitchResult> ChunkSwitchJob::check_target() {
  const auto directory = log_.directory();
  if (leaves_the_directory(target_)) {
    return refuse(SwitchResult::kTargetNameInvalid, target_);
  }
  if (leaves_the_directory(new_file_)) {
    return refuse(SwitchResult::kNewNameInvalid, new_file_);
  }
  const auto name = log::parse_chunk_file_name(target_);
  if (!name) {
    return refuse(SwitchResult::kTargetNameInvalid, target_);
  }
  if (!new_file_.ends_with(".tmp")) {
    return refuse(SwitchResult::kNewNameInvalid, new_file_);
  }
  for (const auto& [file, missing] : {std::pair(target_, SwitchResult::kTargetNotFound),
                                      std::pair(new_file_, SwitchResult::kNewNotFound)}) {
    const auto there = files_.exists(directory / file);
    if (!there || !*there) {
      return refuse(missing, there ? (directory / file).string() : there.error().message);
    }
  }
  live_ = log_.chunk_at(LogPosition(std::int64_t{name->start.value()} * log_.chunk_size()));
  if (live_ == nullptr) {
    return refuse(SwitchResult::kTargetExcessive, target_);
  }
  const auto live_name = live_->path().filename().string();
  if (live_name != target_) {
    return refuse(SwitchResult::kTargetInactive, fmt::format("{} is live", live_name));
  }
  if (!live_->completed()) {
    return refuse(SwitchResult::kTargetNotCompleted, target_);
  }
  if (live_->header().transform_type != 0) {
    return refuse(SwitchResult::kTargetFormatNotSupported, target_);
  }
  return std::nullopt;
}

std::optional<SwitchResult> ChunkSwitchJob::check_new() {
  const auto path = log_.directory() / new_file_;
  const auto file = files_.open(path, OpenMode::kRead);
  if (!file) {
    return refuse(SwitchResult::kNewOpenFailed, file.error().message);
  }
  const auto ends = read_ends(**file);
  if (!ends) {
    return refuse(SwitchResult::kNewHeaderOrFooterInvalid, ends.error().message);
  }
  if (ends->header.start != live_->start() || ends->header.end != live_->end()) {
    return refuse(SwitchResult::kRangeDoesNotMatch,
                  fmt::format("{} has chunks {} to {}, {} has {} to {}", target_, live_->start(),
                              live_->end(), new_file_, ends->header.start, ends->header.end));
  }
  if (!ends->footer.completed) {
    return refuse(SwitchResult::kNewNotCompleted, path.string());
  }
  const auto chunk = log::Chunk::open_completed(files_, path);
  if (!chunk) {
    return refuse(SwitchResult::kNewOpenFailed, chunk.error().message);
  }
  if (const auto verified = (*chunk)->verify_md5(); !verified) {
    return refuse(verified.error().code == Errc::kCorruption ? SwitchResult::kNewHashInvalid
                                                             : SwitchResult::kNewOpenFailed,
                  verified.error().message);
  }
  return std::nullopt;
}

SwitchResult ChunkSwitchJob::switch_in() {
  const auto path = log_.directory() / new_file_;
  // A copy of a chunk file is read-only, as that is; what is synced has to be open for writing.
  if (const auto writable = files_.set_read_only(path, false); !writable) {
    return refuse(SwitchResult::kUnexpectedError, writable.error().message);
  }
  const auto file = files_.open(path, OpenMode::kReadWrite);
  const auto synced = file ? (*file)->sync() : Result<void>(file.error());
  if (!synced) {
    return refuse(SwitchResult::kUnexpectedError, synced.error().message);
  }
  const auto switched = log_.switch_in_chunk(path);
  if (!switched) {
    return refuse(SwitchResult::kUnexpectedError, switched.error().message);
  }
  detail_ = (*switched)->path().filename().string();
  return SwitchResult::kSuccess;
}

}  // namespace verger::redaction
