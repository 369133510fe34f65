#include "engine/verify/detail/table_sum.h"

namespace verger::verify::detail {

bool TableSum::step(std::uint32_t units) {
  const auto compared = read(units);
  if (compared && !*compared) {
    return false;
  }
  if (!compared) {
    const bool damaged = compared.error().code == Errc::kCorruption;
    findings_.damage(
        table_->path(), table_->file_size() - sizeof(Md5Digest),
        damaged ? compared.error().message + "; rebuild the index (verger-db index rebuild)"
                : compared.error().message);
  }
  checksum_.reset();
  file_.reset();
  return true;
}

Result<bool> TableSum::read(std::uint32_t units) {
  if (!checksum_) {
    VERGER_TRY(file_, files_.open(table_->path(), OpenMode::kRead));
    checksum_.emplace(
        [this](std::uint64_t offset, MutableBytes into) { return file_->read_exact(offset, into); },
        table_->file_size());
  }
  auto compared = checksum_->step(units * kBytesPerUnit);
  bytes_ = checksum_->done();
  return compared;
}

}  // namespace verger::verify::detail
