#include <algorithm>

#include "engine/backup/detail/sealed_reader.h"
#include "engine/backup/key_file.h"

namespace {

using verger::Bytes;
using verger::ByteView;
using verger::MutableBytes;
using verger::Result;
namespace sealed = verger::backup::detail;

void read_all(ByteView object, const verger::backup::KeyRing* keys) {
  const auto reader = sealed::SealedReader::open(
      [object](std::uint64_t offset, MutableBytes into) -> Result<void> {
        if (offset > object.size() || into.size() > object.size() - offset) {
          return verger::Error{verger::Errc::kIo, "behind the end"};
        }
        std::ranges::copy(object.subspan(offset, into.size()), into.begin());
        return {};
      },
      object.size(), object.first(std::min(object.size(), sealed::kSealedHeaderSize)), "blob", keys,
      std::make_shared<sealed::SegmentCache>());
  if (!reader) {
    return;
  }
  Bytes part(std::min<std::uint64_t>(reader->size(), 3 * sealed::kSealedSegmentSize));
  static_cast<void>(reader->read_exact(0, part));
  Bytes one(1);
  static_cast<void>(reader->read_exact(reader->size() / 2, one));
  static_cast<void>(reader->read_exact(reader->size(), one));
}

}  // namespace

/// The first byte: the input is a whole object; or its parts, which get sums that fit, so that what
/// they say is looked at: the lengths of segments, index and footer, then these.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  auto input = ByteView(reinterpret_cast<const std::byte*>(data), size);
  static SeededRandom random(1);
  static const auto kKeys = backup::KeyRing::make(random);
  if (input.size() < 6) {
    static_cast<void>(backup::KeyRing::parse(as_text(input)));
    return 0;
  }
  const auto mode = std::to_integer<unsigned>(input[0]);
  if (mode % 4 == 0) {
    read_all(input.subspan(1), nullptr);
    read_all(input.subspan(1), &kKeys);
    static_cast<void>(backup::KeyRing::parse(as_text(input.subspan(1))));
    return 0;
  }
  const bool encrypted = mode % 4 == 1;
  const auto seal = sealed::ObjectSeal::make(encrypted ? &kKeys : nullptr, mode % 4 != 3, random);
  const std::size_t segments = std::to_integer<std::size_t>(input[1]) % 4;
  const std::size_t length = std::to_integer<std::size_t>(input[2]);
  const std::size_t index_size = std::to_integer<std::size_t>(input[3]);
  auto rest = input.subspan(4);
  const auto take = [&rest](std::size_t count) {
    const auto part = rest.first(std::min(count, rest.size()));
    rest = rest.subspan(part.size());
    return part;
  };
  Bytes object(seal.header_bytes().begin(), seal.header_bytes().end());
  for (std::size_t number = 0; number < segments; ++number) {
    const auto part =
        number + 1 == segments ? sealed::SealedPart::kLastSegment : sealed::SealedPart::kSegment;
    seal.seal(part, number, {}, take(length), object);
  }
  seal.seal(sealed::SealedPart::kIndex, 0, {}, take(index_size), object);
  Bytes footer(sealed::kSealedFooterSize - sealed::kSealedTagSize);
  std::ranges::copy(take(footer.size()), footer.begin());
  seal.seal(sealed::SealedPart::kFooter, 0, "blob", footer, object);
  read_all(object, encrypted ? &kKeys : nullptr);
  return 0;
}
