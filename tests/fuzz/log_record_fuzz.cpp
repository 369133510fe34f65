#include <cstdlib>

#include "engine/log/chunk.h"
#include "engine/log/epoch.h"
#include "engine/log/record.h"

/// A record that decodes encodes to the same bytes, unless its text was not UTF-8 or not minimal.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto record = log::decode_record(bytes)) {
    Bytes framed;
    log::append_framed(framed, *record);
    if (framed.size() != log::record_size(*record) + log::kFramingSize) {
      std::abort();
    }
  }
  static_cast<void>(log::decode_epoch_json(bytes));
  static_cast<void>(log::decode_chunk_header(bytes));
  static_cast<void>(log::decode_chunk_footer(bytes));
  static_cast<void>(log::parse_chunk_file_name(as_text(bytes)));
  return 0;
}
