#include "tests/support/controller/fake_certificates.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "nodeagent/api/agent_jobs.h"
#include "nodeagent/api/json_answer.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/detail/verify_chain.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/http/client.h"
#include "tests/support/results.h"

namespace verger::test {

using api::CertificatePhase;
using certificates::CertificateKind;
using certificates::CertificateTerms;

namespace {

constexpr std::int64_t kDay = 86'400 * kTicksPerSecond;

std::string new_ec_key() {
  return value(certificates::new_private_key(certificates::KeyType::kEcP256, ""));
}

std::string sha256_text(const std::string& content) { return to_hex(sha256(as_bytes(content))); }

/// Each text is read once: reading PEM would be three quarters of the time of a run over these
/// nodes.
template <auto kRead>
const auto& read_once(const std::string& text) {
  static std::unordered_map<std::string, decltype(kRead(text))> known;
  const auto found = known.find(text);
  return found != known.end() ? found->second : known.emplace(text, kRead(text)).first->second;
}

/// Certificates and keys of equal texts are shared, and so not changed.
const auto& details_in(const std::string& pem) {
  return read_once<certificates::read_details>(pem);
}
const auto& certificates_in(const std::string& pem) {
  return read_once<certificates::read_certificate_list>(pem);
}
const auto& key_in(const std::string& pem) {
  return read_once<[](const std::string& text) { return certificates::read_key(text); }>(pem);
}

std::string all_roots(const FakeCertificateFiles& files) {
  std::string out;
  for (const auto& [name, pem] : files.roots) {
    out += pem;
  }
  return out;
}

http::Response problem_of(int status, const std::string& code) {
  return api::json_text_answer(
      status, nlohmann::json{{"status", status}, {"code", code}, {"detail", code}}.dump());
}

std::string node_of(const std::string& url) {
  const auto host = value(http::parse_endpoint(url)).host;
  return "n" + host.substr(host.rfind('.') + 1);
}

}  // namespace

FakeAuthority FakeAuthority::make(const std::string& name, Ticks now, int days) {
  FakeAuthority out{.key = new_ec_key()};
  const CertificateTerms terms{.kind = CertificateKind::kRoot,
                               .common_name = name,
                               .not_before = Ticks(now.value() - kDay),
                               .not_after = Ticks(now.value() + days * kDay)};
  out.certificate = value(certificates::make_root(out.key, "", terms)).certificates;
  return out;
}

std::string FakeAuthority::issue(const std::string& key_or_request,
                                 const CertificateTerms& terms) const {
  const auto request = key_or_request.contains("PRIVATE KEY")
                           ? value(certificates::make_request(key_or_request, "", terms))
                           : key_or_request;
  return value(certificates::issue(request, terms, {.certificates = certificate, .key = key}))
      .certificates;
}

std::string FakeCertificates::serial() const {
  return details_in(loaded.chain).value().front().info.serial;
}

FakeCertificateCluster::FakeCertificateCluster(VirtualTime& time, int count)
    : authority(FakeAuthority::make("old CA", time.now())), time_(time) {
  for (int i = 1; i <= count; ++i) {
    auto& node = nodes[fmt::format("n{}", i)];
    node.disk = leaf_of(authority, i);
    node.loaded = node.disk;
  }
}

CertificateTerms FakeCertificateCluster::terms_of(int node, int days) const {
  return {.kind = CertificateKind::kNode,
          .common_name = std::string(certificates::kNodeCommonName),
          .dns_names = {fmt::format("n{}.db.example.com", node)},
          .ip_addresses = {fmt::format("10.0.0.{}", node)},
          .not_before = Ticks(time_.now().value() - kDay / 24),
          .not_after = Ticks(time_.now().value() + days * kDay)};
}

FakeCertificateFiles FakeCertificateCluster::leaf_of(
    const FakeAuthority& by, int node, int days,
    const std::function<void(CertificateTerms&)>& change) const {
  auto terms = terms_of(node, days);
  if (change) {
    change(terms);
  }
  FakeCertificateFiles out{.key = new_ec_key()};
  out.chain = by.issue(out.key, terms);
  out.roots = {{"ca.crt", by.certificate}};
  return out;
}

void FakeCertificateCluster::offer(const std::string& node, FakeCertificateFiles files) {
  nodes.at(node).paths["/new/node.crt"] = std::move(files);
}

std::map<std::string, std::string> FakeCertificateCluster::serials() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : nodes) {
    out[name] = node.serial();
  }
  return out;
}

std::map<std::string, std::pair<FakeCertificateFiles, FakeCertificateFiles>>
FakeCertificateCluster::all() const {
  std::map<std::string, std::pair<FakeCertificateFiles, FakeCertificateFiles>> out;
  for (const auto& [name, node] : nodes) {
    out[name] = {node.disk, node.loaded};
  }
  return out;
}

Result<FakeCertificateFiles> FakeCertificateCluster::candidate(
    FakeCertificates& node, const api::CertificateSource& source) const {
  const Error missing{Errc::kNotFound, "not_found"};
  if (source.set.empty()) {
    const auto found = node.paths.find(source.certificate_path);
    return found == node.paths.end() ? Result<FakeCertificateFiles>(missing)
                                     : Result<FakeCertificateFiles>(found->second);
  }
  if (!node.store.contains(source.set)) {
    return missing;
  }
  VERGER_TRY(const auto set, api::parse_certificate_set(node.store.at(source.set)));
  const auto own = set.nodes.find(source.node);
  if (own == set.nodes.end() || !node.store.contains(own->second.certificate)) {
    return missing;
  }
  FakeCertificateFiles out{.chain = node.store.at(own->second.certificate),
                           .key = node.disk.key,
                           .roots = node.disk.roots};
  if (!own->second.key_request.empty()) {
    out.key = node.requests.at(own->second.key_request);
  } else if (!own->second.key.empty()) {
    out.key = node.store.at(own->second.key);
  }
  if (!own->second.roots.empty()) {
    out.roots.clear();
    for (const auto& root : own->second.roots) {
      out.roots[root.name] = node.store.at(root.sha256);
    }
  }
  return out;
}

api::CertificateFiles FakeCertificateCluster::describe(const FakeCertificateFiles& files,
                                                       const std::string& path) const {
  api::CertificateFiles out;
  out.certificate.path = path;
  out.key.path = "/etc/node.key";
  out.chain = files.chain;
  if (const auto& read = details_in(files.chain)) {
    out.serial = read->front().info.serial;
    out.not_after = read->front().info.not_after;
  }
  for (const auto& [name, pem] : files.roots) {
    out.roots.push_back({.name = name, .file = {.path = "/etc/ca/" + name}, .pem = pem});
  }
  out.roots_path = "/etc/ca";
  out.digest = sha256_text(files.chain + files.key + all_roots(files));
  const auto& key = key_in(files.key);
  const auto& shown = certificates_in(files.chain);
  if (key && shown) {
    out.key_matches = X509_check_private_key(shown->front().get(), key->get()) == 1;
    if (!*out.key_matches) {
      out.findings.push_back({.code = "key-mismatch",
                              .where = "/new/node.key",
                              .message = "it is not the key of the certificate " + path,
                              .next = "put the key there that was made with this certificate"});
    }
  }
  return out;
}

api::NodeCertificates FakeCertificateCluster::certificates_of(const FakeCertificates& node) const {
  api::NodeCertificates out;
  out.live = describe(node.disk, "/etc/node.crt");
  out.served = node.loaded.chain;
  out.reserved_common_name = "";
  out.loads_ec_keys = true;
  out.change_problem = node.change_problem;
  out.users = node.users;
  out.taken_at = format_ticks(time_.now());
  if (node.change) {
    api::CertificateChange change{.change = node.change->change};
    for (const auto phase :
         {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
      change.phases.push_back(
          {.phase = phase,
           .state = node.change->before.contains(phase) ? "switched" : "staged",
           .files = 1,
           .restore_commands = {fmt::format("mv {}", api::to_string(phase)), "reload"}});
    }
    out.change = std::move(change);
  }
  return out;
}

std::string FakeCertificateCluster::refused_by(const FakeCertificateFiles& shown,
                                               const FakeCertificateFiles& by) const {
  const auto& chain = certificates_in(shown.chain);
  const auto& roots = certificates_in(all_roots(by));
  if (!chain || !roots) {
    return "no PEM";
  }
  const auto fault = certificates::verify_chain(*chain, *roots, 0, time_.now());
  return fault ? fault->text : "";
}

std::vector<api::PeerHandshake> FakeCertificateCluster::handshakes(
    const std::string& from, const api::HandshakesRequest& asked) {
  std::vector<api::PeerHandshake> out;
  const auto& own = nodes.at(from);
  for (const auto& peer : asked.peers) {
    const auto name = node_of(peer.url);
    const auto& to = nodes.at(name);
    api::PeerHandshake seen{.name = peer.name};
    if (!is_up(name)) {
      seen.problem = "connection refused";
      out.push_back(std::move(seen));
      continue;
    }
    seen.served = to.loaded.chain;
    seen.serial = to.serial();
    seen.not_trusted = refused_by(to.loaded, own.disk);
    seen.trusted = seen.not_trusted.empty();
    seen.not_accepted =
        to.refuses_clients ? "tls alert: unknown ca" : refused_by(own.disk, to.loaded);
    seen.accepted = seen.not_accepted.empty();
    seen.shown_serial = describe(own.disk, "").serial;
    out.push_back(std::move(seen));
  }
  return out;
}

FakeCertificateCluster::Done FakeCertificateCluster::stage(FakeCertificates& node,
                                                           const std::string& parameters) {
  const auto wanted = value(api::parse_certificate_stage(parameters));
  if (node.disk_full) {
    return {.error_code = "no_space", .error = "/etc: No space left on device"};
  }
  const auto files = candidate(node, wanted.source);
  if (!files) {
    return {.error_code = "not_found", .error = files.error().message};
  }
  const auto about = describe(*files, "");
  if ((!wanted.digest.empty() && wanted.digest != about.digest) ||
      (!wanted.serial.empty() && wanted.serial != about.serial)) {
    return {.error_code = "conflict", .error = "the files are not those that were looked at"};
  }
  node.change = FakeCertificates::Change{.change = wanted.change, .next = *files};
  return {.result = api::to_text(api::CertificateStaged{.serial = about.serial,
                                                        .not_after = about.not_after,
                                                        .digest = about.digest,
                                                        .change = *certificates_of(node).change})};
}

FakeCertificateCluster::Done FakeCertificateCluster::switch_files(FakeCertificates& node,
                                                                  const std::string& parameters) {
  const auto wanted = value(api::parse_certificate_switch(parameters));
  if (!node.change || node.change->change != wanted.change) {
    return {.error_code = "conflict", .error = "nothing is staged"};
  }
  ++node.switches;
  const auto before = node.disk;
  switch (wanted.phase) {
    case CertificatePhase::kTrust:
      for (const auto& [name, pem] : node.change->next.roots) {
        const auto same = node.disk.roots.find(name);
        const bool is_other = same != node.disk.roots.end() && same->second != pem;
        node.disk.roots[is_other ? "new-" + name : name] = pem;
      }
      break;
    case CertificatePhase::kLeaf:
      node.disk.chain = node.change->next.chain;
      node.disk.key = node.change->next.key;
      break;
    case CertificatePhase::kDrop:
      node.disk.roots = node.change->next.roots;
      break;
  }
  const auto serial_before = node.serial();
  if (node.reload_fails_in == wanted.phase) {
    node.disk = before;
    return {.error_code = "no_effect",
            .error = "new connections show the former certificate; its files are as before"};
  }
  node.change->before.emplace(wanted.phase, before);
  if (!node.reload_lies || wanted.phase != CertificatePhase::kLeaf) {
    node.loaded = node.disk;
  }
  return {.result = api::to_text(api::CertificateSwitched{.phase = wanted.phase,
                                                          .files = 1,
                                                          .serial = node.serial(),
                                                          .serial_before = serial_before})};
}

FakeCertificateCluster::Done FakeCertificateCluster::restore(FakeCertificates& node,
                                                             const std::string& parameters) {
  const auto wanted = value(api::parse_certificate_restore(parameters));
  api::CertificateSwitched result{.phase = wanted.phase, .serial_before = node.serial()};
  if (node.change && node.change->change == wanted.change &&
      node.change->before.contains(wanted.phase)) {
    ++node.restores;
    node.disk = node.change->before.at(wanted.phase);
    node.loaded = node.disk;
    node.change->before.erase(wanted.phase);
    result.files = 1;
  }
  result.serial = node.serial();
  return {.result = api::to_text(result)};
}

std::optional<FakeCertificateCluster::Done> FakeCertificateCluster::operate(
    const std::string& name, const std::string& kind, const std::string& parameters) {
  auto& node = nodes.at(name);
  auto own = nlohmann::json::parse(parameters);
  own.erase("gates");
  if (kind == "certificate_stage") {
    return stage(node, own.dump());
  }
  if (kind == "certificate_switch") {
    return switch_files(node, own.dump());
  }
  if (kind == "certificate_restore") {
    return restore(node, own.dump());
  }
  if (kind == "certificate_discard") {
    node.change.reset();
    return Done{};
  }
  return std::nullopt;
}

std::optional<http::Response> FakeCertificateCluster::answer(const std::string& name,
                                                             const http::Request& request) {
  auto& node = nodes.at(name);
  const auto target = *http::parse_target(request.target);
  const auto& path = target.path;
  if (path == "/agent/v1/certificates") {
    return api::json_text_answer(200, api::to_text(certificates_of(node)));
  }
  if (path == "/agent/v1/certificates/candidate") {
    const auto source = value(api::parse_certificate_source(request.body));
    const auto files = candidate(node, source);
    if (!files) {
      return problem_of(404, "not_found");
    }
    auto out = describe(*files, source.set.empty() ? source.certificate_path : "(set)");
    out.findings.insert(out.findings.end(), node.findings.begin(), node.findings.end());
    return api::json_text_answer(200, api::to_text(out));
  }
  if (path == "/agent/v1/certificates/request") {
    const auto wanted = value(api::parse_certificate_key_request(request.body));
    auto& key = node.requests[wanted.change];
    if (key.empty()) {
      key = new_ec_key();
    }
    const CertificateTerms terms{.common_name = wanted.common_name,
                                 .dns_names = wanted.dns_names,
                                 .ip_addresses = wanted.ip_addresses};
    return api::json_text_answer(
        200, nlohmann::json{{"request", value(certificates::make_request(key, "", terms))}}.dump());
  }
  if (path == "/agent/v1/certificates/handshakes") {
    return api::json_text_answer(
        200, api::to_text(handshakes(name, value(api::parse_handshakes_request(request.body)))));
  }
  if (path.starts_with("/agent/v1/files/") && request.method == "PUT") {
    node.store[target.segments.back()] = request.body;
    return api::json_text_answer(
        200, api::to_text(api::StoredFile{.sha256 = target.segments.back(),
                                          .bytes = static_cast<std::int64_t>(request.body.size()),
                                          .stored_at = format_ticks(time_.now())}));
  }
  return std::nullopt;
}

}  // namespace verger::test
