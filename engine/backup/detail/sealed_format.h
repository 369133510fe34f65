#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/backup/key_file.h"
#include "engine/base/bytes.h"
#include "engine/base/cipher.h"
#include "engine/base/result.h"

/// Sealed objects: docs/formats/sealed-objects.md.
namespace verger::backup::detail {

inline constexpr std::string_view kSealedMagic = "vrgrseal";
inline constexpr std::size_t kSealedHeaderSize = 128;
inline constexpr std::size_t kSealedTagSize = aes_gcm::kTagSize;
/// Sealed: content's size and number of segments.
inline constexpr std::size_t kSealedFooterSize = 16 + kSealedTagSize;
inline constexpr std::uint32_t kSealedSegmentSize = 1U << 20U;
inline constexpr std::uint32_t kLargestSegment = 16U << 20U;

/// The first bytes of a sealed object, without what proves them.
struct SealedHeader {
  bool encrypted = false;
  bool compressed = false;
  std::uint32_t segment_size = kSealedSegmentSize;
  std::array<std::byte, 32> salt{};   ///< of the object's own key
  std::string key_id;                 ///< empty: not encrypted
  std::array<std::byte, 16> names{};  ///< tells name keys apart
};

/// Is this the beginning of a sealed object?
[[nodiscard]] bool is_sealed(ByteView object);
/// Tells name keys apart without showing them.
[[nodiscard]] std::array<std::byte, 16> names_id(const Key256& name_key);

/// Of what lies in a repository that keys were given for.
[[nodiscard]] Error not_encrypted();

/// What a part of an object is: parts of different kinds cannot take each other's place.
enum class SealedPart : std::uint8_t { kSegment, kLastSegment, kIndex, kFooter };

/// Seals and opens the parts of one object.
class ObjectSeal {
 public:
  /// For a new object; `keys` nullptr: only proven, not encrypted.
  static ObjectSeal make(const KeyRing* keys, bool compressed, Random& random,
                         std::uint32_t segment_size = kSealedSegmentSize);
  /// Of an object that is there. Errors: kCorruption, kUnsupported (a newer version),
  /// kUnauthorized (no keys, no such key, another key of that id; it names the id).
  static Result<ObjectSeal> of(ByteView header, const KeyRing* keys);

  [[nodiscard]] const SealedHeader& header() const { return header_; }
  [[nodiscard]] ByteView header_bytes() const { return bytes_; }
  /// Appends the sealed part to `out`. `name`: of the object, for its last part.
  void seal(SealedPart part, std::uint64_t number, std::string_view name, ByteView plain,
            Bytes& out) const;
  /// `plain` has kSealedTagSize bytes less than `sealed`. False: it is not that part.
  [[nodiscard]] bool open(SealedPart part, std::uint64_t number, std::string_view name,
                          ByteView sealed, MutableBytes plain) const;

 private:
  [[nodiscard]] Bytes bound(std::string_view name) const;
  /// Without encryption.
  [[nodiscard]] std::array<std::byte, kSealedTagSize> sum(const aes_gcm::Nonce& nonce,
                                                          std::string_view name,
                                                          ByteView plain) const;
  void encode();
  [[nodiscard]] std::array<std::byte, kSealedTagSize> header_tag(ByteView head) const;

  SealedHeader header_;
  std::array<std::byte, kSealedHeaderSize> bytes_{};
  Key256 key_{};         ///< of segments
  Key256 header_key_{};  ///< of the header
};

/// The id of the key that an object is sealed with, of its header; empty: it is not encrypted.
/// nullopt: it is no header, or a damaged one.
[[nodiscard]] std::optional<std::string> sealing_key_id(ByteView header);

}  // namespace verger::backup::detail
