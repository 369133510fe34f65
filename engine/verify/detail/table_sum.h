#pragma once

#include <memory>

#include "engine/index/index.h"
#include "engine/verify/detail/file_checksum.h"
#include "engine/verify/detail/lanes.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// Compares one index table with the MD5 that it ends with.
class TableSum final : public Work {
 public:
  TableSum(FileSystem& files, std::shared_ptr<const index::PTable> table)
      : files_(files), table_(std::move(table)) {}

  bool step(std::uint32_t units) override;
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  Result<bool> read(std::uint32_t units);

  FileSystem& files_;
  std::shared_ptr<const index::PTable> table_;
  std::unique_ptr<File> file_;
  std::optional<FileChecksum> checksum_;
  std::uint64_t bytes_ = 0;
  Findings findings_;
};

}  // namespace verger::verify::detail
