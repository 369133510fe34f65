#pragma once

#include "engine/index/bloom_filter.h"
#include "tests/support/results.h"

namespace verger::test {

/// The existence filter of the index as it is where all streams were lost: as large, with the
/// checkpoint of before, and empty.
inline void lose_all_streams(FileSystem& files, const Path& index_directory) {
  const auto path = index_directory / "stream-existence" / "streamExistenceFilter.dat";
  const auto bits = value(index::BloomFilter::open(files, path))->bit_count();
  value(write_file_durably(files, path, index::BloomBuilder(bits / 8).finish()));
}

}  // namespace verger::test
