#include "nodeagent/certificates/tls_material.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <openssl/err.h>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/detail/verify_chain.h"
#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

namespace fs = std::filesystem;

Error wrong(const std::string& path, std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("{}: {}", path, why)};
}

Result<Key> read_key_file(const TlsFiles& files) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), files.private_key));
  if (const auto fault = not_read_by_servers(as_text(bytes));
      files.check_own_chain && !fault.empty()) {
    return wrong(files.private_key, fault + ": servers do not read such a key");
  }
  auto key = read_key(as_text(bytes), files.private_key_password);
  return key ? std::move(key) : key.error().within(files.private_key);
}

std::string line_of(std::string_view what, const X509* certificate) {
  return fmt::format("{}. Subject: \"{}\", Thumbprint: \"{}\"", what, describe(certificate).subject,
                     thumbprint_of(certificate));
}

struct RootOfFile {
  std::string path;
  Certificate root;
};

/// Those of each file; of a node's directory the first one of each, as servers take them.
Result<std::vector<RootOfFile>> read_roots(const TlsFiles& files, const LoadingLines& lines) {
  VERGER_TRY(const auto paths, root_files(files.trusted_roots));
  std::vector<RootOfFile> roots;
  for (const auto& path : paths) {
    VERGER_TRY(auto found, read_certificate_file(path));
    lines.write(fmt::format("Loading trusted root certificate file: \"{}\"", path));
    if (files.check_own_chain && found.size() > 1 && path != files.trusted_roots) {
      lines.write(
          fmt::format("Only the first of the {} certificates in {} is trusted: a file in "
                      "the directory of roots holds one",
                      found.size(), path));
      found.resize(1);
    }
    for (auto& root : found) {
      roots.push_back({.path = path, .root = std::move(root)});
    }
  }
  if (roots.empty()) {
    return wrong(files.trusted_roots, "no trusted root there (.crt, .cert, .cer, .pem or .der)");
  }
  for (const auto& each : roots) {
    lines.write(line_of("Loading trusted root certificate", each.root.get()));
  }
  return roots;
}

/// A node's roots are all self-signed. Else intermediates may lie among the roots, as in many a
/// bundle: they help to find the way to a root and are trusted for nothing themselves.
Result<void> check_roots(const std::vector<RootOfFile>& roots, const TlsFiles& files) {
  bool any_root = false;
  for (const auto& [path, root] : roots) {
    const bool is_root = X509_self_signed(root.get(), 1) == 1;
    any_root = any_root || is_root;
    ERR_clear_error();
    if (!is_root && files.check_own_chain) {
      return wrong(path, fmt::format("{} is not self-signed, so it is no root; intermediates "
                                     "belong behind the leaf in the certificate file",
                                     one_line(describe(root.get()))));
    }
  }
  return any_root ? Result<void>()
                  : wrong(files.trusted_roots, "no self-signed root there, intermediates only");
}

/// Before the roots are read, as the server does.
Result<void> check_common_name(const TlsMaterial& material, const TlsFiles& files,
                               const LoadingLines& lines) {
  const auto own = describe(material.chain.front().get());
  const auto& reserved = files.reserved_common_name;
  if (!reserved.empty() && !common_name_fits(reserved, own.common_name)) {
    return wrong(files.certificate,
                 fmt::format("its common name \"{}\" does not fit the reserved node common name "
                             "\"{}\": the other nodes would refuse it",
                             own.common_name, reserved));
  }
  lines.write(
      reserved.empty()
          ? fmt::format("\"CertificateReservedNodeCommonName\" auto-configured to: \"{}\" "
                        "based on certificate",
                        own.common_name)
          : fmt::format("\"CertificateReservedNodeCommonName\" configured to: \"{}\"", reserved));
  return {};
}

Result<void> check_intermediates(const TlsMaterial& material, const TlsFiles& files) {
  for (std::size_t i = 1; i < material.chain.size(); ++i) {
    if (X509_self_signed(material.chain[i].get(), 0) == 1) {
      return wrong(files.certificate,
                   fmt::format("{} is self-signed, so it is no intermediate; roots belong into {}",
                               one_line(describe(material.chain[i].get())), files.trusted_roots));
    }
  }
  return {};
}

Result<void> check_way_to_root(const TlsMaterial& material, const TlsFiles& files) {
  if (const auto fault = verify_chain(material.chain, material.roots)) {
    const auto* at = fault->at != nullptr ? fault->at : material.chain.front().get();
    return wrong(files.certificate,
                 fmt::format("{}: {} (trusted roots: {})", one_line(describe(at)), fault->text,
                             files.trusted_roots));
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
  return load_material(files, {.write = [](const std::string& /*line*/) {}});
}

Result<TlsMaterial> load_material(const TlsFiles& files, const LoadingLines& lines) {
  ERR_clear_error();
  TlsMaterial out;
  const bool checked = files.check_own_chain && !files.certificate.empty();
  if (!files.certificate.empty()) {
    lines.write(
        fmt::format("Loading the node's certificate(s) from file: \"{}\"", files.certificate));
    VERGER_TRY(out.chain, read_certificate_file(files.certificate));
    VERGER_TRY(out.key, read_key_file(files));
    if (X509_check_private_key(out.chain.front().get(), out.key.get()) != 1) {
      return wrong(files.private_key, openssl_error("not the key of the certificate").message);
    }
    if (checked) {
      VERGER_RETURN_IF_ERROR(check_common_name(out, files, lines));
    }
    const auto* leaf = out.chain.front().get();
    lines.write(fmt::format(
        "Loading the node's certificate. Subject: \"{}\", Previous thumbprint: {}, New thumbprint: "
        "\"{}\"",
        describe(leaf).subject,
        lines.previous_thumbprint.empty() ? "null"
                                          : fmt::format("\"{}\"", lines.previous_thumbprint),
        thumbprint_of(leaf)));
    for (std::size_t i = 1; i < out.chain.size(); ++i) {
      lines.write(line_of("Loading intermediate certificate", out.chain[i].get()));
    }
  }
  if (checked) {
    VERGER_RETURN_IF_ERROR(check_intermediates(out, files));
  }
  if (!files.trusted_roots.empty()) {
    lines.write("Loading trusted root certificates.");
    VERGER_TRY(auto roots, read_roots(files, lines));
    VERGER_RETURN_IF_ERROR(check_roots(roots, files));
    for (auto& each : roots) {
      out.roots.push_back(std::move(each.root));
    }
  }
  if (checked) {
    VERGER_RETURN_IF_ERROR(check_way_to_root(out, files));
    lines.write("Certificate chain verification successful.");
  }
  return out;
}

}  // namespace verger::certificates
