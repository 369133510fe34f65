#include "nodeagent/operations/facts.h"

#include <algorithm>

namespace verger::agent {
namespace {

constexpr std::size_t kPointsTold = 20;

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
    const auto skipped = points->size() - std::min(points->size(), kPointsTold);
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

}  // namespace verger::agent
