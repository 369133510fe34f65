#include "nodeagent/http/tls.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include <boost/asio/use_awaitable.hpp>

#include "engine/base/clock.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/http/frame_transport.h"
#include "tests/integration/http/certificates.h"
#include "tests/integration/http/loopback.h"
#include "tests/support/temp_directory.h"

namespace verger::http::test {
namespace {

using namespace std::chrono_literals;

class Tls : public testing::Test, public Loopback {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = (directory.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  TlsFiles files(const std::string& name, const Authority::Issued& issued,
                 const std::string& roots) const {
    return TlsFiles{.certificate = write(name + ".crt", issued.certificate),
                    .private_key = write(name + ".key", issued.key),
                    .trusted_roots = write(name + ".ca.crt", roots)};
  }
  TlsFiles trusting(const std::string& roots) const {
    return TlsFiles{.trusted_roots = write("trusting.crt", roots)};
  }
  void serve(TlsFiles with, ClientCertificate clients) {
    auto made = TlsContext::server(std::move(with), clients);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    context_of_server = *made;
    server = std::make_unique<Server>(
        context.get_executor(), ServerOptions{.tls = context_of_server},
        [](Request request) -> net::awaitable<Response> {
          const auto& peer = request.peer;
          co_return Response{
              .body =
                  fmt::format("{} {} [{}]", peer.certificate_common_name.value_or("no certificate"),
                              peer.certificate_is_node ? "node" : "other",
                              fmt::join(peer.certificate_names, ","))};
        },
        null_log());
    auto listening = server->listen();
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
    endpoint = *listening;
    ASSERT_TRUE(endpoint.tls);
  }
  /// One request with a client of its own.
  Result<Response> ask(
      TlsFiles with, Endpoint to,
      std::function<std::string(const CertificateInfo&)> unknown_issuer_advice = {}) {
    auto made = TlsContext::client(std::move(with));
    EXPECT_TRUE(made.has_value()) << made.error().message;
    BeastClient client(
        context.get_executor(),
        BeastClientOptions{.tls = *made,
                           .unknown_issuer_advice = std::move(unknown_issuer_advice)});
    Result<Response> out = Error{Errc::kTimeout, "not asked"};
    run([](BeastClient& c, Endpoint where, Result<Response>& answer) -> net::awaitable<void> {
      answer = co_await c.send(where, Request{.method = "POST"}, 5s);
    }(client, to, out));
    return out;
  }
  verger::test::TempDirectory directory;
  Authority authority{"Verger test root"};
  Authority stranger{"Another root"};
  std::shared_ptr<TlsContext> context_of_server;
  std::unique_ptr<Server> server;
  Endpoint endpoint;
};

TEST_F(Tls, PassesTheClientsNameToTheHandler) {
  const auto node = authority.issue("n1.example.com", "DNS:localhost,IP:127.0.0.1");
  serve(files("node", node, authority.root()), ClientCertificate::kOptional);
  EXPECT_EQ(ask(files("node", node, authority.root()), endpoint)->body,
            "n1.example.com node [localhost,127.0.0.1]");
  const auto person = authority.issue("person", "", "clientAuth");
  EXPECT_EQ(ask(files("person", person, authority.root()), endpoint)->body, "person other []");
  EXPECT_EQ(ask(trusting(authority.root()), endpoint)->body, "no certificate other []");
}

TEST_F(Tls, RefusesClientsWithAWrongOrMissingCertificate) {
  const auto node = authority.issue("n1", "IP:127.0.0.1");
  serve(files("node", node, authority.root()), ClientCertificate::kRequired);
  EXPECT_TRUE(ask(files("node", node, authority.root()), endpoint).has_value());
  // With TLS 1.3 the client hears of it after its own handshake: it cannot know what was done.
  const auto foreign = stranger.issue("n1", "IP:127.0.0.1");
  auto with_foreign = files("foreign", foreign, authority.root());
  EXPECT_FALSE(ask(with_foreign, endpoint).has_value());
  EXPECT_FALSE(ask(trusting(authority.root()), endpoint).has_value());
}

TEST_F(Tls, RefusesServersThatAreNotTheOnesMeant) {
  serve(files("node", authority.issue("127.0.0.1", "DNS:n1.example.com"), authority.root()),
        ClientCertificate::kNotRequested);
  const auto other_name = ask(trusting(authority.root()), endpoint);
  ASSERT_FALSE(other_name.has_value());
  EXPECT_EQ(other_name.error().code, Errc::kUnavailable);
  EXPECT_TRUE(other_name.error().message.contains("TLS handshake")) << other_name.error().message;
  const auto untrusted = ask(trusting(stranger.root()), endpoint);
  ASSERT_FALSE(untrusted.has_value());
  EXPECT_EQ(untrusted.error().code, Errc::kUnavailable);
  EXPECT_TRUE(untrusted.error().message.contains("unable to get local issuer"))
      << untrusted.error().message;
}

TEST_F(Tls, ABundleMayHaveSeveralRootsAndIntermediates) {
  const auto node = authority.issue("n1", "IP:127.0.0.1");
  serve(files("node", node, authority.root()), ClientCertificate::kNotRequested);
  const auto between = authority.issue("between", "").certificate;
  EXPECT_TRUE(ask(trusting(stranger.root() + between + authority.root()), endpoint).has_value());
  EXPECT_FALSE(ask(trusting(between + stranger.root()), endpoint).has_value());
  const auto no_root = TlsContext::client(trusting(between));
  ASSERT_FALSE(no_root.has_value());
  EXPECT_TRUE(no_root.error().message.contains("no self-signed root")) << no_root.error().message;
  auto of_node = files("strict", node, between + authority.root());
  of_node.check_own_chain = true;
  EXPECT_FALSE(TlsContext::server(of_node, ClientCertificate::kOptional).has_value());
}

TEST_F(Tls, ADirectoryOfRootsHasTheServersExtensions) {
  serve(files("node", authority.issue("n1", "IP:127.0.0.1"), authority.root()),
        ClientCertificate::kNotRequested);
  std::filesystem::create_directory(directory.path() / "ca");
  write("ca/root.cert", authority.root());
  write("ca/readme.txt", "no certificate");
  EXPECT_TRUE(ask({.trusted_roots = (directory.path() / "ca").string()}, endpoint).has_value());
}

TEST_F(Tls, SaysWhereTheOtherProtocolIsSpoken) {
  serve(files("node", authority.issue("n1", "IP:127.0.0.1"), authority.root()),
        ClientCertificate::kNotRequested);
  BeastClient client(context.get_executor());
  Result<Response> plain = Error{Errc::kTimeout, "not asked"};
  run([](BeastClient& c, Endpoint where, Result<Response>& answer) -> net::awaitable<void> {
    where.tls = false;
    answer = co_await c.send(where, Request{}, 5s);
  }(client, endpoint, plain));
  ASSERT_FALSE(plain.has_value());
  EXPECT_TRUE(plain.error().message.contains("is it https there?")) << plain.error().message;

  Server without(
      context.get_executor(), ServerOptions{},
      [](Request) -> net::awaitable<Response> { co_return Response{}; }, null_log());
  auto listening = without.listen();
  ASSERT_TRUE(listening.has_value());
  listening->tls = true;
  const auto secure = ask(trusting(authority.root()), *listening);
  ASSERT_FALSE(secure.has_value());
  EXPECT_TRUE(secure.error().message.contains("does not speak TLS")) << secure.error().message;
}

TEST_F(Tls, ShowsTheNewCertificateToNewConnectionsAfterAReload) {
  const auto with = files("node", authority.issue("old", "IP:127.0.0.1"), authority.root());
  serve(with, ClientCertificate::kNotRequested);
  const auto before = context_of_server->fingerprint();
  EXPECT_EQ(before.size(), 64U);
  write("node.crt", "no certificate");
  EXPECT_EQ(context_of_server->reload().error().code, Errc::kInvalidArgument);
  const auto renewed = authority.issue("new", "IP:127.0.0.1");
  write("node.crt", renewed.certificate);
  const auto wrong_key = context_of_server->reload();
  ASSERT_FALSE(wrong_key.has_value());
  EXPECT_TRUE(wrong_key.error().message.contains("node.key")) << wrong_key.error().message;
  EXPECT_EQ(context_of_server->fingerprint(), before);
  EXPECT_TRUE(ask(trusting(authority.root()), endpoint).has_value());
  write("node.key", renewed.key);
  ASSERT_TRUE(context_of_server->reload().has_value());
  EXPECT_NE(context_of_server->fingerprint(), before);
  EXPECT_TRUE(ask(trusting(authority.root()), endpoint).has_value());
}

TEST_F(Tls, AnswersNothingToPlainHttp) {
  serve(files("node", authority.issue("n1", "IP:127.0.0.1"), authority.root()),
        ClientCertificate::kNotRequested);
  const auto plain = ask(trusting(authority.root()), Endpoint{false, "127.0.0.1", endpoint.port});
  EXPECT_FALSE(plain.has_value());
  EXPECT_TRUE(ask(trusting(authority.root()), endpoint).has_value());
}

TEST_F(Tls, CarriesFrames) {
  const auto node = files("node", authority.issue("n1", "IP:127.0.0.1"), authority.root());
  FrameAcceptor acceptor(
      context.get_executor(),
      FrameAcceptorOptions{.tls = *TlsContext::server(node, ClientCertificate::kRequired)},
      [](std::shared_ptr<FrameConnection> connection) -> net::awaitable<void> {
        auto frame = co_await connection->receive();
        if (frame.has_value() && (co_await connection->send(std::move(*frame))).has_value()) {
          static_cast<void>(co_await connection->receive());
        }
      },
      null_log());
  const auto to = acceptor.listen();
  ASSERT_TRUE(to.has_value());
  TcpFrameTransport with(context.get_executor(), *TlsContext::client(node));
  TcpFrameTransport without(context.get_executor());
  run([](FrameAcceptor& a, TcpFrameTransport& t, TcpFrameTransport& u,
         Endpoint where) -> net::awaitable<void> {
    auto connection = co_await t.connect(where, 5s);
    EXPECT_TRUE(connection.has_value()) << connection.error().message;
    if (connection.has_value()) {
      const Bytes frame(100'000, std::byte{7});
      EXPECT_TRUE((co_await (*connection)->send(frame)).has_value());
      const auto back = co_await (*connection)->receive();
      EXPECT_TRUE(back.has_value() && *back == frame);
    }
    EXPECT_EQ((co_await u.connect(where, 5s)).error().code, Errc::kUnavailable);
    co_await a.stop(1s);
  }(acceptor, with, without, *to));
}

TEST_F(Tls, ConnectionsForFramesCountAndEndWhileTheyShakeHands) {
  const auto node = files("node", authority.issue("n1", "IP:127.0.0.1"), authority.root());
  FrameAcceptor acceptor(
      context.get_executor(),
      FrameAcceptorOptions{.connections = 2,
                           .hello = 15s,
                           .tls = *TlsContext::server(node, ClientCertificate::kRequired)},
      [](std::shared_ptr<FrameConnection>) -> net::awaitable<void> { co_return; }, null_log());
  const auto to = acceptor.listen();
  ASSERT_TRUE(to.has_value());
  const auto began = std::chrono::steady_clock::now();
  run([](FrameAcceptor& a, Endpoint where) -> net::awaitable<void> {
    // They connect and say nothing.
    const auto first = co_await RawPeer::connect(where);
    const auto second = co_await RawPeer::connect(where);
    const auto third = co_await RawPeer::connect(where);
    EXPECT_EQ(co_await third->read_to_end(), "") << "two are the limit";
    co_await a.stop(15s);
    EXPECT_EQ(co_await first->read_to_end(), "");
    EXPECT_EQ(co_await second->read_to_end(), "");
  }(acceptor, *to));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(Tls, KnowsNodesByTheReservedCommonName) {
  auto with = files("node", authority.issue("n1.db.example.com", "IP:127.0.0.1"), authority.root());
  with.reserved_common_name = "*.db.example.com";
  serve(with, ClientCertificate::kOptional);
  const auto who = [&](const std::string& name, const std::string& names,
                       const std::string& usages = "serverAuth,clientAuth") {
    return ask(files("client", authority.issue(name, names, usages), authority.root()), endpoint)
        ->body;
  };
  EXPECT_TRUE(who("n2.db.example.com", "IP:127.0.0.2").contains(" node ")) << "one label";
  EXPECT_TRUE(who("n2.site.db.example.com", "IP:127.0.0.2").contains(" other ")) << "two labels";
  EXPECT_TRUE(who("n2.example.com", "IP:127.0.0.2").contains(" other ")) << "another domain";
  EXPECT_TRUE(who("n2.db.example.com", "").contains(" other ")) << "no names";
  EXPECT_TRUE(who("n2.db.example.com", "IP:127.0.0.2", "clientAuth").contains(" other "))
      << "not for servers";
}

TEST_F(Tls, AReloadTakesTheReservedCommonNameOfTheConfiguration) {
  const auto old_name = files("old", authority.issue("old", "IP:127.0.0.1"), authority.root());
  const auto new_name = files("new", authority.issue("new", "IP:127.0.0.1"), authority.root());
  serve(old_name, ClientCertificate::kOptional);
  const auto is_node = [&](const TlsFiles& client) {
    return ask(client, endpoint)->body.contains(" node ");
  };
  const auto reload = [&](TlsFiles with, const std::string& reserved) {
    with.reserved_common_name = reserved;
    ASSERT_TRUE(TlsContext::reload_all({context_of_server}, with).has_value());
  };
  EXPECT_TRUE(is_node(old_name));
  EXPECT_FALSE(is_node(new_name));
  reload(old_name, "");
  EXPECT_FALSE(is_node(new_name));
  reload(new_name, "");  // not configured: that of the own certificate
  EXPECT_FALSE(is_node(old_name));
  EXPECT_TRUE(is_node(new_name));
  EXPECT_FALSE(TlsContext::reload_all({context_of_server},
                                      [&] {
                                        auto with = new_name;
                                        with.reserved_common_name = "old";
                                        with.check_own_chain = true;
                                        return with;
                                      }())
                   .has_value());
  EXPECT_TRUE(is_node(new_name)) << "a name that the own certificate does not fit is not taken";
  reload(old_name, "old");
  EXPECT_TRUE(is_node(old_name));
  EXPECT_FALSE(is_node(new_name));
}

/// As servers do (docs/operations/certificates.md): who connects shows the leaf without its
/// intermediates, and who is connected to completes the chain with its own.
TEST_F(Tls, ANodeShowsItsLeafAloneWhereItIsTheClient) {
  using certificates::CertificateKind;
  using certificates::SigningAuthority;
  const auto now = system_clock().now();
  const auto make = [&](CertificateKind kind, const std::string& name,
                        const SigningAuthority* by) -> SigningAuthority {
    certificates::CertificateTerms terms{.kind = kind,
                                         .common_name = name,
                                         .not_before = Ticks(now.value() - 60 * kTicksPerSecond),
                                         .not_after = Ticks(now.value() + 3600 * kTicksPerSecond)};
    if (kind == CertificateKind::kNode) {
      terms.ip_addresses = {"127.0.0.1"};
    }
    auto key = *certificates::new_private_key(certificates::KeyType::kEcP256, "");
    auto made = by == nullptr
                    ? certificates::make_root(key, "", terms)
                    : certificates::issue(*certificates::make_request(key, "", terms), terms, *by);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return {.certificates = made->certificates, .key = std::move(key)};
  };
  const auto root = make(CertificateKind::kRoot, "Root", nullptr);
  const auto one = make(CertificateKind::kIntermediate, "One", &root);
  const auto two = make(CertificateKind::kIntermediate, "Two", &root);
  const auto of_one = make(CertificateKind::kNode, "node", &one);
  const auto of_two = make(CertificateKind::kNode, "node", &two);
  const auto node_files = [&](const std::string& name, const SigningAuthority& of,
                              const std::string& more = "") {
    auto out =
        files(name, {.certificate = of.certificates + more, .key = of.key}, root.certificates);
    out.check_own_chain = true;
    return out;
  };
  serve(node_files("server", of_one), ClientCertificate::kOptional);
  const auto same = ask(node_files("same", of_one), endpoint);
  EXPECT_TRUE(same.has_value() && same->body.contains("node node")) << same->body;
  EXPECT_FALSE(ask(node_files("other", of_two), endpoint).has_value())
      << "the server does not have its intermediate";
  EXPECT_TRUE(ask(trusting(root.certificates), endpoint).has_value())
      << "a server shows its whole chain";
  // With both intermediates behind the leaf the server accepts both.
  ASSERT_TRUE(
      TlsContext::reload_all({context_of_server}, node_files("server", of_one, two.certificates))
          .has_value());
  EXPECT_TRUE(ask(node_files("other", of_two), endpoint).has_value());
}

TEST_F(Tls, ANodesOwnChainMustHold) {
  const auto refused = [&](TlsFiles with) {
    with.check_own_chain = true;
    const auto made = TlsContext::server(std::move(with), ClientCertificate::kOptional);
    EXPECT_FALSE(made.has_value());
    return made.has_value() ? std::string() : made.error().message;
  };
  const auto good = authority.issue("n1", "IP:127.0.0.1");
  EXPECT_TRUE(refused(files("a", stranger.issue("n1", "IP:127.0.0.1"), authority.root()))
                  .contains("unable to get local issuer"));
  EXPECT_TRUE(
      refused(files("b", authority.issue("n1", "", "serverAuth", -7200, -3600), authority.root()))
          .contains("certificate has expired"));
  EXPECT_TRUE(
      refused(files("c", authority.issue("n1", "", "serverAuth", 3600, 7200), authority.root()))
          .contains("not yet valid"));
  auto with_root = good;
  with_root.certificate += authority.root();
  EXPECT_TRUE(refused(files("d", with_root, authority.root())).contains("no intermediate"));
  EXPECT_TRUE(refused(files("e", good, good.certificate)).contains("it is no root"));
  auto misnamed = files("f", good, authority.root());
  misnamed.reserved_common_name = "somebody";
  EXPECT_TRUE(refused(misnamed).contains("reserved node common name"));
  auto right = files("g", good, authority.root());
  right.check_own_chain = true;
  EXPECT_TRUE(TlsContext::server(right, ClientCertificate::kOptional).has_value());
}

TEST_F(Tls, SaysWhichCertificateWasNotAcceptedAndWhatToDo) {
  serve(files("node", authority.issue("n1", "IP:127.0.0.1", "serverAuth", -7200, -3600),
              authority.root()),
        ClientCertificate::kNotRequested);
  const auto expired = ask(trusting(authority.root()), endpoint).error().message;
  for (const auto* part : {"https://127.0.0.1:", "CN=n1", "issuer CN=Verger test root",
                           "certificate has expired", "renew it"}) {
    EXPECT_TRUE(expired.contains(part)) << part << ": " << expired;
  }
  const auto unknown = ask(trusting(stranger.root()), endpoint).error().message;
  EXPECT_TRUE(unknown.contains("add the root that issued it to")) << unknown;
}

TEST_F(Tls, WhoKnowsAStrangerSaysWhatToDoAboutIt) {
  serve(files("node", authority.issue("n1", "URI:urn:x:n1,IP:127.0.0.1"), authority.root()),
        ClientCertificate::kNotRequested);
  const auto advice = [](const CertificateInfo& shown) {
    return shown.uris == std::vector<std::string>{"urn:x:n1"} ? "ask " + shown.issuer : "";
  };
  const auto known = ask(trusting(stranger.root()), endpoint, advice).error().message;
  EXPECT_TRUE(known.ends_with("; ask CN=Verger test root")) << known;
  const auto none = [](const CertificateInfo&) { return std::string(); };
  const auto unknown = ask(trusting(stranger.root()), endpoint, none).error().message;
  EXPECT_TRUE(unknown.contains("add the root that issued it to")) << unknown;
  const auto accepted = ask(trusting(authority.root()), endpoint, advice);
  EXPECT_TRUE(accepted.has_value()) << accepted.error().message;
}

TEST_F(Tls, ReloadsAllContextsOfAProgramOrNone) {
  const auto with = files("node", authority.issue("old", "IP:127.0.0.1"), authority.root());
  const auto server_side = *TlsContext::server(with, ClientCertificate::kRequired);
  const auto client_side = *TlsContext::client(with);
  const auto before = server_side->certificate();
  write("node.crt", authority.issue("new", "IP:127.0.0.1").certificate);  // without its key
  EXPECT_FALSE(TlsContext::reload_all({server_side, client_side}, with).has_value());
  EXPECT_EQ(server_side->certificate().serial, before.serial);
  EXPECT_EQ(client_side->certificate().serial, before.serial);
  const auto elsewhere = files("moved", authority.issue("new", "IP:127.0.0.1"), authority.root());
  ASSERT_TRUE(TlsContext::reload_all({server_side, client_side}, elsewhere).has_value());
  EXPECT_EQ(server_side->certificate().common_name, "new");
  EXPECT_EQ(client_side->certificate().serial, server_side->certificate().serial);
}

TEST_F(Tls, ShowsWhatAServerServesTrustedOrNot) {
  serve(files("node", authority.issue("n1", "IP:127.0.0.1", "serverAuth", -7200, -3600),
              authority.root()),
        ClientCertificate::kNotRequested);
  run([](net::io_context& on, Endpoint from, CertificateInfo expected) -> net::awaitable<void> {
    const auto seen = co_await served_certificate(on.get_executor(), from, 5s);
    EXPECT_TRUE(seen.has_value()) << seen.error().message;
    EXPECT_EQ(seen->fingerprint, expected.fingerprint);
    EXPECT_EQ(seen->serial, expected.serial);
    EXPECT_EQ(seen->names, std::vector<std::string>{"127.0.0.1"});
  }(context, endpoint, context_of_server->certificate()));
}

TEST_F(Tls, NothingGoesOverANetworkInTheClear) {
  BeastClient client(context.get_executor(), BeastClientOptions{.plain_to_loopback_only = true});
  run([](BeastClient& c) -> net::awaitable<void> {
    const auto refused = co_await c.send(Endpoint{false, "10.9.8.7", 2113}, Request{}, 5s);
    EXPECT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::kUnavailable);
    EXPECT_TRUE(refused.error().message.contains("use https")) << refused.error().message;
  }(client));
}

TEST_F(Tls, NamesTheFileThatIsWrong) {
  EXPECT_EQ(TlsContext::client(TlsFiles{.trusted_roots = "/nowhere/ca.crt"}).error().code,
            Errc::kNotFound);
  const auto empty = directory.path() / "roots";
  std::filesystem::create_directory(empty);
  const auto none = TlsContext::client(TlsFiles{.trusted_roots = empty.string()});
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(none.error().message.contains("no trusted root")) << none.error().message;
  std::ofstream(empty / "ca.crt") << authority.root();
  EXPECT_TRUE(TlsContext::client(TlsFiles{.trusted_roots = empty.string()}).has_value());
  EXPECT_FALSE(TlsContext::server(TlsFiles{}, ClientCertificate::kNotRequested).has_value());
}

}  // namespace
}  // namespace verger::http::test
