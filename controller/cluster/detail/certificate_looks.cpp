#include "controller/cluster/detail/certificate_looks.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "controller/cluster/gather.h"
#include "controller/cluster/peers.h"
#include "nodeagent/certificates/certificate_details.h"

namespace verger::controller::detail {
namespace {

using Limit = std::optional<std::chrono::milliseconds>;
using planner::CertificateSeen;

/// What was served so long ago is as good as now.
constexpr std::chrono::seconds kCertificateAge{60};
constexpr std::chrono::seconds kCertificateAgeOfSurvey{600};

/// For the certificate of one that has just not answered: it may be frozen, and was waited for.
constexpr std::chrono::milliseconds kSilentCertificateLimit{2'000};

struct Seen {
  std::size_t node = 0;  ///< index in the snapshot
  std::string url{};
  std::string roots{};  ///< of the cluster
  std::optional<planner::ServedCertificate> certificate{};
  std::optional<planner::CertificateFiles> files{};  ///< where an agent was asked for them
  bool late = false;
};

/// nullopt: its dates cannot be read.
std::optional<CertificateSeen> seen_of(const http::CertificateInfo& info, bool is_leaf) {
  const auto not_before = parse_ticks(info.not_before);
  const auto not_after = parse_ticks(info.not_after);
  if (!not_after) {
    return std::nullopt;
  }
  return CertificateSeen{.kind = is_leaf ? CertificateSeen::Kind::kLeaf
                                 : info.subject == info.issuer
                                     ? CertificateSeen::Kind::kRoot
                                     : CertificateSeen::Kind::kIntermediate,
                         .subject = info.subject,
                         .serial = info.serial,
                         .fingerprint = info.fingerprint,
                         .not_before = not_before.value_or(Ticks()),
                         .not_after = *not_after};
}

/// The leaf, and those that vouch for it: what it was shown with, and the root that is trusted
/// here. Of the latter, the one that ends first.
void take_chain(const http::CertificateInfo& leaf, std::vector<http::CertificateInfo> roots,
                planner::ServedCertificate& into) {
  auto issuers = leaf.issuers;
  const auto& last = issuers.empty() ? leaf : issuers.back();
  std::erase_if(roots, [&last](const auto& root) {
    return root.subject != last.issuer || root.fingerprint == last.fingerprint;
  });
  // Of two roots with one name the younger vouches on when the older has ended.
  const auto root = std::ranges::max_element(roots, {}, &http::CertificateInfo::not_after);
  if (root != roots.end()) {
    issuers.push_back(*root);
  }
  if (auto seen = seen_of(leaf, true)) {
    into.chain.push_back(*std::move(seen));
  }
  for (const auto& issuer : issuers) {
    auto seen = seen_of(issuer, false);
    if (!seen) {
      continue;
    }
    if (into.issuer.empty() || seen->not_after < into.issuer_not_after) {
      into.issuer = issuer.subject;
      into.issuer_not_after = seen->not_after;
    }
    into.chain.push_back(*std::move(seen));
  }
}

net::awaitable<Seen> look_at_certificate(Network network, Seen what, std::string of) {
  const auto endpoint = http::parse_endpoint(what.url);
  if (endpoint && endpoint->tls) {
    const auto shown = co_await network.served_certificate(*endpoint);
    const auto not_after = shown ? parse_ticks(shown->not_after) : Result<Ticks>(shown.error());
    if (not_after) {
      what.certificate = planner::ServedCertificate{
          .serial = shown->serial, .of = std::move(of), .not_after = *not_after};
      take_chain(
          *shown,
          network.roots_of ? network.roots_of(what.roots) : std::vector<http::CertificateInfo>(),
          *what.certificate);
    }
  }
  co_return what;
}

/// The certificates of a file; why they cannot be read goes to `problem`.
void read_into(const std::string& pem, bool has_leaf, std::vector<CertificateSeen>& into,
               std::string& problem) {
  if (pem.empty()) {
    return;
  }
  const auto read = certificates::read_details(pem);
  if (!read) {
    problem = read.error().message;
    return;
  }
  for (const auto& each : *read) {
    if (auto seen = seen_of(each.info, has_leaf && into.empty())) {
      into.push_back(*std::move(seen));
    }
  }
}

net::awaitable<Seen> ask_for_files(std::shared_ptr<Peers> peers, Seen what, std::string node) {
  auto& files = what.files.emplace();
  const auto answer = co_await peers->certificates(std::move(node));
  if (!answer) {
    files.problem = answer.error().code == Errc::kNotFound
                        ? "its agent is of an older version, which does not tell"
                        : answer.error().message;
    co_return what;
  }
  const auto& live = answer->live;
  files.problem = live.certificate.problem.empty() ? live.roots_problem : live.certificate.problem;
  read_into(live.chain, true, files.chain, files.problem);
  for (const auto& root : live.roots) {
    read_into(root.pem, false, files.roots, files.problem);
  }
  for (const auto& user : answer->users) {
    std::vector<CertificateSeen> read;
    std::string problem = user.problem;
    read_into(user.pem, true, read, problem);
    if (read.empty()) {
      files.user_problems.push_back(
          fmt::format("{}: {}", user.path, problem.empty() ? "its dates cannot be read" : problem));
      continue;
    }
    read.front().kind = CertificateSeen::Kind::kUser;
    files.users.push_back({.path = user.path, .certificate = read.front()});
  }
  if (files.chain.empty() && files.problem.empty()) {
    files.problem = answer->change_problem.empty() ? "its agent does not know where they are"
                                                   : answer->change_problem;
  }
  co_return what;
}

net::awaitable<Seen> within(Limit limit, http::Timers* timers, Seen what,
                            net::awaitable<Seen> look) {
  using net::experimental::awaitable_operators::operator||;
  if (!limit) {
    co_return co_await std::move(look);
  }
  auto seen = co_await (std::move(look) || timers->sleep_for(*limit));
  if (seen.index() == 0) {
    co_return std::get<0>(std::move(seen));
  }
  what.late = true;
  co_return what;
}

}  // namespace

net::awaitable<void> look_at_certificates(Network network, std::shared_ptr<ObservationCache> cache,
                                          const ClusterConfig& config, Depth depth, Limit limit,
                                          planner::ClusterSnapshot& snapshot) {
  if (!network.served_certificate) {
    co_return;
  }
  std::vector<net::awaitable<Seen>> looks;
  std::shared_ptr<Peers> peers;
  const auto age = depth == Depth::kSurvey ? kCertificateAgeOfSurvey : kCertificateAge;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    auto& node = snapshot.nodes[i];
    for (const auto& [url, of] :
         {std::pair(node.url, "node"), std::pair(node.agent_url, "agent")}) {
      if (!url.starts_with("https")) {
        continue;
      }
      if (const auto* known = cache->certificate(url, network.clock.monotonic(), age)) {
        if (*known) {
          node.certificates.push_back(**known);
        }
      } else {
        const bool answered = url == node.url ? node.answered : node.agent_answered;
        const auto its =
            answered ? limit
                     : std::min(limit.value_or(kSilentCertificateLimit), kSilentCertificateLimit);
        const Seen what{.node = i, .url = url, .roots = config.trusted_roots};
        looks.push_back(within(its, &network.timers, what, look_at_certificate(network, what, of)));
      }
    }
    if (!node.agent_answered || !node.url.starts_with("https")) {
      continue;
    }
    if (const auto* known =
            cache->certificate_files(node.agent_url, network.clock.monotonic(), age)) {
      node.certificate_files = *known;
      continue;
    }
    if (!peers) {
      peers = std::make_shared<Peers>(network, config);
    }
    const Seen what{.node = i, .url = node.agent_url, .roots = {}};
    looks.push_back(within(limit, &network.timers, what, ask_for_files(peers, what, node.name)));
  }
  for (auto& seen : co_await gather(std::move(looks))) {
    if (seen.files) {
      cache->keep_certificate_files(seen.url, *seen.files, network.clock.monotonic());
      snapshot.nodes[seen.node].certificate_files = std::move(seen.files);
      continue;
    }
    if (seen.certificate) {
      snapshot.nodes[seen.node].certificates.push_back(*seen.certificate);
    }
    if (!seen.late || !limit) {
      cache->keep_certificate(seen.url, std::move(seen.certificate), network.clock.monotonic());
    }
  }
  for (auto& node : snapshot.nodes) {
    std::ranges::sort(node.certificates, {}, &planner::ServedCertificate::of);
  }
}

}  // namespace verger::controller::detail
