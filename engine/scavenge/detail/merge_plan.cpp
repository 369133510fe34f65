#include "engine/scavenge/detail/merge_plan.h"

#include <algorithm>

#include "engine/log/chunk_size.h"

namespace verger::scavenge::detail {
namespace {

/// [first, last) of each group of at least two, in one pass.
std::vector<std::pair<std::size_t, std::size_t>> groups_of(const std::vector<PhysicalChunk>& chunks,
                                                           std::uint64_t chunk_size) {
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  std::size_t first = 0;
  std::uint64_t bytes = 0;
  const auto close = [&](std::size_t end) {
    if (end - first > 1) {
      groups.emplace_back(first, end);
    }
    first = end;
    bytes = 0;
  };
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    if (bytes + chunks[n].records.bytes > chunk_size) {
      close(n);
    }
    bytes += chunks[n].records.bytes;
  }
  close(chunks.size());
  return groups;
}

}  // namespace

std::vector<MergeEstimate> plan_merges(std::vector<PhysicalChunk>& chunks,
                                       std::uint64_t chunk_size) {
  std::vector<MergeEstimate> merges;
  for (;;) {
    const auto groups = groups_of(chunks, chunk_size);
    if (groups.empty()) {
      return merges;
    }
    std::vector<PhysicalChunk> merged;
    std::size_t next = 0;
    const auto keep_until = [&](std::size_t end) {
      merged.insert(merged.end(), chunks.begin() + static_cast<std::ptrdiff_t>(next),
                    chunks.begin() + static_cast<std::ptrdiff_t>(end));
    };
    for (const auto& [first, last] : groups) {
      keep_until(first);
      PhysicalChunk whole{.start = chunks[first].start, .end = chunks[last - 1].end};
      MergeEstimate merge{.start = whole.start, .end = whole.end, .files = last - first};
      for (auto n = first; n < last; ++n) {
        whole.records += chunks[n].records;
        merge.bytes_before += chunks[n].file_bytes;
      }
      whole.file_bytes = log::scavenged_file_size(whole.records.bytes, whole.records.records);
      merge.bytes_after = whole.file_bytes;
      merges.push_back(merge);
      merged.push_back(whole);
      next = last;
    }
    keep_until(chunks.size());
    chunks = std::move(merged);
  }
}

std::vector<std::size_t> chunks_to_merge(const std::vector<PhysicalChunk>& chunks,
                                         std::uint64_t chunk_size) {
  auto after = chunks;
  plan_merges(after, chunk_size);
  std::vector<std::size_t> result;
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    const bool untouched = std::ranges::any_of(after, [&](const PhysicalChunk& chunk) {
      return chunk.start == chunks[n].start && chunk.end == chunks[n].end;
    });
    if (!untouched) {
      result.push_back(n);
    }
  }
  return result;
}

}  // namespace verger::scavenge::detail
