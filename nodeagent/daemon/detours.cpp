#include "nodeagent/daemon/detours.h"

#include <utility>

namespace verger::agent {
namespace {

const http::Endpoint& by_detour(const Detours& detours, const http::Endpoint& to) {
  const auto found = detours.find(to);
  return found == detours.end() ? to : found->second;
}

}  // namespace

net::awaitable<Result<http::Response>> DetourClient::send(http::Endpoint to, http::Request request,
                                                          std::chrono::milliseconds deadline) {
  return client_.send(by_detour(detours_, to), std::move(request), deadline);
}

net::awaitable<Result<std::shared_ptr<http::FrameConnection>>> DetourFrames::connect(
    http::Endpoint to, std::chrono::milliseconds deadline) {
  return frames_.connect(by_detour(detours_, to), deadline);
}

}  // namespace verger::agent
