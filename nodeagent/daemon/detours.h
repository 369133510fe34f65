#pragma once

#include <map>

#include "nodeagent/http/client.h"
#include "nodeagent/http/frames.h"

namespace verger::agent {

/// For tests: which other place is connected to in place of an endpoint. A test puts something of
/// its own between two nodes that way, which can cut the one's connections to the other and leave
/// the rest of the cluster alone; the nodes keep their addresses for each other and for clients.
using Detours = std::map<http::Endpoint, http::Endpoint>;

/// Sends requests by the detours.
class DetourClient final : public http::Client {
 public:
  DetourClient(http::Client& client, Detours detours)
      : client_(client), detours_(std::move(detours)) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override;

 private:
  http::Client& client_;
  Detours detours_;
};

/// Connects by the detours.
class DetourFrames final : public http::FrameTransport {
 public:
  DetourFrames(http::FrameTransport& frames, Detours detours)
      : frames_(frames), detours_(std::move(detours)) {}
  net::awaitable<Result<std::shared_ptr<http::FrameConnection>>> connect(
      http::Endpoint to, std::chrono::milliseconds deadline) override;

 private:
  http::FrameTransport& frames_;
  Detours detours_;
};

}  // namespace verger::agent
