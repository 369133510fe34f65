#include "engine/log/chunk_size.h"

#include "engine/log/chunk.h"
#include "engine/log/detail/limits.h"

namespace verger::log {

std::uint64_t completed_file_size(std::uint64_t data_bytes) {
  return scavenged_file_size(data_bytes, 0);
}

std::uint64_t scavenged_file_size(std::uint64_t data_bytes, std::uint64_t records) {
  return detail::align_chunk_file(kChunkHeaderSize + data_bytes +
                                  records * detail::kPosmapEntrySize + kChunkFooterSize);
}

}  // namespace verger::log
