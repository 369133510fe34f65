#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/streams/detail/described_event.h"

namespace verger::streams::detail {

/// Finds what stands for the streams of events. Names come again: the keys of 65,536 of them are
/// remembered, which saves hashing each.
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

  [[nodiscard]] static std::size_t first_place_of(std::size_t hash);
  /// Where the name with that hash may be; the first of its places where it is not.
  [[nodiscard]] std::size_t place_of(std::size_t hash) const;
  const StreamKey& key_of(std::string_view name, std::size_t hash);
  void set_stream(DescribedEvent& event, std::string_view name, std::size_t hash);

  std::vector<std::size_t> hashes_;  ///< of names_: they are all that is looked at of most
  std::vector<NamedKey> names_;
  /// Of the events that are being looked at.
  struct Wanted {
    std::string_view name;
    std::size_t hash = 0;
  };
  std::vector<Wanted> wanted_;
};

}  // namespace verger::streams::detail
