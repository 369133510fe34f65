#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"

namespace verger {

/// The MD5 of bytes that come in pieces, computed by a thread of its own beside the caller's. One
/// thread uses it. Its destruction drops what was not hashed yet, and ends the thread.
class BackgroundMd5 {
 public:
  BackgroundMd5();
  ~BackgroundMd5();
  BackgroundMd5(const BackgroundMd5&) = delete;
  BackgroundMd5& operator=(const BackgroundMd5&) = delete;

  /// Copies `bytes`; waits while several pieces have not been hashed. Large pieces cost least.
  void update(ByteView bytes);
  /// The same without a copy: takes what is in `piece`, and gives other memory for it, empty.
  void take(Bytes& piece);
  /// Waits for all pieces. Only destruction is allowed afterwards.
  Md5Digest finish();

 private:
  Bytes spare_memory();
  void add(Bytes piece);
  void hash_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> waiting_;  ///< in order
  std::vector<Bytes> spare_;    ///< hashed: their memory is used again
  bool hashing_ = false;
  bool stopping_ = false;
  Md5 md5_;  ///< of the thread, while it hashes
  std::jthread thread_;
};

}  // namespace verger
