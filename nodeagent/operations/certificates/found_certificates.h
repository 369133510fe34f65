#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/external/file_access.h"
#include "nodeagent/operations/certificates/certificate_access.h"

namespace verger::agent {

/// A file as it was found, with its content: of keys, too, so this never leaves the agent.
struct FoundFile {
  Path path{};
  Path target{};  ///< the path itself where it is no link
  std::string content{};
  std::string problem{};  ///< why it cannot be read; empty: it was
  std::optional<external::FileAttributes> attributes{};
  [[nodiscard]] bool is_link() const { return target != path; }
};

/// A node's certificates, present or new.
struct FoundCertificates {
  struct Root {
    std::string name{};
    FoundFile file{};
  };
  FoundFile certificate{};
  /// nullopt: there is none of its own: the present one stays.
  std::optional<FoundFile> key{};
  std::string key_password{};
  /// nullopt: the present ones stay.
  std::optional<std::vector<Root>> roots{};
  Path roots_path{};
  bool roots_in_one_file = false;
  std::string roots_problem{};
  std::string set{};  ///< of the agent's store, from which they are: its SHA-256; empty: of none
};

/// Reads certificates where they lie. What cannot be read is in the result.
class CertificateReader {
 public:
  /// `stored` gives a file of the agent's store: kNotFound, kCorruption, kIo.
  CertificateReader(FileSystem& files, external::FileAccess& access,
                    std::function<Result<Bytes>(std::string_view sha256)> stored,
                    std::function<Result<std::string>(const std::string& change)> made_key)
      : files_(files),
        access_(access),
        stored_(std::move(stored)),
        made_key_(std::move(made_key)) {}

  [[nodiscard]] FoundCertificates live(const CertificatePlaces& places) const;
  /// The certificates of users in the files and directories that are given; what cannot be read is
  /// among them.
  [[nodiscard]] std::vector<api::UserCertificate> users(const CertificatePlaces& places) const;
  /// `password`: of the keys among them. Errors: kNotFound: a file of the set, or the key that was
  /// made for a request, is not at this agent, or the set has no such node; kInvalidArgument: the
  /// set cannot be read.
  [[nodiscard]] Result<FoundCertificates> candidate(const api::CertificateSource& source,
                                                    const std::string& password) const;

 private:
  [[nodiscard]] FoundFile read(const Path& path) const;
  /// `role`: what the file is, for messages; the name of a stored file is a hash.
  [[nodiscard]] Result<FoundFile> stored_file(const std::string& sha256, std::string role) const;
  void read_users(const Path& path, int depth, std::vector<api::UserCertificate>& into) const;
  [[nodiscard]] Result<FoundCertificates> of_set(const api::CertificateSource& source,
                                                 const std::string& password) const;
  void read_roots(const Path& path, FoundCertificates& into) const;

  FileSystem& files_;
  external::FileAccess& access_;
  std::function<Result<Bytes>(std::string_view)> stored_;
  std::function<Result<std::string>(const std::string&)> made_key_;
};

/// Of all contents together.
std::string digest_of(const FoundCertificates& found);
/// All roots, PEM, one behind the other; what cannot be read is passed over.
std::string roots_of(const FoundCertificates& found);

/// What a controller may know of them: no key. `present` stands in for what `found` lacks; it may
/// be the same. `server_user`: for whether the server may read its key; nullopt: not checked.
api::CertificateFiles shown_files(const FoundCertificates& found, const FoundCertificates& present,
                                  const CertificatePlaces& places,
                                  const std::optional<ServerUser>& server_user, Ticks now);

}  // namespace verger::agent
