#include "tests/unit/nodeagent_operations/certificate_case.h"

#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/pem_text.h"

namespace verger::agent {
namespace {

using certificates::CertificateKind;
using certificates::CertificateTerms;

template <class T>
T must_have(Result<T> value) {
  EXPECT_TRUE(value.has_value()) << (value ? "" : value.error().message);
  return value ? *std::move(value) : T{};
}

CertificateTerms terms_of(CertificateKind kind, const std::string& name) {
  const auto now = system_clock().now();
  return {.kind = kind,
          .common_name = name,
          .dns_names = kind == CertificateKind::kNode ? std::vector<std::string>{"n1"}
                                                      : std::vector<std::string>{},
          .not_before = Ticks(now.value() - 3'600 * kTicksPerSecond),
          .not_after = Ticks(now.value() + 86'400 * kTicksPerSecond)};
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) {
  key_ = must_have(certificates::new_private_key(certificates::KeyType::kEcP256, ""));
  root_ = must_have(certificates::make_root(key_, "", terms_of(CertificateKind::kRoot, name)))
              .certificates;
}

std::string TestAuthority::sign(const std::string& request) const {
  auto terms = must_have(certificates::terms_of_request(request));
  const auto dates = terms_of(CertificateKind::kNode, terms.common_name);
  terms.kind = CertificateKind::kNode;
  terms.not_before = dates.not_before;
  terms.not_after = dates.not_after;
  return must_have(certificates::issue(request, terms, {.certificates = root_, .key = key_}))
      .certificates;
}

TestAuthority::Leaf TestAuthority::leaf(const std::string& common_name) const {
  Leaf out;
  out.key = must_have(certificates::new_private_key(certificates::KeyType::kEcP256, ""));
  out.certificate = sign(must_have(
      certificates::make_request(out.key, "", terms_of(CertificateKind::kNode, common_name))));
  return out;
}

void put_file(FileSystem& files, const Path& path, const std::string& content) {
  EXPECT_TRUE(files.make_directories(path.parent_path()));
  EXPECT_TRUE(write_file_durably(files, path, as_bytes(content)));
  for (auto at = path.parent_path(); at != at.root_path(); at = at.parent_path()) {
    EXPECT_TRUE(files.sync_directory(at.parent_path()));
  }
}

std::string text_of_file(FileSystem& files, const Path& path) {
  const auto read = read_file(files, path);
  return read ? std::string(as_text(*read)) : std::string();
}

std::map<std::string, std::string> all_files(FileSystem& files, const Path& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : files.list(directory).value_or(std::vector<DirectoryEntry>{})) {
    const auto path = directory / entry.name;
    if (entry.is_directory) {
      out.merge(all_files(files, path));
    } else {
      out[path.string()] = text_of_file(files, path);
    }
  }
  return out;
}

void NodeDirectory::write(const TestAuthority::Leaf& leaf,
                          const std::map<std::string, std::string>& roots) {
  put_file(files, "/node/node.crt", leaf.certificate);
  put_file(files, "/node/node.key", leaf.key);
  for (const auto& [name, root] : roots) {
    put_file(files, Path("/node/ca") / name, root);
  }
}

bool FakeServer::reload() {
  ++reloads;
  if (ignores_reloads || down) {
    return false;
  }
  const auto chain = text_of_file(files_, "/node/node.crt");
  const auto key = text_of_file(files_, "/node/node.key");
  std::string roots;
  for (const auto& [path, content] : all_files(files_, "/node/ca")) {
    if (path.ends_with(".crt")) {
      roots += content;
    }
  }
  const auto fits = certificates::key_fits(chain, key, "");
  if (!fits || !*fits || !certificates::why_not_chained(chain, roots).empty()) {
    return false;
  }
  chain_ = chain;
  roots_ = roots;
  return true;
}

Result<http::Handshake> FakeServer::shake_hands(const http::ClientMaterial& shown) const {
  if (down) {
    return Error{Errc::kUnavailable, "connection refused"};
  }
  if (!shown.chain.empty() &&
      !certificates::key_fits(shown.chain, shown.key, shown.key_password).value_or(false)) {
    return Error{Errc::kInvalidArgument, "the key is not that of the certificate"};
  }
  http::Handshake out{.served = chain_, .accepted = true, .status = 200};
  if (!shown.chain.empty()) {
    // As servers do, it completes the chain with its own intermediates.
    out.not_accepted = certificates::why_not_chained(
        shown.chain + certificates::intermediates_pem(chain_), roots_);
    out.accepted = out.not_accepted.empty();
  }
  if (!shown.roots.empty()) {
    out.not_trusted = certificates::why_not_chained(chain_, shown.roots);
  }
  return out;
}

}  // namespace verger::agent
