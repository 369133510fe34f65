#include "controller/scheduler/detail/recipients.h"

#include <string_view>

#include "engine/base/digest.h"

namespace verger::controller::detail {
namespace {

constexpr std::size_t kShownOfKey = 16;
constexpr std::string_view kInPlaceOfSecrets = "/...";

}  // namespace

std::string recipient_key(const Notification& to) {
  std::string text = to.webhook + '\n' + to.format + '\n' + to.email;
  for (const auto& word : to.command) {
    text += '\n' + word;
  }
  return to_hex(sha256(as_bytes(text))).substr(0, kShownOfKey);
}

std::string recipient_name(const Notification& to) {
  if (!to.email.empty()) {
    return to.email;
  }
  if (!to.command.empty()) {
    return to.command.front();
  }
  const auto address = webhook_address(to.webhook);
  return address ? address->endpoint.url() : std::string("a webhook without address");
}

std::string without_target(std::string problem, const std::string& target) {
  for (const auto& secret : {target, target.substr(0, target.find('?'))}) {
    if (secret.size() < 2) {
      continue;
    }
    for (auto at = problem.find(secret); at != std::string::npos;
         at = problem.find(secret, at + kInPlaceOfSecrets.size())) {
      problem.replace(at, secret.size(), kInPlaceOfSecrets);
    }
  }
  return problem;
}

}  // namespace verger::controller::detail
