#include "controller/daemon/trusted_clients.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "controller/daemon/enrolled_agents.h"
#include "nodeagent/certificates/certificate_info.h"

namespace verger::controller {
namespace {

/// Between two looks at the same files.
constexpr std::chrono::seconds kLookAgain{1};

/// Names, sizes and times of a file, or of those of a directory: other ones mean other roots.
std::string state_of(const Path& where) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::set<std::string> parts;
  const auto add = [&](const Path& file) {
    parts.insert(fmt::format("{} {} {}", file.string(), fs::file_size(file, ignored),
                             fs::last_write_time(file, ignored).time_since_epoch().count()));
  };
  if (where.empty()) {
    return {};
  }
  add(where);
  for (fs::directory_iterator at(where, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    add(at->path());
  }
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

Result<TrustedClients::Side> TrustedClients::make_side(const http::TlsFiles& files) const {
  Side side;
  if (!files.trusted_roots.empty()) {
    VERGER_TRY(side.tls, http::TlsContext::client(files));
  }
  side.client = std::make_unique<http::BeastClient>(
      executor_,
      http::BeastClientOptions{
          .idle_lifetime = kConnectionUnused,
          .kept = kept_,
          .tls = side.tls,
          .roots_advice = "; name those of the cluster's certificates (verger cluster add --ca "
                          "FILE), or start vergerd with --ca",
          .unknown_issuer_advice = advice_about_unknown_issuer,
          .plain_to_loopback_only = true});
  return side;
}

Result<std::unique_ptr<TrustedClients>> TrustedClients::make(boost::asio::any_io_executor executor,
                                                             ClientTls tls, Path directory,
                                                             std::string agents_token, Log& log) {
  std::unique_ptr<TrustedClients> out(new TrustedClients(
      std::move(executor), std::move(tls), std::move(directory), std::move(agents_token), log));
  VERGER_RETURN_IF_ERROR(out->trusting({}));
  return out;
}

Path TrustedClients::place_of(const std::string& roots) const {
  // An absolute name replaces the directory.
  return roots.empty() ? Path(tls_.trusted_roots) : directory_ / roots;
}

Result<ClusterClients> TrustedClients::trusting(const std::string& roots) {
  const auto where = place_of(roots);
  const auto now = system_clock().monotonic();
  auto known = by_roots_.find(roots);
  // A thousand nodes are queried each second: their roots' files are not looked at as often.
  const bool look = known == by_roots_.end() || now - known->second.looked_at >= kLookAgain;
  const auto seen = look ? state_of(where) : known->second.seen;
  if (known == by_roots_.end()) {
    Entry entry{.nodes = {}, .agents = {}, .signing = {}, .seen = seen};
    VERGER_TRY(entry.nodes, make_side({.trusted_roots = where.string()}));
    VERGER_TRY(entry.agents, make_side({.certificate = tls_.certificate,
                                        .private_key = tls_.private_key,
                                        .trusted_roots = where.string()}));
    entry.signing = std::make_unique<http::SigningClient>(*entry.agents.client, agents_token_,
                                                          system_clock(), system_random());
    known = by_roots_.emplace(roots, std::move(entry)).first;
  } else if (known->second.seen != seen) {
    known->second.seen = seen;  // also where it fails: it is tried again when it changes again
    log_.info("trusted roots have changed", {{"file", where.string()}});
    reload(roots, known->second);
  }
  if (look) {
    known->second.looked_at = now;
    known->second.nodes.client->close_unused();
    known->second.agents.client->close_unused();
  }
  return ClusterClients{.nodes = known->second.nodes.client.get(),
                        .agents = known->second.signing.get()};
}

std::vector<http::CertificateInfo> TrustedClients::roots_of(const std::string& roots) const {
  namespace fs = std::filesystem;
  std::vector<http::CertificateInfo> out;
  const auto add = [&out](const Path& file) {
    if (auto read = certificates::read_certificates(file.string())) {
      out.insert(out.end(), read->begin(), read->end());
    }
  };
  const auto where = place_of(roots);
  std::error_code no_directory;
  for (fs::directory_iterator at(where, no_directory), end; !no_directory && at != end;
       at.increment(no_directory)) {
    add(at->path());
  }
  if (!where.empty() && out.empty()) {
    add(where);
  }
  return out;
}

void TrustedClients::reload(const std::string& roots, Entry& entry) {
  for (auto* side : {&entry.nodes, &entry.agents}) {
    if (side->tls == nullptr) {
      continue;
    }
    if (auto loaded = side->tls->reload(); !loaded) {
      log_.error("certificates not reloaded; the former ones stay",
                 {{"of", roots.empty() ? "vergerd" : roots}, {"error", loaded.error().message}});
      continue;
    }
    side->client->drop_connections();
  }
}

void TrustedClients::reload() {
  for (auto& [roots, entry] : by_roots_) {
    entry.seen = state_of(place_of(roots));
    reload(roots, entry);
  }
  log_.info("certificates and trusted roots read again");
}

}  // namespace verger::controller
