#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/base/random.h"

namespace verger {

/// A key of 256 bits.
using Key256 = std::array<std::byte, 32>;

/// HMAC-SHA-256.
Sha256Digest keyed_digest(ByteView key, ByteView message);

/// HKDF-SHA-256 (RFC 5869): a key of its own for one `purpose`, of a key and a salt.
Key256 derive_key(const Key256& key, ByteView salt, std::string_view purpose);

Key256 random_key(Random& random);

/// AES-256-GCM: encrypts, and finds every change. One nonce is used once with a key.
namespace aes_gcm {

inline constexpr std::size_t kTagSize = 16;
using Nonce = std::array<std::byte, 12>;

/// `sealed` has kTagSize bytes more than `plain`; `bound` is no part of it, and has to be the same
/// when it is opened.
void seal(const Key256& key, const Nonce& nonce, ByteView bound, ByteView plain,
          MutableBytes sealed);
/// False: not what seal() made with these; `plain` then holds nothing of use.
[[nodiscard]] bool open(const Key256& key, const Nonce& nonce, ByteView bound, ByteView sealed,
                        MutableBytes plain);

}  // namespace aes_gcm
}  // namespace verger
