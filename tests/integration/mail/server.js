// A mail server of the package smtp-server: each mail it takes is a file. Arguments: directory,
// "tls" (from the start), "starttls" or "plain", and the base of certificate and key.
const fs = require("fs");
const path = require("path");
const { SMTPServer } = require("smtp-server");

const [directory, mode, base] = process.argv.slice(2);
let count = 0;
const server = new SMTPServer({
  secure: mode === "tls",
  key: fs.readFileSync(base + ".key"),
  cert: fs.readFileSync(base + ".crt"),
  disabledCommands: mode === "plain" ? ["STARTTLS", "AUTH"] : [],
  authOptional: mode === "plain",
  onAuth: (auth, session, done) =>
    auth.username === "verger" && auth.password === "right"
      ? done(null, { user: auth.username })
      : done(new Error("535 wrong user or password")),
  onRcptTo: (address, session, done) =>
    address.address === "nobody@example.com" ? done(new Error("no such mailbox")) : done(),
  onData: (stream, session, done) => {
    let text = "";
    stream.on("data", (piece) => (text += piece));
    stream.on("end", () => {
      const to = session.envelope.rcptTo.map((each) => each.address).join(",");
      fs.writeFileSync(
        path.join(directory, `mail-${count++}.txt`),
        `secure=${session.secure} from=${session.envelope.mailFrom.address} to=${to}\n${text}`);
      done();
    });
  },
});
server.on("error", (error) => console.error(error.message));
server.listen(0, "127.0.0.1", () => {
  const file = path.join(directory, "port");
  fs.writeFileSync(file + ".new", String(server.server.address().port));
  fs.renameSync(file + ".new", file);
});
setTimeout(() => process.exit(0), 120000);
