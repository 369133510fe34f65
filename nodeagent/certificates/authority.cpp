#include "nodeagent/certificates/authority.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/private_file.h"
#include "nodeagent/certificates/detail/builder.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

using std::chrono::seconds;

constexpr std::string_view kAgentIdentity = "urn:verger:agent:";
constexpr seconds kRootLifetime = std::chrono::hours(24 * 3652);
constexpr std::uint64_t kFileBytes = 64U << 10U;

Error wrong(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

Result<AlternativeNames> alternative_names(const Subject& subject) {
  AlternativeNames names(GENERAL_NAMES_new());
  for (const auto& host : subject.hosts) {
    VERGER_RETURN_IF_ERROR(add_host(names.get(), host));
  }
  if (!subject.identity.empty()) {
    VERGER_RETURN_IF_ERROR(add_uri(names.get(), subject.identity));
  }
  return names;
}

}  // namespace

struct Authority::State {
  Certificate certificate;
  Key key;
  std::string root;
  std::string fingerprint;
  Ticks not_after;
};

Authority::Authority(std::unique_ptr<State> state) : state_(std::move(state)) {}
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

std::string agent_identity(std::string_view cluster, std::string_view node) {
  return fmt::format("{}{}/{}", kAgentIdentity, cluster, node);
}

std::string agent_of_identity(std::string_view identity) {
  return identity.starts_with(kAgentIdentity) ? std::string(identity.substr(kAgentIdentity.size()))
                                              : std::string();
}

Result<std::string> fingerprint_of(std::string_view pem) {
  VERGER_TRY(const auto certificate, read_certificate(pem));
  return sha256_of(certificate.get());
}

Result<KeyAndRequest> make_key_and_request() {
  VERGER_TRY(const auto key, new_key(KeyType::kEcP256));
  const CertificateRequest request(X509_REQ_new());
  // The issuer decides what the certificate says; this name only shows people what the request is.
  VERGER_RETURN_IF_ERROR(
      set_common_name(X509_REQ_get_subject_name(request.get()), std::string(kAgentCommonName)));
  if (X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0) {
    return openssl_error("a certificate request cannot be made");
  }
  KeyAndRequest out;
  VERGER_TRY(out.key, to_pem(key.get()));
  VERGER_TRY(out.request, to_pem(request.get()));
  return out;
}

Result<std::string> key_of_request(std::string_view request) {
  VERGER_TRY(const auto parsed, read_request(request));
  VERGER_TRY(const EVP_PKEY* key, key_of(parsed.get()));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) {
    return openssl_error("the key of the certificate request cannot be read");
  }
  auto hex = to_hex(
      sha256(ByteView(reinterpret_cast<const std::byte*>(der), static_cast<std::size_t>(size))));
  OPENSSL_free(der);
  return hex;
}

namespace {

/// Root and key as the text of their file.
Result<std::string> make_root(Ticks now) {
  VERGER_TRY(const auto key, new_key(KeyType::kEcP256));
  const Ticks from(now.value() - seconds(kClocksDiffer).count() * kTicksPerSecond);
  const Ticks until(now.value() + kRootLifetime.count() * kTicksPerSecond);
  VERGER_TRY(const auto root, begin_certificate(key.get(), from, until));
  // Roots of two controllers have two names, so that a message shows which is meant.
  const auto name = fmt::format("Verger agents {}", serial_of(root.get()).substr(0, 8));
  VERGER_RETURN_IF_ERROR(set_common_name(X509_get_subject_name(root.get()), name));
  if (X509_set_issuer_name(root.get(), X509_get_subject_name(root.get())) != 1) {
    return openssl_error("the root's name");
  }
  for (const auto& [kind, value] : std::initializer_list<std::pair<int, const char*>>{
           {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
           {NID_key_usage, "critical,keyCertSign,cRLSign"},
           {NID_subject_key_identifier, "hash"}}) {
    VERGER_RETURN_IF_ERROR(add_extension(root.get(), root.get(), kind, value));
  }
  if (X509_sign(root.get(), key.get(), EVP_sha256()) == 0) {
    return openssl_error("the root cannot be signed");
  }
  VERGER_TRY(auto text, to_pem(key.get()));
  VERGER_TRY(const auto certificate, to_pem(root.get()));
  return text + certificate;
}

}  // namespace

Result<Authority> Authority::open_or_make(const Path& path, Ticks now) {
  VERGER_TRY(const bool there, posix_file_system().exists(path));
  if (!there) {
    VERGER_TRY(const auto text, make_root(now));
    auto written = write_private_file(path, text, IfThere::kRefuse);
    if (!written && written.error().code != Errc::kExists) {
      return written.error().within("a new authority for agents");
    }
  }
  VERGER_RETURN_IF_ERROR(check_private_file(path));
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path, kFileBytes));
  const auto text = as_text(bytes);
  const auto broken = [&](const Error& error) {
    return Error{error.code,
                 fmt::format("{}: {}; it must hold the key and the root certificate of the agents' "
                             "authority. Restore it from a backup: with another one every agent "
                             "has to be enrolled again",
                             path.string(), error.message)};
  };
  auto state = std::make_unique<State>();
  auto key = read_key(text);
  if (!key) {
    return broken(key.error());
  }
  auto certificate = read_certificate(text);
  if (!certificate) {
    return broken(certificate.error());
  }
  state->key = *std::move(key);
  state->certificate = *std::move(certificate);
  if (X509_check_private_key(state->certificate.get(), state->key.get()) != 1 ||
      X509_check_ca(state->certificate.get()) != 1) {
    return broken(openssl_error("key and root do not belong together"));
  }
  VERGER_TRY(state->root, to_pem(state->certificate.get()));
  VERGER_TRY(state->fingerprint, sha256_of(state->certificate.get()));
  VERGER_TRY(state->not_after, ticks_of(X509_get0_notAfter(state->certificate.get())));
  return Authority(std::move(state));
}

Result<Issued> Authority::issue(std::string_view request, const Subject& subject, Ticks now,
                                seconds lifetime) const {
  VERGER_TRY(const auto parsed, read_request(request));
  VERGER_TRY(EVP_PKEY * key, key_of(parsed.get()));
  const Ticks from(now.value() - seconds(kClocksDiffer).count() * kTicksPerSecond);
  const Ticks until(
      std::min(now.value() + lifetime.count() * kTicksPerSecond, state_->not_after.value()));
  if (until <= now) {
    return wrong(fmt::format("the agents' authority itself has run out (on {} UTC)",
                             unix_of(state_->not_after)));
  }
  VERGER_TRY(const auto out, begin_certificate(key, from, until));
  VERGER_RETURN_IF_ERROR(set_common_name(X509_get_subject_name(out.get()), subject.common_name));
  if (X509_set_issuer_name(out.get(), X509_get_subject_name(state_->certificate.get())) != 1) {
    return openssl_error("the issuer's name");
  }
  const bool server = subject.usage == Usage::kServer;
  for (const auto& [kind, value] : std::initializer_list<std::pair<int, const char*>>{
           {NID_basic_constraints, "critical,CA:FALSE"},
           {NID_key_usage, "critical,digitalSignature"},
           // An agent's certificate cannot pass for the controller's, nor the other way round.
           {NID_ext_key_usage, server ? "critical,serverAuth" : "critical,clientAuth"},
           {NID_subject_key_identifier, "hash"},
           {NID_authority_key_identifier, "keyid:always"}}) {
    VERGER_RETURN_IF_ERROR(add_extension(out.get(), state_->certificate.get(), kind, value));
  }
  VERGER_TRY(const auto names, alternative_names(subject));
  VERGER_RETURN_IF_ERROR(add_alternative_names(out.get(), names.get()));
  if (X509_sign(out.get(), state_->key.get(), EVP_sha256()) == 0) {
    return openssl_error("the certificate cannot be signed");
  }
  Issued issued;
  VERGER_TRY(issued.certificate, to_pem(out.get()));
  issued.serial = serial_of(out.get());
  VERGER_TRY(issued.not_before, ticks_of(X509_get0_notBefore(out.get())));
  VERGER_TRY(issued.not_after, ticks_of(X509_get0_notAfter(out.get())));
  return issued;
}

const std::string& Authority::root() const { return state_->root; }
const std::string& Authority::fingerprint() const { return state_->fingerprint; }
Ticks Authority::not_after() const { return state_->not_after; }

Result<Checked> check_issued(std::string_view certificate, std::string_view key,
                             std::string_view root) {
  VERGER_TRY(const auto leaf, read_certificate(certificate));
  VERGER_TRY(const auto own, read_key(key));
  VERGER_TRY(const auto issuer, read_certificate(root));
  if (X509_check_private_key(leaf.get(), own.get()) != 1) {
    return openssl_error("the certificate is not for this key");
  }
  if (X509_check_issued(issuer.get(), leaf.get()) != X509_V_OK ||
      X509_verify(leaf.get(), X509_get0_pubkey(issuer.get())) != 1) {
    return openssl_error("the certificate was not issued by the authority this agent trusts");
  }
  Checked out;
  out.identity = first_uri_of(leaf.get());
  out.serial = serial_of(leaf.get());
  VERGER_TRY(out.not_before, ticks_of(X509_get0_notBefore(leaf.get())));
  VERGER_TRY(out.not_after, ticks_of(X509_get0_notAfter(leaf.get())));
  return out;
}

}  // namespace verger::certificates
