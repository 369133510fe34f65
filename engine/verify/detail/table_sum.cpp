#include "engine/verify/detail/table_sum.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::verify::detail {

ByteView TableSum::read(std::size_t size) {
  if (unread_ || at_ == hashed_end_) {
    return {};
  }
  if (auto read = read_piece(size); !read) {
    unread_ = std::move(read).error();
    return {};
  }
  at_ += piece_.size();
  return piece_;
}

Result<void> TableSum::read_piece(std::size_t size) {
  if (file_ == nullptr) {
    VERGER_TRY(file_, files_.open(table_->path(), OpenMode::kRead));
  }
  piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, hashed_end_ - at_)));
  return file_->read_exact(at_, piece_);
}

Result<void> TableSum::compare(const Md5Digest& digest) {
  if (unread_) {
    return *unread_;
  }
  Md5Digest stored{};
  VERGER_RETURN_IF_ERROR(file_->read_exact(hashed_end_, stored));
  if (digest != stored) {
    return Error{Errc::kCorruption,
                 fmt::format("the bytes have the MD5 {}, the file says {}; rebuild the index "
                             "(verger-db index rebuild)",
                             to_hex(digest), to_hex(stored))};
  }
  return {};
}

void TableSum::end(const Md5Digest& digest) {
  if (const auto compared = compare(digest); !compared) {
    findings_.damage(table_->path(), hashed_end_, compared.error().message);
  }
  file_.reset();
  piece_ = {};
}

}  // namespace verger::verify::detail
