#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "engine/base/bytes.h"

namespace verger {

using Md5Digest = std::array<std::byte, 16>;
using Sha256Digest = std::array<std::byte, 32>;

/// Running MD5, the checksum of chunk and index files. Copying copies the running state.
class Md5 {
 public:
  Md5();
  Md5(const Md5& other);
  Md5& operator=(const Md5& other);
  Md5(Md5&&) noexcept;
  Md5& operator=(Md5&&) noexcept;
  ~Md5();
  void update(ByteView bytes);
  /// Ends the computation; only destruction and assignment are allowed afterwards.
  Md5Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Running SHA-256, for logical digests, plan hashes and the audit chain.
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();
  void update(ByteView bytes);
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Md5Digest md5(ByteView bytes);
Sha256Digest sha256(ByteView bytes);
/// Lower-case hexadecimal digits.
std::string to_hex(ByteView bytes);

}  // namespace verger
