#include "nodeagent/operations/permits.h"

#include <fmt/format.h>

namespace verger::agent {
namespace {

std::string key_of(const std::string& run, const std::string& step) { return run + '\n' + step; }

}  // namespace

void Permits::grant(const api::Permit& permit) {
  const auto now = clock_.monotonic();
  std::erase_if(by_step_, [&](const auto& entry) {
    return entry.second.expires <= now || entry.second.controller_epoch < permit.controller_epoch;
  });
  by_step_[key_of(permit.run, permit.step)] = {
      .controller_epoch = permit.controller_epoch,
      .expires = now + std::chrono::milliseconds(permit.valid_for_ms)};
}

Result<void> Permits::check(const api::OperationRequest& request) const {
  const auto found = by_step_.find(key_of(request.run, request.step));
  if (found == by_step_.end() || found->second.controller_epoch != request.controller_epoch) {
    return Error{Errc::kRefused,
                 fmt::format("no permit for step {} of run {} by controller epoch {}; register one "
                             "first",
                             request.step, request.run, request.controller_epoch)};
  }
  if (found->second.expires <= clock_.monotonic()) {
    return Error{Errc::kRefused, fmt::format("the permit for step {} of run {} has run out; "
                                             "register a new one",
                                             request.step, request.run)};
  }
  return {};
}

}  // namespace verger::agent
