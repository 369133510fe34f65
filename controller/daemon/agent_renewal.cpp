#include "controller/daemon/agent_renewal.h"

#include <algorithm>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "engine/base/private_file.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/client/agent_client.h"

namespace verger::controller {
namespace {

net::awaitable<Result<void>> renew(AgentRenewal& parts, EnrolledAgent enrolled) {
  const auto& cluster = enrolled.cluster;
  const auto& node = enrolled.node;
  VERGER_CO_TRY(const auto config, parts.registry.find(cluster));
  const auto* registered = config.find(node);
  if (registered == nullptr || registered->agent_url.empty()) {
    co_return Error{Errc::kNotFound, "it is not registered with an agent's URL"};
  }
  VERGER_CO_TRY(const auto endpoint, http::parse_endpoint(registered->agent_url, http::kAgentPort));
  if (!endpoint.tls) {
    co_return Error{Errc::kUnavailable, registered->agent_url + " is not https"};
  }
  const client::AgentClient agent(parts.client_of(enrolled), endpoint, parts.request_deadline);
  VERGER_CO_TRY(const auto request, client::to_result(co_await agent.certificate_request()));
  VERGER_CO_TRY(const auto issued, parts.book.renew(cluster, node, request));
  VERGER_CO_RETURN_IF_ERROR(
      client::to_result(co_await agent.install_certificate(issued.certificate)));
  VERGER_CO_RETURN_IF_ERROR(parts.book.has_arrived(cluster, node, issued.serial));
  parts.log.info("an agent's certificate was renewed",
                 {{"cluster", cluster},
                  {"node", node},
                  {"serial", issued.serial},
                  {"valid_until", format_ticks(issued.not_after)}});
  co_return Result<void>{};
}

constexpr std::uint64_t kFileBytes = 64U << 10U;

/// Whether the file holds a certificate that is good for a while yet.
bool still_good(const certificates::Authority& authority, const Path& path,
                std::chrono::seconds lifetime, Ticks now) {
  const auto bytes = read_file(posix_file_system(), path, kFileBytes);
  if (!bytes || !check_private_file(path)) {
    return false;
  }
  const auto text = as_text(*bytes);
  const auto checked = certificates::check_issued(text, text, authority.root());
  return checked &&
         now.value() + lifetime.count() / 3 * kTicksPerSecond < checked->not_after.value();
}

/// Whether the certificate in the file has these names, and no others.
bool is_for(const Path& path, const std::vector<std::string>& hosts) {
  const auto shown = certificates::read_certificates(path.string());
  return shown && std::ranges::is_permutation(shown->front().names, hosts);
}

}  // namespace

Result<bool> renew_own_certificate(const certificates::Authority& authority, const Path& path,
                                   std::chrono::seconds lifetime, Ticks now) {
  if (still_good(authority, path, lifetime, now)) {
    return false;
  }
  VERGER_TRY(const auto made, certificates::make_key_and_request());
  VERGER_TRY(const auto issued,
             authority.issue(made.request,
                             {.common_name = std::string(certificates::kControllerCommonName),
                              .usage = certificates::Usage::kClient},
                             now, lifetime));
  VERGER_RETURN_IF_ERROR(
      write_private_file(path, made.key + issued.certificate, IfThere::kReplace));
  return true;
}

Result<bool> renew_api_certificate(const certificates::Authority& authority, const Path& path,
                                   const std::vector<std::string>& hosts,
                                   std::chrono::seconds lifetime, Ticks now) {
  if (still_good(authority, path, lifetime, now) && is_for(path, hosts)) {
    return false;
  }
  VERGER_TRY(const auto made, certificates::make_key_and_request());
  VERGER_TRY(const auto issued,
             authority.issue(made.request,
                             {.common_name = std::string(certificates::kControllerCommonName),
                              .hosts = hosts,
                              .usage = certificates::Usage::kServer},
                             now, lifetime));
  VERGER_RETURN_IF_ERROR(write_private_file(path, made.key + issued.certificate + authority.root(),
                                            IfThere::kReplace));
  return true;
}

namespace {

net::awaitable<void> look(AgentRenewal& parts) {
  if (auto own = parts.renew_own(); !own) {
    parts.log.error("vergerd's own certificate for agents was not renewed",
                    {{"error", own.error().message}});
  }
  for (const auto& agent : parts.book.agents()) {
    if (parts.clock.now() < AgentBook::renew_at(agent)) {
      continue;
    }
    if (auto renewed = co_await renew(parts, agent); !renewed) {
      parts.log.warning("an agent's certificate was not renewed; it will be tried again",
                        {{"cluster", agent.cluster},
                         {"node", agent.node},
                         {"valid_until", format_ticks(agent.not_after)},
                         {"error", renewed.error().message}});
    }
  }
}

/// What was thrown, for the log; a cancellation is thrown on.
std::string text_of_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    if (error.code() == net::error::operation_aborted) {
      throw;
    }
    return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

net::awaitable<void> AgentRenewal::run(AgentRenewal parts) {
  while (true) {
    co_await parts.timers.sleep_for(parts.look_every);
    std::exception_ptr failure;
    try {
      co_await look(parts);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      parts.log.error("renewing certificates failed; it will be tried again",
                      {{"error", text_of_failure(failure)}});
    }
  }
}

}  // namespace verger::controller
