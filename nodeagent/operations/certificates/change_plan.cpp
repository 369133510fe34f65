#include "nodeagent/operations/certificates/change_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "engine/base/digest.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/pem_text.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;
using Fingerprints = std::set<std::string>;
using Root = FoundCertificates::Root;

std::string content_hash(std::string_view content) { return to_hex(sha256(as_bytes(content))); }

/// Empty where no certificate can be read.
Fingerprints fingerprints_of(std::string_view text) {
  Fingerprints out;
  if (const auto read = certificates::read_details(text)) {
    for (const auto& each : *read) {
      out.insert(each.info.fingerprint);
    }
  }
  return out;
}

bool is_within(const Fingerprints& some, const Fingerprints& all) {
  return !some.empty() && std::ranges::includes(all, some);
}

/// `content`: nullopt: there is no such file on that side.
PlannedFile planned(CertificatePhase phase, Path path, const std::optional<std::string>& before,
                    const std::optional<std::string>& after,
                    const std::optional<external::FileAttributes>& attributes) {
  const auto copy = [&](std::string_view side) {
    return path.parent_path() /
           fmt::format(".{}.verger-{}-{}", path.filename().string(), api::to_string(phase), side);
  };
  PlannedFile out{.change = {.phase = phase, .next = copy("next"), .previous = copy("previous")},
                  .attributes = attributes};
  out.change.path = std::move(path);
  if (before) {
    out.change.before = content_hash(*before);
    out.content_before = *before;
  }
  if (after) {
    out.change.after = content_hash(*after);
    out.content_after = *after;
  }
  return out;
}

/// "ca-0a1b2c3d.crt" of "ca.crt".
std::string other_name(const Root& root) {
  const Path name = root.name;
  return fmt::format("{}-{}{}", name.stem().string(), content_hash(root.file.content).substr(0, 8),
                     name.extension().string());
}

/// The changes to a directory of roots.
class RootsPlan {
 public:
  RootsPlan(const FoundCertificates& live, const FoundCertificates& next)
      : live_(live), next_(next) {
    for (const auto& root : *next.roots) {
      wanted_.merge(fingerprints_of(root.file.content));
    }
    for (const auto& root : *live.roots) {
      if (auto own = fingerprints_of(root.file.content); is_within(own, wanted_)) {
        staying_.insert(root.name);
        covered_.merge(std::move(own));
      }
    }
    attributes_ =
        live.roots->empty() ? live.certificate.attributes : live.roots->front().file.attributes;
  }

  Result<std::vector<PlannedFile>> plan() {
    for (const auto& root : *next_.roots) {
      if (!is_within(fingerprints_of(root.file.content), covered_)) {
        VERGER_RETURN_IF_ERROR(add(root));
      }
    }
    for (const auto& root : *live_.roots) {
      if (!staying_.contains(root.name) && !replaced_.contains(root.name)) {
        VERGER_RETURN_IF_ERROR(check_no_link(root));
        out_.push_back(planned(CertificatePhase::kDrop, path_of(root.name), root.file.content,
                               std::nullopt, root.file.attributes));
      }
    }
    return std::move(out_);
  }

 private:
  Result<void> add(const Root& root) {
    const auto same_name = std::ranges::find(*live_.roots, root.name, &Root::name);
    if (same_name == live_.roots->end()) {
      trust(root.name, root);
      return {};
    }
    trust(other_name(root), root);
    if (staying_.contains(root.name)) {
      return {};
    }
    VERGER_RETURN_IF_ERROR(check_no_link(*same_name));
    replaced_.insert(root.name);
    out_.push_back(planned(CertificatePhase::kDrop, path_of(root.name), same_name->file.content,
                           root.file.content, same_name->file.attributes));
    out_.push_back(planned(CertificatePhase::kDrop, path_of(other_name(root)), root.file.content,
                           std::nullopt, attributes_));
    return {};
  }
  void trust(const std::string& name, const Root& root) {
    out_.push_back(planned(CertificatePhase::kTrust, path_of(name), std::nullopt, root.file.content,
                           attributes_));
  }
  /// A link cannot be restored as it was.
  static Result<void> check_no_link(const Root& root) {
    if (!root.file.is_link()) {
      return {};
    }
    return Error{Errc::kRefused,
                 fmt::format("{} is a link to {}, and would have to go: put files there instead of "
                             "links, or keep that root",
                             root.file.path.string(), root.file.target.string())};
  }
  [[nodiscard]] Path path_of(const std::string& name) const { return live_.roots_path / name; }

  const FoundCertificates& live_;
  const FoundCertificates& next_;
  Fingerprints wanted_;
  Fingerprints covered_;
  std::set<std::string> staying_;
  std::set<std::string> replaced_;
  std::optional<external::FileAttributes> attributes_;
  std::vector<PlannedFile> out_;
};

/// A server reads only the first certificate of each file.
Result<std::vector<PlannedFile>> plan_one_file(const FoundCertificates& live,
                                               const FoundCertificates& next) {
  const auto& file = live.roots->front().file;
  const auto present = fingerprints_of(file.content);
  for (const auto& root : *next.roots) {
    if (!is_within(fingerprints_of(root.file.content), present)) {
      return Error{
          Errc::kRefused,
          fmt::format("the node's trusted roots are one file, {}: a server reads only the first "
                      "certificate in it, so that the old and the new root cannot both be trusted; "
                      "configure node and agent with a directory "
                      "(--trusted-root-certificates-path)",
                      file.path.string())};
    }
  }
  return std::vector<PlannedFile>{};
}

/// The changes to the file of the certificate. As a client a server shows its leaf alone, and the
/// others complete the chain with the intermediates behind their own: so new ones come before any
/// new leaf, and old ones go after all of them.
void plan_chain(const FoundFile& live, const FoundFile& next, std::vector<PlannedFile>& out) {
  const auto with = [](std::string text, const std::string& more) {
    if (!more.empty() && !text.ends_with('\n')) {
      text += '\n';
    }
    return text + more;
  };
  const auto trusting =
      with(live.content, certificates::intermediates_pem(next.content, live.content));
  const auto changed =
      with(next.content, certificates::intermediates_pem(live.content, next.content));
  const auto step = [&](CertificatePhase phase, const std::string& from, const std::string& to) {
    if (from != to) {
      out.push_back(planned(phase, live.target, from, to, live.attributes));
    }
  };
  step(CertificatePhase::kTrust, live.content, trusting);
  step(CertificatePhase::kLeaf, trusting, changed);
  step(CertificatePhase::kDrop, changed, next.content);
}

Error cannot_change(std::string text) { return {Errc::kRefused, std::move(text)}; }
Error cannot_use(const FoundFile& file, std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("{}: {}", file.path.string(), why)};
}

Result<void> check_other_file(const FoundCertificates& live, const FoundCertificates& next) {
  if (next.certificate.target != live.certificate.target) {
    return {};
  }
  return cannot_use(next.certificate,
                    "it is the node's own file, so what was before cannot be restored: put new "
                    "certificates elsewhere, or have the node reload this one");
}

/// The new files, as far as they must be right to be copied; what else is wrong lint says.
Result<void> check_new(const FoundCertificates& live, const FoundCertificates& next) {
  if (!next.certificate.problem.empty()) {
    return cannot_use(next.certificate, next.certificate.problem);
  }
  VERGER_RETURN_IF_ERROR(check_other_file(live, next));
  const auto& key = next.key ? next.key : live.key;
  if (!key || !key->problem.empty()) {
    return cannot_use(key ? *key : next.certificate, key ? key->problem : "there is no key");
  }
  const auto fits =
      certificates::key_fits(next.certificate.content, key->content, live.key_password);
  if (!fits) {
    return cannot_use(*key, fits.error().message);
  }
  if (!*fits) {
    return cannot_use(*key,
                      "it is not the key of the certificate " + next.certificate.path.string());
  }
  if (!next.roots_problem.empty()) {
    return Error{Errc::kInvalidArgument, next.roots_problem};
  }
  for (const auto& root : next.roots.value_or(std::vector<Root>{})) {
    if (!root.file.problem.empty() || fingerprints_of(root.file.content).empty()) {
      return cannot_use(root.file, root.file.problem.empty() ? "no certificate can be read in it"
                                                             : root.file.problem);
    }
  }
  return {};
}

Result<void> check_present(const FoundCertificates& live) {
  if (!live.certificate.problem.empty()) {
    return cannot_change("the node's certificate: " + live.certificate.problem);
  }
  if (!live.key) {
    return cannot_change(
        "the agent does not know where the node's key is (--certificate-private-key-file)");
  }
  if (!live.key->problem.empty()) {
    return cannot_change("the node's key: " + live.key->problem);
  }
  if (live.key->target == live.certificate.target) {
    return cannot_change(
        fmt::format("certificate and key of the node are one file, {}: give each "
                    "a file of its own",
                    live.key->target.string()));
  }
  if (!certificates::pem_of(live.certificate.content)) {
    return cannot_change(
        fmt::format("{} is no PEM file (of PKCS#12 files an agent replaces none): "
                    "configure the node with certificate and key as PEM files",
                    live.certificate.path.string()));
  }
  if (!live.roots_problem.empty()) {
    return cannot_change("the node's trusted roots: " + live.roots_problem);
  }
  return {};
}

}  // namespace

Result<std::vector<PlannedFile>> plan_files(const FoundCertificates& live,
                                            const FoundCertificates& next) {
  VERGER_RETURN_IF_ERROR(check_present(live));
  VERGER_RETURN_IF_ERROR(check_new(live, next));
  std::vector<PlannedFile> all;
  if (next.roots && !next.roots->empty()) {
    if (!live.roots) {
      return cannot_change(
          "the agent does not know where the node's roots are (--trusted-root-certificates-path)");
    }
    VERGER_TRY(all,
               live.roots_in_one_file ? plan_one_file(live, next) : RootsPlan(live, next).plan());
  }
  const auto replace = [&](const FoundFile& present, const FoundFile& with) {
    if (present.content != with.content) {
      all.push_back(planned(CertificatePhase::kLeaf, present.target, present.content, with.content,
                            present.attributes));
    }
  };
  if (next.key) {
    replace(*live.key, *next.key);
  }
  plan_chain(live.certificate, next.certificate, all);
  std::vector<PlannedFile> out;
  for (const auto phase :
       {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
    std::ranges::copy_if(all, std::back_inserter(out),
                         [phase](const PlannedFile& each) { return each.change.phase == phase; });
  }
  return out;
}

std::string why_not_changeable(const FoundCertificates& live, external::FileAccess& access) {
  if (const auto present = check_present(live); !present) {
    return present.error().message;
  }
  for (const auto& path : {live.certificate.target, live.key->target}) {
    if (auto problem = access.not_writable(path.parent_path()); !problem.empty()) {
      return problem;
    }
  }
  return {};
}

std::string why_not_replaceable(const FoundCertificates& live, const FoundCertificates& next,
                                external::FileAccess& access) {
  if (const auto other = check_other_file(live, next); !other) {
    return other.error().message;
  }
  const auto planned = plan_files(live, next);
  if (!planned) {
    return check_present(live) && planned.error().code == Errc::kRefused ? planned.error().message
                                                                         : std::string();
  }
  for (const auto& each : *planned) {
    if (auto problem = access.not_writable(each.change.path.parent_path()); !problem.empty()) {
      return problem;
    }
  }
  return {};
}

}  // namespace verger::agent
