#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/streams/event_store.h"
#include "nodeagent/http/message.h"

namespace verger::node {

class Core;

struct WriteRequest {
  enum class Kind : std::uint8_t { kAppend, kMetadata, kSoftDelete, kHardDelete, kScavengePoint };
  Kind kind = Kind::kAppend;
  std::string stream;
  std::int64_t expected_version = streams::kExpectAny;
  std::vector<streams::NewEvent> events;  ///< kAppend; kMetadata: one
  std::int32_t threshold = 0;             ///< kScavengePoint
};

enum class WriteStatus : std::uint8_t {
  kDone,          ///< on a majority, visible on the leader
  kWrongVersion,  ///< `current_version` says what is there
  kDeleted,
  kInvalid,
  kNotReady,  ///< no leader, or none that takes writes: certainly not written
  kTimeout,   ///< unknown: it may still be committed
};

struct WriteReply {
  WriteStatus status = WriteStatus::kNotReady;
  EventNumber first{-1};
  EventNumber last{-1};
  EventNumber current_version{-1};
  LogPosition position{-1};
  std::string message;
};

/// The one way in for every write: appended here when this node leads, else forwarded to the
/// leader (POST /verger/v1/write), and answered once a majority has it.
net::awaitable<WriteReply> write(std::shared_ptr<Core> core, WriteRequest request);
/// The leader's answer to a forwarded write; it forwards nothing.
net::awaitable<http::Response> answer_write(std::shared_ptr<Core> core, std::string body);

}  // namespace verger::node
