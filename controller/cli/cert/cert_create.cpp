#include "controller/cli/cert/cert_create.h"

#include <filesystem>
#include <fmt/format.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/key.h"

namespace verger::cli {
namespace {

namespace fs = std::filesystem;
using certificates::CertificateKind;
using certificates::CertificateTerms;

constexpr std::int64_t kTicksPerDay = 86'400 * kTicksPerSecond;
constexpr int kMostDays = 36'500;

Error wrong_option(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

bool is_authority(CertificateKind kind) {
  return kind == CertificateKind::kRoot || kind == CertificateKind::kIntermediate;
}

/// ./node1, or the first after it that is not there yet.
std::string free_node_directory() {
  for (int number = 1;; ++number) {
    auto path = fmt::format("./node{}", number);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      return path;
    }
  }
}

CertificateTerms terms_of(const NewCertificateOptions& options, Ticks now) {
  return {
      .kind = options.kind,
      .common_name = options.common_name,
      .dns_names = options.dns_names,
      .ip_addresses = options.ip_addresses,
      .not_before = Ticks(now.value() - std::int64_t{options.skew_minutes} * 60 * kTicksPerSecond),
      .not_after = Ticks(now.value() + options.days.value() * kTicksPerDay)};
}

/// The names that neither options nor defaults say are those of the request.
Result<void> take_names_of_request(const std::string& request, CertificateTerms& terms) {
  VERGER_TRY(auto wanted, certificates::terms_of_request(request));
  if (terms.dns_names.empty() && terms.ip_addresses.empty()) {
    terms.dns_names = std::move(wanted.dns_names);
    terms.ip_addresses = std::move(wanted.ip_addresses);
  }
  return {};
}

/// Whether the content of a file could be read; the error names the file.
template <class T>
Result<void> in_file(const std::string& path, const Result<T>& read) {
  return read ? Result<void>() : read.error().within(path);
}

Result<certificates::NewCertificate> sign(const NewCertificateOptions& options,
                                          const CertificateTerms& terms,
                                          const std::string& request) {
  certificates::SigningAuthority authority;
  VERGER_TRY(authority.certificates, text_of_file(options.ca_certificate));
  VERGER_RETURN_IF_ERROR(
      in_file(options.ca_certificate, certificates::read_certificate_list(authority.certificates)));
  VERGER_TRY(authority.key, text_of_file(options.ca_key));
  VERGER_TRY(authority.key_password, options.ca_key_password.read());
  VERGER_RETURN_IF_ERROR(
      in_file(options.ca_key, certificates::read_key(authority.key, authority.key_password)));
  return certificates::issue(request, terms, authority);
}

}  // namespace

Result<NewCertificateOptions> completed(NewCertificateOptions options) {
  if (options.ca_certificate.empty() != options.ca_key.empty()) {
    return wrong_option("--ca-certificate and --ca-key go together");
  }
  if (options.kind == CertificateKind::kRoot && !options.ca_certificate.empty()) {
    options.kind = CertificateKind::kIntermediate;
  }
  const bool authority = is_authority(options.kind);
  if (options.csr_only && (!options.csr.empty() || !options.ca_key.empty())) {
    return wrong_option(
        "--csr-only makes a request for another authority: it takes neither --csr nor a CA");
  }
  if (!options.csr.empty() &&
      (options.key_password.given() || options.pkcs12_password.given() || !options.key.empty())) {
    return wrong_option(
        "with --csr the key stays where the request was made: nothing about a key "
        "can be said here");
  }
  if (!options.csr_only && options.ca_key.empty() && options.kind != CertificateKind::kRoot) {
    return wrong_option(
        "--ca-certificate and --ca-key are missing: the authority that signs (or "
        "--csr-only)");
  }
  if (!options.csr.empty() && options.kind == CertificateKind::kRoot) {
    return wrong_option("--csr needs --ca-certificate and --ca-key: a root signs itself");
  }
  if (options.kind == CertificateKind::kNode && options.csr.empty() &&
      options.ip_addresses.empty() && options.dns_names.empty()) {
    return wrong_option("--ip-addresses or --dns-names is missing: by which others reach the node");
  }
  if (options.kind == CertificateKind::kUser && options.common_name.empty()) {
    return wrong_option("--username is missing");
  }
  if (options.kind == CertificateKind::kUser &&
      options.common_name == certificates::kNodeCommonName) {
    return wrong_option(fmt::format("{} is the common name of nodes; a user has another",
                                    certificates::kNodeCommonName));
  }
  options.days = options.days.value_or(authority ? 5 * 365 : 365);
  if (*options.days < 1 || *options.days > kMostDays) {
    return wrong_option(fmt::format("--days takes 1 to {}", kMostDays));
  }
  if (options.key_type.empty()) {
    options.key_type = "rsa-2048";
  }
  if (options.name.empty()) {
    options.name = authority                                ? "ca"
                   : options.kind == CertificateKind::kNode ? "node"
                                                            : "user-" + options.common_name;
  }
  if (options.out.empty()) {
    options.out = authority                                ? "./ca"
                  : options.kind == CertificateKind::kNode ? free_node_directory()
                                                           : "./user-" + options.common_name;
  }
  if (options.name.contains('/')) {
    return wrong_option(
        options.kind == CertificateKind::kUser && options.name == "user-" + options.common_name
            ? fmt::format("--username {}: its files cannot be called {}; give them a --name "
                          "without \"/\"",
                          options.common_name, options.name)
            : fmt::format("--name {}: the name of files, without a directory", options.name));
  }
  if (options.common_name.empty()) {
    options.common_name = authority ? certificates::new_authority_name(options.kind)
                                    : std::string(certificates::kNodeCommonName);
  }
  return options;
}

std::vector<std::string> files_of(const NewCertificateOptions& options) {
  std::vector<std::string> out;
  if (options.csr.empty()) {
    out.push_back(options.name + ".key");
  }
  out.push_back(options.name + (options.csr_only ? ".csr" : ".crt"));
  if (options.pkcs12_password.given()) {
    out.push_back(options.name + ".p12");
  }
  return out;
}

Result<MadeCertificate> make_certificate(const NewCertificateOptions& options, Ticks now) {
  NewFiles files(options.out, options.force);
  VERGER_RETURN_IF_ERROR(files.check_free(files_of(options)));
  VERGER_TRY(const auto type, certificates::parse_key_type(options.key_type));
  VERGER_TRY(const auto password, options.key_password.read());
  auto terms = terms_of(options, now);
  MadeCertificate out{.common_name = options.common_name};
  std::string key;
  std::string request;
  if (!options.csr.empty()) {
    VERGER_TRY(request, text_of_file(options.csr));
    VERGER_RETURN_IF_ERROR(in_file(options.csr, take_names_of_request(request, terms)));
  } else if (!options.key.empty()) {
    VERGER_TRY(key, text_of_file(options.key));
    VERGER_RETURN_IF_ERROR(in_file(options.key, certificates::read_key(key, password)));
  } else {
    VERGER_TRY(key, certificates::new_private_key(type, password));
  }
  if (!key.empty()) {
    files.add(options.name + ".key", key, true);
    VERGER_TRY(request, certificates::make_request(key, password, terms));
  }
  if (options.csr_only) {
    files.add(options.name + ".csr", request, false);
    VERGER_TRY(out.files, files.write());
    return out;
  }
  if (options.kind == CertificateKind::kRoot) {
    VERGER_TRY(out.certificate, certificates::make_root(key, password, terms));
  } else {
    VERGER_TRY(out.certificate, sign(options, terms, request));
  }
  files.add(options.name + ".crt", out.certificate->certificates, false);
  if (options.pkcs12_password.given()) {
    VERGER_TRY(const auto secret, options.pkcs12_password.read());
    VERGER_TRY(const auto own, certificates::read_key(key, password));
    VERGER_TRY(auto bytes,
               certificates::pkcs12_of(own.get(), out.certificate->certificates, secret));
    files.add(options.name + ".p12", std::move(bytes), true);
  }
  VERGER_TRY(out.files, files.write());
  return out;
}

Result<MadeCertificate> renew_certificate(RenewOptions options, Ticks now) {
  VERGER_TRY(const auto text, text_of_file(options.certificate));
  auto read = certificates::terms_of_certificate(text);
  if (!read) {
    return read.error().within(options.certificate);
  }
  const fs::path path(options.certificate);
  auto& made = options.made;
  made.kind = read->kind;
  if (made.kind == CertificateKind::kRoot && !made.ca_key.empty()) {
    return wrong_option(
        fmt::format("{} is a root: it signs itself, without --ca-certificate and "
                    "--ca-key",
                    options.certificate));
  }
  if (made.kind != CertificateKind::kRoot && made.ca_certificate.empty() && made.ca_key.empty()) {
    return wrong_option(
        fmt::format("--ca-certificate and --ca-key are missing: the authority that signs {} anew",
                    options.certificate));
  }
  made.common_name = read->common_name;
  if (made.ip_addresses.empty() && made.dns_names.empty()) {
    made.ip_addresses = read->ip_addresses;
    made.dns_names = read->dns_names;
  }
  if (made.key_type.empty()) {
    if (const auto type = certificates::key_type_of_certificate(text)) {
      made.key_type = certificates::text_of(*type);
    }
  }
  if (!made.days) {
    made.days = static_cast<int>(
        (read->not_after.value() - read->not_before.value() + kTicksPerDay / 2) / kTicksPerDay);
  }
  if (made.name.empty()) {
    made.name = path.stem().string();
  }
  if (made.out.empty()) {
    made.out = (path.parent_path() / "renewed").string();
  }
  if (options.reuse_key && made.key.empty()) {
    made.key = fs::path(path).replace_extension(".key").string();
  } else if (!options.reuse_key) {
    made.key.clear();
  }
  VERGER_TRY(const auto complete, completed(std::move(made)));
  return make_certificate(complete, now);
}

}  // namespace verger::cli
