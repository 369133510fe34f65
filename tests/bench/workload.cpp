#include "tests/bench/workload.h"

#include "engine/tool/workload.h"

namespace verger::bench {

Result<void> generate(const Workload& workload, const Path& directory) {
  tool::Workload made;
  made.events = workload.events();
  made.streams = workload.streams;
  made.size_min = made.size_max = workload.data_size;
  made.max_count = workload.max_count;
  made.max_count_percent = workload.limited_percent;
  made.prefix = "account";
  made.type = "measured";
  made.chunk_size = workload.chunk_size;
  made.existence_filter_size = 0;
  const auto written = tool::generate_workload(posix_file_system(), directory, made, null_log(),
                                               [](std::uint64_t) {});
  return written ? Result<void>() : written.error();
}

}  // namespace verger::bench
