#include "engine/verify/detail/filters.h"

#include <fmt/format.h>

#include "engine/index/existence_filter.h"

namespace verger::verify::detail {
namespace {

void report_damaged_lines(const index::BloomFilter& filter, const Path& path,
                          std::string_view remedy, Findings& findings) {
  const auto damaged = filter.damaged_lines();
  if (!damaged) {
    findings.damage(path, std::nullopt, damaged.error().message);
  } else if (damaged->count > 0) {
    findings.damage(path, damaged->first_offset,
                    fmt::format("{} of its lines do not match their checksum, the first here; {}",
                                damaged->count, remedy));
  }
}

}  // namespace

void check_table_filter(FileSystem& files, const index::TableSlot& slot, Findings& findings) {
  constexpr std::string_view kRemedy =
      "remove this file (reading gets slower), or rebuild the index";
  auto path = slot.table->path();
  path += ".bloomfilter";
  const auto filter = index::BloomFilter::open(files, path);
  if (filter) {
    report_damaged_lines(**filter, path, kRemedy, findings);
  } else if (filter.error().code != Errc::kNotFound) {
    findings.damage(path, 0, fmt::format("{}; {}", filter.error().message, kRemedy));
  }
}

Result<ExistenceCheck> ExistenceCheck::open(FileSystem& files, const Path& index_directory,
                                            Findings& findings) {
  constexpr std::string_view kRemedy = "a server makes it anew when it starts";
  ExistenceCheck check;
  index::ExistenceFilter existence(files, index_directory, 0);
  VERGER_RETURN_IF_ERROR(existence.load());
  check.checkpoint_ = existence.checkpoint();
  if (check.checkpoint_ == kNoPosition) {
    return check;  // a server begins anew, regardless of the filter
  }
  check.path_ = index_directory / "stream-existence" / "streamExistenceFilter.dat";
  auto filter = index::BloomFilter::open(files, check.path_);
  if (!filter) {
    findings.damage(check.path_, 0, fmt::format("{}; {}", filter.error().message, kRemedy));
    return check;
  }
  report_damaged_lines(**filter, check.path_, kRemedy, findings);
  check.filter_ = *std::move(filter);
  return check;
}

void ExistenceCheck::look_at(const index::IndexEntry& entry, Findings& findings) {
  // A tombstone alone may be missing: the server itself leaves it out.
  if (filter_ == nullptr || entry.position >= checkpoint_ || entry.number == kDeletedStream ||
      entry.hash == last_seen_) {
    return;
  }
  last_seen_ = entry.hash;
  if (!filter_->may_contain(entry.hash)) {
    findings.damage_of_kind(
        "stream missing in the existence filter", path_, std::nullopt,
        fmt::format("the stream of the record at log position {} (hash {:016x}) is not in it: to a "
                    "server it does not exist; remove streamExistenceFilter.chk, then the server "
                    "makes the filter anew",
                    entry.position, entry.hash.value()));
  }
}

}  // namespace verger::verify::detail
