#include <algorithm>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pkcs12.h>

#include "nodeagent/certificates/detail/lint_parts.h"
#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

using Pkcs12File = std::unique_ptr<PKCS12, Deleter<PKCS12_free>>;

bool is_pkcs12(const std::string& content) {
  const auto* at = reinterpret_cast<const unsigned char*>(content.data());
  const Pkcs12File read(d2i_PKCS12(nullptr, &at, static_cast<long>(content.size())));
  ERR_clear_error();
  return read != nullptr;
}

/// A PEM text that begins more than it ends, or ends within a line.
bool is_truncated(const std::string& content) {
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (auto at = content.find(word); at != std::string::npos; at = content.find(word, at + 1)) {
      ++found;
    }
    return found;
  };
  return count("-----BEGIN ") > count("-----END ") ||
         (content.contains("-----END ") &&
          !content.substr(content.rfind("-----END ") + 9).contains("-----"));
}

/// What is no certificate file, by what it is instead.
void say_no_certificate(const FileSeen& file, const std::string& why, Findings& findings) {
  if (is_pkcs12(file.content)) {
    findings.error("certificate-is-pkcs12", file.path, "it is a PKCS#12 file where PEM is expected",
                   "convert it: openssl pkcs12 -in FILE -nokeys -out node.crt, and -nocerts "
                   "-nodes -out node.key");
  } else if (file.content.contains("-----BEGIN ") && is_truncated(file.content)) {
    findings.error("certificate-truncated", file.path, "the PEM text ends before its END line",
                   "copy the file again as a whole");
  } else {
    findings.error("certificate-unreadable", file.path, "no certificate can be read: " + why,
                   "put the node's certificate there, PEM, leaf first");
  }
}

bool is_there(const FileSeen& file, Findings& findings) {
  if (!file.unreadable.empty()) {
    findings.error("file-unreadable", file.path, "cannot be read: " + file.unreadable,
                   "look at its path, owner and mode; the server needs to read it, too");
    return false;
  }
  return true;
}

std::vector<Certificate> read_list(const FileSeen& file, Findings& findings) {
  if (!is_there(file, findings)) {
    return {};
  }
  if (file.content.contains("-----BEGIN ") && is_truncated(file.content)) {
    say_no_certificate(file, "", findings);
    return {};
  }
  auto read = read_certificate_list(file.content);
  if (!read) {
    say_no_certificate(file, read.error().message, findings);
    return {};
  }
  return *std::move(read);
}

void check_access(const LintNode& node, const FileSeen& key, Findings& findings) {
  constexpr unsigned kGroupReads = 0040;
  const bool in_group =
      key.group && std::ranges::find(node.groups, *key.group) != node.groups.end();
  const unsigned more = key.mode.value_or(0) & 0077U;
  // A group may read it, and nothing else is open: the usual way to give a key of root to a server.
  const bool by_group = more == kGroupReads && (in_group || node.groups.empty());
  if (more != 0 && !by_group) {
    findings.error(
        "file-mode", key.path,
        more == kGroupReads
            ? fmt::format("group {} may read the key (mode {:04o}), and the server's user "
                          "is not in it",
                          key.group.value_or(0), *key.mode)
            : fmt::format("others than its owner may read the key (mode {:04o})", *key.mode),
        fmt::format("chmod 600 {}", key.path));
  } else if (by_group && !in_group) {
    findings.warning(
        "file-mode", key.path,
        fmt::format("its group may read the key (mode {:04o}), and whether that is the "
                    "server's group is not known",
                    *key.mode),
        fmt::format("see that the server's user is in that group, or chmod 600 {}", key.path));
  }
  const bool read_by_group = in_group && (more & kGroupReads) != 0;
  if (key.owner && node.owner && *key.owner != *node.owner && !read_by_group) {
    findings.error(
        "file-owner", key.path,
        fmt::format("it belongs to user {}, the server runs as user {}", *key.owner, *node.owner),
        fmt::format("chown {} {}", *node.owner, key.path));
  }
}

Key read_own_key(const LintNode& node, const FileSeen& file, Findings& findings) {
  if (!is_there(file, findings)) {
    return nullptr;
  }
  check_access(node, file, findings);
  auto key = read_key(file.content, node.next.key_password);
  if (key) {
    if (const auto fault = not_read_by_servers(file.content); !fault.empty()) {
      findings.error("key-format", file.path, fault + ": servers do not read such a file",
                     "write it anew: openssl pkey -in FILE -out node.key (encrypted: openssl pkcs8 "
                     "-topk8 -v2 aes-256-cbc -in FILE -out node.key)");
    }
    return *std::move(key);
  }
  const bool encrypted = file.content.contains("ENCRYPTED");
  if (is_pkcs12(file.content)) {
    findings.error("key-is-pkcs12", file.path, "it is a PKCS#12 file where a PEM key is expected",
                   "convert it: openssl pkcs12 -in FILE -nocerts -nodes -out node.key");
  } else if (is_truncated(file.content)) {
    findings.error("key-truncated", file.path, "the PEM text ends before its END line",
                   "copy the file again as a whole");
  } else if (encrypted && node.next.key_password.empty()) {
    findings.error("key-encrypted", file.path, "the key is encrypted and no password is given",
                   "give the password (--key-password-file) and set "
                   "CertificatePrivateKeyPassword on the node, or use a key without");
  } else if (encrypted) {
    findings.error("key-password-wrong", file.path, "the password does not open the key",
                   "give the password with which the key was encrypted");
  } else {
    findings.error("key-unreadable", file.path, "no private key can be read in it",
                   "put the PEM key of the certificate there (PKCS#8 or PKCS#1)");
  }
  return nullptr;
}

void read_roots(ReadNode& read, Findings& findings) {
  for (const auto& file : read.node->next.roots) {
    auto found = read_list(file, findings);
    if (found.size() > 1) {
      findings.warning("root-file-several", file.path,
                       fmt::format("it holds {} certificates, of which servers trust the first "
                                   "alone, {}",
                                   found.size(), describe(found.front().get()).subject),
                       "put each root into a file of its own");
      found.resize(1);
    }
    for (auto& root : found) {
      const bool self_signed = X509_self_signed(root.get(), 1) == 1;
      ERR_clear_error();
      if (!self_signed) {
        findings.error("root-not-self-signed", file.path,
                       fmt::format("{} is not self-signed: a server refuses all its certificates "
                                   "while that lies among its roots",
                                   describe(root.get()).subject),
                       "intermediates belong behind the leaf in the certificate file, leaves "
                       "nowhere near the roots");
      } else {
        read.roots.push_back(std::move(root));
      }
    }
  }
  if (read.node->next.roots.empty()) {
    findings.error("root-missing", "", "there is no root among the new files",
                   "add the certificate of the root CA");
  }
}

}  // namespace

ReadNode read_new_files(const LintNode& node, Findings& findings) {
  ReadNode out{.node = &node};
  out.chain = read_list(node.next.certificate, findings);
  if (!out.chain.empty()) {
    out.leaf = describe(out.chain.front().get());
  }
  if (node.next.key) {
    out.key = read_own_key(node, *node.next.key, findings);
  }
  read_roots(out, findings);
  return out;
}

}  // namespace verger::certificates
