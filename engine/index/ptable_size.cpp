#include "engine/index/ptable_size.h"

#include "engine/index/detail/ptable_format.h"

namespace verger::index {

std::uint64_t ptable_file_size(std::uint64_t entries, int cache_depth) {
  const detail::PTableLayout layout{
      .version = detail::kNewestPTableVersion,
      .count = entries,
      .midpoint_count = detail::required_midpoints(entries, cache_depth)};
  return layout.midpoint_offset(layout.midpoint_count) + detail::kPTableFooterSize +
         detail::kPTableMd5Size;
}

}  // namespace verger::index
