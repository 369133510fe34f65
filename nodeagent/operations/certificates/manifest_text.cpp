#include "nodeagent/operations/certificates/manifest_text.h"

#include <algorithm>
#include <array>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_writer.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;

constexpr std::array<std::string_view, 5> kStates{"staged", "switching", "switched", "restoring",
                                                  "restored"};

void read_path(api::Fields& fields, std::string_view name, Path& into) {
  std::string text;
  fields.need(name, text);
  into = std::move(text);
}

Result<FileChange> file_change_of(api::JsonView value, const std::string& where) {
  FileChange out;
  std::string phase;
  api::Fields fields(value, where);
  fields.need("phase", phase);
  read_path(fields, "path", out.path);
  read_path(fields, "next", out.next);
  read_path(fields, "previous", out.previous);
  fields.need("before", out.before);
  fields.need("after", out.after);
  VERGER_RETURN_IF_ERROR(fields.result());
  VERGER_TRY(out.phase, api::parse_certificate_phase(phase));
  return out;
}

Result<PhaseState> parse_phase_state(std::string_view text) {
  const auto* const found = std::ranges::find(kStates, text);
  if (found == kStates.end()) {
    return Error{Errc::kCorruption, "the state of a phase is none that is known"};
  }
  return static_cast<PhaseState>(found - kStates.begin());
}

}  // namespace

std::string_view to_string(PhaseState state) { return kStates.at(static_cast<std::size_t>(state)); }

std::string manifest_text(const ChangeManifest& manifest) {
  api::JsonWriter out(2'048);
  out.begin_object()
      .member("change", manifest.change)
      .member("complete", manifest.complete)
      .member("stagedAt", manifest.staged_at)
      .member("digest", manifest.digest)
      .member("set", manifest.set)
      .member("serial", manifest.serial)
      .member("notAfter", manifest.not_after)
      .member("serialBefore", manifest.serial_before)
      .member("fingerprint", manifest.fingerprint)
      .member("fingerprintBefore", manifest.fingerprint_before)
      .member("reload", api::to_string(manifest.reload))
      .member("trustNotShown", manifest.trust_not_shown)
      .member("dropNotShown", manifest.drop_not_shown)
      .name("states")
      .begin_list();
  for (const auto state : manifest.states) {
    out.value(to_string(state));
  }
  out.end_list().name("files").begin_list();
  for (const auto& file : manifest.files) {
    out.begin_object()
        .member("phase", api::to_string(file.phase))
        .member("path", file.path.string())
        .member("next", file.next.string())
        .member("previous", file.previous.string())
        .member("before", file.before)
        .member("after", file.after)
        .end_object();
  }
  return out.end_list().end_object().take();
}

Result<ChangeManifest> parse_manifest(std::string_view text) {
  VERGER_TRY(const auto document, api::JsonDocument::parse(text, "change"));
  ChangeManifest out;
  std::string reload;
  std::size_t states = 0;
  api::Fields fields(document.root(), "change");
  fields.need("change", out.change);
  fields.need("complete", out.complete);
  fields.read("stagedAt", out.staged_at);
  fields.read("digest", out.digest);
  fields.read("set", out.set);
  fields.read("serial", out.serial);
  fields.read("notAfter", out.not_after);
  fields.read("serialBefore", out.serial_before);
  fields.read("fingerprint", out.fingerprint);
  fields.read("fingerprintBefore", out.fingerprint_before);
  fields.need("reload", reload);
  fields.read("trustNotShown", out.trust_not_shown);
  fields.read("dropNotShown", out.drop_not_shown);
  fields.require("states");
  fields.each("states", [&](api::JsonView each, const std::string& where) -> Result<void> {
    VERGER_TRY(const auto state, parse_phase_state(each.is_string() ? each.string() : ""));
    if (states == out.states.size()) {
      return Error{Errc::kCorruption, where + ": there are three phases"};
    }
    out.states.at(states++) = state;
    return {};
  });
  fields.each("files", [&](api::JsonView each, const std::string& where) -> Result<void> {
    VERGER_TRY(auto file, file_change_of(each, where));
    out.files.push_back(std::move(file));
    return {};
  });
  VERGER_RETURN_IF_ERROR(fields.result());
  VERGER_TRY(out.reload, api::parse_reload_by(reload));
  return out;
}

}  // namespace verger::agent
