#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/streams/event_store.h"
#include "nodeagent/http/message.h"

namespace verger::node {

class Core;

/// A write as a client requests it; only members that go with its kind are looked at.
struct WriteRequest {
  enum class Kind : std::uint8_t { kAppend, kMetadata, kSoftDelete, kHardDelete, kScavengePoint };
  Kind kind = Kind::kAppend;
  std::string stream{};
  std::int64_t expected_version = streams::kExpectAny;  ///< of the stream, or a kExpect... constant
  std::vector<streams::NewEvent> events{};              ///< kAppend; kMetadata: one
  std::int32_t threshold = 0;                           ///< kScavengePoint
};

/// How a write ended. All but kTimeout are certain.
enum class WriteStatus : std::uint8_t {
  kDone,          ///< on a majority, visible on the leader
  kWrongVersion,  ///< `current_version` says what is there
  kDeleted,       ///< the stream is, for good
  kInvalid,       ///< `message` says what is wrong with it
  kNotReady,      ///< no leader, or none that takes writes: certainly not written
  kTimeout,       ///< unknown: it may still be committed
};

/// -1 stands for what a status does not tell.
struct WriteReply {
  WriteStatus status = WriteStatus::kNotReady;
  EventNumber first{-1};  ///< of the events written
  EventNumber last{-1};
  EventNumber current_version{-1};  ///< kWrongVersion: the stream's
  LogPosition position{-1};         ///< of the last record written
  std::string message;              ///< for people
};

/// Writes on behalf of a part that need not know how; write(), below, with its node.
using WriteFunction = std::function<net::awaitable<WriteReply>(WriteRequest)>;

/// The one way in for every write: appended here when this node leads, else forwarded to the
/// leader (POST /verger/v1/write), and answered once a majority has it.
net::awaitable<WriteReply> write(std::shared_ptr<Core> core, WriteRequest request);
/// The leader's answer to a forwarded write; it forwards nothing.
net::awaitable<http::Response> answer_write(std::shared_ptr<Core> core, std::string body);

}  // namespace verger::node
