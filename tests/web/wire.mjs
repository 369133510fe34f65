// A wire to vergerd that can be cut, as a network is.
import net from "node:net";

export class Wire {
  constructor(port) {
    this.sockets = new Set();
    this.isCut = false;
    this.server = net.createServer((client) => {
      if (this.isCut) {
        client.destroy();
        return;
      }
      const upstream = net.connect(port, "127.0.0.1");
      for (const [one, other] of [[client, upstream], [upstream, client]]) {
        this.sockets.add(one);
        one.pipe(other);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  async open() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return this.server.address().port;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  restore() {
    this.isCut = false;
  }

  close() {
    this.cut();
    this.server.close();
  }
}
