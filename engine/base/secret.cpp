#include "engine/base/secret.h"

#include <array>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "engine/base/assert.h"
#include "engine/base/digest.h"

namespace verger {
namespace {

constexpr std::size_t kIdDigits = 12;

std::string hash_of(const std::string& salt, std::string_view secret) {
  return to_hex(sha256(as_bytes(salt + std::string(secret))));
}

std::string random_digits(Random& random) {
  auto text = random.uuid().to_string() + random.uuid().to_string();
  std::erase(text, '-');
  return text;
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hmac_sha256(std::string_view secret, std::string_view message) {
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  // Fails only for want of memory.
  VERGER_ASSERT(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                     reinterpret_cast<unsigned char*>(digest.data()), &size) != nullptr);
  return to_hex(ByteView(digest).first(size));
}

bool SaltedHash::matches(std::string_view secret) const {
  return equal_in_constant_time(hash, hash_of(salt, secret));
}

SaltedHash salted_hash(std::string_view secret, Random& random) {
  SaltedHash kept;
  kept.salt = random_digits(random);
  kept.hash = hash_of(kept.salt, secret);
  return kept;
}

NewSecret make_secret(Random& random) {
  NewSecret made;
  made.id = random_digits(random).substr(0, kIdDigits);
  made.kept.salt = random_digits(random);
  made.secret = random_digits(random);
  made.kept.hash = hash_of(made.kept.salt, made.secret);
  return made;
}

}  // namespace verger
