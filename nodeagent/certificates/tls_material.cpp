#include "nodeagent/certificates/tls_material.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <openssl/err.h>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/detail/verify_chain.h"

namespace verger::certificates {
namespace {

namespace fs = std::filesystem;

Error wrong(const std::string& path, std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("{}: {}", path, why)};
}

Result<Key> read_key_file(const std::string& path, const std::string& password) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path));
  auto key = read_key(as_text(bytes), password);
  return key ? std::move(key) : key.error().within(path);
}

/// `roots_alone`: as a server's node wants it. Else intermediates may lie among the roots, as in
/// many a bundle: they help to find the way to a root and are trusted for nothing themselves.
Result<std::vector<Certificate>> load_roots(const std::string& where, bool roots_alone) {
  VERGER_TRY(const auto files, root_files(where));
  std::vector<Certificate> roots;
  bool any_root = false;
  for (const auto& path : files) {
    VERGER_TRY(auto found, read_certificate_file(path));
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
  for (std::size_t i = 1; i < material.chain.size(); ++i) {
    if (X509_self_signed(material.chain[i].get(), 0) == 1) {
      return wrong(files.certificate,
                   fmt::format("{} is self-signed, so it is no intermediate; roots belong into {}",
                               one_line(describe(material.chain[i].get())), files.trusted_roots));
    }
  }
  if (const auto fault = verify_chain(material.chain, material.roots)) {
    const auto* at = fault->at != nullptr ? fault->at : material.chain.front().get();
    return wrong(files.certificate,
                 fmt::format("{}: {} (trusted roots: {})", one_line(describe(at)), fault->text,
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

}  // namespace

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

Result<TlsMaterial> load_material(const TlsFiles& files) {
  ERR_clear_error();
  TlsMaterial out;
  if (!files.certificate.empty()) {
    VERGER_TRY(out.chain, read_certificate_file(files.certificate));
    VERGER_TRY(out.key, read_key_file(files.private_key, files.private_key_password));
    if (X509_check_private_key(out.chain.front().get(), out.key.get()) != 1) {
      return wrong(files.private_key, openssl_error("not the key of the certificate").message);
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

}  // namespace verger::certificates
