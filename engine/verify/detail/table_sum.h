#pragma once

#include <memory>
#include <optional>

#include "engine/index/index.h"
#include "engine/verify/detail/hashed_files.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// Compares one index table with the MD5 that it ends with.
class TableSum final : public HashedFile {
 public:
  TableSum(FileSystem& files, std::shared_ptr<const index::PTable> table)
      : files_(files),
        table_(std::move(table)),
        hashed_end_(table_->file_size() - sizeof(Md5Digest)) {}

  ByteView read(std::size_t size) override;
  void look(ExpectedEntries::Part* /*part*/) override {}
  void end(const Md5Digest& digest) override;
  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  Result<void> read_piece(std::size_t size);
  Result<void> compare(const Md5Digest& digest);

  FileSystem& files_;
  std::shared_ptr<const index::PTable> table_;
  std::uint64_t hashed_end_;
  std::unique_ptr<File> file_;
  std::uint64_t at_ = 0;
  Bytes piece_;
  std::optional<Error> unread_;
  Findings findings_;
};

}  // namespace verger::verify::detail
