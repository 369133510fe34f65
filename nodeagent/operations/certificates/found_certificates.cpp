#include "nodeagent/operations/certificates/found_certificates.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/lint.h"
#include "nodeagent/certificates/pem_text.h"

namespace verger::agent {
namespace {

/// A chain, a key or a root has a few KiB.
constexpr std::uint64_t kCertificateFileLimit = 1U << 20U;
/// More than a system's own store has.
constexpr std::size_t kMostRoots = 512;
constexpr std::size_t kMostUsers = 256;
/// The names of files in which a server looks for roots.
constexpr std::array<std::string_view, 5> kRootNames{".crt", ".cert", ".cer", ".pem", ".der"};
/// What only the agent sees, since it sends no file that cannot be read as certificates.
constexpr std::array<std::string_view, 4> kOfFiles{
    "file-unreadable", "certificate-is-pkcs12", "certificate-truncated", "certificate-unreadable"};

bool is_root_name(std::string_view name) {
  return std::ranges::any_of(kRootNames, [&](std::string_view end) { return name.ends_with(end); });
}

std::string hash_of(std::string_view content) { return to_hex(sha256(as_bytes(content))); }

api::CertificateFile shown_file(const FoundFile& file) {
  api::CertificateFile out{.path = file.path.string(), .problem = file.problem};
  if (file.is_link()) {
    out.target = file.target.string();
  }
  if (file.attributes) {
    out.mode = file.attributes->mode;
    out.owner = file.attributes->owner;
  }
  return out;
}

certificates::FileSeen seen_file(const FoundFile& file) {
  return {.path = file.path.string(),
          .content = file.content,
          .unreadable = file.problem,
          .mode = file.attributes ? std::optional(file.attributes->mode) : std::nullopt,
          .owner = file.attributes ? std::optional(file.attributes->owner) : std::nullopt,
          .group = file.attributes ? std::optional(file.attributes->group) : std::nullopt};
}

/// Finds what lint says of these files only where it sees the key, and what it says of files that
/// are no certificates. The rest of its rules the controller checks itself.
std::vector<api::CertificateFinding> findings_of(const FoundCertificates& found,
                                                 const FoundCertificates& present,
                                                 const CertificatePlaces& places,
                                                 const std::optional<ServerUser>& server_user,
                                                 Ticks now) {
  certificates::LintNode node{.loads_ec_keys = places.loads_ec_keys};
  if (server_user) {
    node.owner = server_user->id;
    node.groups.assign(server_user->groups.begin(), server_user->groups.end());
  }
  node.next.certificate = seen_file(found.certificate);
  node.next.key_password = found.key_password;
  const auto& roots = found.roots ? found.roots : present.roots;
  for (const auto& root : roots.value_or(std::vector<FoundCertificates::Root>{})) {
    node.next.roots.push_back(seen_file(root.file));
  }
  const auto& key = found.key ? found.key : present.key;
  const auto without = certificates::lint({.nodes = {node}, .now = now}).findings;
  node.next.key = key ? std::optional(seen_file(*key)) : std::nullopt;
  const auto with = certificates::lint({.nodes = {node}, .now = now}).findings;
  std::vector<api::CertificateFinding> out;
  for (const auto& each : with) {
    const bool of_key = std::ranges::none_of(without, [&](const certificates::Finding& other) {
      return other.code == each.code && other.where == each.where && other.message == each.message;
    });
    if (of_key || std::ranges::find(kOfFiles, each.code) != kOfFiles.end()) {
      out.push_back({.severity = each.severity == certificates::Severity::kError
                                     ? api::FindingSeverity::kError
                                     : api::FindingSeverity::kWarning,
                     .code = each.code,
                     .where = each.where,
                     .message = each.message,
                     .next = each.next});
    }
  }
  return out;
}

}  // namespace

FoundFile CertificateReader::read(const Path& path) const {
  FoundFile out{.path = path, .target = path};
  if (path.empty()) {
    out.problem = "the agent does not know where it is";
    return out;
  }
  if (auto target = access_.target_of(path)) {
    out.target = *std::move(target);
  }
  if (auto attributes = access_.attributes_of(out.target)) {
    out.attributes = *attributes;
  }
  if (const auto content = read_file(files_, out.target, kCertificateFileLimit)) {
    out.content = as_text(*content);
  } else {
    out.problem = content.error().message;
  }
  return out;
}

void CertificateReader::read_roots(const Path& path, FoundCertificates& into) const {
  into.roots.emplace();
  into.roots_path = path;
  const auto entries = files_.list(path);
  if (!entries) {
    auto file = read(path);
    into.roots_in_one_file = file.problem.empty();
    into.roots_problem = file.problem;
    if (file.problem.empty()) {
      into.roots->push_back({.name = path.filename().string(), .file = std::move(file)});
    }
    return;
  }
  for (const auto& entry : *entries) {
    if (entry.is_directory || !is_root_name(entry.name) || entry.name.starts_with('.')) {
      continue;
    }
    if (into.roots->size() == kMostRoots) {
      into.roots_problem = fmt::format("{} has more than {} roots", path.string(), kMostRoots);
      return;
    }
    into.roots->push_back({.name = entry.name, .file = read(path / entry.name)});
  }
}

FoundCertificates CertificateReader::live(const CertificatePlaces& places) const {
  FoundCertificates out{.certificate = read(places.certificate),
                        .key_password = places.private_key_password};
  if (!places.private_key.empty()) {
    out.key = read(places.private_key);
  }
  if (!places.trusted_roots.empty()) {
    read_roots(places.trusted_roots, out);
  }
  return out;
}

std::vector<api::UserCertificate> CertificateReader::users(const CertificatePlaces& places) const {
  std::vector<api::UserCertificate> out;
  for (const auto& place : places.users) {
    read_users(place, 0, out);
  }
  return out;
}

/// `depth`: of the directories so far: `verger cert create-user` makes one for each user.
void CertificateReader::read_users(const Path& path, int depth,
                                   std::vector<api::UserCertificate>& into) const {
  constexpr int kDeepest = 2;
  if (into.size() == kMostUsers) {
    return;
  }
  if (const auto entries = files_.list(path)) {
    for (const auto& entry : *entries) {
      const bool wanted = entry.is_directory ? depth + 1 < kDeepest : is_root_name(entry.name);
      if (wanted && !entry.name.starts_with('.')) {
        read_users(path / entry.name, depth + 1, into);
      }
    }
    return;
  }
  const auto file = read(path);
  if (!file.problem.empty()) {
    into.push_back({.path = path.string(), .problem = file.problem});
    return;
  }
  const auto read = certificates::read_details(file.content);
  if (!read) {
    into.push_back({.path = path.string(), .problem = read.error().message});
  } else if (!read->front().is_authority) {  // the CA may lie beside what it has signed
    into.push_back(
        {.path = path.string(),
         .pem = certificates::leaf_pem(certificates::pem_of(file.content).value_or(""))});
  }
}

Result<FoundFile> CertificateReader::stored_file(const std::string& sha256,
                                                 std::string role) const {
  auto content = stored_(sha256);
  if (!content) {
    return content.error().within(role);
  }
  const Path path = std::move(role);
  return FoundFile{.path = path, .target = path, .content = std::string(as_text(*content))};
}

Result<FoundCertificates> CertificateReader::of_set(const api::CertificateSource& source,
                                                    const std::string& password) const {
  VERGER_TRY(const auto content, stored_(source.set));
  VERGER_TRY(const auto set, api::parse_certificate_set(as_text(content)));
  const auto node = set.nodes.find(source.node);
  if (node == set.nodes.end()) {
    return Error{Errc::kNotFound,
                 fmt::format("the set of certificates {} has no node {}", source.set, source.node)};
  }
  FoundCertificates out{.key_password = password, .set = source.set};
  VERGER_TRY(out.certificate,
             stored_file(node->second.certificate, "the new certificate of " + source.node));
  if (!node->second.key_request.empty()) {
    VERGER_TRY(auto key, made_key_(node->second.key_request));
    const Path path = "the key that was made for " + source.node;
    out.key = FoundFile{.path = path, .target = path, .content = std::move(key)};
  } else if (!node->second.key.empty()) {
    VERGER_TRY(out.key, stored_file(node->second.key, "the new key of " + source.node));
  }
  if (!node->second.roots.empty()) {
    out.roots.emplace();
    for (const auto& root : node->second.roots) {
      VERGER_TRY(auto file, stored_file(root.sha256, fmt::format("the new root {} of {}", root.name,
                                                                 source.node)));
      out.roots->push_back({.name = root.name, .file = std::move(file)});
    }
  }
  return out;
}

Result<FoundCertificates> CertificateReader::candidate(const api::CertificateSource& source,
                                                       const std::string& password) const {
  if (!source.set.empty()) {
    return of_set(source, password);
  }
  FoundCertificates out{.certificate = read(source.certificate_path), .key_password = password};
  if (!source.key_path.empty()) {
    out.key = read(source.key_path);
  }
  if (!source.roots_path.empty()) {
    read_roots(source.roots_path, out);
  }
  return out;
}

std::string digest_of(const FoundCertificates& found) {
  std::string text = hash_of(found.certificate.content);
  text += found.key ? hash_of(found.key->content) : "-";
  for (const auto& root : found.roots.value_or(std::vector<FoundCertificates::Root>{})) {
    text += fmt::format("\n{} {}", hash_of(root.file.content), root.name);
  }
  return hash_of(text);
}

std::string roots_of(const FoundCertificates& found) {
  std::string out;
  for (const auto& root : found.roots.value_or(std::vector<FoundCertificates::Root>{})) {
    out += certificates::pem_of(root.file.content).value_or("");
  }
  return out;
}

api::CertificateFiles shown_files(const FoundCertificates& found, const FoundCertificates& present,
                                  const CertificatePlaces& places,
                                  const std::optional<ServerUser>& server_user, Ticks now) {
  api::CertificateFiles out{.certificate = shown_file(found.certificate),
                            .roots_path = found.roots_path.string(),
                            .roots_problem = found.roots_problem,
                            .digest = digest_of(found)};
  if (found.key) {
    out.key = shown_file(*found.key);
  }
  for (const auto& root : found.roots.value_or(std::vector<FoundCertificates::Root>{})) {
    out.roots.push_back({.name = root.name,
                         .file = shown_file(root.file),
                         .pem = certificates::pem_of(root.file.content).value_or("")});
  }
  out.findings = findings_of(found, present, places, server_user, now);
  if (auto chain = certificates::pem_of(found.certificate.content)) {
    out.chain = *std::move(chain);
    if (const auto details = certificates::read_details(out.chain)) {
      out.serial = details->front().info.serial;
      out.not_after = details->front().info.not_after;
    }
    if (const auto type = certificates::key_type_of_certificate(out.chain)) {
      out.key_type = certificates::text_of(*type);
    }
  }
  if (const auto& key = found.key ? found.key : present.key; key && key->problem.empty()) {
    out.key_encrypted = certificates::is_encrypted_key(key->content);
    if (const auto fits =
            certificates::key_fits(found.certificate.content, key->content, found.key_password)) {
      out.key_matches = *fits;
    }
  }
  return out;
}

}  // namespace verger::agent
