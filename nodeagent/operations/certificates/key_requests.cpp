#include "nodeagent/operations/certificates/key_requests.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/directories.h"
#include "engine/base/number_from_text.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/operations/certificates/private_copy.h"

namespace verger::agent {
namespace {

constexpr std::string_view kKeyFile = ".key";

/// A change's name may have characters that a file's may not.
std::string prefix_of(const std::string& change) { return to_hex(sha256(as_bytes(change))) + "."; }

std::vector<std::string> key_files(FileSystem& files, const Path& directory) {
  std::vector<std::string> out;
  for (const auto& each : files.list(directory).value_or(std::vector<DirectoryEntry>{})) {
    if (each.name.ends_with(kKeyFile)) {
      out.push_back(each.name);
    }
  }
  return out;
}

/// "1700000000" of "<hash>.1700000000.key".
std::int64_t second_of(std::string_view name) {
  name.remove_suffix(kKeyFile.size());
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos
             ? 0
             : number_from_text<std::int64_t>(name.substr(dot + 1)).value_or(0);
}

}  // namespace

Path KeyRequests::path_of(const std::string& change) const {
  const auto prefix = prefix_of(change);
  for (const auto& name : key_files(files_, directory_)) {
    if (name.starts_with(prefix)) {
      return directory_ / name;
    }
  }
  return {};
}

bool KeyRequests::has_key(const std::string& change) const { return !path_of(change).empty(); }

Result<std::string> KeyRequests::make_key(const std::string& type, const std::string& password) {
  VERGER_TRY(const auto wanted, certificates::parse_key_type(type));
  return certificates::new_private_key(wanted, password);
}

Result<void> KeyRequests::keep(const std::string& change, const std::string& key) {
  VERGER_RETURN_IF_ERROR(make_directories_durably(files_, directory_));
  if (has_key(change)) {
    return {};
  }
  drop_oldest();
  const auto second = (clock_.now().value() - kUnixEpoch.value()) / kTicksPerSecond;
  return write_copy(files_, access_,
                    directory_ / fmt::format("{}{}{}", prefix_of(change), second, kKeyFile), key,
                    std::nullopt);
}

Result<std::string> KeyRequests::key(const std::string& change) const {
  const auto path = path_of(change);
  if (path.empty()) {
    return Error{Errc::kNotFound, fmt::format("no key was made here for the change {}", change)};
  }
  VERGER_TRY(const auto read, read_file(files_, path));
  return std::string(as_text(read));
}

Result<std::string> KeyRequests::request(const api::CertificateKeyRequest& asked,
                                         const std::string& type,
                                         const std::string& password) const {
  VERGER_TRY(const auto key, this->key(asked.change));
  VERGER_TRY(auto request, certificates::make_request(key, password,
                                                      {.kind = certificates::CertificateKind::kNode,
                                                       .common_name = asked.common_name,
                                                       .dns_names = asked.dns_names,
                                                       .ip_addresses = asked.ip_addresses}));
  VERGER_TRY(const auto read, certificates::read_key(key, password));
  VERGER_TRY(const auto there, certificates::type_of(read.get()));
  if (certificates::text_of(there) != type) {
    return Error{Errc::kConflict,
                 fmt::format("the key of the change {} is {}, and {} is wanted now", asked.change,
                             certificates::text_of(there), type)};
  }
  return request;
}

Result<void> KeyRequests::drop(const std::string& change) {
  const auto path = path_of(change);
  if (path.empty()) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(files_.remove(path));
  return files_.sync_directory(directory_);
}

/// Of changes that were abandoned: the others go with their change.
void KeyRequests::drop_oldest() {
  auto names = key_files(files_, directory_);
  std::ranges::sort(names, {}, [](const std::string& name) { return second_of(name); });
  for (std::size_t i = 0; i + kKept <= names.size(); ++i) {
    static_cast<void>(files_.remove(directory_ / names[i]));
  }
}

}  // namespace verger::agent
