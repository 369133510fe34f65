#include "nodeagent/http/detail/certificates.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <boost/asio/ip/address.hpp>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"

namespace verger::http {
namespace {

namespace fs = std::filesystem;

using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
void free_stack(STACK_OF(X509) * stack) { sk_X509_free(stack); }
using Stack = std::unique_ptr<STACK_OF(X509), Deleter<free_stack>>;
void free_names(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<free_names>>;
void free_text(char* text) { OPENSSL_free(text); }
using OpensslText = std::unique_ptr<char, Deleter<free_text>>;

Error wrong(const std::string& path, std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("{}: {}", path, why)};
}

Result<std::string> read_text(const std::string& path) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path));
  return std::string(as_text(bytes));
}

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// All certificates of a PEM file in order, or the one of a DER file.
Result<std::vector<X509Owner>> parse_certificates(const std::string& path) {
  VERGER_TRY(const auto text, read_text(path));
  std::vector<X509Owner> out;
  const auto bio = bio_of(text);
  while (X509Owner next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    out.push_back(std::move(next));
  }
  const auto last = ERR_peek_last_error();
  // The end of the file is reported as "no start line".
  const bool ended =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (!out.empty() && !ended) {
    return wrong(path, "one of its certificates cannot be read: " + openssl_text());
  }
  ERR_clear_error();
  if (out.empty()) {
    const auto der = bio_of(text);
    if (X509Owner one{d2i_X509_bio(der.get(), nullptr)}) {
      out.push_back(std::move(one));
    } else {
      ERR_clear_error();
      return wrong(path, "no PEM certificate in it, and it is not a DER certificate either");
    }
  }
  return out;
}

int give_password(char* buffer, int size, int /*writing*/, void* from) {
  const auto& password = *static_cast<const std::string*>(from);
  if (password.size() > static_cast<std::size_t>(size)) {
    return -1;
  }
  std::memcpy(buffer, password.data(), password.size());
  return static_cast<int>(password.size());
}

Result<KeyOwner> parse_key(const std::string& path, std::string password) {
  VERGER_TRY(const auto text, read_text(path));
  const auto bio = bio_of(text);
  KeyOwner key(PEM_read_bio_PrivateKey(bio.get(), nullptr, give_password, &password));
  if (key == nullptr) {
    const bool encrypted = text.contains("ENCRYPTED");
    return wrong(path, fmt::format("no private key for the certificate{}: {}",
                                   encrypted ? " (it is encrypted; is the password right?)" : "",
                                   openssl_text()));
  }
  return key;
}

Result<std::vector<std::string>> root_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const auto extension = it->path().extension();
    if (extension == ".crt" || extension == ".cert" || extension == ".cer" || extension == ".pem" ||
        extension == ".der") {
      files.push_back(it->path().string());
    }
  }
  if (error) {
    return Error{Errc::kIo, fmt::format("{}: {}", path, error.message())};
  }
  std::ranges::sort(files);
  return files;
}

/// `roots_alone`: as a server's node wants it. Else intermediates may lie among the roots, as in
/// many a bundle: they help to find the way to a root and are trusted for nothing themselves.
Result<std::vector<X509Owner>> load_roots(const std::string& where, bool roots_alone) {
  VERGER_TRY(const auto files, root_files(where));
  std::vector<X509Owner> roots;
  bool any_root = false;
  for (const auto& path : files) {
    VERGER_TRY(auto found, parse_certificates(path));
    for (auto& root : found) {
      const bool is_root = X509_self_signed(root.get(), 1) == 1;
      any_root = any_root || is_root;
      ERR_clear_error();
      if (!is_root && roots_alone) {
        return wrong(path, fmt::format("{} is not self-signed, so it is no root; intermediates "
                                       "belong behind the leaf in the certificate file",
                                       one_line(describe(root.get()))));
      }
      roots.push_back(std::move(root));
    }
  }
  if (!any_root) {
    return wrong(where, roots.empty() ? "no trusted root there (.crt, .cert, .cer, .pem or .der)"
                                      : "no self-signed root there, intermediates only");
  }
  return roots;
}

/// The server's own rules for the certificate it is to show (node-interface.md, 4.2).
Result<void> check_own_chain(const TlsMaterial& material, const TlsFiles& files) {
  const Store store(X509_STORE_new());
  for (const auto& root : material.roots) {
    X509_STORE_add_cert(store.get(), root.get());
  }
  const Stack untrusted(sk_X509_new_null());
  for (std::size_t i = 1; i < material.chain.size(); ++i) {
    if (X509_self_signed(material.chain[i].get(), 0) == 1) {
      return wrong(files.certificate,
                   fmt::format("{} is self-signed, so it is no intermediate; roots belong into {}",
                               one_line(describe(material.chain[i].get())), files.trusted_roots));
    }
    sk_X509_push(untrusted.get(), material.chain[i].get());
  }
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), material.chain.front().get(), untrusted.get());
  if (X509_verify_cert(context.get()) != 1) {
    const auto* at = X509_STORE_CTX_get_current_cert(context.get());
    return wrong(files.certificate,
                 fmt::format("{}: {} (trusted roots: {})",
                             one_line(describe(at != nullptr ? at : material.chain.front().get())),
                             X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())),
                             files.trusted_roots));
  }
  const auto own = describe(material.chain.front().get());
  if (!files.reserved_common_name.empty() &&
      !common_name_fits(files.reserved_common_name, own.common_name)) {
    return wrong(files.certificate,
                 fmt::format("its common name \"{}\" does not fit the reserved node common name "
                             "\"{}\": the other nodes would refuse it",
                             own.common_name, files.reserved_common_name));
  }
  return {};
}

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(const ASN1_OCTET_STRING* octets) {
  namespace ip = boost::asio::ip;
  const auto bytes = text_of(octets);
  if (bytes.size() == 4) {
    ip::address_v4::bytes_type v4{};
    std::memcpy(v4.data(), bytes.data(), v4.size());
    return ip::make_address_v4(v4).to_string();
  }
  if (bytes.size() == 16) {
    ip::address_v6::bytes_type v6{};
    std::memcpy(v6.data(), bytes.data(), v6.size());
    return ip::make_address_v6(v6).to_string();
  }
  return {};
}

std::string name_text(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string time_text(const ASN1_TIME* time) {
  std::tm tm{};
  if (ASN1_TIME_to_tm(time, &tm) != 1) {
    return {};
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

}  // namespace

std::string openssl_text() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) {
    return "no reason given";
  }
  char text[256];
  ERR_error_string_n(code, text, sizeof(text));
  return text;
}

Result<TlsMaterial> load_material(const TlsFiles& files) {
  ERR_clear_error();
  TlsMaterial out;
  if (!files.certificate.empty()) {
    VERGER_TRY(out.chain, parse_certificates(files.certificate));
    VERGER_TRY(out.key, parse_key(files.private_key, files.private_key_password));
    if (X509_check_private_key(out.chain.front().get(), out.key.get()) != 1) {
      return wrong(files.private_key, "not the key of the certificate: " + openssl_text());
    }
  }
  if (!files.trusted_roots.empty()) {
    VERGER_TRY(out.roots, load_roots(files.trusted_roots, files.check_own_chain));
  }
  if (files.check_own_chain && !out.chain.empty()) {
    VERGER_RETURN_IF_ERROR(check_own_chain(out, files));
  }
  return out;
}

CertificateInfo describe(const X509* certificate) {
  CertificateInfo out;
  const auto* subject = X509_get_subject_name(certificate);
  out.subject = name_text(subject);
  out.issuer = name_text(X509_get_issuer_name(certificate));
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    out.common_name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  const Number serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  const OpensslText hex(BN_bn2hex(serial.get()));
  out.serial = hex.get();
  out.not_before = time_text(X509_get0_notBefore(certificate));
  out.not_after = time_text(X509_get0_notAfter(certificate));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) == 1) {
    for (unsigned i = 0; i < size; ++i) {
      out.fingerprint += fmt::format("{:02x}", digest[i]);
    }
  }
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      out.names.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      out.names.push_back(address_of(name->d.iPAddress));
    } else if (name->type == GEN_URI) {
      out.uris.push_back(text_of(name->d.uniformResourceIdentifier));
    }
  }
  return out;
}

std::string one_line(const CertificateInfo& certificate) {
  return fmt::format("{} (issuer {}, serial {}, valid from {} to {})", certificate.subject,
                     certificate.issuer, certificate.serial, certificate.not_before,
                     certificate.not_after);
}

bool common_name_fits(std::string_view reserved, std::string_view name) {
  const auto wanted = lower(reserved);
  const auto given = lower(name);
  if (wanted == given) {
    return !wanted.empty();
  }
  const auto labels = std::ranges::count(wanted, '.') + 1;
  if (!wanted.starts_with("*.") || labels < 3 || given.starts_with("*")) {
    return false;
  }
  const auto dot = given.find('.');
  return dot != std::string::npos && dot > 0 && given.substr(dot) == wanted.substr(1);
}

bool has_node_usages(X509* certificate) {
  const auto usage = X509_get_key_usage(certificate);
  const bool key = (usage & X509v3_KU_DIGITAL_SIGNATURE) != 0 &&
                   (usage & (X509v3_KU_KEY_ENCIPHERMENT | X509v3_KU_KEY_AGREEMENT)) != 0;
  return key && !describe(certificate).names.empty() &&
         X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0) == 1 &&
         X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
}

Result<std::vector<CertificateInfo>> read_certificates(const std::string& path) {
  ERR_clear_error();
  VERGER_TRY(const auto found, parse_certificates(path));
  std::vector<CertificateInfo> out;
  out.reserve(found.size());
  for (const auto& certificate : found) {
    out.push_back(describe(certificate.get()));
  }
  return out;
}

}  // namespace verger::http
