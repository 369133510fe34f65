#include "nodeagent/daemon/node_certificates.h"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <system_error>

#include "engine/base/users.h"

namespace verger::agent {

std::shared_ptr<CertificateAccess> certificate_access(const ProgramOptions& options,
                                                      net::any_io_executor executor) {
  const auto& tls = options.node_tls;
  if (tls.certificate.empty()) {
    return nullptr;
  }
  auto out = std::make_shared<CertificateAccess>();
  const bool embedded = options.role != Role::kAgent;
  out->places = {.certificate = tls.certificate,
                 .private_key = tls.private_key,
                 .private_key_password = tls.private_key_password,
                 .trusted_roots = tls.trusted_roots,
                 .reserved_common_name = embedded || !tls.reserved_common_name.empty()
                                             ? std::optional(tls.reserved_common_name)
                                             : std::nullopt,
                 .loads_ec_keys = embedded,
                 .users = {options.user_certificates.begin(), options.user_certificates.end()}};
  out->access = &external::posix_file_access();
  // A server makes the files of its database as its own user.
  if (const auto database = out->access->attributes_of(options.node.database)) {
    out->server_user = ServerUser{.id = database->owner, .groups = groups_of_user(database->owner)};
  }
  out->shake_hands = [executor](http::Endpoint with, http::ClientMaterial material,
                                std::string target, std::chrono::milliseconds deadline) {
    return http::shake_hands(executor, std::move(with), std::move(material), std::move(target),
                             deadline);
  };
  return out;
}

Result<void> send_hangup(std::int64_t process) {
  if (::kill(static_cast<pid_t>(process), SIGHUP) == 0) {
    return {};
  }
  const int number = errno;
  return Error{number == EPERM ? Errc::kRefused : Errc::kUnavailable,
               fmt::format("SIGHUP cannot be sent to the server, process {}: {}{}", process,
                           std::generic_category().message(number),
                           number == EPERM ? " (run the agent as its user, or as root)" : "")};
}

}  // namespace verger::agent
