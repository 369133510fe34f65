#include "engine/base/memory_file_system.h"
#include "engine/log/detail/checkpoint_files.h"
#include "engine/scavenge/types.h"
#include "engine/streams/detail/scavenge_point_json.h"
#include "engine/tool/detail/scavenge_options.h"

/// Checkpoint files, the checkpoint of a scavenge, the data of a scavenge point, a point file.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto text = as_text(bytes);
  if (const auto checkpoint = scavenge::decode_checkpoint(text)) {
    const auto again = scavenge::decode_checkpoint(scavenge::encode_checkpoint(*checkpoint));
    if (!again || again->point != checkpoint->point || again->stage != checkpoint->stage) {
      __builtin_trap();
    }
  }
  static_cast<void>(streams::detail::parse_point_threshold(bytes));
  static_cast<void>(tool::parse_stop_after(text));

  MemoryFileSystem files;
  std::size_t at = 0;
  for (const auto* name :
       {"/point", "/writer.chk", "/chaser.chk", "/epoch.chk", "/proposal.chk", "/truncate.chk"}) {
    auto file = files.open(name, OpenMode::kCreateNew);
    if (!file || !(*file)->write_at(0, bytes.subspan(at))) {
      return 0;
    }
    at += size - at < 8 ? size - at : 8;
  }
  static_cast<void>(tool::read_point_file(files, "/point"));
  if (const auto checkpoints = log::detail::CheckpointFiles::load(files, "/")) {
    static_cast<void>(checkpoints->values());
  }
  return 0;
}
