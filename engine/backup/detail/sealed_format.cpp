#include "engine/backup/detail/sealed_format.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/assert.h"
#include "engine/base/digest.h"

namespace verger::backup::detail {
namespace {

constexpr std::byte kSealedVersion{1};
// Offsets in the header.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kEncryptionAt = 9;
constexpr std::size_t kCompressionAt = 10;
constexpr std::size_t kSegmentSizeAt = 12;
constexpr std::size_t kSaltAt = 16;
constexpr std::size_t kKeyIdAt = 48;
constexpr std::size_t kKeyIdSize = 32;
constexpr std::size_t kNamesAt = 80;
constexpr std::size_t kTagAt = 96;
constexpr std::size_t kSumAt = 112;  ///< finds damage before any key is looked for

std::array<std::byte, kSealedTagSize> first_half(const Sha256Digest& digest) {
  std::array<std::byte, kSealedTagSize> half{};
  std::copy_n(digest.begin(), half.size(), half.begin());
  return half;
}

aes_gcm::Nonce nonce_of(SealedPart part, std::uint64_t number) {
  aes_gcm::Nonce nonce{};
  store_le(nonce.data(), number);
  nonce[8] = static_cast<std::byte>(part);
  return nonce;
}

Error damaged_header() {
  return {Errc::kCorruption, "its header does not have its checksum: it was damaged"};
}

/// Magic, version and checksum.
Result<void> check_header(ByteView header) {
  if (header.size() < kSealedHeaderSize || !is_sealed(header)) {
    return Error{Errc::kCorruption, "does not begin as a sealed object does"};
  }
  const auto sum = first_half(sha256(header.first(kSumAt)));
  if (!same_bytes(sum, header.subspan(kSumAt, sum.size()))) {
    return damaged_header();
  }
  if (header[kVersionAt] != kSealedVersion) {
    return Error{Errc::kUnsupported, "was written by a newer version: use that one"};
  }
  return {};
}

std::string key_id_of(ByteView header) {
  const auto text = as_text(header.subspan(kKeyIdAt, kKeyIdSize));
  return std::string(text.substr(0, text.find('\0')));
}

Result<SealedHeader> decode_header(ByteView bytes) {
  VERGER_RETURN_IF_ERROR(check_header(bytes));
  SealedHeader header;
  header.encrypted = bytes[kEncryptionAt] == std::byte{1};
  header.compressed = bytes[kCompressionAt] == std::byte{1};
  header.segment_size = load_le<std::uint32_t>(bytes.data() + kSegmentSizeAt);
  std::ranges::copy(bytes.subspan(kSaltAt, header.salt.size()), header.salt.begin());
  header.key_id = key_id_of(bytes);
  std::ranges::copy(bytes.subspan(kNamesAt, header.names.size()), header.names.begin());
  if (bytes[kEncryptionAt] > std::byte{1} || bytes[kCompressionAt] > std::byte{1} ||
      header.segment_size == 0 || header.segment_size > kLargestSegment ||
      header.encrypted == header.key_id.empty()) {
    return damaged_header();
  }
  return header;
}

}  // namespace

bool is_sealed(ByteView object) {
  return object.size() >= kSealedMagic.size() &&
         as_text(object.first(kSealedMagic.size())) == kSealedMagic;
}

std::array<std::byte, 16> names_id(const Key256& name_key) {
  return first_half(keyed_digest(name_key, as_bytes("verger backup names 1")));
}

std::optional<std::string> sealing_key_id(ByteView header) {
  return check_header(header) ? std::optional(key_id_of(header)) : std::nullopt;
}

Error not_encrypted() {
  return {Errc::kCorruption,
          "is not encrypted, and a key file is given: encryption is chosen when a repository is "
          "made. Use the repository without keyFile, or make a new one"};
}

ObjectSeal ObjectSeal::make(const KeyRing* keys, bool compressed, Random& random,
                            std::uint32_t segment_size) {
  ObjectSeal seal;
  seal.header_.segment_size = segment_size;
  seal.header_.compressed = compressed;
  if (keys != nullptr) {
    const auto& writing = keys->writing();
    seal.header_.encrypted = true;
    seal.header_.salt = random_key(random);
    seal.header_.key_id = writing.id;
    seal.header_.names = names_id(keys->name_key());
    seal.key_ = derive_key(writing.key, seal.header_.salt, "verger backup object 1");
    seal.header_key_ = derive_key(writing.key, seal.header_.salt, "verger backup header 1");
  }
  seal.encode();
  return seal;
}

void ObjectSeal::encode() {
  std::ranges::copy(as_bytes(kSealedMagic), bytes_.begin());
  bytes_[kVersionAt] = kSealedVersion;
  bytes_[kEncryptionAt] = std::byte{header_.encrypted};
  bytes_[kCompressionAt] = std::byte{header_.compressed};
  store_le(bytes_.data() + kSegmentSizeAt, header_.segment_size);
  std::ranges::copy(header_.salt, bytes_.begin() + kSaltAt);
  VERGER_ASSERT(header_.key_id.size() <= kKeyIdSize);
  std::ranges::copy(as_bytes(header_.key_id), bytes_.begin() + kKeyIdAt);
  std::ranges::copy(header_.names, bytes_.begin() + kNamesAt);
  const ByteView bytes(bytes_);
  std::ranges::copy(header_tag(bytes.first(kTagAt)), bytes_.begin() + kTagAt);
  std::ranges::copy(first_half(sha256(bytes.first(kSumAt))), bytes_.begin() + kSumAt);
}

std::array<std::byte, kSealedTagSize> ObjectSeal::header_tag(ByteView head) const {
  return first_half(header_.encrypted ? keyed_digest(header_key_, head) : sha256(head));
}

Result<ObjectSeal> ObjectSeal::of(ByteView header, const KeyRing* keys) {
  ObjectSeal seal;
  VERGER_TRY(seal.header_, decode_header(header));
  const auto& id = seal.header_.key_id;
  if (!seal.header_.encrypted && keys != nullptr) {
    return not_encrypted();
  }
  if (seal.header_.encrypted) {
    const auto* const key = keys == nullptr ? nullptr : keys->find(id);
    if (key == nullptr) {
      return Error{
          Errc::kUnauthorized,
          keys == nullptr
              ? fmt::format("is encrypted with the key \"{}\": give a repository file with keyFile",
                            id)
              : fmt::format("is encrypted with the key \"{}\", which the key file does not hold: "
                            "add its line",
                            id)};
    }
    if (names_id(keys->name_key()) != seal.header_.names) {
      return Error{Errc::kUnauthorized,
                   "was written with another key \"names\" than that of the key file: use the key "
                   "file that the repository was made with"};
    }
    seal.key_ = derive_key(key->key, seal.header_.salt, "verger backup object 1");
    seal.header_key_ = derive_key(key->key, seal.header_.salt, "verger backup header 1");
  }
  std::copy_n(header.begin(), kSealedHeaderSize, seal.bytes_.begin());
  if (!same_bytes(seal.header_tag(header.first(kTagAt)), header.subspan(kTagAt, kSealedTagSize))) {
    return seal.header_.encrypted
               ? Error{Errc::kUnauthorized,
                       fmt::format("is encrypted with another key \"{}\" than that of the key "
                                   "file",
                                   id)}
               : damaged_header();
  }
  return seal;
}

Bytes ObjectSeal::bound(std::string_view name) const {
  Bytes bytes(bytes_.begin(), bytes_.end());
  append_bytes(bytes, as_bytes(name));
  return bytes;
}

std::array<std::byte, kSealedTagSize> ObjectSeal::sum(const aes_gcm::Nonce& nonce,
                                                      std::string_view name, ByteView plain) const {
  Sha256 hash;
  hash.update(bytes_);
  hash.update(nonce);
  hash.update(as_bytes(name));
  hash.update(plain);
  return first_half(hash.finish());
}

void ObjectSeal::seal(SealedPart part, std::uint64_t number, std::string_view name, ByteView plain,
                      Bytes& out) const {
  const auto nonce = nonce_of(part, number);
  const auto at = out.size();
  if (header_.encrypted) {
    out.resize(at + plain.size() + kSealedTagSize);
    aes_gcm::seal(key_, nonce, bound(name), plain, MutableBytes(out).subspan(at));
    return;
  }
  append_bytes(out, plain);
  append_bytes(out, sum(nonce, name, plain));
}

bool ObjectSeal::open(SealedPart part, std::uint64_t number, std::string_view name, ByteView sealed,
                      MutableBytes plain) const {
  if (sealed.size() < kSealedTagSize || plain.size() != sealed.size() - kSealedTagSize) {
    return false;
  }
  const auto nonce = nonce_of(part, number);
  if (header_.encrypted) {
    return aes_gcm::open(key_, nonce, bound(name), sealed, plain);
  }
  const auto content = sealed.first(plain.size());
  if (!same_bytes(sum(nonce, name, content), sealed.last(kSealedTagSize))) {
    return false;
  }
  std::ranges::copy(content, plain.begin());
  return true;
}

}  // namespace verger::backup::detail
