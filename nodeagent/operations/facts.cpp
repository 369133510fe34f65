#include "nodeagent/operations/facts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/directories.h"
#include "engine/log/chunk_size.h"

namespace verger::agent {
namespace {

constexpr std::size_t kPointsShown = 20;

/// What chunk `chunk` had as a file when it was completed: up to its point, or full. nullopt: where
/// its point ends is not known.
std::optional<std::int64_t> completed_bytes(const node::NodeInspection& node, std::int64_t chunk,
                                            std::int64_t chunk_size,
                                            const std::vector<streams::ScavengePoint>& points) {
  auto end = (chunk + 1) * chunk_size;
  for (const auto& point : points) {
    if (point.position.value() / chunk_size == chunk) {
      end = node.end_of_point(point).value();
    }
  }
  if (end < chunk * chunk_size) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(
      log::completed_file_size(static_cast<std::uint64_t>(end - chunk * chunk_size)));
}

/// Fills in the compared chunk and what goes with it. A scavenge can merge what was complete before
/// it with what was completed since.
void compare_sizes(const node::NodeInspection& node, const node::ChunkInventory& chunks,
                   const std::vector<streams::ScavengePoint>& points, std::int64_t chunks_below,
                   api::NodeFacts& facts) {
  const auto finished = node.last_finished_point();
  const bool is_shown = !finished || std::ranges::any_of(points, [&finished](const auto& point) {
    return point.position.value() == finished->position;
  });
  if (chunks.chunk_size <= 0 || !is_shown) {
    return;
  }
  const auto chunk = chunks.boundary_from(
      finished ? std::max(chunks_below, finished->position / chunks.chunk_size + 1) : chunks_below);
  const auto bytes = chunk < 0 ? -1 : chunks.bytes_below(chunk);
  std::int64_t completed = 0;
  for (auto each = chunks_below; each < chunk; ++each) {
    const auto size = completed_bytes(node, each, chunks.chunk_size, points);
    if (!size) {
      return;
    }
    completed += *size;
  }
  if (bytes >= 0) {
    facts.compared_chunk = chunk;
    facts.compared_bytes = bytes;
    facts.completed_bytes = completed;
  }
}

}  // namespace

api::NodeFacts collect_facts(const node::NodeInspection* node, FileSystem& files,
                             const Path& agent_directory, Clock& clock, std::int64_t chunks_below) {
  api::NodeFacts facts;
  facts.agent_version = VERGER_VERSION;
  facts.taken_at = format_ticks(clock.now());
  const Path& directory = node == nullptr ? agent_directory : node->database_directory();
  if (const auto space = files.space(directory)) {
    facts.disk_total_bytes = static_cast<std::int64_t>(space->total);
    facts.disk_free_bytes = static_cast<std::int64_t>(space->available);
  }
  if (node == nullptr) {
    return facts;
  }
  facts.node_running = true;
  facts.database_id = node->database_id();
  facts.node_instance_id = node->instance_id();
  facts.node_version = "24.6.0";
  facts.node_state = api::to_string(node->state());
  const auto positions = node->positions();
  facts.writer_checkpoint = positions.writer.value();
  facts.epoch_number = positions.epoch_number.value();
  const auto chunks = node->chunks();
  facts.database_bytes = chunks.total_bytes;
  facts.event_count = node->event_count();
  facts.chunk_file_count = chunks.file_count;
  facts.largest_chunk_bytes = chunks.largest_bytes;
  facts.chunk_size = chunks.chunk_size;
  facts.newest_chunk = chunks.last_chunk;
  facts.complete_chunk_bytes = chunks.bytes_below(chunks.last_chunk);
  if (chunks_below >= 0) {
    facts.bytes_below = chunks.bytes_below(chunks_below);
  }
  if (const auto space = files.space(node->index_directory())) {
    facts.index_disk_total_bytes = static_cast<std::int64_t>(space->total);
    facts.index_disk_free_bytes = static_cast<std::int64_t>(space->available);
  }
  const auto tables = node->index_tables();
  facts.largest_table_bytes = tables.largest_table;
  facts.largest_merge_bytes = tables.largest_merge;
  if (const auto points = node->scavenge_points()) {
    if (chunks_below >= 0) {
      compare_sizes(*node, chunks, *points, chunks_below, facts);
    }
    const auto skipped = points->size() - std::min(points->size(), kPointsShown);
    for (std::size_t i = skipped; i < points->size(); ++i) {
      const auto& point = (*points)[i];
      facts.points.push_back({.number = point.number.value(),
                              .position = point.position.value(),
                              .effective_now = format_ticks(point.effective_now),
                              .threshold = point.threshold});
    }
  }
  facts.last_finished_point = node->last_finished_point();
  facts.unfinished = node->unfinished_scavenge();
  facts.running = node->running_scavenge();
  return facts;
}

void add_disks(FileSystem& files, const Path& database, const Path& index, api::NodeFacts& facts) {
  const auto space_at = [&files](const Path& directory) -> Result<DiskSpace> {
    VERGER_TRY(const auto there, existing_part(files, directory));
    return files.space(there);
  };
  if (const auto space = space_at(database)) {
    facts.disk_total_bytes = static_cast<std::int64_t>(space->total);
    facts.disk_free_bytes = static_cast<std::int64_t>(space->available);
  }
  if (const auto space = space_at(index)) {
    facts.index_disk_total_bytes = static_cast<std::int64_t>(space->total);
    facts.index_disk_free_bytes = static_cast<std::int64_t>(space->available);
  }
}

}  // namespace verger::agent
