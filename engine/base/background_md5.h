#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/base/md5_lanes.h"
#include "engine/base/result.h"

namespace verger {

class BackgroundMd5;

/// Computes the MD5 of up to kMostMessages messages in a thread of its own, beside those who make
/// them. Several messages take hardly longer than one (Md5Lanes), so it waits until each of them
/// has a piece, as long as none has several.
class Md5Thread {
 public:
  static constexpr std::size_t kMostMessages = Md5Lanes::kLanes;

  Md5Thread();
  ~Md5Thread();
  Md5Thread(const Md5Thread&) = delete;
  Md5Thread& operator=(const Md5Thread&) = delete;

 private:
  friend class BackgroundMd5;
  struct Message {
    std::function<Result<void>(ByteView)> sink;
    Result<void> sunk;  ///< what came of it: after an error it gets no more
    bool open = false;
    bool ending = false;        ///< its writer waits for the end
    bool hashing = false;       ///< the first one that waits
    std::deque<Bytes> waiting;  ///< in order
    std::size_t hashed = 0;     ///< of the first one that waits
    bool in_sink = false;       ///< the first one that waits has been there
  };
  using Views = std::array<ByteView, kMostMessages>;

  std::size_t begin(std::function<Result<void>(ByteView)> sink);
  Bytes spare_memory(std::size_t message);
  Result<void> sunk(std::size_t message);
  void add(std::size_t message, Bytes piece);
  Result<Md5Digest> finish(std::size_t message);
  void abandon(std::size_t message);

  [[nodiscard]] bool worth_hashing() const;
  Views next_views();
  void give_to_sinks(std::unique_lock<std::mutex>& lock);
  void note_hashed(const Views& views);
  void hash_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Message, kMostMessages> messages_;
  std::vector<Bytes> spare_;  ///< hashed: their memory is used again
  bool stopping_ = false;
  Md5Lanes lanes_;  ///< each lane is the thread's while it hashes that message
  std::jthread thread_;
};

/// The MD5 of bytes that come in pieces, computed by a thread beside the caller's. One thread uses
/// it. Its destruction drops what was not hashed yet.
class BackgroundMd5 {
 public:
  using Sink = std::function<Result<void>(ByteView piece)>;

  /// `thread`: that of other messages, too, of which there are fewer than kMostMessages. `sink`:
  /// gets the pieces, too, in order and in that thread: to write a file, for example.
  explicit BackgroundMd5(std::shared_ptr<Md5Thread> thread = std::make_shared<Md5Thread>(),
                         Sink sink = {});
  ~BackgroundMd5();
  BackgroundMd5(const BackgroundMd5&) = delete;
  BackgroundMd5& operator=(const BackgroundMd5&) = delete;

  /// Copies `bytes`; waits while several pieces have not been hashed. Large pieces cost least.
  void update(ByteView bytes);
  /// The same without a copy: takes what is in `piece`, and gives other memory for it, empty.
  void take(Bytes& piece);
  /// The sink's first error, if it has met one by now.
  Result<void> sunk() { return thread_->sunk(message_); }
  /// Waits for all pieces; the sink's error, if any. Only destruction is allowed afterwards.
  Result<Md5Digest> finish();

 private:
  std::shared_ptr<Md5Thread> thread_;
  std::size_t message_;
  bool finished_ = false;
};

}  // namespace verger
