#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/streams/detail/described_event.h"

namespace verger::streams::detail {

/// Finds what stands for the streams of events. Names come again: the keys of 65,536 of them are
/// remembered, which saves hashing each; the others are hashed together.
class StreamKeys {
 public:
  StreamKeys();
  /// Sets the streams, originals and partitions of events whose messages follow each other in
  /// `messages`.
  void find(std::span<DescribedEvent> events, ByteView messages);

 private:
  struct NamedKey {
    std::string name;
    StreamKey key{};
  };
  /// A name of which the key is needed.
  struct Wanted {
    std::string_view name;
    std::size_t hash = 0;
    StreamKey key{};
  };

  [[nodiscard]] static std::size_t first_place_of(std::size_t hash);
  /// Where the name with that hash may be; the first of its places where it is not.
  [[nodiscard]] std::size_t place_of(std::size_t hash) const;
  /// nullptr: the name is not remembered.
  [[nodiscard]] const StreamKey* remembered(const Wanted& wanted) const;
  void remember(const Wanted& wanted);
  /// The names of the events' streams, each followed by its original, and so on.
  void list_names(std::span<const DescribedEvent> events, ByteView messages);
  /// Of all names that are listed.
  void find_keys();

  std::vector<std::size_t> hashes_;  ///< of names_: they are all that is looked at of most
  std::vector<NamedKey> names_;
  // Of the events that are being looked at:
  std::vector<Wanted> wanted_;
  std::vector<std::uint32_t> unknown_;  ///< places in wanted_, of names that are not remembered
  std::vector<ByteView> unknown_names_;
  std::vector<Sha256Digest> digests_;
};

}  // namespace verger::streams::detail
