#include "tests/support/scavenge/compare.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::test {
namespace {

constexpr std::size_t kMostDifferences = 20;

std::string describe(const ChunkSnapshot& chunk) {
  return fmt::format("chunk {}-{} version {}{}", chunk.start, chunk.end, chunk.version,
                     chunk.scavenged ? " (scavenged)" : "");
}

std::vector<ChunkSnapshot> up_to(const DatabaseSnapshot& snapshot, std::int32_t chunk) {
  std::vector<ChunkSnapshot> chunks;
  std::ranges::copy_if(snapshot.chunks, std::back_inserter(chunks),
                       [&](const ChunkSnapshot& c) { return c.start <= chunk; });
  return chunks;
}

void compare_records(const ChunkSnapshot& ours, const ChunkSnapshot& server,
                     std::vector<std::string>& out) {
  for (const auto& [position, framed] : ours.records) {
    const auto found = server.records.find(position);
    if (found == server.records.end()) {
      out.push_back(fmt::format("{}: the record at {} should be gone", describe(ours), position));
    } else if (found->second != framed) {
      out.push_back(fmt::format("{}: the record at {} differs", describe(ours), position));
    }
  }
  for (const auto& [position, framed] : server.records) {
    if (!ours.records.contains(position)) {
      out.push_back(
          fmt::format("{}: the record at {} should have stayed", describe(ours), position));
    }
  }
}

void compare_chunks(const DatabaseSnapshot& ours, const DatabaseSnapshot& server,
                    const CompareOptions& options, std::vector<std::string>& out) {
  const auto a = up_to(ours, options.point_chunk);
  const auto b = up_to(server, options.point_chunk);
  for (std::size_t n = 0; n < std::max(a.size(), b.size()); ++n) {
    if (n >= a.size() || n >= b.size()) {
      out.push_back(n < a.size() ? describe(a[n]) + " should not be there"
                                 : describe(b[n]) + " is missing");
      continue;
    }
    if (a[n].start != b[n].start || a[n].end != b[n].end || a[n].scavenged != b[n].scavenged ||
        (options.versions && a[n].version != b[n].version)) {
      out.push_back(describe(a[n]) + " should be " + describe(b[n]));
      continue;
    }
    compare_records(a[n], b[n], out);
    if (a[n].physical_size != b[n].physical_size || a[n].logical_size != b[n].logical_size) {
      out.push_back(describe(a[n]) + ": the sizes differ");
    }
    if (!a[n].problem.empty()) {
      out.push_back(describe(a[n]) + ": " + a[n].problem);
    }
  }
}

void compare_index(const DatabaseSnapshot& ours, const DatabaseSnapshot& server,
                   const std::vector<index::IndexEntry>& before, const CompareOptions& options,
                   std::vector<std::string>& out) {
  const auto counted = [&](const DatabaseSnapshot& snapshot) {
    std::vector<index::IndexEntry> entries;
    std::ranges::copy_if(
        snapshot.entries, std::back_inserter(entries), [&](const index::IndexEntry& entry) {
          return entry.position < options.point && std::ranges::binary_search(before, entry);
        });
    return entries;
  };
  const auto a = counted(ours);
  const auto b = counted(server);
  std::vector<index::IndexEntry> only;
  const auto report = [&](std::string_view what) {
    for (const auto& entry : only) {
      out.push_back(fmt::format("index entry {:016x} {} at {}: {}", entry.hash.value(),
                                entry.number, entry.position, what));
    }
    only.clear();
  };
  std::ranges::set_difference(a, b, std::back_inserter(only));
  report("should be gone");
  std::ranges::set_difference(b, a, std::back_inserter(only));
  report("should have stayed");
}

}  // namespace

std::vector<std::string> state_differences(const StateRows& ours, const StateRows& server) {
  std::vector<std::string> out;
  for (const auto& [table, rows] : server) {
    const auto found = ours.find(table);
    if (found == ours.end()) {
      out.push_back("no table " + table);
      continue;
    }
    std::vector<std::string> only;
    std::ranges::set_difference(found->second, rows, std::back_inserter(only));
    for (const auto& row : only) {
      out.push_back(table + ": " + row + " should not be there");
    }
    only.clear();
    std::ranges::set_difference(rows, found->second, std::back_inserter(only));
    for (const auto& row : only) {
      out.push_back(table + ": " + row + " is missing");
    }
  }
  return out;
}

std::vector<std::string> differences(const DatabaseSnapshot& ours, const DatabaseSnapshot& server,
                                     const std::vector<index::IndexEntry>& table_entries_before,
                                     const CompareOptions& options) {
  std::vector<std::string> out;
  compare_chunks(ours, server, options, out);
  compare_index(ours, server, table_entries_before, options, out);
  std::ranges::move(state_differences(ours.state, server.state), std::back_inserter(out));
  if (out.size() > kMostDifferences) {
    const auto more = out.size() - kMostDifferences;
    out.resize(kMostDifferences);
    out.push_back(fmt::format("… and {} more", more));
  }
  return out;
}

}  // namespace verger::test
