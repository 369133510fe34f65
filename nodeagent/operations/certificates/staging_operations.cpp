#include <nlohmann/json.hpp>

#include "nodeagent/operations/certificates/certificate_operations.h"
#include "nodeagent/operations/certificates/restoring.h"

namespace verger::agent {
namespace {

using Kind = Observation::Kind;

class CertificateStageOperation final : public Operation {
 public:
  explicit CertificateStageOperation(CertificateDesk::Self desk) : desk_(std::move(desk)) {}
  [[nodiscard]] std::string_view kind() const override { return "certificate_stage"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"change", "source", "serial", "digest"};
  }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(api::parse_certificate_stage(record.request.parameters_json));
    if (!desk_) {
      co_return no_certificates_known();
    }
    if (auto problem = desk_->hindrance(api::ReloadBy::kRoute); !problem.empty()) {
      co_return Error{Errc::kRefused, std::move(problem)};
    }
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_certificate_stage(record.request.parameters_json));
    VERGER_CO_RETURN_IF_ERROR(desk_->stage(asked));
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode /*node*/, OperationRecord& record) override {
    const auto asked = api::parse_certificate_stage(record.request.parameters_json);
    if (!asked || !desk_) {
      co_return Observation{.kind = Kind::kNotHappened, .code = {}, .text = "it was not begun"};
    }
    const auto manifest = desk_->staged(asked->change);
    if (!manifest && manifest.error().code != Errc::kNotFound) {
      co_return Observation{.kind = Kind::kUnknown, .code = {}, .text = manifest.error().message};
    }
    if (!manifest) {
      if (const auto removed = desk_->discard_unfinished(asked->change); !removed) {
        co_return Observation{.kind = Kind::kUnknown, .code = {}, .text = removed.error().message};
      }
      co_return Observation{
          .kind = Kind::kNotHappened,
          .code = {},
          .text = "the agent was restarted while it copied; nothing is left of it"};
    }
    co_return Observation{
        .kind = Kind::kDone,
        .code = {},
        .text = api::to_text(api::CertificateStaged{.serial = manifest->serial,
                                                    .not_after = manifest->not_after,
                                                    .digest = manifest->digest,
                                                    .change = desk_->shown(*manifest)})};
  }

 private:
  CertificateDesk::Self desk_;
};

class CertificateDiscardOperation final : public Operation {
 public:
  explicit CertificateDiscardOperation(CertificateDesk::Self desk) : desk_(std::move(desk)) {}
  [[nodiscard]] std::string_view kind() const override { return "certificate_discard"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {"change"}; }
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(api::parse_certificate_discard(record.request.parameters_json));
    if (!desk_) {
      co_return no_certificates_known();
    }
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_certificate_discard(record.request.parameters_json));
    co_return desk_->discard(asked.change);
  }

  net::awaitable<Observation> observe(LocalNode /*node*/, OperationRecord& record) override {
    const auto asked = api::parse_certificate_discard(record.request.parameters_json);
    if (!asked || !desk_) {
      co_return Observation{.kind = Kind::kNotHappened, .code = {}, .text = "it was not begun"};
    }
    // Half of it may have been done before a restart; the rest is as harmless.
    if (const auto removed = desk_->discard(asked->change); !removed) {
      co_return Observation{
          .kind = removed.error().code == Errc::kConflict ? Kind::kFailed : Kind::kUnknown,
          .code = "conflict",
          .text = removed.error().message};
    }
    co_return Observation{.kind = Kind::kDone, .code = {}, .text = "{}"};
  }

 private:
  CertificateDesk::Self desk_;
};

}  // namespace

std::unique_ptr<Operation> make_certificate_stage_operation(CertificateDesk::Self desk) {
  return std::make_unique<CertificateStageOperation>(std::move(desk));
}

std::unique_ptr<Operation> make_certificate_discard_operation(CertificateDesk::Self desk) {
  return std::make_unique<CertificateDiscardOperation>(std::move(desk));
}

}  // namespace verger::agent
