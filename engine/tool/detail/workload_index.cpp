#include "engine/tool/detail/workload_index.h"

#include <algorithm>
#include <bit>

#include "engine/index/existence_filter.h"
#include "engine/index/index_map.h"
#include "engine/index/ptable.h"
#include "engine/index/rebuild_job.h"
#include "engine/index/stream_hash.h"

namespace verger::tool {
namespace {

struct HashedStream {
  StreamHash hash;
  std::uint64_t stream = 0;
};

}  // namespace

WorkloadIndex::WorkloadIndex(const Workload& workload, const WorkloadPlan& plan)
    : workload_(workload), plan_(plan) {
  if (workload.index) {
    positions_.resize(workload.events);
  }
}

void WorkloadIndex::add(std::string_view stream, EventNumber number, LogPosition position) {
  last_ = std::max(last_, position);
  if (workload_.index) {
    others_.push_back({index::hash_stream(stream), number, position});
  }
}

Result<std::uint64_t> WorkloadIndex::write(FileSystem& files, const Path& directory,
                                           Random& random) {
  std::vector<HashedStream> streams(plan_.streams());
  for (std::uint64_t n = 0; n < streams.size(); ++n) {
    streams[n] = {index::hash_stream(plan_.name(n)), n};
  }
  // Streams whose hashes are the same would have to be mixed by number: too rare to be worth code.
  std::ranges::sort(streams, std::ranges::greater{}, &HashedStream::hash);
  for (std::size_t n = 1; n < streams.size(); ++n) {
    if (streams[n].hash == streams[n - 1].hash) {
      return Error{
          Errc::kUnsupported,
          fmt::format("streams {} and {} of this workload have the same hash; take another "
                      "prefix, or --no-index and `verger-db index rebuild`",
                      streams[n].stream, streams[n - 1].stream)};
    }
  }
  std::ranges::sort(others_, std::ranges::greater{});

  VERGER_RETURN_IF_ERROR(files.make_directories(directory));
  const auto total = positions_.size() + others_.size();
  VERGER_TRY(auto writer, index::PTableWriter::create(files, directory, random.uuid(), total,
                                                      workload_.cache_depth));
  auto other = others_.begin();
  const auto append_others = [&](const index::IndexEntry& until) -> Result<void> {
    for (; other != others_.end() && *other > until; ++other) {
      VERGER_RETURN_IF_ERROR(writer.append(*other));
    }
    return {};
  };
  std::vector<StreamHash> hashes;
  hashes.reserve(streams.size() + others_.size());
  for (const auto& [hash, stream] : streams) {
    hashes.push_back(hash);
    const auto first = plan_.first_event(stream);
    for (auto number = plan_.events_of(stream); number-- > 0;) {
      const index::IndexEntry entry{hash, EventNumber(static_cast<std::int64_t>(number)),
                                    positions_[first + number]};
      VERGER_RETURN_IF_ERROR(append_others(entry));
      VERGER_RETURN_IF_ERROR(writer.append(entry));
    }
  }
  for (const auto& entry : others_) {
    hashes.push_back(entry.hash);
  }
  for (; other != others_.end(); ++other) {
    VERGER_RETURN_IF_ERROR(writer.append(*other));
  }
  VERGER_TRY(const auto path, writer.finish());

  index::ExistenceFilter existence(files, directory, workload_.existence_filter_size);
  VERGER_RETURN_IF_ERROR(existence.load());
  VERGER_RETURN_IF_ERROR(existence.add(std::move(hashes), last_));
  index::IndexMap map;
  map.prepare_checkpoint = last_;
  map.commit_checkpoint = last_;
  map.tables.push_back(
      {index::table_level(total, workload_.max_mem_table_size), 0, path.filename().string()});
  VERGER_RETURN_IF_ERROR(index::save_index_map(files, directory, map, random));
  return total;
}

}  // namespace verger::tool
