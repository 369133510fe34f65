#include "engine/base/secret.h"

#include <openssl/crypto.h>

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

bool SaltedHash::matches(std::string_view secret) const {
  return equal_in_constant_time(hash, hash_of(salt, secret));
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
