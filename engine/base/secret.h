#pragma once

#include <string>
#include <string_view>

#include "engine/base/random.h"

/// Secrets that we make ourselves: shown once, kept as a salted hash. They are long and random, so
/// a plain hash does; a password that a person chose needs a slow one.
namespace verger {

/// True for equal texts. Of texts of the same length it takes as long wherever they differ; their
/// lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// HMAC-SHA-256 in hexadecimal: proves that `secret` is known without showing it.
std::string hmac_sha256(std::string_view secret, std::string_view message);

/// What is kept of a secret. Stored in journals: the form does not change.
struct SaltedHash {
  std::string salt{};
  std::string hash{};  ///< hexadecimal SHA-256 of the salt's text and the secret
  [[nodiscard]] bool matches(std::string_view secret) const;
};

/// What a new token is found by, the secret that proves it, and what is kept of that.
struct NewSecret {
  std::string id{};      ///< 12 hexadecimal digits; no secret
  std::string secret{};  ///< 64 hexadecimal digits, 244 bits of chance in them
  SaltedHash kept{};
};
NewSecret make_secret(Random& random);

/// What to keep of a secret that was made elsewhere by make_secret().
SaltedHash salted_hash(std::string_view secret, Random& random);

}  // namespace verger
