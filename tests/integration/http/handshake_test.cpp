#include "nodeagent/http/handshake.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "nodeagent/http/tls.h"
#include "tests/integration/http/certificates.h"
#include "tests/integration/http/loopback.h"
#include "tests/support/temp_directory.h"

namespace verger::http::test {
namespace {

using namespace std::chrono_literals;

class HandshakeTest : public testing::Test, public Loopback {
 protected:
  HandshakeTest() : issued_(authority_.issue("n1", "IP:127.0.0.1")) {}

  ~HandshakeTest() override { stop(); }
  HandshakeTest(const HandshakeTest&) = delete;
  HandshakeTest& operator=(const HandshakeTest&) = delete;

  void stop() {
    if (server_) {
      run(server_->stop(200ms));
    }
  }
  std::string put(const std::string& name, const std::string& text) const {
    const auto path = (directory_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  void serve(ClientCertificate clients, int status = 200) {
    auto made = TlsContext::server({.certificate = put("n1.crt", issued_.certificate),
                                    .private_key = put("n1.key", issued_.key),
                                    .trusted_roots = put("ca.crt", authority_.root())},
                                   clients);
    ASSERT_TRUE(made) << made.error().message;
    stop();
    server_ = std::make_unique<Server>(
        context.get_executor(), ServerOptions{.tls = *made},
        [this, status](Request request) -> net::awaitable<Response> {
          asked_ = request.target;
          return [](int with) -> net::awaitable<Response> {
            co_return Response{.status = with};
          }(status);
        },
        null_log());
    const auto listening = server_->listen();
    ASSERT_TRUE(listening) << listening.error().message;
    endpoint_ = *listening;
  }
  Result<Handshake> shake(ClientMaterial material) {
    Result<Handshake> out = Error{Errc::kTimeout, "not tried"};
    run([](net::any_io_executor executor, Endpoint to, ClientMaterial with,
           Result<Handshake>& into) -> net::awaitable<void> {
      into = co_await shake_hands(std::move(executor), std::move(to), std::move(with),
                                  "/info/options", 500ms);
    }(context.get_executor(), endpoint_, std::move(material), out));
    return out;
  }
  ClientMaterial own() const {
    return {.chain = issued_.certificate, .key = issued_.key, .roots = authority_.root()};
  }

  verger::test::TempDirectory directory_;
  Authority authority_{"Verger test root"};
  Authority stranger_{"Another root"};
  Authority::Issued issued_;
  std::unique_ptr<Server> server_;
  Endpoint endpoint_;
  std::string asked_;
};

TEST_F(HandshakeTest, ShowsWhatBothSidesThinkOfEachOther) {
  serve(ClientCertificate::kOptional, 401);
  const auto seen = shake(own());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->served, issued_.certificate);
  EXPECT_EQ(seen->not_trusted, "");
  EXPECT_EQ(seen->accepted, true) << seen->not_accepted;
  EXPECT_EQ(seen->status, 401);
  EXPECT_EQ(asked_, "/info/options");
}

TEST_F(HandshakeTest, SaysWhyAServerIsNotTrustedAndContinues) {
  serve(ClientCertificate::kOptional);
  auto with = own();
  with.roots = stranger_.root();
  const auto unknown = shake(with);
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_TRUE(unknown->not_trusted.contains("issuer")) << unknown->not_trusted;
  EXPECT_EQ(unknown->accepted, true) << "what the server thinks is seen all the same";
  issued_ = authority_.issue("n1", "DNS:n1.example.com");
  serve(ClientCertificate::kOptional);
  const auto misnamed = shake(own());
  ASSERT_TRUE(misnamed) << misnamed.error().message;
  EXPECT_TRUE(misnamed->not_trusted.contains("not for 127.0.0.1")) << misnamed->not_trusted;
}

TEST_F(HandshakeTest, SeesThatAServerRefusesACertificateOfAnotherAuthority) {
  for (const auto clients : {ClientCertificate::kOptional, ClientCertificate::kRequired}) {
    serve(clients);
    const auto foreign = stranger_.issue("n1", "IP:127.0.0.1");
    const auto seen =
        shake({.chain = foreign.certificate, .key = foreign.key, .roots = authority_.root()});
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->accepted, false);
    EXPECT_FALSE(seen->not_accepted.empty());
    EXPECT_EQ(seen->not_trusted, "");
    EXPECT_EQ(asked_, "") << "nothing is answered to it";
  }
}

TEST_F(HandshakeTest, NeedsNoCertificateWhereNoneIsRequired) {
  serve(ClientCertificate::kOptional);
  EXPECT_EQ(shake({})->accepted, true);
  serve(ClientCertificate::kRequired);
  EXPECT_EQ(shake({})->accepted, false);
}

TEST_F(HandshakeTest, DistinguishesSilenceFromARefusal) {
  RawServer raw(context);
  endpoint_ = raw.endpoint();
  endpoint_.tls = true;
  const auto silent = shake(own());
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, Errc::kUnavailable);
  raw.close();
  EXPECT_EQ(shake(own()).error().code, Errc::kUnavailable);
  auto bad = own();
  bad.key = stranger_.issue("n1", "IP:127.0.0.1").key;
  EXPECT_EQ(shake(bad).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger::http::test
