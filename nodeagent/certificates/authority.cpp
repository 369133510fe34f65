#include "nodeagent/certificates/authority.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/rand.h>

#include "engine/base/digest.h"
#include "engine/base/private_file.h"
#include "nodeagent/certificates/detail/openssl.h"

namespace verger::certificates {
namespace {

using std::chrono::seconds;

constexpr std::string_view kAgentIdentity = "urn:verger:agent:";
constexpr seconds kRootLifetime = std::chrono::hours(24 * 3652);
constexpr std::uint64_t kFileBytes = 64U << 10U;
constexpr int kBitsEc = 256;
constexpr int kBitsRsa = 2048;

std::time_t unix_of(Ticks time) {
  return static_cast<std::time_t>((time.value() - kUnixEpoch.value()) / kTicksPerSecond);
}

Error wrong(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

/// Version 3, a random serial, the dates, the key.
Result<Certificate> begin_certificate(EVP_PKEY* key, Ticks from, Ticks until) {
  Certificate out(X509_new());
  unsigned char bytes[16];
  if (out == nullptr || RAND_bytes(bytes, sizeof(bytes)) != 1) {
    return openssl_error("no randomness for a serial number");
  }
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7FU) | 0x40U);  // positive, of full length
  const Number serial(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  std::time_t begin = unix_of(from);
  std::time_t end = unix_of(until);
  if (X509_set_version(out.get(), X509_VERSION_3) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(out.get())) == nullptr ||
      X509_time_adj_ex(X509_getm_notBefore(out.get()), 0, 0, &begin) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(out.get()), 0, 0, &end) == nullptr ||
      X509_set_pubkey(out.get(), key) != 1) {
    return openssl_error("a certificate cannot be put together");
  }
  return out;
}

Result<void> set_common_name(X509_NAME* name, const std::string& text) {
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0) != 1) {
    return openssl_error("the common name " + text);
  }
  return {};
}

Result<void> add_extension(X509* to, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  if (extension == nullptr || X509_add_ext(to, extension.get(), -1) != 1) {
    return openssl_error(fmt::format("an extension cannot be added ({})", value));
  }
  return {};
}

Result<void> add_name(GENERAL_NAMES* to, int type, const std::string& text) {
  AlternativeName name(GENERAL_NAME_new());
  ASN1_STRING* value = nullptr;
  std::string bytes = text;
  if (type == GEN_IPADD) {
    char raw[16];
    const bool v4 = ::inet_pton(AF_INET, text.c_str(), raw) == 1;
    if (!v4 && ::inet_pton(AF_INET6, text.c_str(), raw) != 1) {
      return wrong(fmt::format("\"{}\" is no address", text));
    }
    bytes.assign(raw, v4 ? 4U : 16U);
    value = ASN1_OCTET_STRING_new();
  } else {
    value = ASN1_IA5STRING_new();
  }
  ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size()));
  GENERAL_NAME_set0_value(name.get(), type, value);
  if (sk_GENERAL_NAME_push(to, name.get()) == 0) {
    return openssl_error("no memory for a name");
  }
  static_cast<void>(name.release());  // the stack's now
  return {};
}

bool is_address(const std::string& host) {
  char raw[16];
  return ::inet_pton(AF_INET, host.c_str(), raw) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), raw) == 1;
}

Result<void> add_alternative_names(X509* to, const Subject& subject) {
  const AlternativeNames names(GENERAL_NAMES_new());
  for (const auto& host : subject.hosts) {
    const bool good = !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '.' || c == ':' || c == '_';
    });
    if (!good) {
      return wrong(fmt::format("\"{}\" is neither a host's name nor an address", host));
    }
    VERGER_RETURN_IF_ERROR(add_name(names.get(), is_address(host) ? GEN_IPADD : GEN_DNS, host));
  }
  if (!subject.identity.empty()) {
    VERGER_RETURN_IF_ERROR(add_name(names.get(), GEN_URI, subject.identity));
  }
  if (sk_GENERAL_NAME_num(names.get()) > 0 &&
      X509_add1_ext_i2d(to, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return openssl_error("the names cannot be added");
  }
  return {};
}

/// The key of a request, which must have signed it.
Result<EVP_PKEY*> key_in(X509_REQ* request) {
  EVP_PKEY* key = X509_REQ_get0_pubkey(request);
  if (key == nullptr || X509_REQ_verify(request, key) != 1) {
    return openssl_error("the certificate request is not signed by its own key");
  }
  const int type = EVP_PKEY_get_base_id(key);
  const int bits = EVP_PKEY_get_bits(key);
  if (!(type == EVP_PKEY_EC && bits >= kBitsEc) && !(type == EVP_PKEY_RSA && bits >= kBitsRsa)) {
    return wrong("the key of the certificate request is too weak; it takes EC P-256 or RSA 2048");
  }
  return key;
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
  VERGER_TRY(const auto key, new_key());
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
  VERGER_TRY(const EVP_PKEY* key, key_in(parsed.get()));
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
  VERGER_TRY(const auto key, new_key());
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
  VERGER_TRY(EVP_PKEY * key, key_in(parsed.get()));
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
  VERGER_RETURN_IF_ERROR(add_alternative_names(out.get(), subject));
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
